"""Progress of long work on standard error: its name and its duration."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Generator

_FIRST_SECONDS, _EVERY_SECONDS, _LINE_SECONDS = 1.0, 0.5, 10.0


class Line:
    """A line of standard error that is written over."""

    def __init__(self, *, shown: bool | None = None) -> None:
        self.is_shown = sys.stderr.isatty() if shown is None else shown
        self._width = 0

    def show(self, text: str) -> None:
        if self.is_shown:
            sys.stderr.write("\r" + text[:200].ljust(self._width))
            sys.stderr.flush()
            self._width = len(text[:200])

    def clear(self) -> None:
        if self._width:
            self.show("")
            sys.stderr.write("\r")
            sys.stderr.flush()


class Ticker:
    """Shows a text, which may change, while work goes on, with its seconds if they are more than one.

    It is written over on a terminal, elsewhere a line every ten seconds.
    """

    def __init__(self, text: str | Callable[[], str], *, shown: bool = True) -> None:
        self._text, self._shown, self._line = text, shown, Line()
        self._over, self._begun = threading.Event(), 0.0
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Ticker:
        self._begun = time.monotonic()
        if self._shown:
            self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._watcher.is_alive():
            self._watcher.join()
        self._line.clear()

    def show(self) -> None:
        if self._shown and self._line.is_shown:
            self._line.show(self._now())

    def _now(self) -> str:
        return f"{self._text if isinstance(self._text, str) else self._text()}; {time.monotonic() - self._begun:.0f} s"

    def _watch(self) -> None:
        wait, every = (_FIRST_SECONDS, _EVERY_SECONDS) if self._line.is_shown else (_LINE_SECONDS, _LINE_SECONDS)
        while not self._over.wait(wait):
            wait = every
            self.show()
            if not self._line.is_shown:
                sys.stderr.write(self._now() + "\n")
                sys.stderr.flush()


@contextlib.contextmanager
def counted(what: str, total: int, *, shown: bool | None = None) -> Generator[Callable[[int], None]]:
    """A counter of finished things, which it shows with the time that the rest may take."""
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
