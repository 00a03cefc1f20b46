"""Many programs and large checkpoints, in one process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import EXAMPLES

import tilewise as tw

fsspec = pytest.importorskip("fsspec")
safetensors = pytest.importorskip("safetensors.numpy")
import pyarrow.dataset as ds  # noqa: E402

from tilewise import fleet  # noqa: E402
from tilewise.fleet import _files, _relayout  # noqa: E402

GNN = EXAMPLES / "gnn_large.v5e.hlo"


def make_dumps(root: Path, jobs: int) -> Path:
    """Jobs of two programs each, one of them in a folder below; some of them broken."""
    text = GNN.read_bytes()
    for number in range(jobs):
        job = root / f"job {number}"
        (job / "step").mkdir(parents=True)
        (job / "module_0001.jit_f.after_optimizations.txt").write_bytes(text.replace(b"jit_f", b"jit_%d" % number))
        (job / "module_0001.jit_f.before_optimizations.txt").write_bytes(b"not final")
        (job / "step" / "eval.hlo").write_bytes(text if number % 5 else b"not HLO")
    return root


def rows(table: Any) -> list[dict[str, Any]]:
    """The rows, without what only says which file it was."""
    return [{name: value for name, value in row.items() if name != "version"} for row in table.to_pylist()]


def dataset(folder: Path) -> list[dict[str, Any]]:
    table = ds.dataset(folder, partitioning="hive").to_table()
    return sorted(rows(table), key=lambda row: str((row["job"], row["source"])))


def test_a_row_is_what_the_audit_says(tmp_path: Path) -> None:
    (row,) = rows(fleet.audit(GNN))
    report = tw.audit(GNN)
    assert row["job"] == "examples"
    assert row["source"] == str(GNN)
    assert row["argument_bytes"] == report.argument_bytes
    assert row["output_bytes"] == report.output_bytes
    assert row["constant_bytes"] == report.constant_bytes == 512
    assert row["temporary_bytes"] == report.temporary_bytes
    assert row["padding_bytes"] == report.padding_bytes
    # As the command line prints them.
    assert (row["peak_instruction"], row["peak_file"], row["peak_line"]) == ("fusion.6", "model.py", 439)
    assert (row["peak_live_bytes"], row["advice_kind"]) == (326426112, "split")
    assert row["advice_peak_bytes_saved"] == 278364160
    assert row["peak_bytes"] == report.peak_bytes == 326_497_792
    assert (row["tilewise"], row["tpu"], row["hbm_limit"], row["fits"]) == (tw.__version__, None, None, None)
    assert row["warnings"] == [str(warning) for warning in report.warnings]
    assert row["error"] is None


def test_jobs_are_folders_and_bad_files_are_rows(tmp_path: Path) -> None:
    dumps = make_dumps(tmp_path / "dumps", 6)
    table = rows(fleet.audit(dumps, out=tmp_path / "out"))
    assert len(table) == 12
    assert {row["job"] for row in table} == {f"job {number}" for number in range(6)}
    bad = [row for row in table if row["error"] is not None]
    assert [Path(row["source"]).relative_to(dumps) for row in bad] == [
        Path("job 0/step/eval.hlo"),
        Path("job 5/step/eval.hlo"),
    ]
    assert "not HLO" in bad[0]["error"]
    assert dataset(tmp_path / "out" / "programs") == sorted(table, key=lambda row: str((row["job"], row["source"])))
    buffers = dataset(tmp_path / "out" / "buffers")
    assert len(buffers) == 10 * len(tw.audit(GNN).buffers)
    assert all(not path.name.startswith(".") for path in (tmp_path / "out").rglob("*"))


def test_half_a_program_is_a_row_with_an_error(tmp_path: Path) -> None:
    text = GNN.read_bytes()
    for name, part in [("front", text[len(text) // 2 :]), ("back", text[: len(text) // 2])]:
        (tmp_path / f"{name}.hlo").write_bytes(part)
    for row in rows(fleet.audit(tmp_path)):
        assert row["error"] is not None
        assert row["argument_bytes"] is None


def test_only_what_is_new_or_changed_is_audited_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = make_dumps(tmp_path / "dumps", 3)
    first = fleet.audit(dumps, out=tmp_path / "out")
    audited: list[str] = []
    audit_program = tw.audit

    def counted(data: bytes, **options: Any) -> Any:
        audited.append(data[:60].decode())
        return audit_program(data, **options)

    monkeypatch.setattr("tilewise.fleet._audit.audit_program", counted)
    assert rows(fleet.audit(dumps, out=tmp_path / "out")) == rows(first)
    assert audited == []

    changed_text = "HloModule m\n\nENTRY e {\n  ROOT x = f32[400000,12]{1,0:T(8,128)} parameter(0)\n}\n"
    (dumps / "job 1" / "step" / "eval.hlo").write_text(changed_text)
    (dumps / "new").mkdir()
    (dumps / "new" / "more.hlo").write_bytes(GNN.read_bytes())
    again = rows(fleet.audit(dumps, out=tmp_path / "out"))
    assert len(audited) == 2
    changed = [row for row in again if row["source"].endswith("job 1/step/eval.hlo")]
    assert [row["argument_bytes"] for row in changed] == [204800000]
    assert len(again) == 7
    assert dataset(tmp_path / "out" / "programs") == sorted(again, key=lambda row: str((row["job"], row["source"])))
    buffers = [row for row in dataset(tmp_path / "out" / "buffers") if row["source"] == changed[0]["source"]]
    assert [row["shape"] for row in buffers] == ["f32[400000,12]{1,0:T(8,128)}"]


def test_the_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = fleet.audit(make_dumps(tmp_path / "dumps", 6), out=tmp_path / "audits").to_pylist()
    monkeypatch.chdir(tmp_path)
    text = (EXAMPLES.parent / "docs" / "fleet.md").read_text(encoding="utf-8")
    (polars,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "polars" in block)
    program: dict[str, Any] = {}
    exec(polars, program)
    padding = max(row["peak_padding_bytes"] or 0 for row in table)
    assert program["worst"]["peak_padding_bytes"].to_list() == [padding] * 6
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    (query,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    saved = [row["advice_peak_bytes_saved"] for row in table if row["error"] is None]
    assert duckdb.sql(query).fetchall() == [("split", len(saved), sum(saved))]


def test_another_tpu_or_limit_is_another_audit(tmp_path: Path) -> None:
    dumps, out = make_dumps(tmp_path / "dumps", 1), tmp_path / "out"
    for tpu, limit, fits in [("v5e", None, True), ("v7x", None, True), ("v5e", "300MiB", False)]:
        (row,) = (row for row in rows(fleet.audit(dumps, out=out, tpu=tpu, hbm_limit=limit)) if row["error"] is None)
        assert (row["tpu"], row["fits"]) == (tpu, fits)
        assert row["hbm_limit"] == (300 << 20 if limit else tw.hbm_bytes(tpu))
        report = tw.audit(Path(row["source"]).read_bytes(), tpu=tpu, hbm_limit=limit)
        assert row["warnings"] == [str(each) for each in report.warnings]
    assert [row["tpu"] for row in dataset(out / "programs") if row["error"] is None] == ["v5e"]


def make_files(folder: Path, count: int) -> Path:
    """Programs, a tenth of them cut off."""
    folder.mkdir()
    texts = [path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.hlo"))]
    for number in range(count):
        text = texts[number % len(texts)].replace("jit_f", f"jit_{number}")
        (folder / f"{number:04}.hlo").write_text(text if number % 10 else "HloModule m\n\nENTRY e {\n  x = f32[2]")
    return folder


def check_as_the_command_line(table: list[dict[str, Any]], folder: Path) -> None:
    """Each row says of its file what `tilewise audit --format json` says of it."""
    files = sorted(map(str, folder.iterdir()))
    command = [sys.executable, "-m", "tilewise", "audit", "--tpu", "v5e", "--format", "json", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = {line["input"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert sorted(lines) == sorted(row["source"] for row in table) == files
    for row in table:
        line = lines[row["source"]]
        assert (row["error"] is None) == ("error" not in line)
        if row["error"] is None:
            for name in ("module", "argument_bytes", "output_bytes", "temporary_bytes", "constant_bytes", "fits"):
                assert row[name] == line[name]
            assert row["peak_bytes"] == line["at_least_bytes"]
            assert row["peak_live_bytes"] == line["memory_spaces"][0]["peak_live_bytes"]
            assert row["hbm_limit"] == line["hbm_limit_bytes"]
            assert len(row["warnings"]) == len(line["warnings"])
    assert sum(row["error"] is not None for row in table) == len(files) // 10


def test_many_files_are_rows_as_the_command_line_has_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = make_files(tmp_path / "files", 60)
    table = fleet.audit(folder, tpu="v5e", progress=True)
    assert "60 of 60 audited" in capfd.readouterr().err
    check_as_the_command_line(rows(table), folder)


def test_a_file_that_could_not_be_read_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumps, out = make_dumps(tmp_path / "dumps", 2), tmp_path / "out"
    read = _files.read

    def failing(url: str, options: Any) -> bytes:
        if url.endswith("job 1/step/eval.hlo"):
            raise OSError("the store is busy")
        return read(url, options)

    with monkeypatch.context() as patched:
        patched.setattr(_files, "read", failing)
        for _ in range(2):
            errors = [row["error"] for row in fleet.audit(dumps, out=out).to_pylist()]
            assert errors.count("the store is busy") == 1
            assert len(dataset(out / "programs")) == 4
    again = rows(fleet.audit(dumps, out=out))
    assert [row["error"] is None for row in again] == [True, False, True, True]
    assert dataset(out / "programs") == sorted(again, key=lambda row: str((row["job"], row["source"])))


def test_rows_written_twice_count_once(tmp_path: Path) -> None:
    dumps, out = make_dumps(tmp_path / "dumps", 2), tmp_path / "out"
    first = fleet.audit(dumps, out=out)
    for path in list(out.rglob("*.parquet")):
        (path.parent / f"again-{path.name}").write_bytes(path.read_bytes())
    assert fleet.audit(dumps, out=out).equals(first)
    assert len(dataset(out / "programs")) == 4
    assert len(dataset(out / "buffers")) == 3 * len(tw.audit(GNN).buffers)


def test_stores_that_are_no_file_systems() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/dumps/a/f.hlo", GNN.read_bytes())
    memory.pipe_file("/dumps/b/g.hlo", b"not HLO")
    first = fleet.audit("memory://dumps", out="memory://out")
    assert [(row["job"], row["source"], row["error"] is None) for row in first.to_pylist()] == [
        ("a", "memory:///dumps/a/f.hlo", True),
        ("b", "memory:///dumps/b/g.hlo", False),
    ]
    assert fleet.audit("memory://dumps/*/*.hlo", out="memory://out").equals(first)


def test_paths_that_name_nothing() -> None:
    with pytest.raises(FileNotFoundError):
        fleet.audit("/nowhere/*.hlo")
    with pytest.raises(FileNotFoundError):
        fleet.audit("/nowhere.hlo")
    with pytest.raises(ValueError, match="engine must be"):
        fleet.audit(GNN, engine="spark")  # type: ignore[arg-type]


TENSORS: Mapping[str, Any] = {
    "rows": np.arange(1000 * 256, dtype=np.float32).reshape(1000, 256),
    "columns": np.arange(300 * 500, dtype=np.int16).reshape(300, 500),
    "batch": np.arange(7 * 30 * 200, dtype=np.float16).reshape(7, 30, 200),
    "scalar": np.array(7, dtype=np.int64),
    "empty": np.zeros((0, 5), dtype=np.float32),
    "kept": np.arange(999, dtype=np.uint8),
}
PLAN = {
    "rows": "{1,0:T(8,128)}",
    "columns": "{0,1:T(8,128)(2,1)}",
    "batch": "{2,1,0:T(8,128)(2,1)}",
    "empty": "{0,1}",
}


def make_checkpoint(folder: Path) -> Path:
    """Two files and their index."""
    import json

    folder.mkdir()
    names = list(TENSORS)
    weight_map = {}
    for number, part in enumerate((names[:2], names[2:])):
        file = f"model-{number}.safetensors"
        safetensors.save_file({name: TENSORS[name] for name in part}, folder / file, metadata={"format": "np"})
        weight_map.update(dict.fromkeys(part, file))
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def check_converted(out: Path) -> None:
    """Every tensor, read with the format's own library, against `tile`."""
    import json

    index = json.loads((out / "model.safetensors.index.json").read_text())
    for name, array in TENSORS.items():
        with safetensors.safe_open(out / index["weight_map"][name], "np") as file:
            found, shapes = file.get_tensor(name), file.metadata()
        if "T(" in PLAN.get(name, ""):
            assert np.array_equal(found, tw.tile(array, PLAN[name]))
            assert np.array_equal(tw.untile(found, shapes[f"tilewise.shape/{name}"]), array)
        elif name == "empty":
            assert found.size == 0
        else:
            assert found.dtype == array.dtype
            assert np.array_equal(found, array)
    assert sorted(path.name for path in out.iterdir()) == sorted(
        {"model.safetensors.index.json", *index["weight_map"].values()}
    )


@pytest.mark.parametrize("slice_bytes", [1, 20_000, 1 << 20])
@pytest.mark.parametrize("check", ["sample", "all"])
def test_a_checkpoint_is_converted(tmp_path: Path, slice_bytes: int, check: Any) -> None:
    source = make_checkpoint(tmp_path / "in")
    if slice_bytes == 1:
        slice_bytes = 4096
    done = fleet.relayout(source, PLAN, tmp_path / "out", slice_bytes=slice_bytes, check=check)
    assert done.tensors == len(TENSORS)
    check_converted(tmp_path / "out")
    if check == "all":
        assert done.checked_elements == sum(TENSORS[name].size for name in ("rows", "columns", "batch"))


def test_there_and_back(tmp_path: Path) -> None:
    source = make_checkpoint(tmp_path / "in")
    fleet.relayout(source, PLAN, tmp_path / "out")
    back = {name: {2: "{1,0}", 3: "{2,1,0}"}[TENSORS[name].ndim] for name in PLAN}
    fleet.relayout(tmp_path / "out", back, tmp_path / "back")
    for name in source.glob("*.safetensors"):
        held = safetensors.load_file(tmp_path / "back" / name.name)
        assert all(np.array_equal(held[key], TENSORS[key]) for key in held)


def test_slices_are_small_where_they_can_be() -> None:
    shape, most = tw.Shape("bf16[4096,1024]"), 1 << 16
    for layout in ("{1,0:T(8,128)(2,1)}", "{0,1:T(8,128)(2,1)}", "{0,1}", "{1,0:T(16,128)(2,1)}"):
        to = tw.Shape(f"{shape.without_layout()}{layout}")
        boxes = _relayout._boxes(shape, to, most)
        assert most // 2 <= max(size for *_, size in boxes) <= most
        assert sum(size for *_, size in boxes) == to.physical_bytes


@pytest.mark.parametrize(
    "layout",
    [
        "{2,1,0}",
        "{0,1,2}",
        "{1,2,0:T(8,128)}",
        "{2,0,1:T(8,128)(2,1)}",
        "{2,1,0:T(4,8,128)}",
        "{1,0,2:T(2,128)}",
        "{2,1,0:T(1024)}",
        "{2,1,0:T(8,128)L(4096)}",
        "{2,1,0:T(*,128)}",
    ],
)
@pytest.mark.parametrize("most", [4096, 30_000, 100_000])
def test_slices_in_a_row_are_the_tensor(layout: str, most: int) -> None:
    array = np.arange(6 * 40 * 300, dtype=np.int16).reshape(6, 40, 300)
    source, to = tw.Shape("s16[6,40,300]"), tw.Shape(f"s16[6,40,300]{layout}")
    parts = []
    for low, high, at, size in _relayout._boxes(source, to, most):
        box = array[tuple(slice(*bounds) for bounds in zip(low, high, strict=True))]
        part = tw.tile(np.ascontiguousarray(box), to.layout)
        assert (at, size) == (sum(map(len, parts)), len(part))
        parts.append(part)
    assert np.array_equal(np.concatenate(parts), tw.tile(array, layout))


def test_an_interrupted_run_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = make_checkpoint(tmp_path / "in"), tmp_path / "out"
    convert, calls = _relayout._convert, []

    def failing(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) > 30:
            raise OSError("the disk is gone")
        return convert(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(_relayout, "_convert", failing)
        with pytest.raises(tw.RelayoutError, match="slices failed") as raised:
            fleet.relayout(source, PLAN, out, slice_bytes=20_000)
    assert raised.value.kind == "incomplete"
    assert [path.name for path in out.iterdir()] == [".tilewise-unfinished"]

    journal = out / ".tilewise-unfinished" / "journal"
    with journal.open("a") as file:
        file.write("12 34")  # cut
    # A slice that has changed on the disk is converted again.
    first = int(journal.read_text().splitlines()[1].split()[0])
    assert first >= 0
    done = fleet.relayout(source, PLAN, out, slice_bytes=20_000)
    assert done.resumed_slices == 30
    check_converted(out)


def test_damage_is_found_when_a_run_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = make_checkpoint(tmp_path / "in"), tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("stopped")))
        with pytest.raises(OSError, match="stopped"):
            fleet.relayout(source, PLAN, out, slice_bytes=20_000)
    damaged = out / ".tilewise-unfinished" / "model-0.safetensors"
    with damaged.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        byte = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))
    done = fleet.relayout(source, PLAN, out, slice_bytes=20_000)
    assert done.slices == 1
    check_converted(out)


def test_a_run_that_stopped_when_it_named_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = make_checkpoint(tmp_path / "in"), tmp_path / "out"
    replace = os.replace

    def only_one(draft: str, path: str) -> None:
        if "model-1" in path:
            raise OSError("stopped")
        replace(draft, path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", only_one)
        with pytest.raises(OSError, match="stopped"):
            fleet.relayout(source, PLAN, out, slice_bytes=20_000)
    assert fleet.relayout(source, PLAN, out, slice_bytes=20_000).slices == 0
    check_converted(out)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = make_checkpoint(tmp_path / "in"), tmp_path / "out"

    def full(*_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="no space"):
        fleet.relayout(source, PLAN, out)
    assert list(out.iterdir()) == []


def test_wrong_elements_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make_checkpoint(tmp_path / "in")
    wrong = lambda *arguments: np.roll(tw.relayout(*arguments), 4)  # noqa: E731
    monkeypatch.setattr("tilewise.fleet._relayout.relayout_buffer", wrong)
    with pytest.raises(tw.RelayoutError) as raised:
        fleet.relayout(source, PLAN, tmp_path / "out")
    assert raised.value.kind == "check_failed"
    assert not (tmp_path / "out" / "model.safetensors.index.json").exists()


def test_plans_that_do_not_fit(tmp_path: Path) -> None:
    source = make_checkpoint(tmp_path / "in")
    with pytest.raises(ValueError, match="matches no tensor"):
        fleet.relayout(source, {"other*": "{0}"}, tmp_path / "out")
    with pytest.raises(tw.Error):
        fleet.relayout(source, {"rows": "{2,1,0}"}, tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        fleet.relayout(tmp_path, {}, tmp_path / "out")
    with pytest.raises(ValueError, match="slice_bytes"):
        fleet.relayout(source, PLAN, tmp_path / "out", slice_bytes=0)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 8,
        b"\x02\0\0\0\0\0\0\0[]",
        b"\x03\0\0\0\0\0\0\0{}",
        b'\x3f\0\0\0\0\0\0\0{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,9223372036854]}}',
    ],
)
def test_malformed_files(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(tw.RelayoutError) as raised:
        fleet.relayout(tmp_path / "a.safetensors", {"*": "{0}"}, tmp_path / "out")
    assert raised.value.kind == "malformed_header"
