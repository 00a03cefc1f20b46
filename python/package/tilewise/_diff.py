"""`ReportDiff`: what differs between two reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tilewise import _tilewise
from tilewise._shown import Shown
from tilewise._tilewise import Buffer

if TYPE_CHECKING:
    from tilewise._tilewise import Report

_NUMBERS = (
    "peak_bytes",
    "argument_bytes",
    "output_bytes",
    "alias_bytes",
    "constant_bytes",
    "temporary_bytes",
    "padding_bytes",
    "peak_live_bytes",
    "peak_padding_bytes",
    "at_least_bytes",
    "at_most_bytes",
    "hbm_limit",
)


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
        argument_bytes 204800000 → 25600000
        ...
        - x f32[400000,12]{1,0:T(8,128)}: 204800000
        + x f32[400000,12]{0,1:T(8,128)}: 25600000
    """

    numbers: dict[str, tuple[int | None, int | None]]
    owners: tuple[OwnerChange, ...]
    removed: tuple[Buffer, ...]
    added: tuple[Buffer, ...]

    def __bool__(self) -> bool:
        return bool(self.numbers or self.owners or self.removed or self.added)

    def __str__(self) -> str:
        lines = [f"{name} {before} → {after}" for name, (before, after) in self.numbers.items()]
        lines += [f"peak: {each.owner} {each.before_bytes} → {each.after_bytes}" for each in self.owners]
        for sign, buffers in (("-", self.removed), ("+", self.added)):
            lines += [f"{sign} {each.instruction} {each.shape}: {each.bytes}" for each in buffers]
        return "\n".join(lines)

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
