"""`fit` beside the searches that people use, compilations included: `bench.py fit FOLDER [TEXT…]`.

The folder has ``facts.csv`` (program, tpu, settings as JSON, range_end, largest_batch) and ``programs``, a package with
a module a program whose ``make(batch=…)`` is a factory. All contenders compile in the same kind of process; seconds are
of CPU, of this process and its children.
"""

from __future__ import annotations

import csv
import functools
import importlib
import json
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tilewise as tw
from tilewise._ask import Answer, Compiler
from tilewise._fit.candidates import Place
from tilewise._fit.factory import program_of
from tilewise._ways import ways

Fits = Callable[[int], bool]


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
    """What a search finds that compiles every size it asks about in full."""
    with Compiler() as compiler:

        def fits(size: int) -> bool:
            program = compiler.trace(functools.partial(program_of, make, {"batch": size}, Place(tpu, None)))
            return not isinstance(program, Answer) and compiler.ask(program, "full").status == "fits"

        return search(fits, end)


def ours(make: Any, tpu: str, end: int) -> int | None:
    """What `fit` finds."""
    found = tw.fit(make, tpu=tpu, largest={"batch": range(1, end + 1)}, cache=None, progress=False)
    return (found.largest or {}).get("batch")


CONTENDERS: dict[str, Callable[[Any, str, int], int | None]] = {
    "`tw.fit`": ours,
    "bisection (MaxText)": functools.partial(compiled, bisection),
    "doubling, bisection (Lightning)": functools.partial(compiled, doubling),
}


def seconds() -> float:
    """CPU of this process, and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def rows(folder: Path, only: Sequence[str]) -> Iterator[tuple[str, str, bool, float]]:
    """For each search and contender: whether it is right, and its seconds."""
    sys.path.insert(0, str(folder))
    with open(folder / "facts.csv", newline="", encoding="utf-8") as file:
        facts = [fact for fact in csv.DictReader(file) if not only or any(name in str(fact) for name in only)]
    # The compiler is tried out once, for all.
    with Compiler() as compiler:
        ways(compiler)
    for fact in facts:
        module = importlib.import_module(f"programs.{fact['program']}")
        make = functools.partial(module.make, **json.loads(fact["settings"]))
        for name, contender in CONTENDERS.items():
            begun = seconds()
            found = contender(make, fact["tpu"].split(":")[0], int(fact["range_end"]))
            yield f"{fact['program']} {fact['settings']}", name, found == int(fact["largest_batch"]), seconds() - begun


def main(folder: str, *only: str) -> None:
    """Prints a table, as it comes; of all searches, or of those whose facts have one of these texts."""
    print("| search | by | right | CPU |\n| --- | --- | --- | --- |", flush=True)
    totals: dict[str, list[tuple[bool, float]]] = {}
    for search, name, is_right, spent in rows(Path(folder), only):
        print(f"| {search} | {name} | {'yes' if is_right else 'no'} | {spent:.1f} s |", flush=True)
        totals.setdefault(name, []).append((is_right, spent))
    for name, found in totals.items():
        right, spent = sum(is_right for is_right, _ in found), sum(spent for _, spent in found)
        print(f"| all | {name} | {right} of {len(found)} | {spent:.1f} s |")
