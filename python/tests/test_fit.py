"""`fit` on programs that the compiler answers in a moment."""

from __future__ import annotations

import csv
import functools
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

import tilewise as tw
from tilewise.__main__ import main
from tilewise._fit import combination, factory

jax = pytest.importorskip("jax")
pytest.importorskip("libtpu")
jnp = jax.numpy

S = jax.ShapeDtypeStruct
Fitted = Callable[..., tw.Fit]


def twice(x: Any) -> Any:
    return jnp.exp(jax.lax.optimization_barrier(jnp.tanh(x))) + 1


def make(batch: int, wide: bool = False) -> Any:
    """A GiB an array for each of the batch, of which one is read and one is written; with `wide` twice that."""
    return twice, (S((batch * (2 if wide else 1), 2**14, 2**14), jnp.float32),)


def parts(batch: int) -> Any:
    """Each multiple of 4 fits; other sizes take an array more."""
    x = S((batch, 2**13, 2**14), jnp.float32)
    return (lambda x: x + 1) if batch % 4 == 0 else (lambda x: (x + 1, x + 2, x + 3, x + 4)), (x,)


def troubled(batch: int) -> Any:
    if batch == 7:
        os.abort()
    if batch == 6:
        while True:
            time.sleep(1)
    if batch == 5:
        raise tw.Skip("5 is odd")
    if batch == 4:
        raise ValueError("no")
    return make(batch)


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    return functools.partial(tw.fit, tpu="v5e", cache=None, progress=False)


def test_the_largest_batch_of_each_combination(fitted: Fitted) -> None:
    found = fitted(make, largest={"batch": range(1, 13)}, grid={"wide": [True, False]})
    assert [each.largest for each in found.combinations] == [{"batch": 3}, {"batch": 7}]
    assert found.largest == {"batch": 7, "wide": False}
    assert (found.gaps, found.errors, found.interrupted) == ([], [], False)
    answer = found[{"batch": 7, "wide": False}]
    said = tw.compile_for(*_flat(make(7)), tpu="v5e").memory_analysis()
    assert (answer.status, answer.bytes_source) == ("fits", "compiled")
    assert answer.argument_bytes == said.argument_size_in_bytes
    assert answer.temporary_bytes == said.temp_size_in_bytes
    refused = found[{"batch": 8, "wide": False}]
    assert refused.status == "refused"
    assert "E1000" in (refused.error or "")
    assert (refused.headroom_bytes or 0) < 0
    assert refused.report is not None
    assert refused.report.fits is False
    assert refused.owner is not None
    assert refused.owner.bytes == 8 * 2**30
    # Of the sizes above each answer some were asked at the real limit; the others follow.
    assert (
        {3, 4, 5, 7, 8, 9} <= {row.settings["batch"] for row in found.rows if row.mode == "full"} <= set(range(3, 13))
    )
    table = str(found).splitlines()
    assert table[0].split()[:3] == ["wide", "largest", "batch"]
    assert table[2].split()[:2] == ["False", "7"]
    lines = [json.loads(line) for line in found.to_json().splitlines()]
    assert [tw.FitRow.from_dict(line) for line in lines] == found.rows
    assert found.to_markdown().startswith("| wide |")
    assert found.to_html().count("<tr>") == 3
    assert len(list(csv.DictReader(found.to_csv().splitlines(keepends=True)))) == len(found)
    assert found.to_pandas()["batch"].max() == 12
    assert found.to_polars()["total_bytes"].max() == max(row.total_bytes or 0 for row in found)


def asking(batch: int) -> Any:
    if "TPU" not in jax.devices()[0].device_kind:
        raise ValueError("not on a TPU")
    return make(batch)


def test_a_factory_may_ask_which_tpu_it_runs_on(fitted: Fitted) -> None:
    assert fitted(asking, largest={"batch": [1, 2]}).largest == {"batch": 2}


def _flat(made: Any) -> tuple[Any, ...]:
    return made[0], *made[1]


def test_nothing_is_assumed_monotone(fitted: Fitted) -> None:
    found = fitted(parts, largest={"batch": range(1, 20)})
    assert (found.largest, found.gaps) == ({"batch": 12}, [])


@pytest.mark.slow
def test_each_status_has_its_cause(fitted: Fitted) -> None:
    found = fitted(troubled, largest={"batch": range(1, 8)}, timeout=3)
    assert found.largest == {"batch": 3}
    assert {row.settings["batch"]: row.status for row in found.errors} == {
        4: "untraceable",
        5: "skipped",
        6: "timeout",
        7: "crashed",
    }
    assert found.gaps == []
    assert "Programs without an answer: 4" in str(found)


def test_a_function_s_arguments_are_stretched(fitted: Fitted) -> None:
    x, w = S((2, 2**13, 2**14), jnp.float32), {"w": S((2**13, 2**14), jnp.float32)}
    found = fitted(lambda x, w: x + w["w"], x, w, in_axes=(0, None), largest=range(2, 33, 2))
    assert found.largest == {"batch": 14}
    assert found[{"batch": 14}].argument_bytes == 15 * 2**29
    made = factory.Stretched(twice, (S((3, 4), jnp.float32),), 0, "batch", 2, None)
    assert made(batch=4)[1][0].shape == (6, 4)
    with pytest.raises(tw.Skip):
        made(batch=3)
    with pytest.raises(ValueError, match="no axis"):
        fitted(twice, x, in_axes=None, largest=range(1, 3))


def test_a_target_that_fits(fitted: Fitted, tmp_path: Path) -> None:
    ask = functools.partial(fitted, make, target={"batch": 1}, grid={"donate": [False, True]}, cache=tmp_path)
    found = ask()
    plain, donated = found.rows
    assert (plain.alias_bytes, donated.alias_bytes) == (0, 2**30)
    assert found.best == {"donate": True, "batch": 1}
    again = ask()
    assert [row.cached for row in found.rows + again.rows] == [False, False, True, True]
    assert [row.total_bytes for row in again] == [row.total_bytes for row in found]
    assert again[{"batch": 1, "donate": True}].report == found[{"batch": 1, "donate": True}].report


@pytest.fixture
def interruptible() -> Generator[None]:
    """Ctrl-C raises, also where this process was started without it, as a job in the background is."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible", "own_compilers")
def test_an_interrupted_search_resumes(fitted: Fitted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = threading.get_ident()
    asked = combination.Asker._asked

    def interrupting(self: Any, settings: Any, kind: Any) -> tw.FitRow:
        if len(found) == 3 and not interrupted:
            interrupted.append(True)
            signal.pthread_kill(here, signal.SIGINT)
        row = asked(self, settings, kind)
        found.append(row)
        return row

    found: list[tw.FitRow] = []
    interrupted: list[bool] = []
    monkeypatch.setattr(combination.Asker, "_asked", interrupting)
    ask = functools.partial(fitted, make, largest={"batch": range(1, 13)}, out=tmp_path / "rows.jsonl")
    first = ask()
    assert first.interrupted
    assert first.largest is None
    assert first.gaps
    assert "Interrupted" in str(first)
    second = ask()
    assert (second.largest, second.gaps, second.interrupted) == ({"batch": 7}, [], False)
    assert len({(row.settings["batch"], row.mode) for row in found}) == len(found)
    with pytest.raises(ValueError, match="another search"):
        ask(largest={"batch": range(1, 3)})


@pytest.mark.slow
@pytest.mark.usefixtures("own_compilers")
def test_combinations_are_searched_at_once(fitted: Fitted) -> None:
    found = fitted(make, largest={"batch": [1, 20]}, grid={"wide": [False, True]}, workers=2)
    assert [each.largest for each in found.combinations] == [{"batch": 1}, {"batch": 1}]


def test_wrong_arguments_are_explained(fitted: Fitted) -> None:
    for arguments, words in (
        ({"largest": {"batch": []}}, "no sizes"),
        ({"largest": {"batch": [2, 1]}}, "ascend"),
        ({"largest": [1], "target": {"batch": 1}}, "one of them"),
        ({"largest": [1], "confirm": "some"}, "confirm"),
        ({"largest": [1], "above": "some"}, "above"),
        ({"largest": [1], "engine": "spark"}, "engine"),
        ({"largest": [1], "grid": {"wide": []}}, "empty grid"),
    ):
        with pytest.raises(ValueError, match=words):
            fitted(make, **arguments)
    with pytest.raises(TypeError, match="jit_options"):
        fitted(make, largest=[1], jit_options={})
    assert fitted(lambda batch: None, largest=[1]).errors[0].status == "untraceable"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def make(batch): raise RuntimeError('no data')", "no program has an answer"),
        ("def make(batch): return None", "the factory returns"),
        ("def make(batch: return None", "can't be run: SyntaxError"),
        ("raise RuntimeError('at import')", "can't be run: RuntimeError: at import"),
        ("def make(bacth): return None", "the factory has no setting 'batch', only bacth"),
        ("def make(batch, seq): return None", "the factory needs a value of 'seq'"),
    ],
)
def test_what_is_no_program_is_no_misfit(
    source: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.py"
    path.write_text(source, encoding="utf-8")
    asked = [f"{path}:make", "--tpu", "v5e", "--largest", "batch=1..2", "--no-cache"]
    assert main(["fit", *asked]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert said[-1].startswith("error: ")
    assert words in said[-1]
