"""The choices as a picture, and as lines to write into a program."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewise._limits import in_words

if TYPE_CHECKING:
    from tilewise._remat.search import RematRow
    from tilewise._remat.values import RematValue

_WIDTH, _HEIGHT, _LEFT, _TOP = 640, 360, 70, 30


def frontier(rows: Sequence[RematRow], best: RematRow, limit: int) -> str:
    """Bytes across, time at full rates up; the step as written and the chosen one are named."""
    timed = [row for row in rows if row.floor_seconds is not None]
    most = max([limit, *(row.peak_bytes for row in timed)])
    slowest = max((row.floor_seconds or 0 for row in timed), default=1) or 1

    def at(row: RematRow) -> tuple[float, float]:
        x = _LEFT + (_WIDTH - _LEFT - 20) * row.peak_bytes / most
        return x, _HEIGHT - 45 - (_HEIGHT - 45 - _TOP) * (row.floor_seconds or 0) / slowest / 1.05

    across = _LEFT + (_WIDTH - _LEFT - 20) * limit / most
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12" role="img" aria-label="bytes and time of what may be kept">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<path d="M{_LEFT} {_TOP}V{_HEIGHT - 45}H{_WIDTH - 20}" fill="none" stroke="#555"/>',
        f'<path d="M{across:.1f} {_TOP}V{_HEIGHT - 45}" stroke="#b00" stroke-dasharray="4 3"/>',
        f'<text x="{across - 4:.1f}" y="{_TOP + 10}" text-anchor="end" fill="#b00">'
        f"limit {limit / 2**30:.2f} GiB</text>",
        f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 10}" text-anchor="middle">peak, GiB</text>',
        f'<text x="14" y="{_HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 {_HEIGHT / 2})">'
        "ms a run at full rates</text>",
    ]
    for share in (0.25, 0.5, 0.75, 1.0):
        x, y = _LEFT + (_WIDTH - _LEFT - 20) * share, _HEIGHT - 45 - (_HEIGHT - 45 - _TOP) * share / 1.05
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 28}" text-anchor="middle">{most * share / 2**30:.1f}</text>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{1e3 * slowest * share:.0f}</text>')
    # The chosen one lies above others of its place.
    for row in sorted(timed, key=lambda row: row is best):
        x, y = at(row)
        chosen = row is best
        fill = "#06c" if chosen else "#e80" if row.name == "as written" else "#9ab"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{7 if chosen else 5}" fill="{fill}"/>')
        if chosen or row.name == "as written":
            side, end = (9, "start") if x < _WIDTH * 0.7 else (-9, "end")
            name = ", chosen" if chosen else ""
            parts.append(f'<text x="{x + side:.1f}" y="{y - 8:.1f}" text-anchor="{end}">{row.name}{name}</text>')
    return "\n".join([*parts, "</svg>"])


def code(kept: Sequence[RematValue]) -> str:
    """Lines with ``checkpoint_name``, the policy, and what has no name."""
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
