"""Where the time of a run goes: the figures of the command line's JSON, typed."""

import json
import pickle
from pathlib import Path

import pytest

import tilewise as tw

EXAMPLE = Path(__file__).parents[2] / "examples" / "gnn_large.v5e.hlo"


def test_a_time_is_what_the_command_line_prints() -> None:
    report = tw.audit(EXAMPLE)
    time = report.time
    assert time is not None and report.no_time is None
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
    assert "not measured" in str(time) and "not measured" in repr(time)
    assert len(time.to_dict()["kind"]) == len(time.rows)


def test_a_time_travels() -> None:
    time = tw.audit(EXAMPLE).time
    assert time is not None
    for other in (pickle.loads(pickle.dumps(time)), tw.Time.from_json(time.to_json()), tw.audit(EXAMPLE).time):
        assert other.rows == time.rows and str(other) == str(time)
    assert hash(pickle.loads(pickle.dumps(time))) == hash(time)
    with pytest.raises(ValueError, match="not a Time"):
        tw.Time.from_json('{"schema": 1, "time": {}, "words": ""}')


def test_a_text_without_cycles_says_why() -> None:
    report = tw.audit(EXAMPLE.read_text().replace("estimated_cycles", "cycles"), tpu="v5e")
    assert report.time is None
    assert report.no_time is not None and "after_codegen.txt" in report.no_time
