"""Plan locks: the same bytes twice, and what each change is called."""

from __future__ import annotations

import argparse
import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLES

import tilewise as tw
from tilewise import testing
from tilewise.__main__ import main
from tilewise._fit import lock

PROGRAM = """
import jax, jax.numpy as jnp

def make(batch=1):
    def train_step(x):
        return x + 1
    return train_step, (jax.ShapeDtypeStruct((batch, 4096, 1024), jnp.float32),)
"""


@pytest.fixture
def entry(program: Path) -> dict[str, Any]:
    return lock.entry(tw.audit(program, tpu="v5e"), tpu="v5e", hlo="sha256:0")


def test_an_entry_is_the_report(entry: dict[str, Any], program: Path) -> None:
    report = tw.audit(program, tpu="v5e")
    assert entry["bytes"]["argument"] == report.argument_bytes
    assert entry["bytes"]["temporary"] == report.temporary_bytes
    assert entry["owners"][0]["bytes"] == max(row.bytes for row in report.peak_buffers)
    assert len(entry["owners"]) <= 10
    assert not any((owner["file"] or "").startswith("/") for owner in entry["owners"])
    assert entry["copies"]["count"] == len(report.copies)


def test_collectives_are_counted() -> None:
    report = tw.audit(
        "HloModule m, is_scheduled=true\n"
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
        "ENTRY main {\n"
        "  y = f32[8,128]{1,0:T(8,128)} parameter(0)\n"
        "  x = f32[8,128]{1,0:T(8,128)} all-reduce(y), replica_groups={}, to_apply=add\n"
        "  z = (f32[8,128]{1,0:T(8,128)}, f32[16,128]{1,0:T(8,128)}) all-gather-start(x), dimensions={0}\n"
        "  ROOT w = f32[16,128]{1,0:T(8,128)} all-gather-done(z)\n"
        "}\n",
        tpu="v5e",
    )
    # The operand in the result of a `-start` isn't counted.
    assert lock.entry(report, tpu="v5e")["collectives"] == {
        "all-reduce": {"count": 1, "bytes": 4096},
        "all-gather": {"count": 1, "bytes": 2 * 4096},
    }


def test_a_damaged_lock_is_named_with_its_line(entry: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "plan.lock"
    lock.update(path, {"f": entry, "g": entry})
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole[: len(whole) // 2], encoding="utf-8")
    with pytest.raises(ValueError, match=r"plan\.lock: the plan lock is damaged: .*, line \d+"):
        lock.read(path)
    assert main(["audit", str(EXAMPLES / "gnn_large.v5e.hlo"), "--against", str(path)]) == 2


def test_another_program_than_the_locks_is_an_error(
    entry: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.lock"
    lock.update(path, {"other": entry})
    assert main(["audit", str(EXAMPLES / "gnn_large.v5e.hlo"), "--against", str(path)]) == 2
    assert "no program `f` in" in capfd.readouterr().err


def test_a_comparison_is_what_the_command_line_prints(entry: dict[str, Any], tmp_path: Path) -> None:
    path, program = tmp_path / "plan.lock", EXAMPLES / "gnn_large.v5e.hlo"
    after = copy.deepcopy(entry)
    after["bytes"]["temporary"] += 2**30
    after["bytes"]["total"] += 2**30
    after["hlo"] = "sha256:1"
    compared = lock.compare("f", after, lock.Made(tw.audit(program, tpu="v5e"), entry), lock.compiler())
    assert (compared.verdict, compared.changes[0].what, bool(compared)) == ("better", "total", True)
    assert compared.peak_bytes_saved == compared.changes[0].before - compared.changes[0].after == 2**30
    assert str(compared).startswith("f: better\n  total: ")
    assert tw.Comparison.from_json(compared.to_json()).changes == compared.changes
    assert compared.to_markdown().splitlines()[2].endswith("| better |")
    lock.update(path, {"f": after})
    printed = json.loads(_printed(["audit", str(program), "--against", str(path), "--format", "json"]))
    assert [each["what"] for each in printed["changes"]] == [each.what for each in compared.changes]


def _printed(arguments: list[str]) -> str:
    """The output of the command line, which writes to the process's own standard output."""
    done = subprocess.run([sys.executable, "-m", "tilewise", *arguments], capture_output=True, check=True, text=True)
    return done.stdout


@pytest.mark.parametrize("verb", ["fit", "lock"])
def test_help_lists_every_option(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = _printed([verb, "--help"])
    listed = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", printed, re.MULTILINE)) - {"--help", "--color", "--version"}
    parsers: list[argparse.ArgumentParser] = []

    def kept(parser: argparse.ArgumentParser, _: object) -> None:
        parsers.append(parser)
        sys.exit(0)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", kept)
    with pytest.raises(SystemExit):
        main([verb])
    known = {option for option in parsers[0]._option_string_actions if option.startswith("--")}  # pyright: ignore[reportPrivateUsage]
    assert known == listed


def test_locks_of_files(tmp_path: Path) -> None:
    path, program = tmp_path / "plan.lock", str(EXAMPLES / "gnn_large.v5e.hlo")
    assert main(["lock", program, "--tpu", "v5e", "-o", str(path)]) == 0
    once = path.read_bytes()
    assert main(["lock", program, "--tpu", "v5e", "-o", str(path)]) == 0
    assert path.read_bytes() == once
    assert str(tmp_path).encode() not in once
    assert main(["audit", program, "--against", str(path)]) == 0
    other = str(EXAMPLES / "gnn_small.v5e.hlo")
    assert main(["audit", program, "--against", program, "--tpu", "v5e"]) == 0
    assert main(["audit", other, "--against", str(tmp_path / "none.lock")]) == 2
    assert main(["lock", "-o", str(path)]) == 2


def test_programs_of_another_compiler_are_not_kept(entry: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "plan.lock"
    lock.update(path, {"f": entry, "g": entry})
    path.write_bytes(path.read_bytes().replace(lock.compiler()["libtpu"].encode(), b"0.0.1"))
    with pytest.raises(ValueError, match=r"made with.*0\.0\.1"):
        lock.update(path, {"f": entry})
    lock.update(path, {"g": entry, "f": entry})
    assert (lock.read(path)["compiler"], set(lock.read(path)["programs"])) == (lock.compiler(), {"f", "g"})


def test_locks_of_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("libtpu")
    path, source = tmp_path / "plan.lock", tmp_path / "train.py"
    source.write_text(PROGRAM, encoding="utf-8")
    program = f"{source}:make"
    ask = ["lock", program, "--tpu", "v5e", "-o", str(path)]
    assert main(ask) == 0
    once = path.read_bytes()
    assert main(ask) == 0
    assert path.read_bytes() == once
    held = lock.read(path)
    assert held["programs"]["train_step"]["owners"][0]["file"] == "train.py"
    assert held["compiler"] == lock.compiler()
    assert held["programs"]["train_step"]["program"] == "train.py:make"
    assert main(["lock", "--check", "-o", str(path)]) == 0
    # A change of the program, then another compiler.
    assert main(["audit", program, "--against", str(path), "--set", "batch=2"]) == 1
    assert "train_step: worse" in capsys.readouterr().out
    path.write_bytes(once.replace(held["compiler"]["libtpu"].encode(), b"0.0.1"))
    assert main(["lock", "--check", "-o", str(path)]) == 3
    assert main(["lock", "--check", "-o", str(path), "--any-compiler"]) == 0


def test_a_plan_is_asserted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    path = tmp_path / "plan.lock"

    def step(x: Any) -> Any:
        return x + 1

    def arguments(count: int) -> Any:
        return [jax.ShapeDtypeStruct((count, 2**20), jax.numpy.float32)]

    with pytest.raises(AssertionError, match="--update-plans"):
        testing.assert_plan(step, *arguments(8), lock=path, tpu="v5e")
    monkeypatch.setattr(testing, "updates_plans", True)
    testing.assert_plan(step, *arguments(8), lock=path, tpu="v5e")
    monkeypatch.setattr(testing, "updates_plans", False)
    testing.assert_plan(step, *arguments(8), lock=path)
    with pytest.raises(AssertionError, match="step: worse"):
        testing.assert_plan(step, *arguments(16), lock=path)


def test_a_function_by_another_libtpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("libtpu")
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    program, own = f"{tmp_path / 'train.py'}:make", lock.compiler()["libtpu"]
    assert main(["audit", program, "--tpu", "v5e"]) == 0
    assert "\njit_train_step  " in capsys.readouterr().out
    assert main(["audit", program, "--tpu", "v5e", "--against", f"libtpu={own}"]) == 0
    assert capsys.readouterr().out == "train_step: same\n"
    assert main(["audit", program, "--tpu", "v5e", "--against", "libtpu=new"]) == 2
    assert "is written 0.0.52, not 'new'" in capsys.readouterr().err
    # No index of packages has it.
    monkeypatch.setenv("TILEWISE_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert main(["audit", program, "--tpu", "v5e", "--libtpu", "0.0.1.2"]) == 2
    assert "pip can't install libtpu 0.0.1.2 here" in capsys.readouterr().err
    assert main(["audit", str(EXAMPLES / "gnn_large.v5e.hlo"), "--against", f"libtpu={own}"]) == 2


@pytest.mark.slow
def test_what_an_upgrade_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("libtpu")
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    other = "0.0.51" if lock.compiler()["libtpu"] != "0.0.51" else "0.0.52"
    ask = ["audit", f"{tmp_path / 'train.py'}:make", "--tpu", "v5e", "--against", f"libtpu={other}", "--format", "json"]
    assert main(ask) in (0, 1)
    compared = json.loads(capsys.readouterr().out)
    assert compared["before"]["compiler"] == {"libtpu": other}
    assert compared["verdict"] != "other compiler"
