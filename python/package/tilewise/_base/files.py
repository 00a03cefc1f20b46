"""The folder of the compiler's answers, and files that are written whole."""

from __future__ import annotations

import contextlib
import os
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


def write_whole(path: Path, content: bytes | memoryview, *, shared: bool = False) -> None:
    """Write a file that readers see whole or not at all; a shared one is for other users, and safe on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Readers of datasets pass over names with a dot. Two processes may write one file.
    draft = path.parent / f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}"
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(draft, flags, 0o666 if shared else 0o600)
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            if shared:
                os.fsync(handle)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
