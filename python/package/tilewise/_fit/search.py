"""The search along one axis: which sizes are asked about, in which order. It knows nothing of compilers.

Bytes are not a line, nor monotone, and neither is the verdict: a reshape fits at 96, not at 97 to 103, and again at
104. So a secant finds about where the limit is, and then sizes above are asked about, from the top: a refusal is cheap.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

Kind: TypeAlias = Literal["plan", "real"]
"""``plan`` asks for bytes, whatever the limit; ``real`` asks whether it fits, and compiles it in full if so."""

Above: TypeAlias = Literal["auto", "all", "near"] | float


class Verdict(Protocol):
    """The fields of a row that the search reads; all but ``fits``, ``planned`` and ``refused`` is a hole in it."""

    @property
    def status(self) -> str: ...
    @property
    def total_bytes(self) -> int | None: ...
    @property
    def limit_bytes(self) -> int: ...


@dataclass
class Found:
    """The results of a search, at any moment: `size` is the largest tried that fits."""

    size: float | None = None
    # Larger ones that were not tried: those that may fit, ascending, and those whose smaller ones of a kind do not fit.
    gaps: list[float] = field(default_factory=list[float])
    inferred: set[float] = field(default_factory=set[float])
    # The largest with a plan below the limit.
    below: float | None = None
    # How many larger ones are neither asked about nor inferred; `None` before that is counted.
    left: int | None = None


def search(
    sizes: Sequence[float],
    ask: Callable[[float, Kind], Verdict],
    *,
    above: Above = "auto",
    found: Found | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Found:
    """The largest size that fits, of questions none of which is asked twice; `found` fills as it goes on."""
    found = Found() if found is None else found
    real: dict[float, Verdict] = {}
    found.gaps = list(sizes)
    is_over = False
    try:
        planned = _bracket(sizes, ask, found)
        if planned is None:
            return found
        if above == "auto":
            chosen = _Above(sizes, ask, found, real, planned)
            chosen.run()
            found.inferred = chosen.inferred()
        else:
            for size in _order(sizes, found.below, above, clock):
                real[size] = ask(size, "real")
                if real[size].status in ("fits", "planned"):
                    found.size = size
                    break
        is_over = True
    finally:
        # After an interruption, plans tell the sizes that fit; only larger ones may be the answer.
        known = found.size if is_over or found.size is not None else found.below
        found.gaps = [size for size in _over(sizes, known) if size not in real and size not in found.inferred]
    return found


@dataclass
class _Above:
    """Chooses the sizes to ask about at the real limit, where asking about all would take long.

    Refusals are cheap and tell bytes, and a size that fits is compiled in full. So sizes are approached from above: at
    ratios up to twice the estimate, then where a line through the bytes of the smallest refusals meets the limit. How a
    size divides by powers of two changes layouts, so that 104 may fit where 97 does not: the next sizes of each such
    class are asked about, too, and the whole class where its bytes do not rise with the size.
    """

    sizes: Sequence[float]
    ask: Callable[[float, Kind], Verdict]
    found: Found
    real: dict[float, Verdict]
    planned: dict[float, int]

    def run(self) -> None:
        """Ask until the largest size that fits is known, as far as bytes rise with the size in each class."""
        while size := self._next():
            self.real[size] = said = self.ask(size, "real")
            if said.status in _FITTING and (self.found.size is None or size > self.found.size):
                self.found.size = size

    def _next(self) -> float | None:
        low, inferred = self._low, self.inferred()
        left = [size for size in self._open(low) if size not in inferred]
        self.found.left = len(left)
        ahead = self._ahead(low)
        if ahead is not None:
            return ahead
        estimated = self._approaching(low)
        if estimated is not None or not left:
            return estimated
        # All sizes of falling classes, the largest first; of the others the smallest, which decides more.
        falling = self._falling()
        return max((size for size in left if _class(size) in falling), default=left[0])

    @property
    def _low(self) -> float | None:
        """The largest size that fits, or that by its plan should."""
        refused = {size for size, said in self.real.items() if said.status not in _FITTING}
        known = [size for size in self.sizes if size not in refused and self.planned.get(size, 0) < 0]
        fitting = [] if self.found.size is None else [self.found.size]
        return max([*known, *fitting], default=None)

    def _open(self, low: float | None) -> list[float]:
        """Sizes above the given one that were not asked about."""
        return [size for size in _over(self.sizes, low) if size not in self.real]

    def _ahead(self, low: float | None) -> float | None:
        """The largest size above to ask about: of those at ratios, and the next of each class."""
        over = _over(self.sizes, low)
        at = [next((size for size in over if low is not None and size >= low * ratio), None) for ratio in _RATIOS]
        following = {_class(size): size for size in reversed(over)}
        near = [size for number, size in following.items() if low is None or size <= 2 * low or number == _LANES]
        # Sizes that fit are compiled: those that should, by the bytes of refusals, wait until the largest is known.
        least = self._meeting(low)
        wanted = (size for size in [*at, *over[:2], *near] if size is not None and size >= least)
        return max((size for size in wanted if size not in self.real), default=None)

    def _approaching(self, low: float | None) -> float | None:
        """The next size between the estimate and the smallest refusal above it; ``None`` if none is left."""
        refused = min(_over(self._refused(), low), default=math.inf)
        between = [size for size in self._open(low) if size < refused]
        if not between:
            # By its plan it fits, and the next does not.
            return low if low is not None and low not in self.real else None
        meeting = self._meeting(low)
        return next((size for size in between if size >= meeting), between[-1])

    def _refused(self) -> dict[float, int]:
        """By refused size, its bytes over the limit; 0 if unknown."""
        return {
            size: said.total_bytes - said.limit_bytes if said.total_bytes is not None else 0
            for size, said in self.real.items()
            if said.status == "refused"
        }

    def _meeting(self, low: float | None) -> float:
        """The size where a line through the two smallest refusals above the estimate meets the limit; 0 if none."""
        refused = self._refused()
        over = [(size, refused[size]) for size in sorted(_over(refused, low))[:2]]
        if len(over) < 2 or over[0][1] >= over[1][1]:
            return 0
        (one, least), (other, most) = over
        return one - least * (other - one) / (most - least)

    def _falling(self) -> set[int]:
        """Classes whose bytes fall from one asked size to the next."""
        falling: set[int] = set()
        last: dict[int, int] = {}
        for size, said in sorted(self.real.items()):
            if said.total_bytes is None:
                continue
            number = _class(size)
            if said.total_bytes < last.get(number, 0):
                falling.add(number)
            last[number] = said.total_bytes
        return falling

    def inferred(self) -> set[float]:
        """Sizes not asked about that don't fit: a smaller one of such a class is refused, and bytes don't fall."""
        falling = self._falling()
        first = {_class(size): size for size in sorted(self._refused(), reverse=True) if _class(size) not in falling}

        def follows(size: float) -> bool:
            # A size that divides by more lays out at least as well.
            return any(number >= _class(size) and at <= size for number, at in first.items())

        return {size for size in self._open(self.found.size) if _class(size) not in falling and follows(size)}


_FITTING = ("fits", "planned")
_RATIOS = (2.0, 1.41, 1.19)
_LANES = 128


def _over(sizes: Iterable[float], low: float | None) -> list[float]:
    return [size for size in sizes if low is None or size > low]


def _class(size: float) -> int:
    """The largest power of two that divides a size, at most the lanes; of a fraction 1."""
    whole = int(size)
    return min(whole & -whole, _LANES) if whole == size and whole > 0 else 1


def _order(sizes: Sequence[float], below: float | None, above: Above, clock: Callable[[], float]) -> Iterator[float]:
    """The sizes to ask about at the real limit, until one fits."""
    over, near = _over(reversed(sizes), below), _near(sizes, below)
    yield from (size for size in over if above == "all" or size in near)
    if not isinstance(above, str):
        end = clock() + above
        yield from itertools.takewhile(lambda _: clock() < end, (size for size in over if size not in near))
    yield from (size for size in reversed(sizes) if below is not None and size <= below)


def _near(sizes: Sequence[float], below: float | None) -> set[float]:
    """The next two sizes, and the next multiples of 8 and 128, which lay out without a remainder."""
    over = _over(sizes, below)
    multiples = (next((size for size in over if size % of == 0), None) for of in (8, 128))
    return {*over[:2], *(size for size in multiples if size is not None)}


def _bracket(sizes: Sequence[float], ask: Callable[[float, Kind], Verdict], found: Found) -> dict[float, int] | None:
    """Narrows the bracket until its ends are neighbours, or until only holes are between them.

    By size how many bytes its plan is over the limit; ``None`` where the factory raises for every size.
    """
    over: dict[float, int] = {}
    # With the exception's words where the factory raises.
    holes: dict[float, str | None] = {}

    def planned(size: float) -> bool:
        """Whether the bytes are known."""
        if size not in over and size not in holes:
            verdict = ask(size, "plan")
            if verdict.total_bytes is None or verdict.status not in ("fits", "planned", "refused"):
                holes[size] = getattr(verdict, "error", None) if verdict.status == "untraceable" else None
            else:
                beyond = verdict.total_bytes - verdict.limit_bytes
                over[size] = max(beyond, 0) if verdict.status == "refused" else beyond
                if over[size] < 0:
                    found.below = max(size, found.below or size)
        return size in over

    if not sizes or (planned(sizes[-1]) and over[sizes[-1]] < 0):
        return over
    # A factory that raises the same at both ends and between them does so for each size.
    tried = (sizes[0], sizes[(len(sizes) - 1) // 2], sizes[-1])
    raises = holes.get(sizes[-1]) is not None and not any(map(planned, tried[:2]))
    if raises and len(set(tried)) == 3 and len({holes[size] for size in tried}) == 1:
        return None
    # From both ends, past the sizes without a plan.
    high = next((at for at in range(len(sizes) - 1, 0, -1) if planned(sizes[at])), None)
    if high is None or over[sizes[high]] < 0:
        return over
    low = next((at for at in range(high) if planned(sizes[at])), None)
    if low is None or over[sizes[low]] >= 0:
        return over
    failed, width = 0, high - low
    while free := [at for at in range(low + 1, high) if sizes[at] not in holes]:
        least, most = over[sizes[low]], over[sizes[high]]
        aim: int = (low + high) // 2
        if failed < 2 and most > least:
            aim = low + round((high - low) * -least / (most - least))
        guess = min(free, key=lambda at: (abs(at - aim), at))
        if not planned(sizes[guess]):
            continue
        low, high = (guess, high) if over[sizes[guess]] < 0 else (low, guess)
        failed = 0 if (high - low) * 2 <= width or failed == 2 else failed + 1
        width = high - low
    return over
