"""Tries choices, and finds those that fit and are fast by asking the compiler."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tilewise import _tilewise
from tilewise._base.errors import Error
from tilewise._compiler.cache import Cache
from tilewise._compiler.process import Answer, Compiler, Mode, exact_modes
from tilewise._compiler.program import NotSendable, Program, trace
from tilewise._remat.choosing import Choice, Chosen
from tilewise._remat.deciding import Decision, RematRow, Tried, are_near, by_floor
from tilewise._remat.step import SHARES, Step

PRICES = (1e6, 1e9, 2e10, 5e10, 1e11, 3e11, 1e12, 1e13)
"""Bytes that a second is worth: next to nothing, then from a hundredth of the memory's traffic to ten times it."""
_PARTS, _REFINED = 8, 3
"""The parts, found by halving, in which values of the next price are kept; the kinds of choices refined so."""
MOST_PROBES, MOST_COMPILED = 40, 4
"""The most questions and full compilations, after which the search ends with its results so far."""
LONGEST = 600.0
"""Seconds of one question; then its choice is left."""

_SMALLEST = tuple(Choice(0.0, share, is_tied=True, releases=each) for share in SHARES for each in (True, False))


class Search:
    """Asks the compiler about choices of a step.

    It says its progress in words; choices with ``offload`` may keep values in the host's memory.
    """

    def __init__(
        self,
        step: Step,
        limit: int,
        compiler: Compiler,
        cache: Cache,
        *,
        offload: bool = False,
        timeout: float = LONGEST,
        say: Callable[[str], None] = lambda words: None,
    ) -> None:
        self._step, self.limit, self._compiler, self._cache = step, limit, compiler, cache
        self._offload, self._timeout, self._say = offload, timeout, say
        self._seen: dict[Any, Tried | None] = {}
        self._probes = 0
        self.request = step.request
        self.tried: list[Tried] = []

    def least(self) -> Tried:
        """The step as it is written where its plan fits; else a choice that keeps little, the smallest of a few."""
        self._as_written()
        if not self.tried[0].row.fits:
            for family, price in itertools.product(_SMALLEST, PRICES[:2]):
                self._try(replace(family, price=price))
        return min(self.tried, key=lambda each: each.row.peak_bytes)

    def run(self, most_compiled: int = MOST_COMPILED) -> Tried:
        self._as_written()
        self._explore()
        limit, written = self.limit, self.tried[0]
        return Decision(
            self.tried,
            limit,
            most_compiled,
            # Only above the TPU's own memory does the compiler rematerialize.
            shrinks=not written.row.fits and limit == _tilewise.hbm_bytes(self.request.tpu) and most_compiled > 0,
            can_stop=exact_modes(self._compiler).stop,
            ask=self._ask_again,
            say=self._say,
        ).made()

    def _as_written(self) -> None:
        if not self.tried:
            self._add("as written", self.request.f, None)

    def _explore(self) -> None:
        families = [Choice(0.0), Choice(0.0, is_tied=True), *_SMALLEST]
        if self._step.region.has_pairs:
            families.insert(0, Choice(0.0, is_of_loops=True))
        if self._offload:
            families = [each for one in families[:2] for each in (replace(one, offloads=True), one)] + families[2:]
        found = [self._dearest([replace(each, price=price) for price in PRICES]) for each in families]
        fitting = by_floor(each for each in found if each is not None)
        for each in _different(fitting)[:_REFINED]:
            if each.choice is not None:
                self._dearest(_dearer(each.choice))

    def _dearest(self, choices: Sequence[Choice]) -> Tried | None:
        """The dearest that fits, of choices in the order of their prices: each keeps more and repeats less."""
        best: Tried | None = None
        least, most = 0, len(choices)
        while least < most:
            at = (least + most) // 2
            found = self._try(choices[at])
            if found is not None and found.row.fits:
                best, least = found, at + 1
            else:
                most = at
        return best

    def _try(self, choice: Choice) -> Tried | None:
        """The compiler's answer on a choice, asked once for those that lead to one program."""
        block, chosen = self._step.chosen(choice)
        key = (chosen.key, chosen.in_line and (choice.is_tied, choice.releases), choice.offloads)
        if key not in self._seen and self._probes < MOST_PROBES:
            self._probes += 1
            self._say(f"{self._probes} choices of what is kept")
            name = "cut, on the host" if choice.offloads else "cut"
            self._seen[key] = self._add(name, self._step.function(block), chosen)
        found = self._seen.get(key)
        if found is not None:
            # The last one that was asked: of those of its kind that fit, the dearest.
            found.choice = choice
        return found

    def _ask_again(self, tried: Tried, mode: Mode) -> None:
        program, answer = self._answer(tried.step, mode)
        report = answer.report
        if report is None or report.peak_bytes is None:
            tried.row, tried.has_failed = replace(tried.row, fits=False), True
            return
        tried.program, tried.answer, tried.report = program, answer, report
        seconds = None if report.time is None or mode != "full" else report.time.estimate_seconds
        fits = report.peak_bytes <= self.limit
        compiled = mode == "full" and fits
        tried.row = replace(tried.row, peak_bytes=report.peak_bytes, fits=fits, seconds=seconds, compiled=compiled)

    def _add(self, name: str, step: Callable[..., Any], chosen: Chosen | None) -> Tried | None:
        program, answer = self._answer(step, "probe" if exact_modes(self._compiler).probe else "stop")
        report = answer.report
        if report is None or report.peak_bytes is None:
            if chosen is None:
                raise Error(f"the compiler can't plan the step: {answer.error}", kind="remat")
            return None
        floor = _tilewise.floor_of(report)
        kept, repeated = (None, None) if chosen is None else (chosen.bytes, sum(each.times for each in chosen.again))
        fits = report.peak_bytes <= self.limit
        row = RematRow(name, report.peak_bytes, fits, None, floor, kept, repeated, compiled=False)
        tried = Tried(name, step, chosen, program, answer, report, float("inf") if floor is None else floor, row)
        self.tried.append(tried)
        return tried

    def _answer(self, step: Callable[..., Any], mode: Mode) -> tuple[Program, Answer]:
        try:
            program = trace(replace(self.request, f=step))
        except NotSendable as error:
            raise Error(f"remat asks the compiler in a process of its own, and {error}", kind="remat") from None
        if mode == "probe" and program.is_sharded:
            mode = "stop"
        ask = functools.partial(self._compiler.ask, program, mode, timeout=self._timeout)
        return program, self._cache.asked(program.with_lines, mode, None, ask)[0]


def _dearer(choice: Choice) -> list[Choice]:
    """This choice with more and more of the values that the next of `PRICES` keeps."""
    above = next((each for each in PRICES if choice.price < each), None)
    return [] if above is None else [replace(choice, dearer=above, part=at / _PARTS) for at in range(1, _PARTS)]


def _different(tried: list[Tried]) -> list[Tried]:
    found: list[Tried] = []
    for each in tried:
        if not any(are_near(each.row, other.row) for other in found):
            found.append(each)
    return found
