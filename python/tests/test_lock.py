"""Plan locks: the same bytes twice, and what each change is called."""

from __future__ import annotations

import copy
import json
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
    return lock.entry(tw.audit(program, tpu="v5e"), tpu="v5e", hlo="0", root=None)


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
    # What an operation begins with is no part of its result.
    assert lock.entry(report, tpu="v5e")["collectives"] == {
        "all-reduce": {"count": 1, "bytes": 4096},
        "all-gather": {"count": 1, "bytes": 2 * 4096},
    }


def test_each_change_has_its_verdict(entry: dict[str, Any]) -> None:
    def verdict(**arguments: Any) -> str:
        return lock.compare("f", entry, after, **arguments).verdict

    after = copy.deepcopy(entry)
    assert verdict() == verdict(exact=True) == "same"
    after["bytes"]["total"] += 2**19
    assert (verdict(), verdict(exact=True)) == ("same", "worse")
    after["bytes"]["total"] += entry["bytes"]["total"] // 50
    assert (verdict(), verdict(tolerance=0.05)) == ("worse", "same")
    after["bytes"]["total"] = 1
    assert verdict() == "better"
    after = copy.deepcopy(entry)
    after["recomputed"] += 1
    assert verdict() == "worse"
    after = copy.deepcopy(entry)
    after["collectives"]["all-gather"] = {"count": 1, "bytes": 2**30}
    assert verdict() == "worse"
    after = copy.deepcopy(entry)
    after["bytes"]["limit"] = after["bytes"]["total"]
    assert verdict() == "worse"
    # A renamed file is none of these.
    after = copy.deepcopy(entry)
    for owner in after["owners"]:
        owner["file"] = "renamed.py"
    assert verdict() == "same"
    old, new = {"libtpu": "0.0.51"}, {"libtpu": "0.0.52"}
    assert verdict(compilers=(old, new)) == "other compiler"
    assert verdict(compilers=(old, new), any_compiler=True) == "same"
    # The same program has the same plan, or it was compiled in another way.
    after["bytes"]["temporary"] += 512
    assert (verdict(), verdict(any_compiler=True)) == ("other compiler", "same")
    assert "the same program has other bytes" in str(lock.compare("f", entry, after))
    after["hlo"] = "sha256:1"
    assert verdict() == "same"
    assert "libtpu==0.0.51 or renew" in str(lock.compare("f", entry, after, compilers=(old, new)))


def test_the_words_name_the_owner(entry: dict[str, Any]) -> None:
    after = copy.deepcopy(entry)
    after["bytes"]["total"] *= 2
    after["owners"].insert(0, {"op": "jit(f)/new", "shape": "f32[8]{0}", "bytes": 2**30, "file": "model.py"})
    compared = lock.compare("f", entry, after, advice="Donate it.")
    assert "owner of jit(f)/new f32[8]: new, 1.00 GiB (1073741824)" in str(compared)
    assert json.loads(compared.to_json())["changes"][0]["what"] == "total"
    table = lock.markdown([compared]).splitlines()
    assert table[2].startswith("| f | 311.37 MiB")
    assert table[2].endswith("| worse |")
    assert table[-1] == "Try: Donate it."


def test_owners_are_paired_through_what_was_renumbered(entry: dict[str, Any]) -> None:
    before, after = copy.deepcopy(entry), copy.deepcopy(entry)
    for held, layers in ((before, 16), (after, 21)):
        held["owners"] = [
            {
                "op": f"jit(f)/layer_{number}/dot_general.{layers}",
                "shape": f"f32[{layers},1024,1024]{{2,1,0}}",
                "bytes": layers << 27,
                "file": "model.py",
            }
            for number in range(4)
        ]
    for owner in after["owners"]:
        owner["line"] = 15
    changed = [change for change in lock.compare("f", before, after).changes if change.what == "owner"]
    (change,) = changed
    assert (change.before, change.after) == (8 << 30, 21 << 29)
    words = str(lock.compare("f", before, after))
    assert "at model.py:15: 8.00 GiB (8589934592) → 10.50 GiB (11274289152) (+31%)" in words


def test_a_damaged_lock_is_named_with_its_line(entry: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "plan.lock"
    lock.update(path, {"f": entry, "g": entry})
    whole = path.read_text(encoding="utf-8")
    total = str(entry["bytes"]["total"])
    for damaged, words in (
        (whole[: len(whole) // 2], r"is damaged: .*, line \d+"),
        (whole.replace(' "programs"', '<<<<<<< ours\n "programs"'), r"merged.*, line \d+"),
        (whole.replace(f'"total": {total}', '"total": 1', 1), r"the total isn't the sum of f, line \d+"),
        (whole.replace('"recomputed"', '"recomputer"', 1), r"a count is missing of f"),
        (whole.replace(' "g": {', ' "f": {'), r"'f' is given twice, line \d+"),
        (whole.replace('"tpu": "v5e"', '"tpu": 5', 1), r"no TPU of f"),
    ):
        assert damaged != whole
        path.write_text(damaged, encoding="utf-8")
        with pytest.raises(ValueError, match=words):
            lock.read(path)
        assert main(["audit", str(EXAMPLES / "gnn_large.v5e.hlo"), "--against", str(path)]) == 2


def test_another_program_than_the_locks_is_an_error(
    entry: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.lock"
    lock.update(path, {"other": entry})
    assert main(["audit", str(EXAMPLES / "gnn_large.v5e.hlo"), "--against", str(path)]) == 2
    assert "no program `" in capsys.readouterr().err


def test_the_remedy_names_what_differs(entry: dict[str, Any]) -> None:
    compilers = ({"jaxlib": "0.10.2", "libtpu": "0.0.51"}, {"jaxlib": "0.12.0", "libtpu": "0.0.51"})
    words = str(lock.compare("f", entry, entry, compilers=compilers))
    assert "compare with jaxlib==0.10.2 or renew" in words


def test_a_github_job_is_told_at_the_line(entry: dict[str, Any]) -> None:
    after = copy.deepcopy(entry)
    after["bytes"]["total"] *= 2
    after["owners"] = [{"op": "dot", "shape": "f32[8]{0}", "bytes": 2**30, "file": "a,b.py", "line": 3}]
    said = lock.workflow_command(lock.compare("f", entry, after))
    assert said.startswith("::error file=a%2Cb.py,line=3,title=tilewise%3A f is worse::f: worse%0A")
    assert "\n" not in said


def test_locks_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, program = tmp_path / "plan.lock", str(EXAMPLES / "gnn_large.v5e.hlo")
    assert main(["lock", program, "--tpu", "v5e", "-o", str(path)]) == 0
    once = path.read_bytes()
    assert main(["lock", program, "--tpu", "v5e", "-o", str(path)]) == 0
    assert path.read_bytes() == once
    assert str(tmp_path).encode() not in once
    assert main(["audit", program, "--against", str(path)]) == 0
    other = str(EXAMPLES / "gnn_small.v5e.hlo")
    assert main(["audit", program, "--against", program, "--tpu", "v5e", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["verdict"] == "same"
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
