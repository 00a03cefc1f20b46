"""Values that `remat` keeps and computes again, by the lines that make them, and as lines to write there."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewise._base.limits import in_words
from tilewise._jax import internals
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
        place = None if equation is None else internals.place(equation)
        key = aval.str_short(short_dtypes=True), operation, place, value.ends_line
        total = found.setdefault(key, [0, 0])
        total[0] += value.times
        total[1] += value.bytes
    rows: list[RematValue] = []
    for (shape, operation, place, ends_line), (count, held) in found.items():
        file, line = (None, None) if place is None else place
        rows.append(RematValue(shape, count, held, operation, file, line, ends_line))
    return sorted(rows, key=lambda row: -row.bytes)


def code(kept: Sequence[RematValue]) -> str:
    """Lines with ``checkpoint_name``, the policy, and the values without a name."""
    lines: list[str] = []
    names: list[str] = []
    unnamed: list[RematValue] = []
    for value in kept:
        if value.operation == "carry":
            # A layer's operands are kept with any policy.
            continue
        text = linecache.getline(value.file, value.line).rstrip() if value.file and value.line else ""
        found = re.fullmatch(r"(\s*)(\w+) = (.+)", text)
        is_library = value.file is not None and "site-packages" in value.file
        if (
            found is None
            or not value.ends_line
            or is_library
            or text.count("(") != text.count(")")
            or f"# {value.place}" in lines
        ):
            unnamed.append(value)
            continue
        name = f"{found[2]}_{value.line}"
        names.append(name)
        lines += [f"# {value.place}", f"- {text.strip()}", f'+ {found[2]} = checkpoint_name({found[3]}, "{name}")']
    if not names:
        return "# Nothing that is kept is the value of a line of its own: use `step`.\n"
    listed = ", ".join(f'"{name}"' for name in names)
    head = [
        "from jax.ad_checkpoint import checkpoint_name",
        "",
        *lines,
        "",
        "# around a layer:",
        f"policy = jax.checkpoint_policies.save_only_these_names({listed})",
        "layer = jax.checkpoint(layer, policy=policy)",
    ]
    if unnamed:
        total = in_words(sum(value.bytes for value in unnamed))
        head += [
            "",
            f"# {len(unnamed)} kept values, {total}, are inside of expressions: `step` keeps them, names can't.",
        ]
    return "\n".join(head) + "\n"
