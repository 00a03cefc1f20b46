"""``tilewise fit …``, which asks a compiler, and so runs in Python, whichever way the command line was installed."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from tilewise._answers import Answers
from tilewise._fit.adapters import adapter
from tilewise._fit.factory import FromFile
from tilewise._fit.result import Fit
from tilewise._fit.run import DEFAULT_CACHE, fit
from tilewise._kept import write_whole

FORMATS = ("human", "json", "csv", "markdown", "html")


def main(arguments: Sequence[str], answers: Answers) -> int:
    """Search, print, and return the exit status: 0 an answer, 1 nothing fits, 2 usage, 3 gaps or errors, 130 Ctrl-C."""
    given = _parser().parse_args(arguments)
    if given.remat is not None:
        given.grid.append(f"remat={given.remat}")
    if not given.largest and not given.target:
        answers.error("say what to search, as --largest batch=1..512, or what is to fit, as --target batch=256")
        return 2
    try:
        server = _server(given, answers)
        if server is not None:
            return server
        found = fit(
            factory(given.program, given.allow_module),
            tpu=given.tpu.split(","),
            topology=None if given.topology is None else given.topology.split(","),
            largest=dict(map(sizes, given.largest)) or None,
            grid=dict(map(values, given.grid)),
            target=dict(map(setting, given.target)) or None,
            confirm=given.confirm,
            above=given.above if given.above in ("auto", "all", "near") else float(given.above),
            reserve=given.reserve,
            hbm_limit=given.hbm_limit,
            cache=None if given.no_cache else given.cache,
            engine=given.engine,
            workers=given.workers,
            timeout=given.timeout,
            out=given.out,
            progress=answers.shows_progress,
        )
    except (ValueError, TypeError, ImportError, AttributeError, OSError, RuntimeError) as error:
        answers.error(error)
        return 2
    text = _formatted(found, given.format)
    if given.output is None:
        answers.text(text)
    else:
        write_whole(Path(given.output), (text + "\n").encode())
    if found.interrupted:
        return 130
    if not found and not found.answered:
        first = found.errors[0]
        words = next(iter((first.error or "").strip().splitlines()), first.status)
        answers.error(f"no program has an answer, such as {dict(first.settings)}: {words}")
        return 3 if given.strict and first.status in ("crashed", "timeout") else 2
    if given.strict and (found.gaps or found.errors):
        return 3 if found or found.errors else 1
    return 0 if found else 1


def _server(given: argparse.Namespace, answers: Answers) -> int | None:
    """The exit status if the factory is a server's, whose programs are loaded together; else ``None``."""
    from tilewise._fit.together import fitted

    if len(given.largest) != 1 or given.target or given.grid or "," in given.tpu:
        return None
    axis, counts = sizes(given.largest[0])
    answer = fitted(given, axis, sorted(int(count) for count in counts))
    if answer is None:
        return None
    found, asked = answer
    texts = {"json": found.to_json, "html": found.to_html}
    compiled = f"\nCompiled for {axis}={', '.join(map(str, asked))}."
    text = texts[given.format]() if given.format in texts else str(found) + compiled
    if given.output is None:
        answers.text(text)
    else:
        write_whole(Path(given.output), (text + "\n").encode())
    return int(found.fits is not True)


def _formatted(found: Fit, name: str) -> str:
    formats: dict[str, Callable[[], str]] = {
        "human": lambda: str(found),
        "json": found.to_json,
        "csv": lambda: found.to_csv().rstrip("\n"),
        "markdown": found.to_markdown,
        "html": found.to_html,
    }
    return formats[name]()


def factory(program: str, modules: Collection[str] = ()) -> Callable[..., Any]:
    """The factory that ``FILE.py:NAME`` names, or the program of a library, ``maxtext:CONFIG``.

    Args:
        program: its name. ``MODULE:NAME`` is of an allowed module alone: ``subprocess:call`` is such a name, too.
        modules: the modules whose functions may be run.

    Raises:
        ValueError: the text has no name, or the module isn't allowed.
        OSError, ImportError, AttributeError: there is none.
    """
    library = adapter(program)
    if library is not None:
        return library
    place, colon, name = program.rpartition(":")
    if not colon or not name:
        message = f"the program is FILE.py:FACTORY, not {program!r}"
        raise ValueError(message)
    if place.endswith(".py") or "/" in place:
        found = FromFile(place, name)
        try:
            found.load()
        except (OSError, AttributeError, ImportError):
            raise
        # A file of Python may raise anything.
        except (Exception, SystemExit) as error:
            message = f"{place} can't be run: {type(error).__name__}: {error}"
            raise ValueError(message) from error
        return found
    if place not in modules:
        message = f"{place!r} isn't a file FILE.py: --allow-module {place} runs the function of a module"
        raise ValueError(message)
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    loaded: Any = importlib.import_module(place)
    for part in name.split("."):
        loaded = getattr(loaded, part)
    made: Callable[..., Any] = loaded
    return made


def sizes(text: str) -> tuple[str, Sequence[float]]:
    """``batch=1..512``, ``seq=128..4096..128``, ``batch=1,2,8`` or ``batch=0.25,0.5,1``: the axis and its sizes."""
    name, held = _named(text)
    try:
        if ".." in held:
            first, last, *step = (int(part) for part in held.split(".."))
            chosen = range(first, last + 1, *step)
            if max(abs(first), abs(last)) < sys.maxsize:
                return name, chosen
            message = "a size is below 2^63"
            raise ValueError(message)
        return name, [float(part) if "." in part else int(part) for part in held.split(",")]
    except (ValueError, TypeError) as error:
        message = f"sizes are written 1..512, 8..512..8 or 1,2,8, not {held!r}"
        raise ValueError(message) from error


def values(text: str) -> tuple[str, list[Any]]:
    """``remat=none,dots,full``: the axis and its values."""
    name, held = _named(text)
    return name, [_value(part) for part in held.split(",")]


def setting(text: str) -> tuple[str, Any]:
    """``batch=256``: one setting."""
    name, held = _named(text)
    return name, _value(held)


def _named(text: str) -> tuple[str, str]:
    name, equals, held = text.partition("=")
    if not equals or not name:
        message = f"settings are written NAME=VALUE, not {text!r}"
        raise ValueError(message)
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


def _parser() -> argparse.ArgumentParser:
    """The command line's options, which `tilewise fit --help` prints."""
    parser = argparse.ArgumentParser(prog="tilewise fit", add_help=False)
    add = parser.add_argument
    add("program")
    add("--tpu", required=True)
    for name in ("--topology", "--hbm-limit", "--out", "-o/--output", "--remat"):
        add(*name.split("/"))
    for name in ("--largest", "--grid", "--target"):
        add(name, action="append", default=[])
    add("--confirm", choices=("answer", "all", "none"), default="answer")
    add("--above", default="auto")
    add("--reserve", default=0)
    add("--timeout", type=float)
    add("--workers", type=int, default=1)
    add("--engine", choices=("processes", "ray", "dask"), default="processes")
    add("--cache", default=DEFAULT_CACHE)
    add("--no-cache", action="store_true")
    add("--strict", action="store_true")
    add("--allow-module", action="append", default=[])
    add("--format", choices=FORMATS, default="human")
    return parser
