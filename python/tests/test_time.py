"""Where the time of a run goes: the figures of the command line's JSON, typed."""

import json
import pickle
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tilewise as tw
from tilewise._fit.advice import AdviceCheck
from tilewise._fit.combination import Combination, _row
from tilewise._fit.result import Fit

EXAMPLE = Path(__file__).parents[2] / "examples" / "gnn_large.v5e.hlo"


def test_a_time_is_what_the_command_line_prints() -> None:
    report = tw.audit(EXAMPLE)
    time = report.time
    assert time is not None
    assert report.no_time is None
    held = json.loads(report.to_json())["time"]
    for name in ("estimate_seconds", "floor_seconds", "compiler_seconds", "cycles", "is_at_least", "cores"):
        assert getattr(time, name) == held[name]
    assert time.floor_seconds <= time.estimate_seconds <= time.compiler_seconds
    # Each part adds up to the whole, every instruction included.
    total = pytest.approx(time.estimate_seconds)
    for rows in (time.kinds, time.lines, time.modules):
        assert sum(row.seconds for row in rows) == total
    assert sum(row.estimate_seconds for row in time.rows) == total
    assert [row.name for row in time.unpriced] == ["gather_scatter_sort"]
    assert time.lines[0].name.endswith("model.py:439")
    assert all("not measured" in said for said in (str(time), repr(time)))
    assert len(time.to_dict()["kind"]) == len(time.rows)


def test_a_time_travels() -> None:
    time = tw.audit(EXAMPLE).time
    assert time is not None
    for other in (pickle.loads(pickle.dumps(time)), tw.Time.from_json(time.to_json()), tw.audit(EXAMPLE).time):
        assert other is not None
        assert other.rows == time.rows
        assert str(other) == str(time)
    assert hash(pickle.loads(pickle.dumps(time))) == hash(time)
    with pytest.raises(ValueError, match="not a Time"):
        tw.Time.from_json('{"schema": 1, "time": {}, "words": ""}')


def test_a_text_without_cycles_says_why() -> None:
    report = tw.audit(EXAMPLE.read_text().replace("estimated_cycles", "cycles"), tpu="v5e")
    assert report.time is None
    assert "after_codegen.txt" in (report.no_time or "")


def row(name: str, text: str, moved: int) -> Combination:
    """A combination that fits, with as many operations as any other."""
    held = {
        "settings": {"name": name},
        "tpu": "v5e",
        "status": "fits",
        "limit_bytes": 2**34,
        "flops": 7,
        "mode": "full",
    }
    held |= {"total_bytes": 1, "hbm_bytes_moved": moved}
    return Combination({"name": name}, "v5e", None, largest={}, rows=[_row(held, zlib.compress(text.encode()))])


def test_ties_of_fit_are_broken_by_time() -> None:
    slow = (EXAMPLE.parent / "kv_decode_row_major.v5e.hlo").read_text()

    def scaled(share: float) -> str:
        return re.sub(r'("estimated_cycles":")(\d+)', lambda found: found[1] + str(int(int(found[2]) * share)), slow)

    def best(share: float) -> dict[str, Any] | None:
        # By bytes alone the first would be the best.
        combinations = [row("slow", slow, 1), row("fast", scaled(share), 2)]
        return Fit(combinations, axes={}, target={}, interrupted=False).best

    assert best(0.5) == {"name": "fast"}
    assert best(0.95) == {"name": "slow"}


def test_checked_advice_says_what_it_costs() -> None:
    report = tw.audit(EXAMPLE)
    row = tw.CheckedAdvice(
        report.changes[0], 2**20, freed_bytes=2**20, peak_bytes=2**30, fits=True, why_not=None, time=None
    )
    comparison = report.diff(report)
    assert "est. time" not in str(AdviceCheck(comparison, (row,)))
    slower = str(AdviceCheck(comparison, (replace(row, time=0.25),)))
    assert "est. time" in slower.splitlines()[0]
    assert "+25%" in slower.splitlines()[1]
