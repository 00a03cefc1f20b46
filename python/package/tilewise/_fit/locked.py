"""``tilewise lock``, and ``tilewise audit`` of programs in Python: alone, beside others, or together."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewise import _tilewise
from tilewise._audit.audit import audit
from tilewise._audit.comparison import Comparison, compare
from tilewise._audit.together import Together, audit_together
from tilewise._base.answers import Answers
from tilewise._base.files import write_whole
from tilewise._base.limits import share_of
from tilewise._base.types import Member
from tilewise._fit import lock
from tilewise._fit.candidates import Place
from tilewise._fit.factory import factory, parts_of, setting, takes
from tilewise._fit.factory import program as program_made
from tilewise._fit.lock import Made

_STATUS = {"same": 0, "better": 0, "worse": 1, "other compiler": 3}


@dataclass(frozen=True)
class Target:
    """The target that programs are made and compiled for, as the command line says it.

    `root` is the folder that files are relative to; functions of `modules` may be run.
    """

    tpu: str | None
    topology: str | None
    settings: Mapping[str, Any]
    root: Path
    libtpu: str | None
    modules: Collection[str]

    @classmethod
    def of(cls, given: argparse.Namespace, root: Path) -> Target:
        return cls(given.tpu, given.topology, dict(map(setting, given.set)), root, given.libtpu, given.allow_module)

    def made(self, program: str) -> Made:
        """A program: ``FILE.py:FACTORY``, or a file of HLO."""
        if is_factory(program):
            if self.tpu is None:
                raise ValueError("say which TPU the program is for: --tpu v5e")
            # As a lock has it, from the folder that files are relative to; as it is given, from here.
            file, _, maker = program.rpartition(":")
            is_here = Path(file).exists() or not (self.root / file).exists()
            found = program if is_here else f"{self.root / file}:{maker}"
            place = Place(self.tpu, self.topology)
            request = replace(program_made(factory(found, self.modules), self.settings, place), libtpu=self.libtpu)
            return lock.of_function(request, self.settings, self.root, program=_portable(found, self.root))
        report = audit(program, tpu=self.tpu, libtpu=self.libtpu)
        generation = self.tpu or report.tpu
        if generation is None:
            raise ValueError(f"{program} does not say which TPU it is for: --tpu v5e")
        generation = _tilewise.generation_name(generation)
        return Made(report, lock.entry(report, self.root, tpu=generation, settings=dict(self.settings)))


def is_factory(program: str) -> bool:
    """Whether that names a factory, and not a file."""
    return ":" in program and not Path(program).exists()


def _portable(program: str, root: Path) -> str:
    """The program, as it is named from anywhere in the repository."""
    file, _, maker = program.rpartition(":")
    path = Path(file).resolve()
    return f"{path.relative_to(root).as_posix()}:{maker}" if path.exists() and path.is_relative_to(root) else program


def _named(made: Made, given: argparse.Namespace) -> str:
    return str(given.name or made.report.module.removeprefix("jit_"))


def _allowed(given: argparse.Namespace) -> dict[str, Any]:
    # Naming another compiler asks for the changes that it makes.
    is_asked = given.libtpu is not None or str(getattr(given, "against", None)).startswith("libtpu=")
    any_compiler = given.any_compiler or is_asked
    return {"tolerance": share_of(given.tolerance), "exact": given.exact, "any_compiler": any_compiler}


def _check(given: argparse.Namespace, path: Path) -> list[Comparison]:
    """The programs beside those of a lock; without programs, all that it can make again."""
    held = lock.read(path)
    root, locked = lock.root_of(path), held["programs"]
    chosen = [(None, program) for program in given.program] or [
        (name, each["program"]) for name, each in locked.items() if each.get("program")
    ]
    if not chosen:
        raise ValueError(f"{path} has no program that can be made again: name one")
    asked = Target.of(given, root)
    found: list[Comparison] = []
    for name, program in chosen:
        same = (each for each in locked.values() if each.get("program") == _portable(program, root))
        before = locked.get(name) if name else next(same, None)
        # Another program may be for the slice of the lock's only one, but isn't compared with it.
        known: dict[str, Any] = before or (next(iter(locked.values())) if len(locked) == 1 else {})
        settings: Mapping[str, Any] = asked.settings or (before.get("settings") if before else None) or {}
        tpu, topology = asked.tpu or known.get("tpu"), asked.topology or known.get("topology")
        made = replace(asked, tpu=tpu, topology=topology, settings=settings).made(program)
        wanted = _named(made, given)
        before = before or locked.get(wanted)
        if before is None:
            raise ValueError(f"no program `{wanted}` in {path}, only {', '.join(locked) or 'none'}")
        found.append(lock.compare(name or wanted, before, made, held["compiler"], **_allowed(given)))
    return found


def _print(compared: list[Comparison], given: argparse.Namespace, answers: Answers) -> int:
    if given.format == "json":
        answers.text("\n".join(each.to_json() for each in compared))
    else:
        answers.text(_tilewise.comparison_words([each.text for each in compared], given.format))
    return max(_STATUS[each.verdict] for each in compared)


def main(arguments: Sequence[str], answers: Answers) -> int:
    """``tilewise lock``: exit status 0 the same or better, 1 worse, 2 usage, 3 another compiler."""
    parser = _parser("lock")
    parser.add_argument("program", nargs="*")
    parser.add_argument("-o", "--output", type=Path, default=Path("plan.lock"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    given = parser.parse_args(arguments)
    if given.check:
        return _print(_check(given, given.output), given, answers)
    programs: dict[str, Any] = {}
    # A lock is of the installed compiler.
    target = replace(Target.of(given, lock.root_of(given.output)), libtpu=None)
    for name, each in lock.read(given.output)["programs"].items() if given.update else ():
        if not each.get("program"):
            raise ValueError(f"{name} of {given.output} was no program of Python: lock it anew")
        own = {field: each[field] for field in ("tpu", "topology", "settings")}
        programs[name] = replace(target, **own).made(each["program"]).entry
    for made in map(target.made, given.program):
        programs[_named(made, given)] = made.entry
    if not programs:
        raise ValueError("say which program to lock, as FILE.py:FACTORY")
    lock.update(given.output, programs)
    return 0


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
    if given.out and not (given.together and given.out.suffix == ".html"):
        raise ValueError("of a FILE.py:FACTORY only programs together are written, to FILE.html")
    if given.together:
        return _print_together(_together(given), given, answers)
    target = Target.of(given, Path.cwd())
    if given.against is None:
        return _print_reports([target.made(each).report for each in given.program], given, answers)
    if _is_lock(Path(given.against)):
        return _print(_check(given, Path(given.against)), given, answers)
    return _print([_beside(each, target, given) for each in given.program], given, answers)


def _is_lock(path: Path) -> bool:
    try:
        return path.suffix == ".lock" or bool(lock.read(path))
    except (OSError, ValueError):
        return False


def _beside(program: str, target: Target, given: argparse.Namespace) -> Comparison:
    """A program beside another, or beside itself of another libtpu."""
    other, is_libtpu, version = given.against.partition("libtpu=")
    if other or not is_libtpu:
        before = target.made(given.against)
    elif is_factory(program):
        before = replace(target, libtpu=version).made(program)
    else:
        raise ValueError(f"another libtpu compiles FILE.py:FACTORY; {program} is compiled already")
    after = target.made(program)
    return compare(before.report, after.report, _named(after, given), **_allowed(given))


def _print_reports(reports: Sequence[_tilewise.Report], given: argparse.Namespace, answers: Answers) -> int:
    """The reports; exit status 1 if one doesn't fit the TPU."""
    if given.format not in ("human", "json"):
        message = f"a FILE.py:FACTORY is printed for people or as json, not as {given.format}: write its text to a file"
        raise ValueError(message)
    answers.text("\n".join(each.to_json() if given.format == "json" else str(each) for each in reports))
    return int(any(report.fits is False for report in reports))


def _print_together(together: Together, given: argparse.Namespace, answers: Answers) -> int:
    """Programs that are loaded at once; exit status 1 if they don't fit."""
    if given.format == "json":
        summed_up = {"schema": 1, "input": " ".join(given.program), "together": json.loads(together.to_json())}
        answers.text(json.dumps(summed_up))
    elif given.out:
        write_whole(given.out, together.to_html().encode())
    else:
        answers.text(together)
    return int(together.fits is False)


def _together(given: argparse.Namespace) -> Together:
    """The memory of the command line's programs together: files, and factories of one program or of several by name."""
    if given.tpu is None:
        raise ValueError("say which TPU the programs are for: --tpu v5e")
    settings = dict(map(setting, given.set))
    programs: dict[str, Member] = {}
    for program in given.program:
        _, colon, maker = program.rpartition(":")
        if not colon or Path(program).exists():
            made: dict[str, Member] = {program: program}
        else:
            make = factory(program, given.allow_module)
            returned: Any = make(**{name: value for name, value in settings.items() if takes(make, name)})
            several = returned if hasattr(returned, "items") else {maker: returned}
            made = {str(name): parts_of(value) for name, value in several.items()}
        for name, member in made.items():
            if name in programs:
                raise ValueError(f"two programs are called {name!r}: name them in one factory that returns a dict")
            programs[name] = member
    options = {name: getattr(given, name) for name in ("tpu", "hbm_limit", "topology", "pages", "libtpu")}
    return audit_together(programs, **options)


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
