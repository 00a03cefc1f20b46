"""Searches for the most cache pages that fit beside a server's programs: each compiled set gives the next count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewise._together import Together

_PREDICTED = 6
"""The most predictions of sets that are followed; after that, the search bisects."""


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
