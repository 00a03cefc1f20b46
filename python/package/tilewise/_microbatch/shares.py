"""The share of a value of a traced program in the samples of a batch."""

from __future__ import annotations

from dataclasses import dataclass, replace


class RefusedError(Exception):
    """Parts of the batch would compute something else than the whole."""


@dataclass(frozen=True)
class Share:
    """A value's share of the samples.

    Attributes:
        turn: the passes over all parts before it is known: one if it follows from a sum over them.
    """

    turn: int = 0


@dataclass(frozen=True)
class Whole(Share):
    """A value that all parts share."""


@dataclass(frozen=True)
class Partial(Share):
    """A part's share of a sum over the batch."""


@dataclass(frozen=True)
class Each(Share):
    """Rows of each sample along dimension `at`: `inner` of them in a row, then the next sample's, and again."""

    at: int = 0
    inner: int = 1

    def along(self, at: int) -> Each:
        return replace(self, at=at)


def together(shares: list[Share], known: int = 0) -> Each:
    """The rows that values have in common which are combined element by element; there is at least one with rows."""
    rows = [share for share in shares if isinstance(share, Each)]
    first = rows[0]
    if any((row.at, row.inner) != (first.at, first.inner) for row in rows):
        raise RefusedError("a value has one number for each two samples")
    return replace(first, turn=max(known, *(share.turn for share in shares)))


def merged(one: Share, other: Share) -> Share:
    """The share of a loop's carried value that has one before a step and the other after it."""
    turn = max(one.turn, other.turn)
    if isinstance(one, Whole):
        return replace(other, turn=turn)
    if isinstance(other, Whole):
        return replace(one, turn=turn)
    if type(one) is not type(other):
        raise RefusedError("a loop carries a sum over the batch as if it were of each sample")
    if isinstance(one, Each):
        return together([one, other])
    return Partial(turn)
