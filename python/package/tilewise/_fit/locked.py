"""``tilewise lock``, and ``tilewise audit … --against`` of programs in Python."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewise import _tilewise
from tilewise._audit import audit
from tilewise._comparison import Comparison
from tilewise._fit import lock
from tilewise._fit.candidates import Place
from tilewise._fit.command import factory, setting
from tilewise._fit.factory import program as program_made
from tilewise._limits import share_of
from tilewise._plan import plan_of

if TYPE_CHECKING:
    from tilewise._tilewise import Report
    from tilewise._types import Tpu

_STATUS = {"same": 0, "better": 0, "worse": 1, "other compiler": 3}


def of_function(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    tpu: Tpu,
    topology: str | None,
    jit_options: Mapping[str, Any] | None,
    settings: Mapping[str, Any],
    root: Path,
) -> tuple[dict[str, Any], Report]:
    """The entry of a function, and its report."""
    answer, program = plan_of(f, args, kwargs, tpu=tpu, topology=topology, jit_options=jit_options)
    assert answer.report is not None
    held = lock.entry(
        answer.report,
        tpu=_tilewise.generation_name(tpu),
        topology=topology if program is None else program.topology,
        settings=settings,
        hlo=None if program is None else program.hash,
        root=root,
    )
    return held, answer.report


def of_program(
    program: str, *, tpu: str | None, topology: str | None, settings: Mapping[str, Any], root: Path
) -> tuple[str, dict[str, Any], Report, bool]:
    """The name, the entry and the report of a program, and whether it was compiled just now.

    Args:
        program: ``FILE.py:FACTORY``, or a file of HLO.
        tpu, topology, settings: what it is for, and made with.
        root: the folder that files are relative to.
    """
    if ":" in program and not Path(program).exists():
        if tpu is None:
            raise ValueError("say which TPU the program is for: --tpu v5e")
        # As a lock has it, from the folder that files are relative to; as it is given, from here.
        file, _, maker = program.rpartition(":")
        found = program if Path(file).exists() or not (root / file).exists() else f"{root / file}:{maker}"
        made = program_made(factory(found), settings, Place(tpu, topology))
        held, report = of_function(
            made.f, made.args, tpu=tpu, topology=topology, jit_options=made.options, settings=settings, root=root
        )
        return _name(report), {**held, "program": _portable(found, root)}, report, True
    report = audit(program, tpu=tpu)
    generation = tpu or report.tpu
    if generation is None:
        message = f"{program} does not say which TPU it is for: --tpu v5e"
        raise ValueError(message)
    held = lock.entry(report, tpu=_tilewise.generation_name(generation), settings=settings, root=root)
    return _name(report), held, report, False


def _portable(program: str, root: Path) -> str:
    """The program, as it is named from anywhere in the repository."""
    file, _, maker = program.rpartition(":")
    path = Path(file).resolve()
    return f"{path.relative_to(root).as_posix()}:{maker}" if path.exists() and path.is_relative_to(root) else program


def _name(report: Report) -> str:
    return report.module.removeprefix("jit_")


def _compared(
    name: str, before: Mapping[str, Any], then: Mapping[str, str] | None, after: Any, given: argparse.Namespace
) -> Comparison:
    held, report, is_new = after
    return lock.compare(
        name,
        before,
        held,
        compilers=(then, lock.compiler() if is_new else None),
        tolerance=share_of(given.tolerance),
        exact=given.exact,
        any_compiler=given.any_compiler,
        report=report,
    )


def _check(given: argparse.Namespace, path: Path, programs: Sequence[str]) -> list[Comparison]:
    """The programs beside those of a lock; without programs, all that it can make again."""
    held = lock.read(path)
    root, locked = lock.root_of(path), held["programs"]
    chosen = [(None, program) for program in programs] or [
        (name, each["program"]) for name, each in locked.items() if each.get("program")
    ]
    if not chosen:
        message = f"{path} has no program that can be made again: name one"
        raise ValueError(message)
    found: list[Comparison] = []
    for name, program in chosen:
        same = (each for each in locked.values() if each.get("program") == _portable(program, root))
        before = locked.get(name) if name else next(same, None)
        # What the one program is for, another may be for, too; but it is none to be compared with.
        known: dict[str, Any] = before or (next(iter(locked.values())) if len(locked) == 1 else {})
        kept: dict[str, Any] = before.get("settings") or {} if before else {}
        settings: dict[str, Any] = dict(map(setting, given.set)) or kept
        tpu, topology = given.tpu or known.get("tpu"), given.topology or known.get("topology")
        new_name, *after, is_new = of_program(program, tpu=tpu, topology=topology, settings=settings, root=root)
        before = before or locked.get(given.name or new_name)
        if before is None:
            message = f"no program `{given.name or new_name}` in {path}, only {', '.join(locked) or 'none'}"
            raise ValueError(message)
        found.append(_compared(name or given.name or new_name, before, held["compiler"], (*after, is_new), given))
    return found


def _print(compared: list[Comparison], given: argparse.Namespace) -> int:
    if given.format == "json":
        print("\n".join(each.to_json() for each in compared))
    else:
        print(_tilewise.comparison_words([each.text for each in compared], given.format))
    statuses = [_STATUS[each.verdict] for each in compared]
    return 3 if 3 in statuses else max(statuses)


def main(arguments: Sequence[str]) -> int:
    """``tilewise lock``: exit status 0 the same or better, 1 worse, 2 usage, 3 another compiler."""
    parser = _parser("lock")
    parser.add_argument("program", nargs="*")
    parser.add_argument("-o", "--output", default="plan.lock")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    given = parser.parse_args(arguments)
    path = Path(given.output)
    try:
        if given.check:
            return _print(_check(given, path, given.program), given)
        _write(given, path)
    except (ValueError, TypeError, ImportError, AttributeError, OSError, KeyError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _write(given: argparse.Namespace, path: Path) -> None:
    programs: dict[str, Any] = {}
    root = lock.root_of(path)
    for name, each in lock.read(path)["programs"].items() if given.update else ():
        if not each.get("program"):
            message = f"{name} of {path} was no program of Python: lock it anew"
            raise ValueError(message)
        again = of_program(
            each["program"], tpu=each["tpu"], topology=each["topology"], settings=each["settings"], root=root
        )
        programs[name] = again[1]
    for program in given.program:
        name, entry, *_ = of_program(
            program, tpu=given.tpu, topology=given.topology, settings=dict(map(setting, given.set)), root=root
        )
        programs[given.name or name] = entry
    if not programs:
        raise ValueError("say which program to lock, as FILE.py:FACTORY")
    lock.update(path, programs)


def against(arguments: Sequence[str]) -> int:
    """``tilewise audit PROGRAM --against LOCK`` or ``--against PROGRAM``, where either is ``FILE.py:FACTORY``."""
    parser = _parser("audit")
    parser.add_argument("program")
    parser.add_argument("--against", required=True)
    given = parser.parse_args(arguments)
    path = Path(given.against)
    try:
        if path.suffix == ".lock" or _is_lock(path):
            return _print(_check(given, path, [given.program]), given)
        settings, root = dict(map(setting, given.set)), Path.cwd()
        read = [
            of_program(each, tpu=given.tpu, topology=given.topology, settings=settings, root=root)
            for each in (given.against, given.program)
        ]
        (_, before, _, _), (name, *after) = read
        return _print([_compared(given.name or name, before, None, after, given)], given)
    except (ValueError, TypeError, ImportError, AttributeError, OSError, KeyError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _is_lock(path: Path) -> bool:
    try:
        lock.read(path)
    except (OSError, ValueError):
        return False
    return True


def _parser(verb: str) -> argparse.ArgumentParser:
    """The command line's options, which `tilewise VERB --help` prints."""
    parser = argparse.ArgumentParser(prog=f"tilewise {verb}", add_help=False)
    add = parser.add_argument
    for name in ("--tpu", "--topology", "--name"):
        add(name)
    add("--set", action="append", default=[])
    add("--tolerance", default="1%")
    add("--exact", action="store_true")
    add("--any-compiler", action="store_true")
    add("--format", choices=("human", "json", "markdown", "github"), default="human")
    return parser
