"""Audits, their rows, and their tables."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pandas
import polars
import pyarrow
import pytest
from conftest import EXAMPLES

import tilewise as tw

PROGRAMS = sorted(EXAMPLES.glob("*.hlo"))


def test_the_example(program: Path) -> None:
    report = tw.audit(program, tpu="v5e")
    assert (report.module, report.entry, report.is_scheduled) == ("jit_f", "main.2", True)
    assert (report.padding_bytes, round(report.padding_share, 3)) == (281_621_948, 0.863)
    assert [(space.memory_space_name, space.buffers) for space in report.memory_spaces] == [
        ("hbm", 9),
        ("vmem", 11),
        ("semaphore", 2),
    ]
    worst = report.largest_padding(1)[0]
    assert (worst.instruction, worst.op_name, str(worst.source)) == ("fusion.6", "jit(f)/dot_general", "model.py:439")
    assert worst.shape == tw.Shape("f32[400000,12]{1,0:T(8,128)}")
    assert worst.padding_bytes == worst.shape.padding_bytes
    assert (report.hbm_limit, report.fits) == (tw.hbm_bytes("v5e"), True)
    assert tw.audit(program, hbm_limit=1000).fits is False
    assert tw.audit(program).fits is None
    assert report.at_least_bytes <= report.at_most_bytes
    assert report.copies[0].from_shape.dimensions == report.copies[0].to_shape.dimensions
    assert report.warnings == []


def test_a_part_of_a_program_is_refused_or_has_the_figures_of_the_whole(program: Path, tmp_path: Path) -> None:
    text = program.read_text(encoding="utf-8")
    whole = tw.audit(text, tpu="v5e")
    random = Random(29)
    passed = 0
    for number in range(300):
        start, end = sorted(random.randrange(len(text)) for _ in range(2))
        start, end = [(0, end), (start, len(text)), (start, end)][number % 3]
        cut = tmp_path / "cut.hlo"
        cut.write_text(text[:start] + text[end:], encoding="utf-8")
        try:
            report = tw.audit(cut, tpu="v5e")
        except tw.Error:
            continue
        if report.fits is not None:
            passed += 1
            assert report.at_most_bytes == whole.at_most_bytes, (start, end)
    assert passed < 30


def test_constants_count_and_what_has_no_size_fits_nothing() -> None:
    text = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[8,128]{1,0:T(8,128)} parameter(0)
  k = f32[8,128]{1,0:T(8,128)} constant({...})
  ROOT r = f32[8,128]{1,0:T(8,128)} add(a, k)
}
"""
    report = tw.audit(text, tpu="v5e")
    assert (report.constant_bytes, report.at_most_bytes, report.fits) == (4096, 3 * 4096, True)
    text = text.replace("k = f32[8,128]{1,0:T(8,128)}", "k = f32[8,128]{1,0}")
    # Padding to tiles takes at most 4096 times the elements of 8 bits.
    assert tw.audit(text, tpu="v5e").fits
    report = tw.audit(text, tpu="v5e", hbm_limit="64KiB")
    assert (report.fits, [warning.kind for warning in report.warnings]) == (None, ["untiled"])
    assert "May not fit 64.00 KiB of HBM: not all of it could be read or sized." in str(report)


def test_another_tpu_is_said(program: Path) -> None:
    assert [warning.kind for warning in tw.audit(program, tpu="v6e").warnings] == ["other_generation"]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_as_the_command_line_says(path: Path) -> None:
    command = [sys.executable, "-m", "tilewise", "audit", "--tpu", "v5e", str(path)]
    printed = json.loads(
        subprocess.run([*command, "--all", "--format", "json"], capture_output=True, check=True).stdout
    )
    report = tw.audit(path, tpu="v5e")
    table = report.to_dict()
    for name in ("instruction", "shape", "padding_bytes", "expansion", "cause", "op_name"):
        assert list(table[name]) == [row[name] for row in printed["buffers"]], name
    assert report.at_most_bytes == printed["at_most_bytes"]
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert report.table(width=80) == text.replace("--all ", "table(all=True) ")
    assert " --" not in report.table()


def test_every_form_of_a_program(program: Path, tmp_path: Path) -> None:
    text = program.read_text()
    packed = tmp_path / "program.gz"
    packed.write_bytes(gzip.compress(text.encode()))

    class Compiled:
        def as_text(self) -> str:
            return text

    class HloModule:
        def to_string(self) -> str:
            return text

    expected = tw.audit(program).to_dict()["padding_bytes"].tolist()
    for form in (str(program), text, text.encode(), gzip.compress(text.encode()), packed, Compiled(), HloModule()):
        assert tw.audit(form).to_dict()["padding_bytes"].tolist() == expected
    assert tw.audit(Compiled()).source == "Compiled"
    with program.open() as as_text, packed.open("rb") as as_bytes:
        for form in (as_text, as_bytes, io.StringIO(text), io.BytesIO(text.encode())):
            assert tw.audit(form).to_dict()["padding_bytes"].tolist() == expected
        assert tw.audit([Compiled(), program])[1].source == str(program)


def test_folders(program: Path, tmp_path: Path) -> None:
    text = program.read_text(encoding="utf-8")
    folder = tmp_path / "dump"
    folder.mkdir()
    with pytest.raises(tw.HloError, match="holds no program") as none:
        tw.audit(folder)
    assert none.value.kind == "no_program"
    assert str(tw.audit([folder])[0]) == str(none.value)
    final = folder / "module_0001.jit_f.cl_1.after_optimizations.txt"
    final.write_text(text, encoding="utf-8")
    (folder / "module_0001.jit_f.before_optimizations.txt").write_text(text, encoding="utf-8")
    (folder / "notes.txt").write_text("nothing", encoding="utf-8")
    assert tw.audit(folder, tpu="v5e") == tw.audit(str(folder), tpu="v5e") == tw.audit(final, tpu="v5e")
    second = folder / "more" / "step.hlo"
    second.parent.mkdir()
    second.write_text(text.replace("jit_f", "jit_step"), encoding="utf-8")
    with pytest.raises(tw.HloError, match="holds 2 programs"):
        tw.audit(folder)
    found = tw.audit([folder, program])
    assert found == [tw.audit(path) for path in (final, second, program)]


def test_protos() -> None:
    proto = b"\x0a\xff\x00"

    class Message:
        def SerializeToString(self) -> bytes:  # noqa: N802
            return proto

    with pytest.raises(tw.HloError):
        tw.audit(Message())
    jax = pytest.importorskip("jax")
    module = jax.jit(jax.numpy.tanh).lower(jax.numpy.ones((24, 40))).compile().runtime_executable().hlo_modules()[0]
    proto = module.as_serialized_hlo_module_proto()
    expected = [str(buffer.shape) for buffer in tw.audit(module)]
    for form in (Message(), proto, io.BytesIO(proto)):
        assert [str(buffer.shape) for buffer in tw.audit(form)] == expected


def test_invalid_programs() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        tw.audit("no/such/file.hlo")
    assert caught.value.filename == "no/such/file.hlo"
    with pytest.raises(tw.HloError) as refused:
        tw.audit("module @jit_f {\n}")
    assert refused.value.kind == "not_hlo"
    with pytest.raises(tw.HloError):
        tw.audit(b"\x0a\xff\x00")
    for value in (3, None, object()):
        with pytest.raises(TypeError, match="compiled program"):
            tw.audit(value)  # type: ignore[arg-type]

    class Textless:
        def as_text(self) -> None:
            return None

    with pytest.raises(TypeError, match="no text"):
        tw.audit(Textless())
    with pytest.raises(tw.ParseError):
        tw.audit("x = f32[2] parameter(0)", tpu="v99")


def test_frames(program: Path) -> None:
    report = tw.audit(program)
    padding = [buffer.padding_bytes for buffer in report.buffers]
    frame = report.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["padding_bytes"].tolist() == padding
    assert str(frame["padding_bytes"].dtype) == "int64"
    assert str(frame["line"].dtype) == "Int64"
    assert frame["line"].isna().sum() == sum(buffer.source is None for buffer in report.buffers)
    other = report.to_polars()
    assert isinstance(other, polars.DataFrame)
    assert other["padding_bytes"].to_list() == padding
    assert other.columns == list(frame.columns) == list(report.to_dict())
    assert other["line"].null_count() == sum(buffer.source is None for buffer in report.buffers)
    table = pyarrow.table(report)
    assert table.column("shape").to_pylist() == [str(buffer.shape) for buffer in report.buffers]
    assert pyarrow.table(report).equals(table)
    # An unread capsule must release its memory.
    for _ in range(1000):
        report.__arrow_c_stream__()


def test_frames_have_every_field(program: Path, message: str) -> None:
    report = tw.audit(program, tpu="v5e")
    for row, buffer in zip(report.to_polars().to_dicts(), report, strict=True):
        for name in ("instruction", "computation", "opcode", "memory_space", "logical_bytes", "physical_bytes"):
            assert row[name] == getattr(buffer, name)
        assert row["op_name"] == buffer.op_name
        assert row["shape_index"] == ".".join(map(str, buffer.shape_index))
        assert row["memory_space_name"] == buffer.shape.layout.memory_space_name
        assert row["function"] == (buffer.source and buffer.source.function)
    explanation = tw.explain(message)
    for row, allocation in zip(explanation.to_polars().to_dicts(), explanation, strict=True):
        assert row["label"] == allocation.label
        assert row["reported_bytes"] == allocation.reported_bytes
    first = explanation.to_polars().to_dicts()[0]
    # As the message prints them.
    assert (first["allocation_type"], first["opcode"], first["reported_unpadded_bytes"]) == (
        "HLO temp",
        "fusion",
        19199427,
    )
    assert first["agrees"] is True
    assert list(explanation.to_pandas().columns) == explanation.to_polars().columns == list(explanation.to_dict())


def test_text_and_html(program: Path) -> None:
    report = tw.audit(program)
    assert str(report) == report.table()
    assert "Holds 311.37 MiB (326497792) of HBM at most" in report.table(width=70)
    assert "The peak: model.py:439, while fusion.6 runs" in report.table(width=70)
    assert len(report.table(all=True).splitlines()) > len(report.table().splitlines())
    assert "\x1b" not in report.table()
    html = report._repr_html_()
    # The timeline, and pictures of three arrays.
    assert html.count("<svg") == 4
    assert "Alive at the peak" in html
    assert "fusion.6" in html
    assert repr(report) == "<Report of jit_f: peak 326497792 bytes, 281621948 of them padding; 22 buffers>"


def test_warnings() -> None:
    report = tw.audit("ENTRY main {\n  x = f32[?]{0} parameter(0)\n  what is this\n}")
    assert report.warnings
    assert all(warning.kind and str(warning) == warning.message for warning in report.warnings)
