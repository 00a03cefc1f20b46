"""Values compare, hash, pickle and copy by what they hold; reports pass through JSON."""

from __future__ import annotations

import copy
import json
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewise as tw

TEXT = "f32[400000,12]{1,0:T(8,128)}"
COPIES = """HloModule jit_f, is_scheduled=true

ENTRY main {
  w = f32[1024,1024]{0,1:T(8,128)} parameter(0), metadata={op_name="w"}
  c = f32[1024,1024]{1,0:T(8,128)} copy(w)
  ROOT r = f32[1024]{0:T(1024)} custom-call(c), custom_call_target="rows"
}"""


SERVER = Path(__file__).parents[2] / "examples/server/undonated.v6e.hlo.gz"
KERNEL = Path(__file__).parents[2] / "testing/programs/pallas_kernel.v5e.hlo"


def values(program: Path, message: str) -> dict[str, Any]:
    report, explained = tw.audit(program, tpu="v5e"), tw.explain(message)
    shape = tw.Shape(TEXT)
    time, peak = report.time, report.peak_source
    difference = tw.audit(TEXT.join(("x = ", " parameter(0)"))).diff(report)
    together = tw.audit_together([SERVER], tpu="v6e")
    assert time is not None
    assert peak is not None
    return {
        "Report": report,
        "Buffer": report.buffers[3],
        "argument": next(buffer for buffer in report if buffer.opcode == "parameter"),
        "Copy": report.copies[0],
        "KernelUse": tw.audit(KERNEL, tpu="v5e").kernels[0],
        "Recommendation of a copy": tw.audit(COPIES).copies[0].fix,
        "SpaceTotal": report.memory_spaces[0],
        "PeakBuffer": report.peak_buffers[0],
        "Headline": report.headline,
        "Headline of a message": explained.headline,
        "Cause": report.causes[0],
        "Cause of a message": explained.causes[0],
        "PlannedChange": report.changes[0],
        "PlannedChange of a message": explained.changes[0],
        "Recommendation": report.advice[0],
        "Recommendation of a message": explained.advice[0],
        "SourceLine": peak,
        "Explanation": explained,
        "Allocation": explained.allocations[0],
        "ReportWarning": tw.audit("x = b16[3] parameter(0)").warnings[0],
        "Time": time,
        "TimeRow": time.rows[0],
        "TimeGroup": time.kinds[0],
        "Comparison": difference,
        "Change": difference.changes[0],
        "Owner": difference.added[0],
        "Together": together,
        "LoadedProgram": together.programs[0],
        "ResidentArray": together.residents[0],
        "PageArrays": together.pages,
        "Alternative": together.options[0],
        "Shape": shape,
        "Layout": shape.layout,
        "ProgramShape": tw.ProgramShape("(x: f32[2]{0:S(1)}) -> f32[3]"),
        "Relation": shape.bitcast("f32[400000,12]{0,1:T(8,128)}", reading="reshape"),
        "Steps": shape.steps(),
        "Step": shape.steps()[1],
        "Drawing": tw.Shape("f32[3,5]{1,0:T(2,2)}").draw(view="memory", highlight=[1, 2], theme="dark"),
    }


def test_values_travel(program: Path, message: str) -> None:
    ours, again = values(program, message), values(program, message)
    for name, value in ours.items():
        for other in (again[name], pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
            assert other == value, name
            assert hash(other) == hash(value), name
            assert repr(other) == repr(value), name
            assert type(other) is type(value), name
        assert value != object(), name
        assert all(value != other for key, other in ours.items() if key != name), name
    program_of = ours["Comparison"].after
    assert pickle.loads(pickle.dumps(program_of)) == program_of
    assert pickle.loads(pickle.dumps(ours["Drawing"])).to_svg() == ours["Drawing"].to_svg()
    assert str(pickle.loads(pickle.dumps(ours["Report"]))) == str(ours["Report"])


def test_json_is_the_command_line_s(program: Path) -> None:
    command = [sys.executable, "-m", "tilewise", "audit", "--tpu", "v5e", "--all", "--format", "json", str(program)]
    printed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    report = tw.audit(program, tpu="v5e")
    assert json.loads(report.to_json(program=False)) == printed
    ours = json.loads(report.to_json())
    held = {
        "text": program.read_text(),
        "tpu": "v5e",
        "machine": None,
        "libtpu": None,
        "hbm_limit": tw.hbm_bytes("v5e"),
    }
    assert ours.pop("program") == held
    assert ours == printed
    assert tw.Report.from_json(report.to_json()) == report
    assert [(one.kind, one.peak_bytes_saved, str(one.shape), one.code) for one in report.advice] == [
        (row["kind"], row["peak_bytes_saved"], row["shape"], row["code"]) for row in printed["advice"]
    ]
    hbm = printed["memory_spaces"][0]
    for name in ("peak_live_bytes", "peak_padding_bytes", "peak_instruction"):
        assert getattr(report, name) == getattr(report.memory_spaces[0], name) == hbm[name]
    assert [row.bytes for row in report.peak_buffers] == [row["bytes"] for row in hbm["peak_buffers"]]
    for text in (report.to_json(program=False), "{", "[]"):
        with pytest.raises(tw.HloError):
            tw.Report.from_json(text)


def test_reports_are_sequences_of_buffers(program: Path) -> None:
    report = tw.audit(program)
    assert len(report) == len(report.buffers) == 22
    assert list(report) == report.buffers
    assert report.buffers[0] is report.buffers[0]
    assert bool(tw.audit("t = token[] after-all()"))
    assert len(tw.audit("t = token[] after-all()")) == 0
    assert tw.audit([program, program]) == [report, report]


def test_diff(program: Path) -> None:
    text = program.read_text()
    before, after = tw.audit(text), tw.audit(text.replace("400000,12]{1,0:T(8,128)}", "400000,12]{0,1:T(8,128)}"))
    assert not before.diff(tw.audit(text))
    assert str(before.diff(before)) == "f: same"
    diff = before.diff(after)
    assert diff
    assert pickle.loads(pickle.dumps(diff)) == diff
    assert (diff.before.peak_bytes, diff.after.peak_bytes) == (before.peak_bytes, after.peak_bytes)
    layouts = {(change.before, change.after) for change in diff.changes if change.what == "layout"}
    assert layouts == {("{1,0:T(8,128)}", "{0,1:T(8,128)}")}
    assert diff.removed == diff.added == ()
    narrow = tw.audit(text.replace("400000,12]", "400000,11]"))
    removed = before.diff(narrow).removed
    assert removed
    assert narrow.diff(before).added == removed


def test_counts_are_signed() -> None:
    offsets = tw.Shape("f32[3,5]{1,0:T(2,2)}").offsets(np.array([[2, 0], [0, 0]]))
    assert np.diff(offsets).tolist() == [-12]
    columns = tw.audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").to_dict()
    assert {columns[name].dtype for name in ("logical_bytes", "memory_space", "padding_bytes")} == {np.dtype("int64")}


def test_a_signal_ends_a_long_audit() -> None:
    lines = [f"  x{n} = f32[{n + 1},12]{{1,0:T(8,128)}} parameter({n})" for n in range(200_000)]
    text = "ENTRY main {\n" + "\n".join(lines) + "\n}"
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    start = time.monotonic()
    try:
        tw.audit(text, tpu="v5e")
    except KeyboardInterrupt:
        # The rest is the time that Python needs to hand the text over.
        assert time.monotonic() - start < 2
    else:
        pytest.skip("the audit was faster than the signal")
    finally:
        timer.join()


def test_layouts_in_xla_s_text() -> None:
    for text in (
        "{1,0:T(8,128)}",
        "{}",
        "{0:L(16)}",
        "{2,0,1:T(4,128)(2,1)S(1)}",
        "{1,0:T(8,128)SC(0:5)}",
        "{1,0:E(4)}",
    ):
        assert str(tw.Layout(text)) == text
        assert pickle.loads(pickle.dumps(tw.Layout(text))) == tw.Layout(text)
    assert tw.Shape("f32[3,5]").with_layout("{0,1:T(2,2)}") == tw.Shape("f32[3,5]{0,1:T(2,2)}")
    assert tw.Shape.of(np.zeros((3, 5), np.int8), layout=tw.Layout((0, 1))) == tw.Shape("s8[3,5]{0,1}")
    assert tw.Shape.of("f32[3,5]") == tw.Shape("f32[3,5]")
    with pytest.raises(tw.ParseError) as caught:
        tw.Layout("{1,0:T(8,x)}")
    assert caught.value.text == "{1,0:T(8,x)}"
    assert caught.value.span is not None
    assert caught.value.text[slice(*caught.value.span)].startswith("x")
    assert tw.Layout("1,0:T(8,128)") == tw.Layout("{1,0:T(8,128)}")
    for wrong in ("", "1,0x", "{1,1}", "{1,0}x", "f32[3]{0}"):
        with pytest.raises(tw.Error):
            tw.Layout(wrong)
    with pytest.raises(TypeError, match="either the text or the parts"):
        tw.Layout("{1,0}", memory_space=1)


def test_a_page_holds_the_report(program: Path) -> None:
    report = tw.audit(program, tpu="v5e")
    page = report.to_html()
    data = json.loads(page.split('id="report">', 1)[1].split("</script>", 1)[0])
    printed = json.loads(report.to_json(program=False))
    # A page lists the buffers with the most padding, and has what lies in memory over time beside the report.
    assert {name: data["report"].get(name) for name in printed.keys() - {"buffers", "plan"}} == {
        name: value for name, value in printed.items() if name not in ("buffers", "plan")
    }
    assert len(data["timeline"]["order"]) > data["timeline"]["peak_moment"] >= 0
