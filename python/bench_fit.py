"""`fit` beside the searches that people use, compilations included: `bench.py fit FOLDER [TEXT…]`.

The folder has ``facts.csv`` (program, tpu, settings as JSON, range_end, largest_batch, compile_cpu_seconds) and
``programs``, a package with a module a program whose ``make(batch=…)`` is a factory. All contenders compile in the same
kind of process; seconds are of CPU, of this process and its children. With ``above="all"`` `tw.fit` asks about every
size above its answer, which is about 0.1 s each.
"""

from __future__ import annotations

import csv
import functools
import importlib
import json
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tilewise as tw
from tilewise._compiler.process import Answer, Compiler, exact_modes
from tilewise._fit.candidates import Place
from tilewise._fit.factory import program_of

Fits = Callable[[int], bool]

SLOW_SECONDS = 5.0
"""Of CPU for one compilation: searches above it are summed on their own."""


@dataclass(frozen=True)
class Row:
    """The result of one contender in one search."""

    search: str
    contender: str
    is_right: bool
    seconds: float
    is_slow: bool


def bisection(fits: Fits, end: int) -> int | None:
    """As MaxText's estimator: halve the range, and take for granted that what is larger needs more."""
    low, high = 0, end + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low or None


def doubling(fits: Fits, end: int) -> int | None:
    """As Lightning's ``binsearch``: double until it fails, then halve between."""
    low, high = 0, 1
    while high <= end and fits(high):
        low, high = high, high * 2
    high = min(high, end + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low or None


def compiled(search: Callable[[Fits, int], int | None], make: Any, tpu: str, end: int) -> int | None:
    """The answer of a search that compiles in full every size it asks about."""
    with Compiler() as compiler:

        def fits(size: int) -> bool:
            program = compiler.trace(functools.partial(program_of, make, {"batch": size}, Place(tpu, None)))
            return not isinstance(program, Answer) and compiler.ask(program, "full").status == "fits"

        return search(fits, end)


def ours(above: Literal["auto", "all"], make: Any, tpu: str, end: int) -> int | None:
    """The answer of `fit`."""
    found = tw.fit(make, tpu=tpu, largest={"batch": range(1, end + 1)}, above=above, cache=None, progress=False)
    return (found.largest or {}).get("batch")


CONTENDERS: dict[str, Callable[[Any, str, int], int | None]] = {
    "`tw.fit`": functools.partial(ours, "auto"),
    '`tw.fit`, `above="all"`': functools.partial(ours, "all"),
    "bisection (MaxText)": functools.partial(compiled, bisection),
    "doubling, bisection (Lightning)": functools.partial(compiled, doubling),
}


def seconds() -> float:
    """CPU of this process, and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def rows(folder: Path, only: Sequence[str]) -> Iterator[Row]:
    """The results of each contender in each search, as they come."""
    sys.path.insert(0, str(folder))
    with open(folder / "facts.csv", newline="", encoding="utf-8") as file:
        facts = [fact for fact in csv.DictReader(file) if not only or any(name in str(fact) for name in only)]
    # The compiler is tried out once, for all.
    with Compiler() as compiler:
        exact_modes(compiler)
    for fact in facts:
        module = importlib.import_module(f"programs.{fact['program']}")
        make = functools.partial(module.make, **json.loads(fact["settings"]))
        search = f"{fact['program']} {fact['settings']} {fact['tpu']}"
        for name, contender in CONTENDERS.items():
            begun = seconds()
            found = contender(make, fact["tpu"].split(":")[0], int(fact["range_end"]))
            is_right = found == int(fact["largest_batch"])
            yield Row(search, name, is_right, seconds() - begun, float(fact["compile_cpu_seconds"]) > SLOW_SECONDS)


def main(folder: str, *only: str) -> None:
    """Prints a table, as it comes; of all searches, or of those whose facts have one of these texts."""
    print("| search | by | right | CPU |\n| --- | --- | --- | --- |", flush=True)
    done: list[Row] = []
    for row in rows(Path(folder), only):
        print(
            f"| {row.search} | {row.contender} | {'yes' if row.is_right else 'no'} | {row.seconds:.1f} s |", flush=True
        )
        done.append(row)
    for words, some in (
        ("all", done),
        (f"those whose compilation takes over {SLOW_SECONDS:.0f} s", [row for row in done if row.is_slow]),
    ):
        for name in CONTENDERS:
            each = [row for row in some if row.contender == name]
            spent, count = sum(row.seconds for row in each), sum(row.is_right for row in each)
            print(f"| {words} | {name} | {count} of {len(each)} | {spent:.1f} s |")
