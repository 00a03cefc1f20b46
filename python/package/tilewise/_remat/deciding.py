"""Decides between choices by compiling the few in full that may be the fastest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewise._compiler.process import Answer, Mode
from tilewise._compiler.program import Program
from tilewise._remat.choosing import Choice, Chosen
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

    name: str
    step: Callable[..., Any]
    chosen: Chosen | None
    program: Program
    answer: Answer
    report: Report
    floor: float
    row: RematRow
    choice: Choice | None = None
    has_failed: bool = False

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
        if tried.row.seconds is not None and 0.0 < tried.floor < float("inf"):
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
    return tried.row.seconds or float("inf")


def _peak(tried: Tried) -> int:
    return tried.row.peak_bytes
