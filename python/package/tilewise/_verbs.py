"""The verbs that ask a compiler or trace a function: ``tilewise fit``, ``lock``, ``audit`` and ``kernel``.

They run in Python, whichever way the command line was installed; ``tilewise VERB --help`` prints their options.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import sys
import textwrap
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from tilewise import _tilewise
from tilewise._audit.audit import audit
from tilewise._audit.together import audit_together
from tilewise._base.files import write_whole
from tilewise._base.limits import hbm_of, share_of
from tilewise._base.types import Member
from tilewise._fit import lock
from tilewise._fit.candidates import Place
from tilewise._fit.factory import factory, parts_of, setting, sizes, takes, values
from tilewise._fit.factory import program as program_made
from tilewise._fit.lock import Made
from tilewise._fit.result import Fit
from tilewise._fit.run import DEFAULT_CACHE, fit
from tilewise._jax.topologies import ENVIRONMENT, ONLY_COMPILES
from tilewise._kernel.budgets import KernelBudgets, kernel_budget, suggest_blocks
from tilewise._tilewise import Comparison, Report, Together

_PREDICTED = 6
"""The most predictions of sets that are followed; after that, the search for the most pages bisects."""
_STATUS = {"same": 0, "better": 0, "worse": 1, "other compiler": 3}
_GENERATIONS = ("v3", "v4", "v5e", "v5p", "v6e", "v7x")
"""Those that ``--tpu all`` stands for."""


class Answers:
    """Answers on one stream, errors on standard error."""

    shows_progress = True
    """Whether progress is shown on standard error."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def text(self, text: object) -> None:
        print(text, file=self._out, flush=True)

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


def _parser(
    verb: str, options: Sequence[str], lists: Sequence[str], flags: Sequence[str], formats: Sequence[str]
) -> Any:
    """The options of a verb: with a value, that may be given several times, and without a value."""
    parser = argparse.ArgumentParser(prog=f"tilewise {verb}", add_help=False)
    for name in options:
        parser.add_argument(*name.split("/"))
    for name in ("--allow-module", *lists):
        parser.add_argument(name, action="append", default=[])
    for name in flags:
        parser.add_argument(name, action="store_true")
    parser.add_argument("--format", choices=("human", "json", *formats), default="human")
    return parser


def searched(arguments: Sequence[str], answers: Answers) -> int:
    """``tilewise fit``: exit status 0 an answer, 1 nothing fits, 2 usage, 3 gaps or errors, 130 Ctrl-C."""
    options = ("--topology", "--hbm-limit", "--out", "-o/--output", "--remat")
    lists, formats = ("--largest", "--grid", "--target"), ("csv", "markdown", "html")
    parser = _parser("fit", options, lists, ("--no-cache", "--strict"), formats)
    add = parser.add_argument
    add("program")
    add("--tpu", required=True)
    add("--confirm", choices=("answer", "all", "none"), default="answer")
    add("--above", default="auto")
    add("--reserve", default=0)
    add("--timeout", type=float)
    add("--workers", type=int, default=1)
    add("--engine", choices=("processes", "ray", "dask"), default="processes")
    add("--cache", default=DEFAULT_CACHE)
    given = parser.parse_args(arguments)
    if given.remat is not None:
        given.grid.append(f"remat={given.remat}")
    if not given.largest and not given.target:
        raise ValueError("say what to search, as --largest batch=1..512, or what is to fit, as --target batch=256")
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
        above=given.above if given.above in ("auto", "all", "near") else float(given.above),
        cache=None if given.no_cache else given.cache,
        progress=answers.shows_progress,
        **_options(given, "confirm", "reserve", "hbm_limit", "engine", "workers", "timeout", "out"),
    )
    _give(found, str(found), given, answers)
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


def _options(given: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: getattr(given, name) for name in names}


def _server(given: argparse.Namespace, answers: Answers) -> int | None:
    """The exit status if the factory is a server's, whose programs are loaded together; else ``None``.

    The most cache pages that fit are searched.
    """
    if len(given.largest) != 1 or given.target or given.grid or "," in given.tpu:
        return None
    axis, several = sizes(given.largest[0])
    counts = sorted(map(int, several))
    make = factory(given.program, given.allow_module)
    try:
        if not isinstance(make(**{axis: counts[0]}), Mapping):
            return None
    # A factory may raise anything; the search for one program tells it.
    except Exception:
        return None

    def ask(count: int) -> Together:
        print(f"compiling for {axis}={count}", file=sys.stderr, flush=True)
        members = {str(name): parts_of(each) for name, each in make(**{axis: count}).items()}
        return audit_together(members, **_options(given, "tpu", "hbm_limit", "topology"))

    found, asked = largest(counts, ask)
    _give(found, f"{found}\nCompiled for {axis}={', '.join(map(str, sorted(asked)))}.", given, answers)
    return int(found.fits is not True)


def largest(counts: Sequence[int], ask: Callable[[int], Together]) -> tuple[Together, dict[int, Together]]:
    """The set with the largest count that fits, or the smallest that was asked about if none does, and all that were.

    Counts ascend, and more pages take more bytes.
    """
    asked: dict[int, Together] = {}
    left = list(counts)
    while left:
        count = _next(left, asked)
        asked[count] = said = ask(count)
        left = [each for each in left if (each > count if said.fits else each < count)]
    fitting = [count for count, said in asked.items() if said.fits]
    return asked[max(fitting) if fitting else min(asked)], asked


def _next(left: Sequence[int], asked: dict[int, Together]) -> int:
    """The count to ask about next: the last set's prediction, then the one above."""
    if not asked:
        return left[0]
    pages = [*asked.values()][-1].pages
    if pages is None or pages.fitting is None or len(asked) > _PREDICTED:
        return left[len(left) // 2]
    return max((count for count in left if count <= (pages.fitting or 0)), default=left[0])


def _give(found: Fit | Together, words: str, given: argparse.Namespace, answers: Answers) -> None:
    """Prints or writes it in the form that is asked for, or else in words."""
    form = getattr(found, f"to_{given.format}", lambda: words)
    if given.output is None:
        answers.text(form().rstrip("\n"))
    else:
        write_whole(Path(given.output), (form().rstrip("\n") + "\n").encode())


def _lock_parser(verb: str, options: Sequence[str] = (), flags: Sequence[str] = ()) -> Any:
    """The options of programs that are locked, or compared."""
    options = ("--tpu", "--topology", "--name", "--libtpu", *options)
    parser = _parser(verb, options, ("--set",), ("--exact", "--any-compiler", *flags), ("markdown", "github"))
    parser.add_argument("--tolerance", default="1%")
    return parser


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
    hbm_limit: str | None

    @classmethod
    def of(cls, given: argparse.Namespace, root: Path) -> Target:
        settings, limit = dict(map(setting, given.set)), getattr(given, "hbm_limit", None)
        return cls(given.tpu, given.topology, settings, root, given.libtpu, given.allow_module, limit)

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
            limit, named = hbm_of(self.hbm_limit, self.tpu), _portable(found, self.root)
            return lock.of_function(request, self.settings, self.root, hbm_limit=limit, program=named)
        report = audit(program, tpu=self.tpu, hbm_limit=self.hbm_limit, libtpu=self.libtpu)
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
        answers.text(_tilewise.comparison_words(compared, given.format))
    return max(_STATUS[each.verdict] for each in compared)


def locked(arguments: Sequence[str], answers: Answers) -> int:
    """``tilewise lock``: exit status 0 the same or better, 1 worse, 2 usage, 3 another compiler."""
    parser = _lock_parser("lock", flags=("--check", "--update"))
    parser.add_argument("program", nargs="*")
    parser.add_argument("-o", "--output", type=Path, default=Path("plan.lock"))
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
    parser = _lock_parser("audit", ("--against", "--pages", "--hbm-limit"), ("--together", "--check"))
    parser.add_argument("program", nargs="+")
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args(arguments)
    if given.out and not (given.together and given.out.suffix == ".html"):
        raise ValueError("of a FILE.py:FACTORY only programs together are written, to FILE.html")
    if given.together and given.check:
        raise ValueError("--check is of programs by themselves, not of those --together")
    if given.together:
        return _print_together(_together(given), given, answers)
    if given.check and (given.against or given.format != "human" or not all(map(is_factory, given.program))):
        raise ValueError("--check prints a table of each FILE.py:FACTORY's own changes: without --against and --format")
    if given.pages is not None:
        raise ValueError("--pages are of a server's programs --together")
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
    return _tilewise.compare_reports(before.report, after.report, _named(after, given), **_allowed(given))


def _print_reports(reports: Sequence[Report], given: argparse.Namespace, answers: Answers) -> int:
    """The reports; exit status 1 if one doesn't fit the TPU."""
    if given.format not in ("human", "json"):
        message = f"a FILE.py:FACTORY is printed for people or as json, not as {given.format}: write its text to a file"
        raise ValueError(message)
    answers.text("\n".join(each.to_json() if given.format == "json" else str(each) for each in reports))
    for program, report in zip(given.program, reports, strict=True):
        is_tried = given.check or (given.format == "human" and report.fits is False and is_factory(program))
        if is_tried and report.changes:
            checked = report.check(until_fits=not given.check)
            are_made = any(row.freed_bytes is not None for row in checked.rows)
            heading = "Made, and compiled:" if are_made else "Not made for you:"
            answers.text(f"\n{heading}\n{textwrap.indent(str(checked), '  ')}")
            if len(checked.rows) < len(report.changes):
                print("help: --check makes and compiles the other changes, too", file=sys.stderr)
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
    return audit_together(programs, **_options(given, "tpu", "hbm_limit", "topology", "pages", "libtpu"))


def budgeted(arguments: Sequence[str], answers: Answers) -> int:
    """``tilewise kernel``: exit status 1 if a kernel doesn't fit or no blocks are left to try, 2 for errors."""
    parser = _parser("kernel", (), ("--set", "--space"), ("--compile",), ())
    parser.add_argument("program", metavar="FILE.py:FACTORY")
    parser.add_argument("--tpu", required=True)
    given = parser.parse_args(arguments)
    # Before JAX is imported: libtpu looks around for a TPU when it is loaded, and logs its absence.
    os.environ.update({**ENVIRONMENT, **os.environ, **ONLY_COMPILES})
    try:
        make = factory(given.program, given.allow_module)
        settings = dict(map(setting, given.set))
        if given.space:
            with_settings = functools.partial(make, **settings)
            space = dict(map(values, given.space))
            found = suggest_blocks(with_settings, tpu=given.tpu, space=space, compile=given.compile)
            removed = [{"sizes": sizes, "reason": reason} for sizes, reason in found.removed]
            as_json = _line(given, choices=[vars(choice) for choice in found], removed=removed)
            answers.text(as_json if given.format == "json" else found)
            return 0 if found.choices else 1
        f, *args = make(**settings)
        tpus = _GENERATIONS if given.tpu == "all" else (given.tpu,)
        budgets = [kernel_budget(f, *args, tpu=tpu, compile=given.compile) for tpu in tpus]
    # The file and the functions that it calls may raise anything.
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        if given.format == "json":
            answers.text(_line(given, error={"kind": "python", "message": message, "span": None}))
        else:
            answers.error(message)
        return 2
    if given.format == "json":
        answers.text("\n".join(_budgets(given, kernels) for kernels in budgets))
    else:
        answers.text(budgets[0] if len(budgets) == 1 else _side_by_side(budgets))
    is_refused = any(kernel.refusal is not None for kernels in budgets for kernel in kernels)
    return int(is_refused or any(each.unsupported or each.verdict == "does_not_fit" for each in budgets))


def _side_by_side(budgets: Sequence[KernelBudgets]) -> str:
    rows = [("", "VMEM", "limit", "verdict", "kernel")]
    for kernel in (kernel for kernels in budgets for kernel in kernels):
        limit = "-" if kernel.limit_bytes is None else f"{kernel.limit_bytes / 2**20:.2f} MiB"
        verdict = "refused" if kernel.unsupported or kernel.refusal else (kernel.verdict or "unknown").replace("_", " ")
        size = kernel.vmem_bytes if kernel.measured_bytes is None else kernel.measured_bytes
        rows.append((kernel.tpu, f"{size / 2**20:.2f} MiB", limit, verdict, kernel.name or ""))
    return "\n".join(
        f"  {tpu:3}  {size:>10}  {limit:>10}  {verdict:22}  {name}" for tpu, size, limit, verdict, name in rows
    )


def _budgets(given: argparse.Namespace, found: KernelBudgets) -> str:
    """`KernelBudgets` of ``docs/json.md``."""
    rows = [{**_tilewise.fields_of(each), "unsupported": each.unsupported} for each in found]
    kernels = [{name: value for name, value in row.items() if name != "rows"} for row in rows]
    return _line(given, kernels=kernels, not_covered=found.not_covered, verdict=found.verdict)


def _line(given: argparse.Namespace, **fields: Any) -> str:
    return json.dumps({"schema": 1, "input": given.program, **fields}, ensure_ascii=False, separators=(",", ":"))


Verb: TypeAlias = Callable[[Sequence[str], Answers], int]

VERBS: Mapping[str, Verb] = {"fit": searched, "lock": locked, "audit": audited, "kernel": budgeted}
"""Each takes its arguments, answers, and returns the exit status."""
