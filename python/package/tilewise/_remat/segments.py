"""Cuts a forward pass that is written out into segments, each repeated on its own."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

from tilewise._jax.jaxprs import variables
from tilewise._remat.equations import bytes_of

_PARTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
"""Into how many segments of equal bytes, at least."""


def segments(
    early: Sequence[Any], seconds: Sequence[float], ends: Collection[Any], share: float
) -> tuple[set[Any], list[int]]:
    """The values alive between segments, and the places where each begins, of the cut that holds the fewest bytes.

    A cut holds its kept values, and a share of the bytes that its last segment and the largest of the others make:
    that share is alive while a segment is repeated. Values that cost nothing to make again, such as a broadcast mask
    or a copy in another precision, are neither kept nor counted: their operands are.
    """
    spans, made = _alive(early, seconds, ends)
    change = [0] * (len(early) + 1)
    for variable, (first, last) in spans.items():
        change[first] += bytes_of(variable)
        change[last] -= bytes_of(variable)
    weight = list(itertools.accumulate(change))[:-1]
    best, least = (set[Any](), [0]), float("inf")
    for parts in _PARTS:
        places = cheapest(weight, made, made[-1] / parts, share)
        kept = {each for each, (first, last) in spans.items() if any(first <= at < last for at in places)}
        bounds = [0, *(made[at + 1] for at in places)]
        # The last segment isn't repeated: its results are there once.
        longest = max((two - one for one, two in itertools.pairwise(bounds)), default=0)
        held = sum(map(bytes_of, kept)) + share * (longest + made[-1] - bounds[-1])
        if held < least:
            best, least = (kept, [0, *(place + 1 for place in places)]), held
    return best


def _alive(
    early: Sequence[Any], seconds: Sequence[float], ends: Collection[Any]
) -> tuple[dict[Any, tuple[int, int]], list[int]]:
    """From which place to which a value is read, and the bytes made before each place."""
    sources: dict[Any, frozenset[Any]] = {}
    spans: dict[Any, tuple[int, int]] = {}
    made = [0]
    for at, equation in enumerate(early):
        operands = (sources[atom] for atom in variables(equation.invars) if atom in sources)
        read = frozenset[Any]().union(*operands)
        spans.update({each: (spans[each][0], at) for each in read})
        is_free = seconds[at] == 0
        for variable in equation.outvars:
            if variable not in ends:
                sources[variable] = read if is_free else frozenset((variable,))
                if not is_free:
                    spans[variable] = (at, at)
        made.append(made[-1] + (0 if is_free else sum(map(bytes_of, equation.outvars))))
    return spans, made


def cheapest(weight: Sequence[int], made: Sequence[int], segment: float, share: float) -> list[int]:
    """The places of least weight, ascending, such that a segment that ends at one makes no more than `segment`.

    The weight of a place is the bytes alive there; the last segment may make more, each byte of which weighs a share.
    """
    best: list[tuple[int, int]] = []
    # Places before the present one that a segment may begin behind, the least sum first.
    window: deque[int] = deque()
    for at in range(len(weight)):
        while window and made[at + 1] - made[window[0] + 1] > segment and window[0] != at - 1:
            window.popleft()
        if made[at + 1] <= segment:
            least = (0, -1)
        elif window:
            least = (best[window[0]][0], window[0])
        else:
            # One equation makes more than a segment has.
            least = (best[at - 1][0], at - 1) if at else (0, -1)
        best.append((least[0] + weight[at], least[1]))
        while window and best[window[-1]][0] >= best[at][0]:
            window.pop()
        window.append(at)
    # No cut where nothing is alive.
    ends = (-1, *(place for place, held in enumerate(weight) if held))

    def cost(end: int) -> float:
        return (best[end][0] if end >= 0 else 0) + share * max(0.0, made[-1] - made[end + 1] - segment)

    at = min(ends, key=cost)
    found: list[int] = []
    while at >= 0:
        found.append(at)
        at = best[at][1]
    return found[::-1]
