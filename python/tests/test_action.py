"""The action's script, in a repository with a change that grows a peak: what log, summary and comment say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from sarif_pydantic import Sarif

GOLDEN = Path(__file__).parent / "action"
ARRAY = "f32[{n},1024]{1,0:T(8,128)}"


def program(rows: int, root: Path) -> str:
    """A step on `rows` rows, each line of which keeps one array."""
    array = ARRAY.replace("{n}", str(rows))
    lines = [
        f"HloModule jit_step, is_scheduled=true, entry_computation_layout={{({array})->{array}}}",
        "",
        "ENTRY main {",
    ]
    lines.append(f'  x.1 = {array} parameter(0), metadata={{op_name="x"}}')
    for line, name, called in (
        (12, "exp", "exponential(x.1)"),
        (13, "mul", "multiply(exp.1, x.1)"),
        (14, "add", "add(mul.1, exp.1)"),
    ):
        origin = f'metadata={{op_name="jit(step)/{name}" source_file="{root}/train.py" source_line={line}}}'
        lines.append(f"  {'ROOT ' if name == 'add' else ''}{name}.1 = {array} {called}, {origin}")
    return "\n".join([*lines, "}", ""])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "base").mkdir(parents=True)
    (root / "dump").mkdir()
    (root / "base" / "step.hlo").write_text(program(4096, root), encoding="utf-8")
    (root / "dump" / "step.hlo").write_text(program(8192, root), encoding="utf-8")
    return root


def acted(root: Path, **inputs: str) -> tuple[int, dict[str, str]]:
    """The status of the action's script, and all that it wrote, without what a machine's paths are."""
    runner = root.parent / "runner"
    runner.mkdir(exist_ok=True)
    files = {name: runner / name.lower() for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    environment = {
        **os.environ,
        **{name: str(path) for name, path in files.items()},
        "GITHUB_WORKSPACE": str(root),
        "RUNNER_TEMP": str(runner),
        **{f"TILEWISE_{name.upper()}": value for name, value in inputs.items()},
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "action" / "audit.py")],
        cwd=root,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    wrote = {"log": done.stdout, "errors": done.stderr}
    wrote |= {name: path.read_text(encoding="utf-8") for name, path in files.items() if path.exists()}
    for file in sorted((runner / "tilewise").rglob("*")):
        if file.is_file() and file.suffix != ".html":
            wrote[file.name] = file.read_text(encoding="utf-8")
    wrote["reports"] = "\n".join(sorted(file.name for file in (runner / "tilewise").rglob("*.html")))
    return done.returncode, {name: text.replace(str(runner), "RUNNER") for name, text in wrote.items()}


def test_a_change_that_grows_the_peak(repository: Path) -> None:
    status, wrote = acted(repository, programs="dump/*.hlo", against="base/step.hlo", tpu="v5e", hbm_limit="64MiB")
    assert status == 1
    for name, text in wrote.items():
        golden = GOLDEN / f"{name.lower()}.txt"
        if os.environ.get("ACTION") == "overwrite":
            golden.write_text(text, encoding="utf-8")
        assert text == golden.read_text(encoding="utf-8"), name
    # The content of each file.
    assert wrote["log"].startswith("::error file=train.py,line=")
    assert "status=1" in wrote["GITHUB_OUTPUT"]
    assert wrote["GITHUB_STEP_SUMMARY"] == wrote["comment.md"]
    assert "| worse |" in wrote["comment.md"]
    assert wrote["reports"] == "step.hlo.html"
    results = json.loads(wrote["tilewise.sarif"])["runs"][0]["results"]
    assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "train.py"


@pytest.mark.slow
def test_no_change(repository: Path) -> None:
    status, wrote = acted(repository, programs="base/step.hlo", against="base/step.hlo", tpu="v5e")
    assert status == 0
    assert "| same |" in wrote["comment.md"]
    assert "::error" not in wrote["log"]


@pytest.mark.slow
def test_nothing_there(repository: Path) -> None:
    status, wrote = acted(repository, programs="nowhere/*.hlo", tpu="v5e")
    assert status == 2
    assert "nowhere" in wrote["errors"]
    assert "status=2" in wrote["GITHUB_OUTPUT"]


def test_code_scanning_reads_it() -> None:
    """SARIF 2.1.0's fields: none that it requires is missing, and what isn't one of them doesn't come back."""
    text = (GOLDEN / "tilewise.sarif.txt").read_text(encoding="utf-8")
    read = json.loads(Sarif.model_validate_json(text).model_dump_json(by_alias=True, exclude_unset=True))
    assert read == json.loads(text)


def test_no_program_is_no_success(repository: Path) -> None:
    status, wrote = acted(repository, programs=" \n ", tpu="v5e")
    assert status == 2
    assert wrote["log"].startswith("::error::`programs` names no program")
    assert "status=2" in wrote["GITHUB_OUTPUT"]


def test_a_file_is_no_option(repository: Path) -> None:
    (repository / "--hbm-limit=900GiB").write_text(program(4096, repository), encoding="utf-8")
    (repository / "step.hlo").write_text(program(1 << 23, repository), encoding="utf-8")
    status, _ = acted(repository, programs="*", tpu="v5e")
    assert status != 0
