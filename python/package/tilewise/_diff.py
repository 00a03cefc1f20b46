"""`ReportDiff`: what differs between two reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewise._tilewise import Buffer, Report

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
class ReportDiff:
    """What differs between two reports; false if nothing does. Sizes are in bytes.

    Returned by `Report.diff`. Buffers are the same if their shape, memory space, opcode and line are: compilers number
    instructions anew.

    Attributes:
        numbers: what has changed of the report's numbers, by name: (before, after) pairs.
        removed: the buffers that only the first report has, in its order.
        added: the buffers that only the second report has, in its order.

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
    removed: tuple[Buffer, ...]
    added: tuple[Buffer, ...]

    def __bool__(self) -> bool:
        return bool(self.numbers or self.removed or self.added)

    def __str__(self) -> str:
        lines = [f"{name} {before} → {after}" for name, (before, after) in self.numbers.items()]
        for sign, buffers in (("-", self.removed), ("+", self.added)):
            lines += [f"{sign} {each.instruction} {each.shape}: {each.physical_bytes}" for each in buffers]
        return "\n".join(lines)


def diff(before: Report, after: Report) -> ReportDiff:
    """What differs; `Report.diff` calls it."""
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in _NUMBERS}
    numbers = {name: (old, new) for name, (old, new) in pairs.items() if old != new}
    return ReportDiff(numbers, _only(before, after), _only(after, before))


def _only(one: Report, other: Report) -> tuple[Buffer, ...]:
    left = Counter(_key(buffer) for buffer in other.buffers)
    only: list[Buffer] = []
    for buffer in one.buffers:
        if left[_key(buffer)] > 0:
            left[_key(buffer)] -= 1
        else:
            only.append(buffer)
    return tuple(only)


def _key(buffer: Buffer) -> tuple[object, ...]:
    return buffer.shape, buffer.memory_space, buffer.opcode, buffer.source
