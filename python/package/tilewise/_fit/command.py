"""``tilewise fit …``, which asks a compiler, and so runs in Python, whichever way the command line was installed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from tilewise._base.answers import Answers
from tilewise._base.files import write_whole
from tilewise._fit.factory import factory
from tilewise._fit.result import Fit
from tilewise._fit.run import DEFAULT_CACHE, fit
from tilewise._fit.settings import setting, sizes, values
from tilewise._fit.together import fitted


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
    _give(_formatted(found, given.format), given, answers)
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
    if len(given.largest) != 1 or given.target or given.grid or "," in given.tpu:
        return None
    axis, counts = sizes(given.largest[0])
    answer = fitted(given, axis, sorted(int(count) for count in counts))
    if answer is None:
        return None
    found, asked = answer
    words = f"{found}\nCompiled for {axis}={', '.join(map(str, asked))}."
    _give({"json": found.to_json, "html": found.to_html}.get(given.format, lambda: words)(), given, answers)
    return int(found.fits is not True)


def _give(text: str, given: argparse.Namespace, answers: Answers) -> None:
    if given.output is None:
        answers.text(text)
    else:
        write_whole(Path(given.output), (text + "\n").encode())


def _formatted(found: Fit, name: str) -> str:
    formats: dict[str, Callable[[], str]] = {
        "human": lambda: str(found),
        "json": found.to_json,
        "csv": lambda: found.to_csv().rstrip("\n"),
        "markdown": found.to_markdown,
        "html": found.to_html,
    }
    return formats[name]()


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
    add("--format", choices=("human", "json", "csv", "markdown", "html"), default="human")
    return parser
