"""The stream of a verb's answers, kept apart from the output of the programs that it runs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator
from typing import TextIO


class Answers:
    """Answers on one stream, errors on standard error."""

    shows_progress = True
    """Whether progress is shown on standard error."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def text(self, text: object) -> None:
        print(text, file=self._out)

    def error(self, error: Exception | str) -> None:
        print(f"error: {error}", file=sys.stderr)


@contextlib.contextmanager
def apart() -> Generator[Answers]:
    """Keep standard output for answers: until the end, other output to it goes to standard error.

    A program prints as it is imported or called, and its libraries print without Python.
    """
    out = sys.stdout
    try:
        is_stream = out.fileno() == 1
    except (OSError, ValueError):
        # Python's standard output is captured.
        is_stream = False
    out.flush()
    with contextlib.ExitStack() as kept:
        if is_stream:
            own = os.dup(1)
            # The last comes first.
            kept.callback(os.close, own)
            kept.callback(os.dup2, own, 1)
            os.dup2(2, 1)
            out = kept.enter_context(open(os.dup(own), "w", encoding=out.encoding, errors=out.errors))
        kept.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield Answers(out)
