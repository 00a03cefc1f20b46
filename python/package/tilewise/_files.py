"""The folder of the compiler's answers, and files that are written whole."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """The folder of the compiler's answers: ``$TILEWISE_CACHE``, by default ``$XDG_CACHE_HOME/tilewise``."""
    own = os.environ.get("TILEWISE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(own) if own else Path(base) / "tilewise"


def clear_cache() -> None:
    """Forget the compiler's answers on programs: the next call compiles them again.

    `audit`, `check_fix` and `fit` keep the plans of functions in the folder that the environment variable
    ``TILEWISE_CACHE`` names, by default ``~/.cache/tilewise``. A plan is used again only for the same program, lines of
    its source included, options and version of the compiler.

    Examples:
        >>> clear_cache()
    """
    for kept in cache_folder().glob("*.answer"):
        kept.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that readers see either whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
