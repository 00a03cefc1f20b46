"""Values that `remat` keeps and computes again, by the lines that make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewise import _internals

if TYPE_CHECKING:
    from tilewise._remat.choosing import Value


@dataclass(frozen=True)
class RematValue:
    """Values of one line that are kept, or computed again; those of layers and turns of loops together.

    Attributes:
        shape: of one, such as ``bf16[16,1024,1024]``.
        count: how many there are.
        bytes: of all of them, without padding.
        operation: JAX's name of the operation that makes it; ``carry`` for a value that a loop hands on.
        file, line: of the user's program; ``None`` where JAX knows none.
        ends_line: whether it is the value of that line.

    Examples:
        >>> RematValue("bf16[16,1024]", 8, 2**18, "dot_general", "model.py", 12, ends_line=True).bytes
        262144
    """

    shape: str
    count: int
    bytes: int
    operation: str
    file: str | None
    line: int | None
    ends_line: bool

    @property
    def place(self) -> str:
        """Such as ``model.py:12``."""
        return "" if self.file is None else f"{Path(self.file).name}:{self.line}"


def summed(values: Sequence[Value]) -> list[RematValue]:
    found: dict[Any, list[int]] = {}
    for value in values:
        aval, equation = value.variable.aval, value.equation
        operation = "carry" if equation is None else equation.primitive.name
        place = None if equation is None else _internals.place(equation)
        key = aval.str_short(short_dtypes=True), operation, place, value.ends_line
        total = found.setdefault(key, [0, 0])
        total[0] += value.times
        total[1] += value.bytes
    rows: list[RematValue] = []
    for (shape, operation, place, ends_line), (count, held) in found.items():
        file, line = (None, None) if place is None else place
        rows.append(RematValue(shape, count, held, operation, file, line, ends_line))
    return sorted(rows, key=lambda row: -row.bytes)
