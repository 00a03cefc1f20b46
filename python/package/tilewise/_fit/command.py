"""``tilewise fit …``, which asks a compiler, and so runs in Python, whichever way the command line was installed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tilewise._audit.together import Together, audit_together
from tilewise._base.answers import Answers
from tilewise._base.files import write_whole
from tilewise._fit.factory import factory, parts_of, setting, sizes, values
from tilewise._fit.result import Fit
from tilewise._fit.run import DEFAULT_CACHE, fit

_PREDICTED = 6
"""The most predictions of sets that are followed; after that, the search for the most pages bisects."""


def main(arguments: Sequence[str], answers: Answers) -> int:
    """Search, print, and return the exit status: 0 an answer, 1 nothing fits, 2 usage, 3 gaps or errors, 130 Ctrl-C."""
    given = _parser().parse_args(arguments)
    if given.remat is not None:
        given.grid.append(f"remat={given.remat}")
    if not given.largest and not given.target:
        raise ValueError("say what to search, as --largest batch=1..512, or what is to fit, as --target batch=256")
    server = _server(given, answers)
    if server is not None:
        return server
    found = fit(
        factory(given.program, given.allow_module),
        tpu=given.tpu.split(","),
        topology=None if given.topology is None else given.topology.split(","),
        largest=dict(map(sizes, given.largest)) or None,
        grid=dict(map(values, given.grid)),
        target=dict(map(setting, given.target)) or None,
        confirm=given.confirm,
        above=given.above if given.above in ("auto", "all", "near") else float(given.above),
        reserve=given.reserve,
        hbm_limit=given.hbm_limit,
        cache=None if given.no_cache else given.cache,
        engine=given.engine,
        workers=given.workers,
        timeout=given.timeout,
        out=given.out,
        progress=answers.shows_progress,
    )
    _give(found, str(found), given, answers)
    if found.interrupted:
        return 130
    if not found and not found.answered:
        first = found.errors[0]
        words = next(iter((first.error or "").strip().splitlines()), first.status)
        answers.error(f"no program has an answer, such as {dict(first.settings)}: {words}")
        return 3 if given.strict and first.status in ("crashed", "timeout") else 2
    if given.strict and (found.gaps or found.errors):
        return 3 if found or found.errors else 1
    return 0 if found else 1


def _server(given: argparse.Namespace, answers: Answers) -> int | None:
    """The exit status if the factory is a server's, whose programs are loaded together; else ``None``.

    The most cache pages that fit are searched.
    """
    if len(given.largest) != 1 or given.target or given.grid or "," in given.tpu:
        return None
    axis, several = sizes(given.largest[0])
    counts = sorted(map(int, several))
    make = factory(given.program, given.allow_module)
    try:
        if not isinstance(make(**{axis: counts[0]}), Mapping):
            return None
    # A factory may raise anything; the search for one program tells it.
    except Exception:
        return None

    def ask(count: int) -> Together:
        print(f"compiling for {axis}={count}", file=sys.stderr, flush=True)
        members = {str(name): parts_of(each) for name, each in make(**{axis: count}).items()}
        return audit_together(members, tpu=given.tpu, hbm_limit=given.hbm_limit, topology=given.topology)

    found, asked = largest(counts, ask)
    _give(found, f"{found}\nCompiled for {axis}={', '.join(map(str, sorted(asked)))}.", given, answers)
    return int(found.fits is not True)


def largest(counts: Sequence[int], ask: Callable[[int], Together]) -> tuple[Together, dict[int, Together]]:
    """The set with the largest count that fits, or the smallest that was asked about if none does, and all that were.

    Counts ascend, and more pages take more bytes.
    """
    asked: dict[int, Together] = {}
    left = list(counts)
    while left:
        count = _next(left, asked)
        asked[count] = said = ask(count)
        left = [each for each in left if (each > count if said.fits else each < count)]
    fitting = [count for count, said in asked.items() if said.fits]
    return asked[max(fitting) if fitting else min(asked)], asked


def _next(left: Sequence[int], asked: dict[int, Together]) -> int:
    """The count to ask about next: the last set's prediction, then the one above."""
    if not asked:
        return left[0]
    pages = [*asked.values()][-1].pages
    if pages is None or pages.fitting is None or len(asked) > _PREDICTED:
        return left[len(left) // 2]
    return max((count for count in left if count <= (pages.fitting or 0)), default=left[0])


def _give(found: Fit | Together, words: str, given: argparse.Namespace, answers: Answers) -> None:
    """Prints or writes it in the form that is asked for, or else in words."""
    form = getattr(found, f"to_{given.format}", lambda: words)
    if given.output is None:
        answers.text(form().rstrip("\n"))
    else:
        write_whole(Path(given.output), (form().rstrip("\n") + "\n").encode())


def _parser() -> argparse.ArgumentParser:
    """The command line's options, which `tilewise fit --help` prints."""
    parser = argparse.ArgumentParser(prog="tilewise fit", add_help=False)
    add = parser.add_argument
    add("program")
    add("--tpu", required=True)
    for name in ("--topology", "--hbm-limit", "--out", "-o/--output", "--remat"):
        add(*name.split("/"))
    for name in ("--largest", "--grid", "--target"):
        add(name, action="append", default=[])
    add("--confirm", choices=("answer", "all", "none"), default="answer")
    add("--above", default="auto")
    add("--reserve", default=0)
    add("--timeout", type=float)
    add("--workers", type=int, default=1)
    add("--engine", choices=("processes", "ray", "dask"), default="processes")
    add("--cache", default=DEFAULT_CACHE)
    add("--no-cache", action="store_true")
    add("--strict", action="store_true")
    add("--allow-module", action="append", default=[])
    add("--format", choices=("human", "json", "csv", "markdown", "html"), default="human")
    return parser
