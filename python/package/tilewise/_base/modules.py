"""Modules that only some functions need, which import them when called."""

from __future__ import annotations

import importlib
from typing import Any

_INSTALLED_BY = {"jax": "'tilewise[tpu]'", "pandas": "pandas", "polars": "polars", "pyarrow": "pyarrow"}


def module(name: str) -> Any:
    """The module, typed as `Any`: much of JAX has no types, and type checks are to need neither JAX nor pandas."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = _INSTALLED_BY.get(str(error.name))
        if package is None:
            raise
        raise ModuleNotFoundError(f"this needs {error.name}: pip install {package}", name=error.name) from error
