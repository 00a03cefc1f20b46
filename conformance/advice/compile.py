"""Compiles the programs of a case for a TPU, without one.

`compile.py NAME TPU FOLDER` prints a line in JSON for the program and one for each change of it: `variant` (empty for the
program itself), `kind`, `target`, `shape`, `text`, the name of the file in FOLDER that the compiled program goes to, and
`total` in bytes or an `error`. `compile.py NAME TPU FOLDER --follow` follows advice instead, a line of standard input each,
with `imports` and `code`. `compile.py` alone lists the cases with their generations, and a digest of all that decides what
the compiler says of them.
"""

import hashlib
import inspect
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
TPU = HERE.parent / "tpu"
sys.path.append(str(TPU))

from cases import CASES, Change  # noqa: E402
from follow import followed  # noqa: E402
from programs import Draw  # noqa: E402
from worker import devices, total  # noqa: E402

SHARED = [HERE / name for name in ("compile.py", "cases/case.py", "cases/libraries.py")]
SHARED += [TPU / name for name in ("worker.py", "programs/draw.py", "requirements.txt")]
REQUIREMENTS = HERE / "requirements.txt"
LIBRARIES = "libraries models trainings reported sampled".split()
"""The modules of programs that are built from public libraries."""


def origin(make):
    """The module of a program."""
    return make.__module__.rpartition(".")[2]


def digest(make):
    """A digest of a case's source and of everything else that its program is compiled by."""
    sources = [Path(inspect.getsourcefile(make)), *SHARED, *([REQUIREMENTS] if origin(make) in LIBRARIES else [])]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()


def changes(case):
    """The program and its changes, each with how to find its total."""
    for change in [Change("", "", "", case.program), *case.changes]:
        yield change, lambda path, change=change: total(change.program, path)


def advised(case):
    """Pieces of advice, each followed after those before it, with how to find its total."""
    program = case.program

    def follow(advice, path):
        nonlocal program
        after = followed(program, advice)
        found = total(after, path)
        program = after
        return found

    for number, line in enumerate(sys.stdin):
        yield Change(f"followed_{number}", "", "", program), lambda path, line=line: follow(json.loads(line), path)


def main():
    """Compiles what the command line asks for."""
    if len(sys.argv) == 1:
        listed = {
            name: {"tpus": tpus, "digest": digest(make), "origin": origin(make), "is_public": origin(make) in LIBRARIES}
            for name, (tpus, make) in CASES.items()
        }
        print(json.dumps(listed))
        return
    name, tpu, folder, *follow = sys.argv[1:]
    # Libraries print to standard output as well.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    case = CASES[name][1](Draw("", tpu, devices(tpu)))
    for change, measure in advised(case) if follow else changes(case):
        said = {"variant": change.name, "kind": change.kind, "target": change.target, "shape": change.shape}
        said["text"] = ".".join(filter(None, [name, tpu, change.name, "hlo"]))
        try:
            said["total"] = measure(Path(folder) / said["text"])
        except Exception as error:
            said["error"] = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        print(json.dumps(said), file=answers, flush=True)


if __name__ == "__main__":
    main()
