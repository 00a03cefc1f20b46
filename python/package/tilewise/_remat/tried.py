"""The choices that the compiler answered on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tilewise._compiler.process import Answer
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
