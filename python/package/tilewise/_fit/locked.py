"""``tilewise lock``, and ``tilewise audit`` of programs in Python."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewise import _tilewise
from tilewise._audit.audit import audit
from tilewise._audit.comparison import Comparison
from tilewise._base.answers import Answers
from tilewise._base.files import write_whole
from tilewise._base.limits import share_of
from tilewise._compiler.plan import plan_of
from tilewise._fit import lock
from tilewise._fit.candidates import Place
from tilewise._fit.factory import factory
from tilewise._fit.factory import program as program_made
from tilewise._fit.settings import setting
from tilewise._fit.together import summed
from tilewise._jax.lowering import Request
from tilewise._tilewise import Report

_LOCKED = ("tpu", "topology", "settings")
_STATUS = {"same": 0, "better": 0, "worse": 1, "other compiler": 3}


@dataclass(frozen=True)
class Made:
    """A program as it was audited: its entry in a lock, and the versions that compiled it; ``None`` of a file."""

    report: Report
    entry: dict[str, Any]
    compiler: dict[str, str] | None

    @property
    def name(self) -> str:
        return self.report.module.removeprefix("jit_")


@dataclass(frozen=True)
class Target:
    """The target that programs are made and compiled for, as the command line says it.

    `root` is the folder that files are relative to; `libtpu` compiles them, or compiled a file; functions of `modules`
    may be run.
    """

    tpu: str | None
    topology: str | None
    settings: Mapping[str, Any]
    root: Path
    libtpu: str | None = None
    modules: Collection[str] = ()

    @classmethod
    def of(cls, given: argparse.Namespace, root: Path) -> Target:
        return cls(given.tpu, given.topology, dict(map(setting, given.set)), root, given.libtpu, given.allow_module)


def of_function(request: Request, settings: Mapping[str, Any], root: Path) -> Made:
    plan = plan_of(request)
    program = plan.program
    held = lock.entry(
        plan.report,
        tpu=request.generation,
        topology=request.topology if program is None else program.topology,
        settings=settings,
        hlo=None if program is None else program.hash,
        root=root,
    )
    return Made(plan.report, held, lock.compiler(request.libtpu))


def is_factory(program: str) -> bool:
    """Whether that names a factory, and not a file."""
    return ":" in program and not Path(program).exists()


def of_program(program: str, target: Target) -> Made:
    """A program: ``FILE.py:FACTORY``, or a file of HLO."""
    tpu, root = target.tpu, target.root
    if is_factory(program):
        if tpu is None:
            raise ValueError("say which TPU the program is for: --tpu v5e")
        # As a lock has it, from the folder that files are relative to; as it is given, from here.
        file, _, maker = program.rpartition(":")
        found = program if Path(file).exists() or not (root / file).exists() else f"{root / file}:{maker}"
        request = program_made(factory(found, target.modules), target.settings, Place(tpu, target.topology))
        compiled = of_function(replace(request, libtpu=target.libtpu), target.settings, root)
        return replace(compiled, entry={**compiled.entry, "program": _portable(found, root)})
    report = audit(program, tpu=tpu, libtpu=target.libtpu)
    generation = tpu or report.tpu
    if generation is None:
        raise ValueError(f"{program} does not say which TPU it is for: --tpu v5e")
    held = lock.entry(report, tpu=_tilewise.generation_name(generation), settings=target.settings, root=root)
    return Made(report, held, None)


def _portable(program: str, root: Path) -> str:
    """The program, as it is named from anywhere in the repository."""
    file, _, maker = program.rpartition(":")
    path = Path(file).resolve()
    return f"{path.relative_to(root).as_posix()}:{maker}" if path.exists() and path.is_relative_to(root) else program


def _allowed(given: argparse.Namespace) -> dict[str, Any]:
    # Naming another compiler asks for the changes that it makes.
    is_asked = given.libtpu is not None or str(getattr(given, "against", None)).startswith("libtpu=")
    any_compiler = given.any_compiler or is_asked
    return {"tolerance": share_of(given.tolerance), "exact": given.exact, "any_compiler": any_compiler}


def _check(given: argparse.Namespace, path: Path, programs: Sequence[str]) -> list[Comparison]:
    """The programs beside those of a lock; without programs, all that it can make again."""
    held = lock.read(path)
    root, locked = lock.root_of(path), held["programs"]
    chosen = [(None, program) for program in programs] or [
        (name, each["program"]) for name, each in locked.items() if each.get("program")
    ]
    if not chosen:
        raise ValueError(f"{path} has no program that can be made again: name one")
    found: list[Comparison] = []
    for name, program in chosen:
        same = (each for each in locked.values() if each.get("program") == _portable(program, root))
        before = locked.get(name) if name else next(same, None)
        # Another program may be for the slice of the lock's only one, but isn't compared with it.
        known: dict[str, Any] = before or (next(iter(locked.values())) if len(locked) == 1 else {})
        kept: dict[str, Any] = before.get("settings") or {} if before else {}
        asked = Target.of(given, root)
        tpu, topology = asked.tpu or known.get("tpu"), asked.topology or known.get("topology")
        made = of_program(program, replace(asked, tpu=tpu, topology=topology, settings=asked.settings or kept))
        wanted = given.name or made.name
        before = before or locked.get(wanted)
        if before is None:
            raise ValueError(f"no program `{wanted}` in {path}, only {', '.join(locked) or 'none'}")
        compilers = held["compiler"], made.compiler
        found.append(
            lock.compare(name or wanted, before, made.entry, compilers=compilers, report=made.report, **_allowed(given))
        )
    return found


def _print(compared: list[Comparison], given: argparse.Namespace, answers: Answers) -> int:
    if given.format == "json":
        answers.text("\n".join(each.to_json() for each in compared))
    else:
        answers.text(_tilewise.comparison_words([each.text for each in compared], given.format))
    statuses = [_STATUS[each.verdict] for each in compared]
    return 3 if 3 in statuses else max(statuses)


def main(arguments: Sequence[str], answers: Answers) -> int:
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
            return _print(_check(given, path, given.program), given, answers)
        _write(given, path)
    except (ValueError, TypeError, ImportError, AttributeError, OSError, KeyError, RuntimeError) as error:
        answers.error(error)
        return 2
    return 0


def _write(given: argparse.Namespace, path: Path) -> None:
    programs: dict[str, Any] = {}
    # A lock is of the installed compiler.
    target = replace(Target.of(given, lock.root_of(path)), libtpu=None)
    for name, each in lock.read(path)["programs"].items() if given.update else ():
        if not each.get("program"):
            raise ValueError(f"{name} of {path} was no program of Python: lock it anew")
        again = of_program(each["program"], replace(target, **{what: each[what] for what in _LOCKED}))
        programs[name] = again.entry
    for program in given.program:
        made = of_program(program, target)
        programs[given.name or made.name] = made.entry
    if not programs:
        raise ValueError("say which program to lock, as FILE.py:FACTORY")
    lock.update(path, programs)


def audited(arguments: Sequence[str], answers: Answers) -> int:
    """``tilewise audit FILE.py:FACTORY…``, ``--together`` or ``--against`` a lock, another program or libtpu."""
    parser = _parser("audit")
    parser.add_argument("program", nargs="+")
    parser.add_argument("--against")
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--pages")
    parser.add_argument("--hbm-limit")
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args(arguments)
    try:
        if given.out and not (given.together and given.out.suffix == ".html"):
            raise ValueError("of a FILE.py:FACTORY only programs together are written, to FILE.html")
        if given.together:
            return _print_together(given, answers)
        if given.against is None:
            target = Target.of(given, Path.cwd())
            return _print_reports([of_program(each, target).report for each in given.program], given, answers)
        path = Path(given.against)
        if path.suffix == ".lock" or _is_lock(path):
            return _print(_check(given, path, given.program), given, answers)
        return _print([_beside(each, given) for each in given.program], given, answers)
    except (ValueError, TypeError, ImportError, AttributeError, OSError, KeyError, RuntimeError) as error:
        answers.error(error)
        return 2


def _beside(program: str, given: argparse.Namespace) -> Comparison:
    """A program beside another, or beside itself of another libtpu."""
    target = Target.of(given, Path.cwd())
    other, is_libtpu, version = given.against.partition("libtpu=")
    if other or not is_libtpu:
        before = of_program(given.against, target)
    elif is_factory(program):
        before = of_program(program, replace(target, libtpu=version))
    else:
        raise ValueError(f"another libtpu compiles FILE.py:FACTORY; {program} is compiled already")
    after = of_program(program, target)
    return Comparison(
        _tilewise.compare_reports(before.report, after.report, given.name or after.name, **_allowed(given))
    )


def _print_reports(reports: Sequence[Report], given: argparse.Namespace, answers: Answers) -> int:
    """The reports; exit status 1 if one doesn't fit the TPU."""
    words: dict[str, Callable[[Report], str]] = {"human": str, "json": _tilewise.Report.to_json}
    if given.format not in words:
        message = f"a FILE.py:FACTORY is printed for people or as json, not as {given.format}: write its text to a file"
        raise ValueError(message)
    answers.text("\n".join(map(words[given.format], reports)))
    return int(any(report.fits is False for report in reports))


def _print_together(given: argparse.Namespace, answers: Answers) -> int:
    """Programs that are loaded at once; exit status 1 if they don't fit."""
    together = summed(given)
    if given.format == "json":
        summed_up = {"schema": 1, "input": " ".join(given.program), "together": json.loads(together.to_json())}
        answers.text(json.dumps(summed_up))
    elif given.out:
        write_whole(given.out, together.to_html().encode())
    else:
        answers.text(together.to_html() if given.format == "html" else together)
    return int(together.fits is False)


def _is_lock(path: Path) -> bool:
    try:
        lock.read(path)
    except (OSError, ValueError):
        return False
    return True


def _parser(verb: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"tilewise {verb}", add_help=False)
    add = parser.add_argument
    for name in ("--tpu", "--topology", "--name", "--libtpu"):
        add(name)
    for name in ("--set", "--allow-module"):
        add(name, action="append", default=[])
    add("--tolerance", default="1%")
    add("--exact", action="store_true")
    add("--any-compiler", action="store_true")
    add("--format", choices=("human", "json", "markdown", "github"), default="human")
    return parser
