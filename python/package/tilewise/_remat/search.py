"""Tries choices of kept values, and decides between them by asking the compiler."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewise import _tilewise
from tilewise._base.errors import Error
from tilewise._compiler.compile import Cache
from tilewise._compiler.process import Answer, Compiler, Mode, exact_modes
from tilewise._compiler.program import NotSendable, Program, trace
from tilewise._remat.step import SHARES, Choice, Chosen, Step
from tilewise._tilewise import Report

HAIR = 0.01
"""The part of bytes or seconds by which two programs may differ and be one for the search."""


@dataclass(frozen=True)
class RematRow:
    """The compiler's answer on one choice of kept values.

    Attributes:
        name: ``as written``, ``cut``: chosen anew, or ``cut, on the host``: with kept values in the host's memory.
        peak_bytes: the bytes that the program holds at its peak.
        fits: whether that is within the limit.
        seconds: how long a run takes, estimated; ``None`` where it was not compiled in full, or has no cycle counts.
        floor_seconds: how long it takes at least, with every operation at full rate.
        kept_bytes: the bytes kept for the gradient, without padding; ``None`` of the step as it is written.
        repeated: how many operations of the trace are repeated; likewise.
        compiled: whether it was compiled in full.

    Examples:
        >>> RematRow("as written", 2**30, True, 0.25, 0.2, None, None, True).peak_bytes
        1073741824
    """

    name: str
    peak_bytes: int
    fits: bool
    seconds: float | None
    floor_seconds: float | None
    kept_bytes: int | None
    repeated: int | None
    compiled: bool


@dataclass
class Tried:
    """A program, the answer on it, and the last choice that led to it; ``None`` for the step as it is written.

    One that failed was not compiled for another reason than its memory.
    """

    step: Callable[..., Any]
    chosen: Chosen | None
    program: Program
    answer: Answer
    report: Report
    row: RematRow
    choice: Choice | None = None
    has_failed: bool = False

    @property
    def floor(self) -> float:
        """The seconds of a run at full rates; infinite where they aren't known."""
        return math.inf if self.row.floor_seconds is None else self.row.floor_seconds

    @property
    def kind(self) -> Choice | None:
        """The kind of its choice: all but its price and its segments; ``None`` for the step as it is written."""
        return None if self.choice is None else replace(self.choice, price=0.0, share=None, dearer=0.0, part=0.0)


def are_near(one: RematRow, other: RematRow) -> bool:
    """Whether they differ by at most a hundredth in bytes and in time, and both fit or neither."""
    pairs = (one.peak_bytes, other.peak_bytes), (one.floor_seconds or 0.0, other.floor_seconds or 0.0)
    return one.fits == other.fits and all(abs(this - that) <= HAIR * that for this, that in pairs)


_NEARLY, _MOST_STOPS = 1.1, 6
"""The margin of a probe to the limit below which it is asked again at the TPU's own, and how often at most."""


class Decision:
    """Compiles in full those that may be the fastest, of each kind the fastest at full rates.

    Kinds differ in how much longer a run takes than at full rates, by a fifth in some steps; choices of one kind
    differ by a hundredth or two. The first of the tried is the step as it is written, which fits if the compiler's
    own rematerialization ``shrinks`` it. Where none of the ``most`` compiled ones fits, as many of the smallest
    follow. ``ask`` replaces the answer to a probe by the compiler's at the TPU's own limit.
    """

    def __init__(
        self,
        tried: Sequence[Tried],
        limit: int,
        most: int,
        *,
        shrinks: bool,
        can_stop: bool,
        ask: Callable[[Tried, Mode], None],
        say: Callable[[str], None],
    ) -> None:
        self._tried, self._limit, self._can_stop, self._ask, self._say = tried, limit, can_stop, ask, say
        self._shrunk = tried[0] if shrinks else None
        self._most = most + shrinks
        self._compiled, self._stops = 0, 0
        self._best: Tried | None = None
        self._ratios: dict[Choice | None, float] = {}
        self._outcomes = Outcomes(limit)

    def made(self) -> Tried:
        """The fastest that fits; where none does, the smallest."""
        likely = by_floor(each for each in self._tried if each.row.peak_bytes <= _NEARLY * self._limit)
        if self._shrunk is not None and self._shrunk not in likely:
            likely.append(self._shrunk)
        while likely and self._compiled < self._most:
            each = min(likely, key=self._expected)
            # A hair's breadth is told apart by compiling alone.
            if self._best is not None and _seconds(self._best) <= (1 - HAIR) * self._expected(each):
                break
            likely.remove(each)
            if not self._outcomes.foretell(each.row) and self._may_fit(each):
                self._compile(each)
        return self._best or self._smallest()

    def _expected(self, tried: Tried) -> float:
        """The seconds of a run, by one of its kind that was compiled; those at full rates if none was."""
        return 0.0 if tried is self._shrunk else tried.floor * self._ratios.get(tried.kind, 1.0)

    def _may_fit(self, tried: Tried) -> bool:
        """Whether its plan fits; one near the limit is asked again, for a probe's schedule may be another."""
        probe = tried.row
        if tried is self._shrunk or _NEARLY * probe.peak_bytes <= self._limit:
            return True
        if self._can_stop and self._stops < _MOST_STOPS and not tried.program.is_sharded:
            self._stops += 1
            self._ask(tried, "stop")
        if not tried.row.fits:
            self._outcomes.add(probe, tried.row)
        return tried.row.fits

    def _compile(self, tried: Tried) -> None:
        probe = tried.row
        self._compiled += 1
        self._say(f"compiling choice {self._compiled} in full, of {max(self._compiled, self._most)} at most")
        self._ask(tried, "full")
        self._outcomes.add(probe, tried.row)
        if not tried.row.compiled:
            return
        if tried.row.seconds is not None and 0.0 < tried.floor < math.inf:
            ratio = tried.row.seconds / tried.floor
            self._ratios[tried.kind] = min(ratio, self._ratios.get(tried.kind, ratio))
        if self._best is None or _seconds(tried) < _seconds(self._best):
            self._best = tried

    def _smallest(self) -> Tried:
        for _ in range(self._most):
            fitting = [each for each in self._tried if each.row.fits]
            if not fitting:
                break
            self._compile(min(fitting, key=_peak))
            if self._best is not None:
                return self._best
        fitting = by_floor(each for each in self._tried if each.row.fits)
        if fitting and not self._most:
            return fitting[0]
        return min([each for each in self._tried if not each.has_failed] or self._tried, key=_peak)


class Outcomes:
    """The outcomes of choices that were asked at the TPU's own limit."""

    def __init__(self, limit: int) -> None:
        self._limit, self._beyond = limit, 0
        self._rows: list[tuple[RematRow, bool]] = []

    def add(self, probe: RematRow, row: RematRow) -> None:
        beyond = row.peak_bytes - probe.peak_bytes
        if not row.fits and beyond > HAIR * self._limit:
            # One that takes much more has another schedule, which the others needn't have.
            return
        self._rows.append((probe, row.fits))
        if probe.fits and not row.fits:
            self._beyond = max(self._beyond, beyond)

    def foretell(self, probe: RematRow) -> bool:
        """Whether they tell the outcome of another: that of one like it, or that it would miss the limit likewise."""
        if probe.fits and probe.peak_bytes + self._beyond > self._limit:
            return True
        # A choice that missed the limit tells nothing of one like it that holds less.
        return any(
            are_near(probe, other) and (fits or not probe.fits or probe.peak_bytes >= other.peak_bytes)
            for other, fits in self._rows
        )


def by_floor(tried: Iterable[Tried]) -> list[Tried]:
    return sorted(tried, key=lambda each: each.floor)


def _seconds(tried: Tried) -> float:
    return tried.row.seconds or math.inf


def _peak(tried: Tried) -> int:
    return tried.row.peak_bytes


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
        return min(self.tried, key=_peak)

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
        self.tried.append(Tried(step, chosen, program, answer, report, row))
        return self.tried[-1]

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
