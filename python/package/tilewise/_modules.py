"""Modules that only some functions need, which import them when called."""

from __future__ import annotations

import importlib
from typing import Any


def module(name: str) -> Any:
    """The module, typed as `Any`: much of JAX has no types, and type checks are to need neither JAX nor pandas."""
    return importlib.import_module(name)
