"""Runs the action: audits the programs, and reports to GitHub.

Its inputs are ``TILEWISE_…`` variables, as in ``action.yml``; GitHub's are ``GITHUB_WORKSPACE``, ``RUNNER_TEMP``,
``GITHUB_STEP_SUMMARY`` and ``GITHUB_OUTPUT``. The exit status is the worst that tilewise had.
"""

from __future__ import annotations

import glob
import os
import subprocess
import sys
from pathlib import Path

# Most characters of a comment on GitHub.
LONGEST_COMMENT = 60_000


def tilewise(verb: str, *arguments: str, again: bool = False) -> tuple[int, str]:
    """Run the command line: its exit status, and what it printed; its errors go to the log, but not again."""
    done = subprocess.run(
        [sys.executable, "-m", "tilewise", verb, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if again else None,
        encoding="utf-8",
        check=False,
    )
    # One that was killed has a negative status, which no gate takes for a failure.
    return done.returncode if done.returncode >= 0 else 2, done.stdout


def given(name: str) -> str:
    """An input of the action."""
    return os.environ.get(f"TILEWISE_{name}", "").strip()


def programs() -> list[str]:
    """The programs that the inputs name; a pattern that fits nothing stays, and is an error of its own."""
    lines = [line.strip() for line in given("PROGRAMS").splitlines() if line.strip()]
    return [path for line in lines for path in (sorted(glob.glob(line, recursive=True)) or [line])]


def is_python(program: str) -> bool:
    """Whether it is a factory of a program, as ``train.py:make``."""
    return not Path(program).exists() and ".py:" in program


def relative(text: str) -> str:
    """The text, with paths as the repository has them."""
    root = os.environ.get("GITHUB_WORKSPACE", os.getcwd()).rstrip("/")
    return text.replace(f"file://{root}/", "").replace(f"{root}/", "")


def main() -> int:
    """Audit, compare, tell."""
    chosen, against = programs(), given("AGAINST")
    if not chosen:
        print("::error::`programs` names no program, so nothing was audited", flush=True)
        tell("GITHUB_OUTPUT", "status=2\n")
        return 2
    options = [
        f"--{name}={given(name.upper().replace('-', '_'))}"
        for name in ("tpu", "machine", "hbm-limit", "fail-above", "fail-on-copies")
    ]
    options = [option for option in options if not option.endswith("=")]
    folder = Path(os.environ.get("RUNNER_TEMP", ".")) / "tilewise"
    reports = folder / "reports"
    reports.mkdir(parents=True, exist_ok=True)

    statuses, sections = [0], []
    for program in chosen if against else []:
        tpu = [option for option in options if option.startswith("--tpu")]
        status, text = tilewise("audit", f"--against={against}", "--format=markdown", *tpu, "--", program)
        statuses.append(status)
        sections.append(text)
    files = [program for program in chosen if not is_python(program)]
    if files:
        status, marks = tilewise("audit", *options, "--format=github", "--", *files)
        statuses.append(status)
        print(relative(marks), end="", flush=True)
        sections.append(tilewise("audit", *options, "--format=markdown", "--", *files, again=True)[1])
        results = tilewise("audit", *options, "--format=sarif", "--", *files, again=True)[1]
        (folder / "tilewise.sarif").write_text(relative(results), encoding="utf-8")
        for number, file in enumerate(files):
            if Path(file).is_file():
                tilewise("audit", *options, f"--out={reports / name(number, file)}", "--", file, again=True)

    comment = folder / "comment.md"
    comment.write_text(relative("\n".join(filter(None, sections)))[:LONGEST_COMMENT], encoding="utf-8")
    tell("GITHUB_STEP_SUMMARY", comment.read_text(encoding="utf-8"))
    outputs = {"status": max(statuses), "comment": comment, "reports": reports if any(reports.iterdir()) else ""}
    if files:
        outputs["sarif"] = folder / "tilewise.sarif"
    tell("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in outputs.items()))
    return max(statuses)


def name(number: int, file: str) -> str:
    """A report's file name: that of the program, once."""
    return f"{number}.{Path(file).name}.html" if number else f"{Path(file).name}.html"


def tell(variable: str, text: str) -> None:
    """Append to a file that GitHub named."""
    if path := os.environ.get(variable):
        with Path(path).open("a", encoding="utf-8") as out:
            out.write(text)


if __name__ == "__main__":
    sys.exit(main())
