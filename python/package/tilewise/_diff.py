"""`ReportDiff`: what differs between two reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tilewise import _tilewise
from tilewise._limits import in_words
from tilewise._shown import Shown
from tilewise._tilewise import Buffer

if TYPE_CHECKING:
    from tilewise._tilewise import Report

# In the words of the report.
_NUMBERS = {
    "peak_bytes": "in all",
    "argument_bytes": "arguments",
    "output_bytes": "results",
    "alias_bytes": "results in donated arguments",
    "constant_bytes": "constants",
    "temporary_bytes": "temporaries",
    "padding_bytes": "padding of all buffers",
    "peak_live_bytes": "alive at the peak",
    "peak_padding_bytes": "padding at the peak",
    "at_least_bytes": "at least",
    "at_most_bytes": "at most",
    "hbm_limit": "limit",
}


@dataclass(frozen=True)
class OwnerChange:
    """What an operation, an argument or a result holds at the peaks of two programs, in bytes.

    Attributes:
        owner: the framework's name of it, without the jitted function's; else what it is for, such as ``"temporary"``.
        before_bytes: at the first program's peak.
        after_bytes: at the second program's peak.

    Examples:
        >>> OwnerChange("dot_general", 4096, 1024).peak_bytes_saved
        3072
    """

    owner: str
    before_bytes: int
    after_bytes: int

    @property
    def peak_bytes_saved(self) -> int:
        """By how much it falls; negative if it rises."""
        return self.before_bytes - self.after_bytes


@dataclass(frozen=True)
class ReportDiff(Shown):
    """What differs between two reports; false if nothing does. Sizes are in bytes.

    Returned by `Report.diff`. Buffers are the same if the framework's name of their operation, their opcode, shape and
    memory space are: compilers number instructions anew, and a comment moves all lines. As a table, it has a row for
    each owner.

    Attributes:
        numbers: what has changed of the report's numbers, by name: (before, after) pairs.
        owners: who holds more or less at the peak, the largest change first.
        removed: the buffers that only the first report has, the largest first.
        added: the buffers that only the second report has, the largest first.

    Examples:
        >>> before = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
        >>> after = audit("x = f32[400000,12]{0,1:T(8,128)} parameter(0)")
        >>> print(before.diff(after))
          195.31 MiB →  24.41 MiB  arguments: 170.90 MiB less
        ...
        only before
          195.31 MiB  f32[400000,12]{1,0:T(8,128)}  x
        <BLANKLINE>
        only after
           24.41 MiB  f32[400000,12]{0,1:T(8,128)}  x
    """

    numbers: dict[str, tuple[int | None, int | None]]
    owners: tuple[OwnerChange, ...]
    removed: tuple[Buffer, ...]
    added: tuple[Buffer, ...]

    def __bool__(self) -> bool:
        return bool(self.numbers or self.owners or self.removed or self.added)

    def __str__(self) -> str:
        # The bounds are the peak where it is known.
        shown = self.numbers.keys() - ({"at_least_bytes", "at_most_bytes"} if "peak_bytes" in self.numbers else set())
        lines = [_change(_NUMBERS[name], *self.numbers[name]) for name in _NUMBERS if name in shown]
        if self.owners:
            lines += ["", "at the peak", *(_change(e.owner, e.before_bytes, e.after_bytes) for e in self.owners)]
        for title, buffers in (("only before", self.removed), ("only after", self.added)):
            if buffers:
                lines += [
                    "",
                    title,
                    *(f"  {_size(each.bytes):>10}  {each.shape}  {each.instruction}" for each in buffers),
                ]
        return "\n".join(lines).lstrip("\n")

    def _rows(self) -> list[dict[str, Any]]:
        """A row for each owner, as the table has it."""
        return [{**asdict(each), "peak_bytes_saved": each.peak_bytes_saved} for each in self.owners]

    def _held(self) -> dict[str, Any]:
        return {
            "numbers": self.numbers,
            "owners": [asdict(each) for each in self.owners],
            "removed": [reduced(buffer) for buffer in self.removed],
            "added": [reduced(buffer) for buffer in self.added],
        }

    @classmethod
    def _of_held(cls, held: dict[str, Any]) -> ReportDiff:
        return cls(
            {name: (before, after) for name, (before, after) in held["numbers"].items()},
            tuple(OwnerChange(**each) for each in held["owners"]),
            tuple(_tilewise.restore(Buffer, each) for each in held["removed"]),
            tuple(_tilewise.restore(Buffer, each) for each in held["added"]),
        )


def _size(count: int | None) -> str:
    return "unknown" if count is None else in_words(count).partition(" (")[0]


def _change(name: str, before: int | None, after: int | None) -> str:
    line = f"  {_size(before):>10} → {_size(after):>10}"
    if before is None or after is None:
        return f"{line}  {name}"
    return f"{line}  {name}: {_size(abs(after - before))} {'more' if after > before else 'less'}"


def diff(before: Report, after: Report) -> ReportDiff:
    """What differs; `Report.diff` calls it."""
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in _NUMBERS}
    numbers = {name: (old, new) for name, (old, new) in pairs.items() if old != new}
    removed, added, owners = _tilewise.diff_of(before, after)
    return ReportDiff(numbers, tuple(OwnerChange(*each) for each in owners), tuple(removed), tuple(added))


def reduced(value: Any) -> str:
    """The text that a value of the native module is restored from."""
    held: str = value.__reduce__()[1][1]
    return held
