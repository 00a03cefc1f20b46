"""Shared by both judges of copies: their options, and a program compiled and audited."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "advice"), str(HERE.parent / "tpu")]

from worker import total  # noqa: E402

MIB = 1 << 20


def options(description, renewed):
    """The command line; `renewed` are the files that `--write` renews."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--only", metavar="NAME", help="what has this name only")
    parser.add_argument("--tilewise", type=Path, required=True, help="the command")
    parser.add_argument("--folder", type=Path, required=True, help="where texts are kept")
    parser.add_argument("--write", action="store_true", help=f"renew {renewed}")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    return chosen


def audited(options, program, tpu, path):
    """The audit of a compiled program, and the bytes that it holds by the compiler's own count."""
    held = total(program, path)
    command = [options.tilewise, "audit", "--format", "json", "--tpu", tpu, path]
    return json.loads(subprocess.run(command, capture_output=True, text=True).stdout), held
