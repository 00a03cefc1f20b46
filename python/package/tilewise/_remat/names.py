"""A choice as lines to write into a program."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewise._limits import in_words

if TYPE_CHECKING:
    from tilewise._remat.values import RematValue


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
