"""Judges what `tilewise audit` says of copies: whether they go once arguments and results are handed over as it says.

Each program is compiled, its fixes are followed by their own code, without touching the program, and it is compiled
again. The table goes to standard output, progress to standard error. The exit status is 1 if too few of the copies go
that are to, or a program holds or moves more than before.
"""

import csv
import sys
from collections import Counter

import jax
from judging import HERE, MIB, audited, options  # It also says where the other modules are.
from copied import PROGRAMS
from follow import followed
from programs import Draw
from worker import devices

GONE = 0.8
"""The least share of the copies with a fix that must go."""


def compiled(options, program, tpu, path):
    """The bytes that a program holds, and its copies into another order."""
    report, held = audited(options, program, tpu, path)
    return held, [copy for copy in report["copies"] if copy["class"] == "relayout"]


def crosses(copy):
    """The argument that a copy is made of, or the result that is made of it; `None` for other copies."""
    reader = copy["reader"] or {}
    if copy["origin"]["kind"] == "argument":
        return "argument", copy["origin"]["number"]
    return ("result", reader["number"]) if reader.get("kind") == "result" else None


def moved(copies):
    """Bytes that copies read and write in all."""
    return sum(copy["moved_bytes"] for copy in copies)


def judged(options, name, tpu):
    """A program for one generation, before and after its fixes are followed."""
    program = PROGRAMS[name].make(Draw("", tpu, devices(tpu)))
    before, copies = compiled(options, program, tpu, options.folder / f"{name}.{tpu}.hlo")
    fixes = {copy["fix"]["sentence"]: copy["fix"] for copy in copies if copy["fix"] and copy["fix"]["code"]}
    for fix in fixes.values():
        program = followed(program, fix)
    after, left = (
        compiled(options, program, tpu, options.folder / f"{name}.{tpu}.fixed.hlo") if fixes else (before, copies)
    )
    aimed = Counter(crosses(copy) for copy in copies if copy["fix"] and copy["fix"]["code"])
    had, has = Counter(map(crosses, copies)), Counter(map(crosses, left))
    jax.clear_caches()
    print(f"{name}.{tpu}", file=sys.stderr, flush=True)
    return {
        "name": name,
        "tpu": tpu,
        "crossing": sum(count for key, count in had.items() if key),
        "aimed": aimed.total(),
        "gone": sum(min(count, max(had[key] - has[key], 0)) for key, count in aimed.items()),
        "moved": (moved(copies), moved(left)),
        "held": (before, after),
        "ends": {key: (count, has[key]) for key, count in had.items() if key},
    }


def is_harmed(row):
    """Whether a program holds or moves more once its fixes are followed, but for what no longer lies on the chip."""
    return row["held"][1] > row["held"][0] + MIB or row["moved"][1] > row["moved"][0]


def table(rows):
    """The lines of a Markdown table."""
    columns = ["program", "TPU", "copied at the interface", "to go", "gone", "MiB copied", "after", "MiB held", "after"]
    yield f"| {' | '.join(columns)} |"
    yield f"| --- | --- |{' ---: |' * 7}"
    for row in rows:
        sizes = [f"{bytes / MIB:.1f}" for bytes in (*row["moved"], *row["held"])]
        cells = [f"`{row['name']}`", row["tpu"], row["crossing"], row["aimed"], row["gone"], *sizes]
        yield f"| {' | '.join(map(str, cells))} |"


def summary(rows):
    """A summary of the rows, in a line."""
    aimed, gone = sum(row["aimed"] for row in rows), sum(row["gone"] for row in rows)
    crossing, harmed = sum(row["crossing"] for row in rows), sum(map(is_harmed, rows))
    programs = len({row["name"] for row in rows})
    return (
        f"{programs} programs, {len(rows)} compilations: of {crossing} copies of arguments and results into another "
        f"layout, {aimed} are to go, and {gone} go; {harmed} hold over a MiB more, or copy more."
    )


def write_ends(rows, path):
    """A row for each argument and result that is copied: how many copies there are, and how many are left."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["program", "end", "number", "copies", "left"])
        for row in rows:
            for (end, number), counts in row["ends"].items():
                writer.writerow([f"{row['name']}.{row['tpu']}", end, number, *counts])


def main():
    """Judges all programs, or one."""
    chosen = options(__doc__, "TABLE.md and copies.csv")
    if chosen.only and chosen.only not in PROGRAMS:
        sys.exit(f"no program {chosen.only}; there are {', '.join(PROGRAMS)}")
    names = [chosen.only] if chosen.only else list(PROGRAMS)
    rows = [judged(chosen, name, tpu) for name in names for tpu in PROGRAMS[name].tpus]
    parts = []
    for title, is_held_out in (("Programs the rules were made with", False), ("Programs they were not", True)):
        some = [row for row in rows if PROGRAMS[row["name"]].is_held_out == is_held_out]
        if some:
            parts += [f"## {title}", "\n".join(table(some)), summary(some)]
    words = "\n\n".join(parts)
    print(words)
    if chosen.write:
        note = "<!-- Renewed by `cargo xtask advice --copies --write`. -->"
        head = "# Copies that another layout makes needless"
        (HERE / "TABLE.md").write_text(f"{head}\n\n{note}\n\n{words}\n")
        write_ends(rows, HERE / "copies.csv")
    gone, aimed = (sum(row[key] for row in rows) for key in ("gone", "aimed"))
    sys.exit(gone < GONE * aimed or any(map(is_harmed, rows)))


if __name__ == "__main__":
    main()
