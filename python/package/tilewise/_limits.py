"""Limits of padding and memory, as people write them."""

from __future__ import annotations

import re

_BINARY = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
_UNITS = {**_BINARY, "TB": 10**12, "GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}


def bytes_of(limit: int | float | str, whole: int) -> float:
    """The limit in bytes: a number of them, text such as ``"1GiB"``, or a share of the whole, ``"10%"`` or 0.1."""
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%|[KMGT]i?B|B)?\s*", limit)
        if found is None:
            message = f"a limit is a number of bytes, or text such as '10%' or '1GiB', not {limit!r}"
            raise ValueError(message)
        number, unit = float(found[1]), found[2] or "B"
        return number / 100 * whole if unit == "%" else number * _UNITS[unit]
    if isinstance(limit, float) and 0 <= limit <= 1:
        return limit * whole
    return limit


def in_words(count: float) -> str:
    """Bytes for people: ``16.00 GiB (17179869184)``."""
    for unit, size in _BINARY.items():
        if count >= size:
            return f"{count / size:.2f} {unit} ({count:.0f})"
    return f"{count:.0f} bytes"
