"""The search along one axis: which sizes are asked about, in which order. It knows nothing of compilers.

Bytes are not a line, nor monotone, and neither is the verdict: a reshape fits at 96, not at 97 to 103, and again at
104. So a secant finds about where the limit is, and then every size above is asked about, from the top: a refusal is
cheap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

Kind: TypeAlias = Literal["plan"] | Literal["real"]
"""``plan`` asks for bytes, whatever the limit; ``real`` asks whether it fits, and compiles in full what does."""

Above: TypeAlias = Literal["all", "near"] | float


class Verdict(Protocol):
    """What the search reads of a row."""

    @property
    def status(self) -> str:
        """``fits``, ``planned`` and ``refused`` steer the search; all else is a hole in it."""
        ...

    @property
    def total_bytes(self) -> int | None:
        """Bytes of the program."""
        ...

    @property
    def limit_bytes(self) -> int:
        """Bytes that there are."""
        ...


@dataclass
class Found:
    """What a search found.

    Attributes:
        size: the largest size tried that fits; ``None`` if none does.
        gaps: sizes above it that were not tried, ascending.
        below, above: the bracket at any moment: the largest size with a plan below the limit, and the smallest above.
    """

    size: int | None = None
    gaps: list[int] = field(default_factory=list[int])
    below: int | None = None
    above: int | None = None


def search(
    sizes: Sequence[int],
    ask: Callable[[int, Kind], Verdict],
    *,
    above: Above = "all",
    found: Found | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Found:
    """The largest size that fits.

    Args:
        sizes: ascending.
        ask: answers; never asked the same twice.
        above: which sizes above the secant's answer to ask about: all, the next few, or for how many seconds.
        found: where what is known so far is written, for whoever interrupts the search.
        clock: seconds, for ``above``.
    """
    found = Found() if found is None else found
    real: dict[int, Verdict] = {}
    found.gaps = list(sizes)
    try:
        _bracket(sizes, ask, found)
        for size in _order(sizes, found.below, above, clock):
            real[size] = ask(size, "real")
            if real[size].status in ("fits", "planned"):
                found.size = size
                break
    finally:
        found.gaps = [size for size in sizes if size not in real and (found.size is None or size > found.size)]
    return found


def _order(sizes: Sequence[int], below: int | None, above: Above, clock: Callable[[], float]) -> Iterator[int]:
    """The sizes to ask about at the real limit, until one fits."""
    over = [size for size in reversed(sizes) if below is None or size > below]
    under = [size for size in reversed(sizes) if below is not None and size <= below]
    if above == "near":
        over = [size for size in over if size in _near(sizes, below)]
    if not isinstance(above, str):
        near = [size for size in over if size in _near(sizes, below)]
        yield from near
        end = clock() + above
        for size in over:
            if clock() >= end:
                break
            if size not in near:
                yield size
    else:
        yield from over
    yield from under


def _near(sizes: Sequence[int], below: int | None) -> set[int]:
    """The next two sizes, and the next multiples of 8 and 128, which lay out without a remainder."""
    over = [size for size in sizes if below is None or size > below]
    multiples = (next((size for size in over if size % of == 0), None) for of in (8, 128))
    return {*over[:2], *(size for size in multiples if size is not None)}


def _bracket(sizes: Sequence[int], ask: Callable[[int, Kind], Verdict], found: Found) -> None:
    """Narrows the bracket until its ends are neighbours, or until only holes are between them."""
    known: dict[int, int] = {}
    holes: set[int] = set()

    def planned(index: int) -> bool:
        """Whether the bytes became known; then the bracket is narrower."""
        verdict = ask(sizes[index], "plan")
        if verdict.total_bytes is None or verdict.status not in ("fits", "planned", "refused"):
            holes.add(index)
            return False
        known[index] = verdict.total_bytes - verdict.limit_bytes
        if verdict.status == "refused":
            known[index] = max(known[index], 0)
        if known[index] < 0:
            found.below = max(sizes[index], found.below or sizes[index])
        else:
            found.above = min(sizes[index], found.above or sizes[index])
        return True

    last = len(sizes) - 1
    if last < 0 or (planned(last) and known[last] < 0):
        return
    # From both ends, past what can't be asked about.
    high = _first(planned, range(last - 1, 0, -1)) if last in holes else last
    if high is None or (known[high] < 0):
        return
    low = _first(planned, range(high))
    if low is None or known[low] >= 0:
        return
    failed, width = 0, high - low
    while free := [index for index in range(low + 1, high) if index not in holes]:
        guess = (low + high) // 2
        if failed < 2 and known[high] > known[low]:
            guess = low + round((high - low) * -known[low] / (known[high] - known[low]))
        guess = min(free, key=lambda index: (abs(index - guess), index))
        if not planned(guess):
            continue
        low, high = (guess, high) if known[guess] < 0 else (low, guess)
        failed = 0 if (high - low) * 2 <= width or failed == 2 else failed + 1
        width = high - low


def _first(planned: Callable[[int], bool], indices: Iterable[int]) -> int | None:
    return next((index for index in indices if planned(index)), None)
