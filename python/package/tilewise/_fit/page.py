"""A search's results for people: a page with a curve of bytes, the limit and the table; and words in Markdown.

Names in Markdown are a program's: they neither call people nor load pictures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from tilewise._fit.combination import Combination
from tilewise._fit.rows import FitRow

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720, 320, 60, 40, 16
_COLOURS = ("#0b6e99", "#c2571a", "#3d8b37", "#7a4fa3", "#a8324a", "#6b6b00")

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { text-align: left; padding: .2em 1em .2em 0 }
th { border-bottom: 1px solid #888; font-weight: 600 } svg text { font: 12px system-ui, sans-serif; fill: #222 }
"""


def page(
    table: Sequence[Sequence[str]], notes: Sequence[str], combinations: Sequence[Combination], axis: str | None
) -> str:
    header, *rows = table
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    lines = "".join(f"<p>{escape(note)}</p>" for note in notes)
    owners = _owners(combinations, axis)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>What fits</title><style>{_STYLE}</style>'
        f"<h1>What fits</h1>{curve(combinations, axis)}<table><tr>{heads}</tr>{body}</table>{owners}{lines}</html>"
    )


def curve(combinations: Sequence[Combination], axis: str | None) -> str:
    """SVG: bytes over the axis, a line for each combination, and the limit; empty where there is no axis."""
    series = [(each, _along(each, axis)) for each in combinations if axis is not None]
    points = [(size, row) for _, found in series for size, row in found]
    if not points:
        return ""
    limit = max(row.limit_bytes for _, row in points)
    widest = max(size for size, _ in points)
    # Far above the limit there is nothing to see.
    highest = 1.05 * min(max(max(row.total_bytes or 0 for _, row in points), limit), 2 * limit)

    def x(size: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 10) * size / widest

    def y(count: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * min(count, highest) / highest

    label = f'role="img" aria-label="Bytes by {escape(axis or "")}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {label}>',
        f'<path d="M{_LEFT} {_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - 10}" fill="none" stroke="#888"/>',
        f'<path d="M{_LEFT} {y(limit):.1f}H{_WIDTH - 10}" stroke="#a00" stroke-dasharray="5 4"/>',
        f'<text x="{_LEFT + 6}" y="{y(limit) - 5:.1f}">limit {limit / 2**30:.2f} GiB</text>',
        f'<text x="{_WIDTH - 10}" y="{_HEIGHT - 8}" text-anchor="end">{escape(axis or "")} {widest:g}</text>',
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}">0</text>',
    ]
    for number, (each, found) in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        line = " ".join(f"{x(size):.1f},{y(row.total_bytes or 0):.1f}" for size, row in found)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-opacity=".5"/>')
        for size, row in found:
            fill = colour if row.status in ("fits", "planned") else "#fff"
            title = f"{size}: {(row.total_bytes or 0) / 2**30:.2f} GiB, {row.status}"
            parts.append(
                f'<circle cx="{x(size):.1f}" cy="{y(row.total_bytes or 0):.1f}" r="3" fill="{fill}" stroke="{colour}">'
                f"<title>{escape(title)}</title></circle>"
            )
        if each.settings:
            name = ", ".join(f"{key}={value}" for key, value in each.settings.items())
            parts.append(f'<text x="{_LEFT + 6}" y="{_TOP + 14 * (number + 2)}" fill="{colour}">{escape(name)}</text>')
    return "".join([*parts, "</svg>"])


def _along(combination: Combination, axis: str) -> list[tuple[int, FitRow]]:
    """Sizes of the first axis that was searched and their rows, ascending; the other axes are at their smallest."""

    def others(row: FitRow) -> dict[str, Any]:
        return {name: value for name, value in row.settings.items() if name != axis}

    rows = [row for row in combination.rows if others(row) == others(combination.rows[0])]
    found = [(int(row.settings[axis]), row) for row in rows if row.total_bytes is not None]
    return sorted(found, key=lambda pair: pair[0])


def _owners(combinations: Sequence[Combination], axis: str | None) -> str:
    """The largest owners on both sides of the limit."""
    if axis is None:
        return ""
    lines: list[str] = []
    for each in combinations:
        answer = each.answer
        if answer is None:
            continue
        above = [row for row in each.rows if row.status == "refused" and row.settings[axis] > answer.settings[axis]]
        sides = [answer, *sorted(above, key=lambda row: row.settings[axis])[:1]]
        lines += [
            f"<li>{axis} {row.settings[axis]}, {row.status}: {escape(str(row.owner or ''))}</li>" for row in sides
        ]
    return f"<h2>What holds the most</h2><ul>{''.join(lines)}</ul>" if lines else ""


# Code hosts look for ``@name`` and ``#1`` in the text as shown: an invisible character keeps them apart.
_SHOWN = {"&": "&amp;", "<": "&lt;", "@": "@\u200b", "#": "#\u200b"} | {each: f"\\{each}" for each in "[]*|!\\"}
_PLAIN = {ord(each): shown for each, shown in _SHOWN.items()}


def markdown(words: str, *, in_table: bool = False) -> str:
    """Words as text and nothing else, but for the code in them."""
    shown = "".join(each if each.isprintable() else repr(each)[1:-1] for each in words)
    parts = shown.split("`")
    if len(parts) % 2 == 0:
        # The last backtick is unmatched.
        parts[-2:] = [f"{parts[-2]}\0{parts[-1]}"]
    # Tables end a cell at a bar, within code, too.
    bar = "\\|" if in_table else "|"
    return "`".join(
        part.replace("|", bar) if at % 2 else part.translate(_PLAIN).replace("\0", "\\`")
        for at, part in enumerate(parts)
    )


def markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(markdown(cell, in_table=True) for cell in cells)} |"
