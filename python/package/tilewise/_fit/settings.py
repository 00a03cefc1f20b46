"""Settings as the command line writes them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


def sizes(text: str) -> tuple[str, Sequence[float]]:
    """``batch=1..512``, ``seq=128..4096..128``, ``batch=1,2,8`` or ``batch=0.25,0.5,1``: the axis and its sizes."""
    name, held = _named(text)
    try:
        if ".." in held:
            first, last, *step = (int(part) for part in held.split(".."))
            chosen = range(first, last + 1, *step)
            if max(abs(first), abs(last)) < sys.maxsize:
                return name, chosen
            raise ValueError("a size is below 2^63")
        return name, [float(part) if "." in part else int(part) for part in held.split(",")]
    except (ValueError, TypeError) as error:
        raise ValueError(f"sizes are written 1..512, 8..512..8 or 1,2,8, not {held!r}") from error


def values(text: str) -> tuple[str, list[Any]]:
    """``remat=none,dots,full``: the axis and its values."""
    name, held = _named(text)
    return name, [_value(part) for part in held.split(",")]


def setting(text: str) -> tuple[str, Any]:
    name, held = _named(text)
    return name, _value(held)


def _named(text: str) -> tuple[str, str]:
    name, equals, held = text.partition("=")
    if not equals or not name:
        raise ValueError(f"settings are written NAME=VALUE, not {text!r}")
    return name, held


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
