"""Words in Markdown. Names in them are a program's: they neither call people nor load pictures."""

from __future__ import annotations

from collections.abc import Iterable

# Code hosts look for ``@name`` and ``#1`` in the text as shown: an invisible character keeps them apart.
_SHOWN = {"&": "&amp;", "<": "&lt;", "@": "@\u200b", "#": "#\u200b"} | {each: f"\\{each}" for each in "[]*|!\\"}
_PLAIN = {ord(each): shown for each, shown in _SHOWN.items()}


def text(words: str, *, in_table: bool = False) -> str:
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


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(text(cell, in_table=True) for cell in cells)} |"
