"""Runs `tilewise.fleet` on a cluster of Ray on this machine, and kills a worker: a line of JSON a run.

    python bench/fleet.py audit TEXTS WORK [--dumps 2000]
    python bench/fleet.py relayout WORK [--gigabytes 20]

TEXTS is a folder of HLO texts, copied into the folders of jobs in WORK. The checkpoint is sparse, its result is not.
Needs `tilewise[fleet-ray]` and psutil.
"""

from __future__ import annotations

import argparse
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import ray
from ray.cluster_utils import Cluster

from tilewise import fleet


@contextmanager
def cluster(workers: int) -> Iterator[Callable[[], None]]:
    """A cluster of `workers` nodes of one CPU each; yields a function that kills one of them."""
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    added = [nodes.add_node(num_cpus=1) for _ in range(workers)]
    ray.init(address=nodes.address, log_to_driver=False)
    # Not part of what is measured: the start of the workers' processes.
    sleep = ray.remote(scheduling_strategy="SPREAD")(lambda: time.sleep(1))
    ray.get([sleep.remote() for _ in range(workers)])
    try:
        yield lambda: nodes.remove_node(added[0], allow_graceful=False)
    finally:
        ray.shutdown()
        nodes.shutdown()


def once(is_begun: Callable[[], bool], kill: Callable[[], None]) -> threading.Thread:
    def wait() -> None:
        while not is_begun():
            time.sleep(0.05)
        kill()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def audit(texts: Path, work: Path, dumps: int) -> None:
    sources = [path for path in sorted(texts.iterdir()) if path.suffix == ".hlo"]
    folder = work / "dumps"
    for number in range(dumps):
        job = folder / f"job_{number // 10:04}"
        job.mkdir(parents=True, exist_ok=True)
        shutil.copy(sources[number % len(sources)], job / f"module_{number:04}.jit_f.after_optimizations.txt")
    size = sum(path.stat().st_size for path in folder.rglob("*.txt"))
    print(json.dumps({"dumps": dumps, "bytes": size}), flush=True)

    def timed(name: str, **options: Any) -> list[Any]:
        start = time.perf_counter()
        table = fleet.audit(folder, **options)
        seconds = time.perf_counter() - start
        errors = sum(error is not None for error in table["error"].to_pylist())
        report: dict[str, Any] = {"run": name, "rows": len(table), "errors": errors, "seconds": round(seconds, 1)}
        report["dumps_per_second"] = round(dumps / seconds)
        # Without the start of the pipeline: between the first file that is written and the last.
        written = [path.stat().st_mtime for path in (options["out"] / "programs").rglob("*.parquet")]
        report["seconds_of_writing"] = round(max(written) - min(written), 1)
        print(json.dumps(report), flush=True)
        return table.to_pylist()

    expected = timed("threads", out=work / "one")
    for workers in (1, 2):
        with cluster(workers):
            found = timed(f"ray, {workers} workers", engine="ray", out=work / f"ray{workers}")
        print(json.dumps({"equal": found == expected}), flush=True)
    with cluster(4) as kill:
        out = work / "killed"
        killer = once(lambda: len(list(out.rglob("*.parquet"))) > dumps // 40, kill)
        found = timed("ray, 4 workers, one killed", engine="ray", out=out)
        print(json.dumps({"equal": found == expected, "killed": not killer.is_alive()}), flush=True)
        found = timed("the same again", engine="ray", out=out)
        print(json.dumps({"equal": found == expected}), flush=True)


def make_checkpoint(folder: Path, gigabytes: int) -> dict[str, str]:
    """Files of two tensors of 512 MiB each, with a value here and there."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    weight_map, plan = {}, {}
    size = 512 << 20
    for number in range(gigabytes * 10**9 // (2 * size) + 1):
        name = f"model-{number:03}.safetensors"
        shapes = {f"{number}.rows": [65536, 4096], f"{number}.columns": [4096, 65536]}
        entries = {
            key: {"dtype": "BF16", "shape": shape, "data_offsets": [at * size, (at + 1) * size]}
            for at, (key, shape) in enumerate(shapes.items())
        }
        header = json.dumps(entries).encode()
        with open(folder / name, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + 2 * size)
            for at in random.integers(0, 2 * size - 65536, 32):
                file.seek(8 + len(header) + int(at))
                file.write(random.bytes(65536))
        weight_map.update(dict.fromkeys(shapes, name))
        plan[f"{number}.rows"] = "{1,0:T(8,128)(2,1)}"
        plan[f"{number}.columns"] = "{0,1:T(8,128)(2,1)}" if number % 4 == 0 else "{1,0:T(8,128)(2,1)}"
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return plan


class Memory(threading.Thread):
    """The most memory of its own that a worker had, in bytes: what it maps and shares doesn't count."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.stopped = 0, False

    def run(self) -> None:
        while not self.stopped:
            for process in psutil.process_iter(["cmdline"]):
                if (process.info["cmdline"] or [""])[0].startswith("ray::"):
                    self.most = max(self.most, anonymous(process.pid))
            time.sleep(0.2)


def anonymous(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("RssAnon")), 0)


def relayout(work: Path, gigabytes: int) -> None:
    source, out = work / "checkpoint", work / "converted"
    plan = make_checkpoint(source, gigabytes)
    files = list(source.glob("*.safetensors"))
    held = {
        "bytes": sum(path.stat().st_size for path in files),
        "on_disk": sum(path.stat().st_blocks for path in files) << 9,
    }
    print(json.dumps(held), flush=True)
    journal = out / ".tilewise-unfinished" / "journal"
    with cluster(3) as kill:
        memory = Memory()
        memory.start()
        killer = once(lambda: journal.exists() and journal.read_text().count("\n") > 40, kill)
        start = time.perf_counter()
        done = fleet.relayout(source, plan, out, engine="ray")
        seconds = time.perf_counter() - start
        memory.stopped = True
    rate = round(done.bytes / seconds / 1e9, 2)
    report = {"seconds": round(seconds, 1), "gigabytes_per_second": rate, "killed": not killer.is_alive()}
    print(json.dumps({**report, "largest_worker_bytes": memory.most, **vars(done)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("audit")
    command.add_argument("texts", type=Path)
    command.add_argument("work", type=Path)
    command.add_argument("--dumps", type=int, default=2000)
    command = commands.add_parser("relayout")
    command.add_argument("work", type=Path)
    command.add_argument("--gigabytes", type=int, default=20)
    arguments = vars(parser.parse_args())
    {"audit": audit, "relayout": relayout}[arguments.pop("command")](**arguments)


if __name__ == "__main__":
    main()
