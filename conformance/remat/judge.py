"""Compares the choices of `tw.remat` for steps of libraries with their users' by hand; TABLE.md has the rows.

For each choice that fits, its own memory is the limit, in whole MiB. Nothing runs on a TPU: bytes are the compiler's,
times are estimated from its cycle counts.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
import steps
from jax.experimental.pallas import tpu as pltpu

import tilewise as tw
from tilewise._jax.lowering import Request
from tilewise._remat.step import Choice
from tilewise._remat.result import difference, sample
from tilewise._remat.step import SHARES, Step

FIELDS = "step tpu choice peak_bytes seconds found_peak_bytes found_seconds holds asked_seconds".split()
FOLDER = Path(__file__).parent
MIB = 2**20
NEAR = 1.02
"""Estimates this near are one."""


def priced(step: Any, args: Any, options: Any, tpu: str, topology: str | None) -> tuple[int, float | None] | None:
    """Bytes and seconds of a program that is compiled in full; ``None`` where it is refused, or has no estimate."""
    try:
        report = tw.audit(step, *args, tpu=tpu, topology=topology, jit_options=options, confirm=True)
    except (tw.Error, jax.errors.JaxRuntimeError) as error:
        print(error, file=sys.stderr)
        return None
    if report.time is None or report.peak_bytes is None:
        return None
    return report.peak_bytes, report.time.estimate_seconds


def rows_of(name: str, tpu: str) -> Iterator[dict[str, Any]]:
    """A row for each of its users' choices."""
    _, choices, slice_ = steps.STEPS[name]
    topology = None if slice_ is None else f"{tpu}:{slice_}"
    known: list[tuple[str, tuple[int, float | None] | None]] = []
    # "none" last: the code below is about that step.
    for choice in (*choices, "none"):
        # A library that calls `jax.jit` itself would give the trace of another choice.
        jax.clear_caches()
        step, args, options = steps.make(name, choice)
        known.append((choice, priced(step, args, options, tpu, topology)))
    for choice, price in known:
        row = {"step": name, "tpu": tpu, "choice": choice}
        if price is None:
            yield {**row, "holds": "doesn't fit, or has no estimate"}
            continue
        if choice == "none" and price in (other for name, other in known if name != "none"):
            # MaxText's is another name for one of the others.
            continue
        if choice == "none":
            # Its own memory isn't a budget.
            yield {**row, "peak_bytes": price[0], "seconds": price[1], "holds": "as written"}
            continue
        begun = time.monotonic()
        limit = -(-price[0] // MIB) * MIB
        found = tw.remat(step, *args, tpu=tpu, topology=topology, jit_options=options, hbm_limit=limit, progress=False)
        asked = time.monotonic() - begun
        # The compiler's own answer, of the program in full.
        ours = (found.peak_bytes, found.seconds) if found.seconds else priced(found.step, args, options, tpu, topology)
        # The times of choices by hand that are as small.
        times = [each[1] for _, each in known if each is not None and each[0] <= price[0] and each[1] is not None]
        holds = ours is not None and ours[0] <= limit and bool(times) and (ours[1] or 1e9) <= NEAR * min(times)
        yield {
            **row,
            "peak_bytes": price[0],
            "seconds": price[1],
            "found_peak_bytes": found.peak_bytes if ours is None else ours[0],
            "found_seconds": None if ours is None else ours[1],
            "holds": holds,
            "asked_seconds": round(asked),
        }


def rounding(name: str) -> float:
    """The largest difference of results between the step and choices of all kinds, of a small step on the CPU."""
    step, args, _ = steps.make(name, small=True)
    traced = Step.of(Request(step, args, "v5e"))
    given = sample(jax.make_jaxpr(traced.form.flat)(*traced.form.leaves))
    run = jax.extend.core.jaxpr_as_fun
    choices = [
        Choice(price, share, is_tied, releases=is_tied)
        for price in (1e9, 1e11)
        for share in (None, *SHARES)
        for is_tied in (False, True)
    ]
    return max(difference(traced.form.flat, run(traced.chosen(each)[0].closed()), given) for each in choices)


def table(rows: Iterable[dict[str, Any]]) -> str:
    """TABLE.md: a row for each choice that fits."""

    def price(row: dict[str, Any], begin: str) -> str:
        peak, seconds = row.get(f"{begin}peak_bytes"), row.get(f"{begin}seconds")
        return f"{int(peak) / 2**30:.2f} GiB, {1e3 * float(seconds):.0f} ms" if peak and seconds else ""

    lines = [
        "# What `tw.remat` finds, beside what people choose by hand",
        "",
        "Made by `cargo xtask remat`; nothing ran on a TPU. For each choice its own memory is the limit, in whole MiB;",
        "bytes are the compiler's, times estimated. `none` keeps all; `block` is Tunix's, MaxText's are its own;",
        "the others are `jax.checkpoint` around a layer, with a policy of JAX's.",
        "",
        "| step | TPU | by hand | | found | not worse |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    said = {"True": "yes", "False": "no"}
    for row in rows:
        cells = [row["step"], row["tpu"], f"`{row['choice']}`", price(row, ""), price(row, "found_")]
        lines.append(f"| {' | '.join(cells)} | {said.get(str(row['holds']), row['holds'])} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Renew the rows that were asked for, and print them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tpu", default="v5e,v6e")
    parser.add_argument("--only", default=",".join(steps.STEPS), help="names of steps, with commas between")
    parser.add_argument("--check", action="store_true", help="compare results on this machine's CPU instead")
    parser.add_argument("--output", type=Path, default=FOLDER / "rows.csv")
    given = parser.parse_args()
    names = given.only.split(",")
    unknown = [name for name in names if name not in steps.STEPS]
    if unknown:
        parser.error(f"no step {unknown[0]}; there are {', '.join(steps.STEPS)}")
    if given.check:
        for name in names:
            # JAX simulates a TPU's kernels.
            with pltpu.force_tpu_interpret_mode():
                print(f"{name}: {rounding(name):.1e}", flush=True)
        return 0
    kept: dict[tuple[str, str, str], dict[str, Any]] = {}
    if given.output.exists():
        with open(given.output) as file:
            kept = {(row["step"], row["tpu"], row["choice"]): row for row in csv.DictReader(file)}
    wrong = 0
    for tpu in given.tpu.split(","):
        for name in names:
            for row in rows_of(name, tpu):
                kept[row["step"], tpu, row["choice"]] = row
                wrong += row["holds"] is False
                print(*(row.get(field, "") for field in FIELDS), flush=True)
                with open(given.output, "w") as file:
                    writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(kept.values())
                given.output.with_name("TABLE.md").write_text(table(kept.values()))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
