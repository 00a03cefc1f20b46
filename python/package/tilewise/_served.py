"""A verb for `tilewise mcp`: ``python -m tilewise._served VERB …``, which answers through a pipe and ends with it.

The pipe takes the place of standard input, the one stream that nothing writes to before this module has put it away.
The server starts the process as the first of a group, and ends the whole group.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewise._base.answers import Answers
from tilewise._base.errors import Error
from tilewise._compiler import process
from tilewise._fit import command, locked
from tilewise._fit.factory import FromFile, factory

_VERBS: dict[str, Callable[[Sequence[str], Answers], int]] = {"fit": command.main, "audit": locked.audited}


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
    with open(pipe, "w", encoding="utf-8") as out:
        answers = Framed(out)
        try:
            verb, *others = arguments
            for program in _factories(others):
                _check_own(program, factory(program, _allowed(others)))
            return _VERBS[verb](others, answers)
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


def _factories(arguments: Sequence[str]) -> list[str]:
    against = (each.removeprefix("--against=") for each in arguments if each.startswith("--against="))
    return [each for each in (*against, arguments[-1]) if locked.is_factory(each)]


def _allowed(arguments: Sequence[str]) -> list[str]:
    option = "--allow-module="
    return [each.removeprefix(option) for each in arguments if each.startswith(option)]


def _check_own(program: str, made: Callable[..., Any]) -> None:
    """Refuse functions that a file or module has imported: the server may run its own, not those of `os`."""
    place, _, name = program.rpartition(":")
    if isinstance(made, FromFile):
        home, is_package, found = Path(made.path), False, made.load()
    else:
        home = Path(inspect.getfile(sys.modules[place]))
        is_package, found = home.name == "__init__.py", made
    try:
        of = Path(inspect.getfile(_definition(found))).resolve()
    except TypeError:
        # Python's own, in no file.
        of = Path()
    if of != home.resolve() and not (is_package and of.is_relative_to(home.parent.resolve())):
        message = f"`{name}` isn't defined in {place}, which only imports it"
        raise Error(message, kind="not_a_program", help="name a function by the file that defines it")


def _definition(found: Any) -> Any:
    found = inspect.unwrap(found)
    if isinstance(found, functools.partial):
        return _definition(found.func)
    is_definition = inspect.isroutine(found) or inspect.isclass(found)
    return found if is_definition else type(found)  # pyright: ignore[reportUnknownVariableType]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
