"""Tries choices, and finds those that fit and are fast by asking the compiler."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewise import _tilewise
from tilewise._cache import Cache
from tilewise._compiler import Answer, Compiler, Mode
from tilewise._errors import Error
from tilewise._modes import exact_modes
from tilewise._program import NotSendable, Program, trace
from tilewise._remat.choosing import Choice, Chosen
from tilewise._remat.step import SHARES, Step
from tilewise._tilewise import Report

PRICES = (1e6, 1e9, 2e10, 5e10, 1e11, 3e11, 1e12, 1e13)
"""Bytes that a second is worth: next to nothing, then from a hundredth of the memory's traffic to ten times it."""
_PARTS, _REFINED = 8, 3
"""The parts, found by halving, in which values of the next price are kept; the kinds of choices refined so."""
MOST_PROBES, MOST_COMPILED = 40, 3
"""The most questions and full compilations, after which the search ends with its results so far."""
_NEARLY, _MOST_STOPS = 1.1, 6
"""The margin of a probe to the limit below which it is asked again at the TPU's own, and how often at most."""

_HAIR = 0.01
"""The part of bytes or seconds by which two programs may differ and be one for the search."""

LONGEST = 600.0
"""Seconds of one question; then its choice is left."""

_SMALLEST = tuple(Choice(0.0, share, is_tied=True, releases=each) for share in SHARES for each in (True, False))


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
    """A program, the answer on it, and the last choice that led to it; ``None`` for the step as it is written."""

    name: str
    step: Callable[..., Any]
    chosen: Chosen | None
    program: Program
    answer: Answer
    report: Report
    floor: float
    row: RematRow
    choice: Choice | None = None


@dataclass(frozen=True)
class Asked:
    """The question that choices are tried for.

    Attributes:
        args, options, tpu, topology: as `audit` takes them.
        limit: bytes.
        offload: whether kept values may lie in the host's memory.
        timeout: seconds of one question; then its choice is left.
    """

    args: tuple[Any, ...]
    options: Mapping[str, Any]
    tpu: str
    topology: str | None
    limit: int
    offload: bool = False
    timeout: float = LONGEST


class Search:
    """Asks the compiler about choices of a step.

    Args:
        asked: the question.
        step: the step.
        say: called with the progress, in words.
        cache: earlier answers; ``None`` for none.
    """

    def __init__(
        self, asked: Asked, step: Step, say: Callable[[str], None] = lambda words: None, cache: Cache | None = None
    ) -> None:
        self._asked, self._step, self._say, self._cache = asked, step, say, cache
        self._seen: dict[Any, Tried | None] = {}
        self._probes = 0
        self.tried: list[Tried] = []

    def least(self, compiler: Compiler) -> Tried:
        """The step as it is written where its plan fits; else a choice that keeps little, the smallest of a few."""
        self._as_written(compiler)
        if not self.tried[0].row.fits:
            for family, price in itertools.product(_SMALLEST, PRICES[:2]):
                self._try(compiler, replace(family, price=price))
        return min(self.tried, key=lambda each: each.row.peak_bytes)

    def run(self, compiler: Compiler, most_compiled: int = MOST_COMPILED) -> Tried:
        """The fastest that fits; where none does, the smallest."""
        self._as_written(compiler)
        self._explore(compiler)
        return self._best(compiler, most_compiled)

    def _as_written(self, compiler: Compiler) -> None:
        if not self.tried:
            self._add(compiler, "as written", self._step.written, None)

    def _explore(self, compiler: Compiler) -> None:
        families = [Choice(0.0), Choice(0.0, is_tied=True), *_SMALLEST]
        if self._step.region.has_pairs:
            families.insert(0, Choice(0.0, is_of_loops=True))
        if self._asked.offload:
            families = [each for one in families[:2] for each in (replace(one, offloads=True), one)] + families[2:]
        found = [self._dearest(compiler, [replace(each, price=price) for price in PRICES]) for each in families]
        fitting = sorted((each for each in found if each is not None), key=lambda each: each.floor)
        for each in _different(fitting)[:_REFINED]:
            if each.choice is not None:
                self._dearest(compiler, _dearer(each.choice))

    def _dearest(self, compiler: Compiler, choices: Sequence[Choice]) -> Tried | None:
        """The dearest that fits, of choices in the order of their prices: each keeps more and repeats less."""
        best: Tried | None = None
        least, most = 0, len(choices)
        while least < most:
            at = (least + most) // 2
            found = self._try(compiler, choices[at])
            if found is not None and found.row.fits:
                best, least = found, at + 1
            else:
                most = at
        return best

    def _try(self, compiler: Compiler, choice: Choice) -> Tried | None:
        """The compiler's answer on a choice, asked once for those that lead to one program."""
        block, chosen = self._step.chosen(choice)
        key = (chosen.key, chosen.in_line and (choice.is_tied, choice.releases), choice.offloads)
        if key not in self._seen and self._probes < MOST_PROBES:
            self._probes += 1
            self._say(f"{self._probes} choices of what is kept")
            name = "cut, on the host" if choice.offloads else "cut"
            self._seen[key] = self._add(compiler, name, self._step.function(block), chosen)
        found = self._seen.get(key)
        if found is not None:
            # The last one that was asked: of those of its kind that fit, the dearest.
            found.choice = choice
        return found

    def _fitting(self) -> list[Tried]:
        return self._by_floor(lambda each: each.row.fits)

    def _by_floor(self, is_wanted: Callable[[Tried], bool]) -> list[Tried]:
        """Those that are wanted, the fastest at full rates first."""
        return sorted(filter(is_wanted, self.tried), key=lambda each: each.floor)

    def _best(self, compiler: Compiler, most_compiled: int) -> Tried:
        limit = self._asked.limit
        likely = self._by_floor(lambda each: each.row.peak_bytes <= _NEARLY * limit)
        written = self.tried[0]
        # The compiler's own rematerialisation may make it fit the TPU, and only that.
        may_shrink = not written.row.fits and limit == _tilewise.hbm_bytes(self._asked.tpu) and most_compiled > 0
        if may_shrink:
            likely, most_compiled = [written, *(each for each in likely if each is not written)], most_compiled + 1
        best: Tried | None = None
        compiled, stops = 0, 0
        outcomes = Outcomes(limit)
        for each in likely:
            if compiled >= most_compiled:
                break
            if best is not None and best.row.seconds is not None and best.row.seconds <= each.floor:
                break
            probe = each.row
            if outcomes.foretell(probe):
                continue
            if not (each is written and may_shrink) and _NEARLY * each.row.peak_bytes > limit:
                if stops < _MOST_STOPS and not each.program.is_sharded and exact_modes(compiler).stop:
                    stops += 1
                    self._ask_again(compiler, each, "stop")
                if not each.row.fits:
                    outcomes.add(probe, each.row)
                    continue
            compiled += 1
            self._say(f"compiling choice {compiled} in full, of {most_compiled} at most")
            self._ask_again(compiler, each, "full")
            outcomes.add(probe, each.row)
            seconds = each.row.seconds or float("inf")
            if each.row.fits and each.row.compiled and (best is None or seconds < (best.row.seconds or float("inf"))):
                best = each
        if best is not None:
            return best
        fitting = self._fitting()
        return fitting[0] if fitting else min(self.tried, key=lambda each: each.row.peak_bytes)

    def _ask_again(self, compiler: Compiler, tried: Tried, mode: Mode) -> None:
        """Replaces the answer to a probe by the compiler's at the TPU's own limit."""
        program, answer = self._answer(compiler, tried.step, mode)
        report = answer.report
        if report is None or report.peak_bytes is None:
            tried.row = replace(tried.row, fits=False)
            return
        tried.program, tried.answer, tried.report = program, answer, report
        seconds = None if report.time is None or mode != "full" else report.time.estimate_seconds
        fits = report.peak_bytes <= self._asked.limit
        compiled = mode == "full" and fits
        tried.row = replace(tried.row, peak_bytes=report.peak_bytes, fits=fits, seconds=seconds, compiled=compiled)

    def _add(self, compiler: Compiler, name: str, step: Callable[..., Any], chosen: Chosen | None) -> Tried | None:
        program, answer = self._answer(compiler, step, "probe" if exact_modes(compiler).probe else "stop")
        report = answer.report
        if report is None or report.peak_bytes is None:
            if chosen is None:
                raise Error(f"the compiler can't plan the step: {answer.error}", kind="remat")
            return None
        floor = _tilewise.floor_of(report)
        kept, repeated = (None, None) if chosen is None else (chosen.bytes, sum(each.times for each in chosen.again))
        fits = report.peak_bytes <= self._asked.limit
        row = RematRow(name, report.peak_bytes, fits, None, floor, kept, repeated, compiled=False)
        tried = Tried(name, step, chosen, program, answer, report, float("inf") if floor is None else floor, row)
        self.tried.append(tried)
        return tried

    def _answer(self, compiler: Compiler, step: Callable[..., Any], mode: Mode) -> tuple[Program, Answer]:
        asked = self._asked
        try:
            program = trace(step, asked.args, asked.tpu, asked.topology, asked.options)
        except NotSendable as error:
            raise Error(f"remat asks the compiler in a process of its own, and {error}", kind="remat") from None
        if mode == "probe" and program.is_sharded:
            mode = "stop"
        keyed = replace(program, hash=hashlib.sha256(program.module + program.options).hexdigest())
        answer = None if self._cache is None else self._cache.get(keyed, mode, None)
        if answer is None:
            answer = compiler.ask(program, mode, timeout=asked.timeout)
            if self._cache is not None:
                self._cache.put(keyed, mode, None, answer)
        return program, answer


def _dearer(choice: Choice) -> list[Choice]:
    """This choice with more and more of the values that the next of `PRICES` keeps."""
    above = next((each for each in PRICES if choice.price < each), None)
    return [] if above is None else [replace(choice, dearer=above, part=at / _PARTS) for at in range(1, _PARTS)]


def _different(tried: list[Tried]) -> list[Tried]:
    """Those that aren't near any before them."""
    found: list[Tried] = []
    for each in tried:
        if not any(_are_near(each.row, other.row) for other in found):
            found.append(each)
    return found


def _are_near(one: RematRow, other: RematRow) -> bool:
    """Whether they differ by at most a hundredth in bytes and in time, and both fit or neither."""
    pairs = (one.peak_bytes, other.peak_bytes), (one.floor_seconds or 0.0, other.floor_seconds or 0.0)
    return one.fits == other.fits and all(abs(this - that) <= _HAIR * that for this, that in pairs)


class Outcomes:
    """The outcomes of choices that were asked at the TPU's own limit.

    Args:
        limit: bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._beyond = limit, 0
        self._rows: list[tuple[RematRow, bool]] = []

    def add(self, probe: RematRow, row: RematRow) -> None:
        """Notes the row of a choice, and that of its probe."""
        self._rows.append((probe, row.fits))
        beyond = row.peak_bytes - probe.peak_bytes
        # One that takes much more has another schedule, which the others needn't have.
        if probe.fits and not row.fits and beyond <= _HAIR * self._limit:
            self._beyond = max(self._beyond, beyond)

    def foretell(self, probe: RematRow) -> bool:
        """Whether they tell the outcome of another: that of one like it, or that it would miss the limit likewise."""
        if probe.fits and probe.peak_bytes + self._beyond > self._limit:
            return True
        # A choice that missed the limit tells nothing of one like it that holds less.
        return any(
            _are_near(probe, other) and (fits or not probe.fits or probe.peak_bytes >= other.peak_bytes)
            for other, fits in self._rows
        )
