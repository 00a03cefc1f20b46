"""The command line in the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tilewise.__main__ import main

SCRIPT = shutil.which("tilewise", path=sysconfig.get_path("scripts"))
WAYS = [[str(SCRIPT)], [sys.executable, "-m", "tilewise"]]


@pytest.mark.parametrize("way", WAYS, ids=["script", "module"])
def test_script_and_module(way: list[str], program: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*way, *arguments], capture_output=True, text=True, encoding="utf-8", input="f32[3]\nx\n")

    assert run("--version").stdout.startswith("tilewise 0.1.0\nplans memory as libtpu ")
    assert run("-V").stdout == "tilewise 0.1.0\n"
    assert "Usage: tilewise" in run("--help").stdout
    assert "logical size" in run("show", "f32[3,5]{1,0:T(2,2)}").stdout
    piped = run("show", "--format", "json", "-")
    assert (piped.returncode, len(piped.stdout.splitlines())) == (2, 2)
    wrong = run("show", "b16[2]")
    assert (wrong.returncode, "did you mean `bf16`?" in wrong.stderr) == (2, True)
    assert run("shwo").returncode == 2
    assert run("audit", "--fail-above", "1%", str(program)).returncode == 1
    assert run("audit", "no/such/file").returncode == 2


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m tilewise man | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_in_this_process(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "f32[3,5]{1,0:T(2,2)}", "2,3"]) == 0
    assert "17" in capfd.readouterr().out
    assert main(["index", "f32[3,5]{1,0:T(2,2)}", "9,9"]) == 2
