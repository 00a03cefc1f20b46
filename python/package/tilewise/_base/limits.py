"""Limits of padding and memory as people write them, bytes and tables as they read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewise import _tilewise

if TYPE_CHECKING:
    from tilewise._base.types import Limit, Tpu

_BINARY = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}


def bytes_of(limit: Limit, whole: int) -> int:
    """The limit in bytes: a number of them, text such as ``"1GiB"`` or ``"1G"``, or a share of the whole, ``"10%"``."""
    if isinstance(limit, str):
        share = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", limit)
        try:
            return _tilewise.size_of(limit) if share is None else int(float(share[1]) / 100 * whole)
        except ValueError:
            message = f"a limit is a number of bytes, or text such as '10%' or '1GiB', not {limit!r}"
            raise ValueError(message) from None
    if isinstance(limit, float) and 0 < limit < 1:
        raise ValueError(f"a share is written as text: '{limit:.0%}', not {limit}")
    return int(limit)


def share_of(share: float | str) -> float:
    """A share, ``"1%"`` or 0.01."""
    if not isinstance(share, str):
        return share
    number, unit, rest = share.strip().partition("%")
    if rest:
        raise ValueError(f"a share is written 1% or 0.01, not {share!r}")
    return float(number) / (100 if unit else 1)


def hbm_of(limit: Limit | None, tpu: Tpu | None, machine: str | None = None) -> int | None:
    """The memory that there is, in bytes; a share is of the TPU's HBM or of all that the GPU has."""
    if limit is None:
        return None
    whole = 0
    if isinstance(limit, str) and "%" in limit:
        found = _tilewise.hbm_bytes(tpu) if tpu is not None else _tilewise.machine_name(machine)[1] if machine else None
        if found is None:
            message = f"{limit!r} is a share of a machine's memory: say which, as in tpu='v5e' or machine='gpu:h100'"
            raise TypeError(message)
        whole = found
    return bytes_of(limit, whole)


def in_words(count: float) -> str:
    """Bytes for people: ``16.00 GiB (17179869184)``."""
    return f"{rounded(count)} ({count:.0f})" if any(count >= size for size in _BINARY.values()) else rounded(count)


def rounded(count: float) -> str:
    """Bytes in a table: ``16.00 GiB``."""
    for unit, size in _BINARY.items():
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count:.0f} bytes"


def in_columns(rows: Sequence[Sequence[str]], numbers: int = 0) -> str:
    """Lines of cells that stand one below the other, the last of them numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.ljust] * (len(widths) - numbers) + [str.rjust] * numbers
    lines = ([side(*cell) for side, cell in zip(sides, zip(row, widths, strict=True), strict=True)] for row in rows)
    return "\n".join("  ".join(line).rstrip() for line in lines)
