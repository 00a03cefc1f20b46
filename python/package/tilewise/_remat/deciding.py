"""Decides between choices by compiling the few in full that may be the fastest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tilewise._compiler.process import Mode
from tilewise._remat.choosing import Choice
from tilewise._remat.tried import HAIR, RematRow, Tried, are_near

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
