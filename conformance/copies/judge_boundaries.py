"""Judges what `tilewise audit` names to spare copies at kernels: whether they go, and whether results stay.

Each case of `boundaries.py` is compiled before and after the remedy of what is copied most; remedies for the caller alone are
followed by their own code. The kernel afterwards has to take the array that the remedy names. Both programs are run with small
sizes on the CPU, kernels in interpret mode, and all results are compared. The table goes to standard output, progress to
standard error. The exit status is 1 if too few of the copied bytes go, any program copies or holds more, or a result differs.
"""

import sys

import jax
import numpy as np
from judging import HERE, MIB, audited, options  # It also says where the other modules are.
from boundaries import BOUNDARIES, Boundary
from follow import followed
from jax.experimental.pallas import tpu as pltpu
from programs import Draw, Program
from worker import devices

GONE = 0.7
"""The least share of the copied bytes that must go."""


def before(case: Boundary) -> Program:
    """The program as it was first written."""
    return Program(case.before, case.arguments, case.jit)


def after(case: Boundary, remedy) -> Program:
    """The program with the remedy applied."""
    if remedy["kind"] == "layout":
        return followed(before(case), {"imports": "from jax.experimental.layout import Format, Layout", **remedy})
    arguments = case.arguments if case.arguments_after is None else case.arguments_after
    return Program(case.after, arguments, case.jit | (case.jit_after or {}))


def arrays(report):
    """The operands and results of all kernels."""
    return [array for kernel in report["kernels"] for array in (*kernel["operands"], *kernel["results"])]


def copied(report):
    """Bytes copied at kernels, and by all copies but transfers."""
    at_kernels = sum(array["copied_bytes"] for array in arrays(report))
    return at_kernels, sum(copy["moved_bytes"] for copy in report["copies"] if copy["class"] != "transfer")


def bare(shape):
    """The shape without its layout."""
    return shape.split("{")[0]


def filled(program, random):
    """Numbers in place of a program's arguments."""

    def array(leaf):
        if leaf.dtype == np.bool_:
            return jax.numpy.asarray(True)
        if jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating):
            return jax.numpy.asarray(random.standard_normal(leaf.shape, np.float32)).astype(leaf.dtype)
        return jax.numpy.asarray(random.integers(-8, 8, leaf.shape)).astype(leaf.dtype)

    return [array(leaf) for leaf in program.arguments]


def difference(known):
    """Why the program has other results with the remedy, on small shapes; `None` where it has the same."""
    case = known.make(Draw("", known.tpu, devices("cpu")), **known.small)
    if case.after is None or case.after is case.before:
        return None
    one, other = before(case), Program(case.after, case.arguments_after or case.arguments)
    given = filled(one, np.random.default_rng(0))
    taken = [array.reshape(leaf.shape) for array, leaf in zip(given, other.arguments, strict=True)]
    with pltpu.force_tpu_interpret_mode():
        results = [
            jax.tree.leaves(jax.jit(program.function)(*arguments))
            for program, arguments in ((one, given), (other, taken))
        ]
    for expected, found in zip(*results, strict=True):
        if not np.allclose(np.float64(expected).ravel(), np.float64(found).ravel(), rtol=2e-2, atol=2e-2):
            return "a result differs"
    return None


def judged(options, name):
    """A case before and after what is named first."""
    known = BOUNDARIES[name]
    case = known.make(Draw("", known.tpu, devices(known.tpu)))
    was, held = audited(options, before(case), known.tpu, options.folder / f"{name}.before.{known.tpu}.hlo")
    most = max(arrays(was), key=lambda array: array["copied_bytes"])
    remedy = most["remedy"] or {"kind": "none", "access": None, "shape": None}
    row = {"name": name, "thread": known.thread, "remedy": remedy, "forced_by": most["forced_by"], "was": copied(was)}
    if remedy["kind"] == "none":
        row |= {"is": row["was"], "held": (held, held), "wrong": None}
    else:
        now, holds = audited(options, after(case, remedy), known.tpu, options.folder / f"{name}.after.{known.tpu}.hlo")
        shapes = {bare(array["shape"]) for array in arrays(now)}
        strays = remedy["shape"] and bare(remedy["shape"]) not in shapes
        row |= {"is": copied(now), "held": (held, holds)}
        row["wrong"] = f"no kernel takes {remedy['shape']}" if strays else difference(known)
    jax.clear_caches()
    print(name, row["was"], row["is"], remedy["kind"], row["wrong"], file=sys.stderr, flush=True)
    return row


def is_harmed(row):
    """Whether a program copies more with the remedy, or holds over a MiB more; padding that a remedy names is paid for."""
    return row["is"][0] > row["was"][0] or row["is"][1] > row["was"][1] or row["held"][1] > row["held"][0] + MIB


def table(rows):
    """The lines of a Markdown table."""
    yield "| case | thread | forced by | remedy | MiB copied at kernels | after | in all | after | MiB held | after |"
    yield f"| --- | --- | --- | --- |{' ---: |' * 6}"
    for row in rows:
        remedy = row["remedy"]
        said = ", ".join(filter(None, (remedy["kind"], remedy["access"]))).replace("_", " ")
        sizes = [row["was"][0], row["is"][0], row["was"][1], row["is"][1], *row["held"]]
        cells = [f"`{row['name']}`", row["thread"], row["forced_by"], said, *(f"{size / MIB:.1f}" for size in sizes)]
        yield f"| {' | '.join(map(str, cells))} |"


def summary(rows):
    """A summary of the rows, in a line."""
    was, left = (sum(row[key][0] for row in rows) for key in ("was", "is"))
    gone = [row for row in rows if row["is"][0] <= (1 - GONE) * row["was"][0]]
    return (
        f"{len(rows)} cases: {was / MIB:.0f} MiB are copied at kernels, {left / MIB:.0f} MiB after the first remedy, "
        f"{1 - left / was:.1%} less; in {len(gone)} cases at least {GONE:.0%} go. {sum(map(is_harmed, rows))} copy more or hold "
        f"over a MiB more, {sum(bool(row['wrong']) for row in rows)} compute something else."
    )


def main():
    """Judges all cases, or one."""
    chosen = options(__doc__, "BOUNDARIES.md")
    if chosen.only and chosen.only not in BOUNDARIES:
        sys.exit(f"no case {chosen.only}; there are {', '.join(BOUNDARIES)}")
    rows = [judged(chosen, name) for name in ([chosen.only] if chosen.only else BOUNDARIES)]
    words = "\n".join([*table(rows), "", summary(rows)])
    print(words)
    if chosen.write:
        note = "<!-- Renewed by `cargo xtask advice --boundaries --write`. -->"
        (HERE / "BOUNDARIES.md").write_text(
            f"# Copies at kernels, before and after the first remedy\n\n{note}\n\n{words}\n"
        )
    was, left = (sum(row[key][0] for row in rows) for key in ("was", "is"))
    sys.exit(left > (1 - GONE) * was or any(is_harmed(row) or row["wrong"] for row in rows))


if __name__ == "__main__":
    main()
