"""Compares `tilewise` with the JAX and libtpu of this environment in every suite, and renews their row of a table.

Each suite compiles as many programs as its seconds allow, those of one seed first to last, so that rows differ in how many there
are, not in which.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
SUITES = {
    "layouts": ["layouts.py", "20000"],
    "constraints": ["layouts.py", "--orders", "2000"],
    "plans": ["check.py", "300", "--limit", "60", "--folder", "{folder}"],
    "kernels": ["kernels.py", "300", "--limit", "30"],
    "messages": ["messages.py", "60"],
}
"""The command of each suite."""
INTRODUCTION = """# What tilewise was compared with

Every cell says how many of so many answers are equal to the compiler's. `cargo xtask versions` makes this table; nothing here ran on a
chip.

- *layouts*: what `tilewise predict` gives random shapes by default, on seven generations, and PJRT's `get_default_layout`.
- *constraints*: the tiles for a given order of dimensions, and those of the arguments of compiled programs that fix it.
- *plans*: arguments, results, what of them is donated, and temporaries of generated programs, by `tilewise audit` and by the
  compiler's `memory_analysis`; a program counts if all four are equal. Before libtpu 0.0.51 that counts the fragmentation of
  temporaries a second time: temporaries are compared with what the compiler allocates.
- *kernels*: the VMEM of generated Pallas kernels by `tilewise kernel`, and what the compiler allocates.
- *messages*: programs that don't fit, whose message is explained, and says of HBM what `tilewise audit` finds in their dump.

"""
HEAD = ["JAX", "libtpu", "Python", *SUITES, "date"]


def counted(suite, options):
    """How many of a suite's answers are equal, of how many."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        script, *arguments = (each.format(folder=folder) for each in SUITES[suite])
        command = [sys.executable, HERE / script, *arguments, "--tilewise", options.tilewise, "--result", result]
        with open(options.log, "a") as log:
            subprocess.run([*command, "--seconds", str(options.seconds)], stdout=log, stderr=log)
        if not result.exists():
            return None
        found = json.loads(result.read_text())
    return f"{found['exact']} of {found['total']}"


def rows_of(table):
    """The rows of a table by JAX and libtpu."""
    if not table.exists():
        return {}
    cells = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in table.read_text().splitlines()
        if line[:1] == "|"
    ]
    return {(row[0], row[1]): row for row in cells[2:]}


def in_order(key):
    """Newest first."""
    return [[int(number) for number in re.findall(r"\d+", each)] for each in key]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", choices=list(SUITES), action="append", help="run this suite, and keep the others' cells"
    )
    parser.add_argument("--seconds", type=float, default=120, help="begin nothing in a suite after so many seconds")
    parser.add_argument("--tilewise", type=Path, required=True, help="the command")
    parser.add_argument("--table", type=Path, required=True, help="the Markdown file")
    parser.add_argument("--log", type=Path, required=True, help="where differences are written")
    options = parser.parse_args()
    rows = rows_of(options.table)
    key = version("jax"), version("libtpu")
    row = dict(zip(HEAD, rows.get(key, []))) or dict.fromkeys(HEAD, "")
    for suite in options.only or SUITES:
        found = counted(suite, options)
        print(f"jax {key[0]}, libtpu {key[1]}: {suite} {found or 'failed, see ' + str(options.log)}", flush=True)
        row[suite] = found or "failed"
    row |= {"JAX": key[0], "libtpu": key[1], "Python": "{}.{}".format(*sys.version_info)}
    row["date"] = datetime.date.today().isoformat()
    rows[key] = list(row.values())
    lines = [HEAD, ["---"] * len(HEAD), *(rows[each] for each in sorted(rows, key=in_order, reverse=True))]
    options.table.write_text(INTRODUCTION + "".join(f"| {' | '.join(cells)} |\n" for cells in lines))


if __name__ == "__main__":
    main()
