"""Long work on standard error: what is done, and for how long."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Generator

_FIRST_SECONDS, _EVERY_SECONDS = 2.0, 0.5


class Line:
    """A line of standard error that is written over."""

    def __init__(self, *, shown: bool | None = None) -> None:
        self.is_shown = sys.stderr.isatty() if shown is None else shown
        self._width = 0

    def show(self, text: str) -> None:
        """Show a text in place of the last one."""
        if self.is_shown:
            sys.stderr.write("\r" + text[:200].ljust(self._width))
            sys.stderr.flush()
            self._width = len(text[:200])

    def clear(self) -> None:
        """Leave no trace."""
        if self._width:
            self.show("")
            sys.stderr.write("\r")
            sys.stderr.flush()


@contextlib.contextmanager
def elapsed(what: str, *, shown: bool | None = None) -> Generator[None]:
    """Shows what is done, and the seconds since, where it takes more than two and standard error is a terminal."""
    line, over, begun = Line(shown=shown), threading.Event(), time.monotonic()

    def watch() -> None:
        while not over.wait(_EVERY_SECONDS):
            seconds = time.monotonic() - begun
            if seconds >= _FIRST_SECONDS:
                line.show(f"{what}: {seconds:.0f} s")
        line.clear()

    watcher = threading.Thread(target=watch, daemon=True)
    if line.is_shown:
        watcher.start()
    try:
        yield
    finally:
        over.set()
        if line.is_shown:
            watcher.join()


@contextlib.contextmanager
def counted(what: str, total: int, *, shown: bool | None = None) -> Generator[Callable[[int], None]]:
    """What counts things that are done, and shows them with the time that the rest may take."""
    line, begun, done = Line(shown=shown), time.monotonic(), 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        left = (time.monotonic() - begun) / max(done, 1) * (total - done)
        line.show(f"{done} of {total} {what}, {left:.0f} s left")

    try:
        yield count
    finally:
        line.clear()
