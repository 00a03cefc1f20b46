"""A verb for `tilewise mcp`: ``python -m tilewise._served VERB …``, which answers through a pipe and ends with it.

The pipe takes the place of standard input, the one stream that nothing writes to before this module has put it away.
The server starts the process as the first of a group, and ends the whole group.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import Any

from tilewise._base.errors import Error
from tilewise._compiler import process
from tilewise._fit import factory
from tilewise._verbs import VERBS, Answers

_SERVED = ("fit", "audit")


class Framed(Answers):
    """Answers and errors as lines of JSON: ``{"answer": …}`` or ``{"error": …}``, which the server reads."""

    shows_progress = False

    def text(self, text: object) -> None:
        for line in str(text).splitlines():
            self._line("answer", json.loads(line))

    def error(self, error: Exception | str) -> None:
        """Give an error of `docs/json.md`."""
        if isinstance(error, Error):
            described = {"kind": error.kind, "message": error.message, "span": error.span, "help": error.help}
            self._line("error", {name: value for name, value in described.items() if name != "help" or value})
        else:
            words = error if isinstance(error, str) else str(error) or type(error).__name__
            self._line("error", {"kind": "compiler", "message": words, "span": None})

    def _line(self, kind: str, value: Any) -> None:
        self._out.write(json.dumps({kind: value}) + "\n")
        self._out.flush()


def main(arguments: Sequence[str]) -> int:
    """Answer, and return the verb's exit status."""
    pipe = _taken()
    if sys.platform != "win32":
        _end_with_reader(pipe)
        process.own_sessions = False
    factory.own_only = True
    with open(pipe, "w", encoding="utf-8") as out:
        answers = Framed(out)
        try:
            verb, *others = arguments
            return {name: VERBS[name] for name in _SERVED}[verb](others, answers)
        # The program may raise anything.
        except Exception as error:
            answers.error(error)
        except SystemExit as end:
            answers.error(f"the program ended with exit status {end.code}")
    return 2


def _taken() -> int:
    """The pipe, under a number that no other process gets, and nothing in its place."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return pipe


def _end_with_reader(pipe: int) -> None:
    """Have all processes of the group killed once the pipe has no reader any more: the server has died.

    A process watches, since a thread waits for whoever holds the interpreter's lock.
    """
    if os.fork() != 0:
        return
    watched = select.poll()
    # A closed other end is always reported.
    watched.register(pipe, 0)
    while not watched.poll():
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
