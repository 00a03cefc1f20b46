"""Real clusters of Ray and Dask on this machine, some of whose workers die: the same results as one process."""

from __future__ import annotations

import functools
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec")
pytest.importorskip("safetensors.numpy")

from test_fleet import (
    PLAN,
    check_as_the_command_line,
    check_converted,
    dataset,
    make_checkpoint,
    make_dumps,
    make_files,
    rows,
)

import tilewise as tw
from tilewise import fleet
from tilewise._fit.factory import FromFile
from tilewise.fleet import _audit, _engines

# Ray and Dask leave sockets to the garbage collector.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]

Kill = Callable[[], None]


@pytest.fixture(params=["ray", "dask"])
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Kill]]:
    """The engine, and what kills one of its workers, or nodes, for good."""
    yield from {"ray": ray_cluster, "dask": dask_cluster}[request.param]()


def ray_cluster() -> Iterator[tuple[Any, Kill]]:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster

    # The head has no CPUs, so that all tasks run elsewhere.
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        yield "ray", lambda: cluster.remove_node(nodes[0], allow_graceful=False)
    finally:
        ray.shutdown()
        cluster.shutdown()


def dask_cluster() -> Iterator[tuple[Any, Kill]]:
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        process = next(iter(cluster.workers.values())).process.process.pid
        with distributed.Client(cluster):
            yield "dask", lambda: os.kill(process, signal.SIGKILL)


@contextmanager
def killed(kill: Kill, *, when: Callable[[], bool]) -> Iterator[None]:
    """Kills in the middle of what is run with it, as soon as a condition holds."""
    killed_at: list[float] = []

    def wait() -> None:
        until = time.monotonic() + 120
        while not when() and time.monotonic() < until:
            time.sleep(0.01)
        killed_at.append(time.monotonic())
        kill()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    end = time.monotonic()
    thread.join()
    assert killed_at[0] < end


def test_a_task_that_kills_its_workers_is_left_out(cluster: tuple[Any, Kill], tmp_path: Path) -> None:
    engine, _ = cluster

    def square(number: int) -> int:
        if number == 3 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 7 and not (tmp_path / "failed").exists():
            (tmp_path / "failed").touch()
            raise OSError("try again")
        if number == 9:
            raise OSError("always")
        return number * number

    found = dict(_engines.run(engine, square, range(12)))
    assert (tmp_path / "died").exists()
    assert (tmp_path / "failed").exists()
    # Those next to the killer may share its fate with an engine that counts suspects.
    assert {5, 9}.isdisjoint(found)
    assert found == {number: number * number for number in found}
    assert {3, 7} <= set(found)


def test_audit_with_a_worker_killed(cluster: tuple[Any, Kill], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, kill = cluster
    monkeypatch.setattr(_audit, "_BATCH_FILES", 2)
    dumps, out = make_dumps(tmp_path / "dumps", 60), tmp_path / "out"
    with killed(kill, when=lambda: any(out.rglob("*.parquet"))):
        table = fleet.audit(dumps, engine=engine, out=out)
    expected = fleet.audit(dumps, out=tmp_path / "one")
    assert len(expected) == 120
    assert rows(table) == rows(expected)
    assert dataset(out / "programs") == dataset(tmp_path / "one" / "programs")
    assert len(dataset(out / "buffers")) == len(dataset(tmp_path / "one" / "buffers"))
    assert rows(fleet.audit(dumps, engine=engine, out=out)) == rows(expected)


def test_many_files_with_a_worker_killed(
    cluster: tuple[Any, Kill], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As threads have them, and as the command line; `FLEET_FILES=2000` audits that many."""
    engine, kill = cluster
    count = int(os.environ.get("FLEET_FILES", "60"))
    monkeypatch.setattr(_audit, "_BATCH_FILES", max(2, count // 60))
    folder, out = make_files(tmp_path / "files", count), tmp_path / "out"
    with killed(kill, when=lambda: any(out.rglob("*.parquet"))):
        table = rows(fleet.audit(folder, tpu="v5e", engine=engine, out=out))
    assert table == rows(fleet.audit(folder, tpu="v5e"))
    assert dataset(out / "programs") == sorted(table, key=lambda row: str((row["job"], row["source"])))
    check_as_the_command_line(table, folder)


def test_relayout_with_a_worker_killed(cluster: tuple[Any, Kill], tmp_path: Path) -> None:
    engine, kill = cluster
    source, out = make_checkpoint(tmp_path / "in"), tmp_path / "out"
    journal = out / ".tilewise-unfinished" / "journal"
    with killed(kill, when=lambda: journal.exists() and journal.read_text().count("\n") > 3):
        done = fleet.relayout(source, PLAN, out, engine=engine, slice_bytes=8_192, check="all")
    assert done.slices > 100
    check_converted(out)


PROGRAM = """
from pathlib import Path
import jax, jax.numpy as jnp

def make(batch, wide=False):
    with open(Path(__file__).with_name("calls"), "a") as file:
        file.write(f"{batch}\\n")
    return jnp.tanh, (jax.ShapeDtypeStruct((batch * (2 if wide else 1), 2**14, 2**14), jnp.float32),)
"""


def test_combinations_are_searched_by_a_cluster(cluster: tuple[Any, Kill], tmp_path: Path) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    engine, kill = cluster
    (tmp_path / "model.py").write_text(PROGRAM, encoding="utf-8")
    calls, out = tmp_path / "calls", tmp_path / "rows.jsonl"
    search = functools.partial(
        tw.fit,
        FromFile(str(tmp_path / "model.py"), "make"),
        tpu="v5e",
        largest={"batch": [1, 5, 20]},
        grid={"wide": [False, True]},
        cache=None,
        engine=engine,
        out=out,
    )
    with killed(kill, when=calls.exists):
        found = search()
    assert [each.largest for each in found.combinations] == [{"batch": 5}, {"batch": 1}]
    assert (found.gaps, found.errors) == ([], [])
    answer = found[{"batch": 5, "wide": False}]
    assert (answer.status, answer.total_bytes) == ("fits", 10 * 2**30)
    assert answer.report is not None
    # Again, with the rows of one combination, and then with all.
    head, *lines = out.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if json.loads(line)["task"] == 0]
    out.write_text("\n".join([head, *kept, ""]), encoding="utf-8")
    for expected in (lines, []):
        calls.write_text("", encoding="utf-8")
        again = search()
        assert [each.largest for each in again.combinations] == [each.largest for each in found.combinations]
        assert (again.gaps, len(again)) == ([], len(found))
        assert bool(calls.read_text(encoding="utf-8")) == bool(expected)
    assert out.read_text(encoding="utf-8").count("\n") == 1 + len(lines)
