"""One combination of settings, searched along its ordered axes, and the compiler's answers: a row for each program."""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from tilewise import _tilewise
from tilewise._base.errors import Error, Skip
from tilewise._base.results import read
from tilewise._compiler.compile import Cache
from tilewise._compiler.process import Answer, Compiler, Mode, Status, exact_modes, traced
from tilewise._compiler.program import Program, attempted
from tilewise._fit.candidates import Place
from tilewise._fit.factory import program, program_of, takes, travels
from tilewise._fit.search import Above, Found, Kind, search
from tilewise._remat.search import LONGEST, MOST_COMPILED, Search, Tried
from tilewise._remat.step import Step
from tilewise._tilewise import Owner, Report


@dataclass(frozen=True)
class FitRow:
    """The compiler's answer on one program of `fit`.

    Attributes:
        settings: the factory's arguments for the program.
        tpu, topology: the generation, and the slice, such as ``v5e:2x2``.
        status: ``fits`` (compiled in full), ``planned`` (a plan below the limit, not compiled), ``refused`` (the
            HBM is too small), ``other_memory`` (VMEM or SMEM), ``untraceable``, ``skipped`` (`Skip`), ``failed``
            (another compiler error), ``crashed`` or ``timeout``.
        argument_bytes, output_bytes, alias_bytes, temporary_bytes: as ``memory_analysis()``, for each device.
        total_bytes: arguments, results that don't lie in them, and temporaries: the sum has to be below the limit.
        bytes_source: ``compiled``, ``plan`` or ``message``; the last is rounded, ± 0.005 GiB.
        limit_bytes: the HBM that it has to fit, without the reserve.
        padding_bytes: padding at the peak.
        owner: the largest owner at the peak.
        recomputed: how many instructions the compiler computes twice, to save memory.
        flops: floating-point operations of matrix multiplications and convolutions, loops times their trips.
        hbm_bytes_moved: bytes read and written.
        collective_bytes: bytes of collectives, by their kind.
        compiler_cost: the compiler's own cost analysis, as it gives it: a loop's body once.
        seconds: how long a run takes, estimated; ``None`` where it was not compiled in full.
        trace_seconds, compile_seconds: how long it took.
        hlo_hash: of the program, without source locations.
        compiler: its version.
        cached: whether it was asked before.
        error: the compiler's words, or the exception's.
        mode: how the compiler was asked: ``full``, ``stop`` (at the plan) or ``probe`` (without rematerialisation).

    Examples:
        >>> row = {"settings": {"batch": 8}, "tpu": "v5e", "status": "refused", "total_bytes": 12, "limit_bytes": 10}
        >>> FitRow.from_dict(row).headroom_bytes
        -2
    """

    settings: Mapping[str, Any]
    tpu: str
    topology: str | None
    status: Status
    limit_bytes: int
    argument_bytes: int | None
    output_bytes: int | None
    alias_bytes: int | None
    temporary_bytes: int | None
    total_bytes: int | None
    bytes_source: Literal["compiled", "plan", "message"] | None
    padding_bytes: int | None
    owner: Owner | None
    recomputed: int | None
    flops: int | None
    hbm_bytes_moved: int | None
    collective_bytes: Mapping[str, int] | None
    compiler_cost: Mapping[str, float] | None
    seconds: float | None
    trace_seconds: float | None
    compile_seconds: float | None
    hlo_hash: str | None
    compiler: str | None
    cached: bool
    error: str | None
    mode: Mode | None
    _text: bytes | None = field(repr=False, compare=False)

    @property
    def headroom_bytes(self) -> int | None:
        """The bytes left below the limit; negative where it does not fit."""
        return None if self.total_bytes is None else self.limit_bytes - self.total_bytes

    @property
    def report(self) -> Report | None:
        """The audit of the program, also of one that does not fit; ``None`` where there is no plan."""
        if self._text is None:
            return None
        text = zlib.decompress(self._text).decode()
        return _tilewise.audit_text(text, str(dict(self.settings)), self.tpu, self.limit_bytes)

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON has them.

        Examples:
            >>> found.rows[0].to_dict()["status"]
            'fits'
        """
        held: dict[str, Any] = {name: value for name, value in vars(self).items() if name != "_text"}
        held.update(
            owner=None if self.owner is None else _tilewise.fields_of(self.owner), headroom_bytes=self.headroom_bytes
        )
        for name in ("settings", "collective_bytes", "compiler_cost"):
            held[name] = None if held[name] is None else dict(held[name])
        return held

    def to_json(self) -> str:
        """One line of JSON.

        Examples:
            >>> found.rows[0].to_json()[:40]
            '{"schema": 1, "settings": {"batch": 7}, '
        """
        return json.dumps({"schema": 1, **self.to_dict()}, default=str)

    @classmethod
    def from_dict(cls, held: Mapping[str, Any]) -> FitRow:
        """The row that `to_dict` gave; its report is not among it.

        Examples:
            >>> FitRow.from_dict(found.rows[0].to_dict()) == found.rows[0]
            True
        """
        if not isinstance(held, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a row is a mapping, as to_dict gives it, not {type(held).__name__}")
        return _row(held)


def _row(held: Mapping[str, Any], text: bytes | None = None) -> FitRow:
    """The row with these fields; missing ones are ``None``."""
    names = dict.fromkeys(each.name for each in fields(FitRow))
    found: FitRow = read(FitRow, {**names, **held, "cached": bool(held.get("cached")), "_text": text})
    return found


def row_of(
    settings: Mapping[str, Any], program: Program | None, answer: Answer, limit: int, **asked: str | bool | None
) -> FitRow:
    """The row of an answer to what was asked; without a program if there was none to ask about."""
    report, sizes = answer.report, answer.sizes
    held: dict[str, Any] = {
        **asked,
        "settings": dict(settings),
        "status": answer.status,
        "limit_bytes": limit,
        "total_bytes": answer.message_bytes,
        "bytes_source": None if answer.message_bytes is None else "message",
        "compiler_cost": answer.cost,
        "error": answer.error,
        "mode": answer.mode,
    }
    if sizes is not None:
        source = "compiled" if answer.status == "fits" else "plan"
        held.update(asdict(sizes), total_bytes=sizes.total_bytes, bytes_source=source)
        if answer.mode == "probe" and sizes.total_bytes >= limit:
            words = "the plan without rematerialisation is above the limit; with it, nobody asked"
            held.update(status="refused", error=words)
    if program is not None:
        held.update(topology=program.topology, hlo_hash=program.hash)
        held.update(trace_seconds=round(program.trace_seconds, 3), compile_seconds=round(answer.seconds, 3))
    if report is None:
        return _row(held)
    largest = max(report.peak_buffers, key=lambda row: row.bytes, default=None)
    flops, moved, collectives, recomputed = _tilewise.work_of(report)
    held.update(flops=flops, hbm_bytes_moved=moved, collective_bytes=collectives, recomputed=recomputed)
    held.update(padding_bytes=report.peak_padding_bytes)
    if largest is not None:
        file, line = (largest.source.file, largest.source.line) if largest.source else (None, None)
        name = largest.op_name or largest.instruction
        held["owner"] = _tilewise.fields_of(Owner(file, line, name, str(largest.shape), largest.bytes))
    if answer.mode == "full" and report.time is not None:
        held["seconds"] = report.time.estimate_seconds
    return _row(held, zlib.compress(report.text.encode(), 1))


_T = TypeVar("_T")
_PROGRAMS = 32
"""The most traced programs kept: for most sizes, the plan is asked for first and later whether it fits."""


@dataclass(frozen=True)
class Task:
    """One combination to search, with the options of `fit`; it is sent to workers.

    `settings` are fixed, those of the grid among them; `axes` are ordered, each ascending.
    """

    make: Callable[..., Any]
    settings: Mapping[str, Any]
    axes: Mapping[str, Sequence[float]]
    tpu: str
    topology: str | None
    confirm: str = "answer"
    above: Above = "auto"
    reserve: int = 0
    hbm_limit: int | None = None
    cache: Path | None = None
    timeout: float | None = None

    @property
    def place(self) -> Place:
        return Place(self.tpu, self.topology, next(iter(self.axes), "batch"))

    @property
    def limit(self) -> int:
        """The HBM that a program has to fit: the generation's, or less, in whole MiB."""
        whole = _tilewise.hbm_bytes(self.tpu)
        left = min(self.hbm_limit or whole, whole) - self.reserve
        return left if left == whole else left >> 20 << 20


@dataclass
class Combination:
    """The results of a combination.

    Attributes:
        settings: those of the grid.
        tpu, topology: the slice.
        largest: the largest size of each axis that fits; ``None`` if none does.
        gaps: settings with larger sizes that were not tried and may fit.
        rows: one for each program that was asked about, in the order of the questions.
        without_recomputing: settings of the programs whose plan fits with nothing computed twice, whatever the compiler
            did in the end.
        inferred: how many larger sizes were not tried, because smaller ones of their kind do not fit.
        planned: of an interrupted search the largest size whose plan fits.
    """

    settings: Mapping[str, Any]
    tpu: str
    topology: str | None
    largest: dict[str, float] | None = None
    gaps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    rows: list[FitRow] = field(default_factory=list[FitRow])
    without_recomputing: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    inferred: int = 0
    planned: dict[str, float] | None = None

    @classmethod
    def unsearched(cls, task: Task) -> Combination:
        """Before anything is asked: no size of the first axis is known."""
        smallest = {axis: values[0] for axis, values in task.axes.items()}
        gaps = [{**task.settings, **smallest, axis: size} for axis in [*task.axes][:1] for size in task.axes[axis]]
        return cls(task.settings, task.tpu, task.topology, gaps=gaps)

    def add(self, row: FitRow) -> None:
        """Adds a row; unless from a ``probe``, it replaces the row with the same settings."""
        if row.status in ("fits", "planned") and row.recomputed == 0:
            self.without_recomputing.append(row.settings)
        for number, other in enumerate(self.rows):
            if other.settings == row.settings:
                if row.mode != "probe":
                    self.rows[number] = row
                return
        self.rows.append(row)

    @property
    def answer(self) -> FitRow | None:
        if self.largest is None:
            return None
        wanted = {**self.settings, **self.largest}
        return next((row for row in self.rows if row.settings == wanted and row.status in ("fits", "planned")), None)


class Asker:
    """Asks about programs of a task, each in one way once."""

    def __init__(
        self,
        task: Task,
        compiler: Compiler,
        known: Sequence[FitRow],
        on_row: Callable[[FitRow], None],
        within: Callable[[str], None],
    ) -> None:
        self._task, self._compiler, self._on_row, self._within = task, compiler, on_row, within
        self._cache = Cache(task.cache)
        self._travels = travels(task.make)
        self._programs: dict[str, Program | Answer] = {}
        self._known: dict[tuple[str, str | None], FitRow] = {(str(dict(row.settings)), row.mode): row for row in known}
        self._stops = task.confirm == "none"
        self._is_auto = task.settings.get("remat") == "auto" and not takes(task.make, "remat")

    def ask(self, settings: Mapping[str, Any], kind: Kind) -> FitRow:
        # The ways to ask that answer such a question, best first.
        for mode in ("full", "stop", "probe")[: 3 if kind == "plan" else 2 if self._stops else 1]:
            row = self._known.get((str(dict(settings)), mode))
            if row is not None:
                return row
        row = self._fastest(settings, kind) if self._is_auto else self._asked(settings, kind)
        self._known[(str(dict(settings)), row.mode)] = row
        self._on_row(row)
        return row

    def _asked(self, settings: Mapping[str, Any], kind: Kind) -> FitRow:
        task = self._task
        program = self._program(settings)
        if isinstance(program, Answer):
            # The factory raises the same in every mode.
            return self._row(settings, None, program)
        mode = self._mode(program, kind)
        limit = None if task.limit == _tilewise.hbm_bytes(task.tpu) else task.limit
        ask = functools.partial(self._compiler.ask, program, mode, limit=limit, timeout=task.timeout)
        answer, is_old = self._cache.asked(program, mode, task.limit, functools.partial(_again, ask))
        return self._row(settings, program, answer, cached=is_old)

    def _row(
        self, settings: Mapping[str, Any], program: Program | None, answer: Answer, *, cached: bool = False
    ) -> FitRow:
        task, version = self._task, self._compiler.version
        asked = {"tpu": task.tpu, "topology": task.topology, "compiler": version, "cached": cached}
        return row_of(settings, program, answer, task.limit, **asked)

    def _fastest(self, settings: Mapping[str, Any], kind: Kind) -> FitRow:
        """The row of the fastest choice of kept values that fits; if a plan is asked for, of a small one."""
        task, others = self._task, {name: each for name, each in settings.items() if name != "remat"}
        timeout = task.timeout or LONGEST

        def found() -> Tried:
            try:
                step = Step.of(program(task.make, others, task.place))
                search = Search(step, task.limit, self._compiler, self._cache, timeout=timeout, say=self._within)
                least = search.least()
                is_least = kind == "plan" or not least.row.fits
                return least if is_least else search.run(0 if self._stops else MOST_COMPILED)
            except Error as error:
                raise Skip(str(error)) from None

        best: Tried | Answer = traced(*attempted(found))
        if isinstance(best, Answer):
            return self._row(settings, None, best)
        return self._row(settings, best.program, best.answer)

    def _mode(self, program: Program, kind: Kind) -> Mode:
        exact = exact_modes(self._compiler)
        if kind == "plan" and exact.probe and not program.is_sharded:
            return "probe"
        if exact.stop and (kind == "plan" or self._stops):
            return "stop"
        return "full"

    def _program(self, settings: Mapping[str, Any]) -> Program | Answer:
        key = str(dict(settings))
        if key not in self._programs:
            self._programs[key] = self._traced(settings)
            if len(self._programs) > _PROGRAMS:
                del self._programs[next(iter(self._programs))]
        return self._programs[key]

    def _traced(self, settings: Mapping[str, Any]) -> Program | Answer:
        task = self._task
        make = functools.partial(program_of, task.make, settings, task.place)
        if self._travels:
            return _again(functools.partial(self._compiler.trace, make, task.timeout))
        made: Program | Answer = traced(*attempted(make))
        return made


def _again(ask: Callable[[], _T]) -> _T:
    """The answer, asked for again where another process's need of memory may have killed the compiler's."""
    found = ask()
    is_crashed = isinstance(found, Answer) and found.status == "crashed"
    return ask() if is_crashed else found


def search_task(
    task: Task,
    compiler: Compiler,
    done: Combination,
    known: Sequence[FitRow],
    on_row: Callable[[Found, FitRow], None] = lambda found, row: None,
    within: Callable[[str], None] = lambda words: None,
) -> None:
    """Search each axis in turn, with those that follow at their smallest size.

    It fills in `done`, which is readable at any moment, and calls `within` with the progress within a row that asks
    several questions. Known rows are not asked for again.
    """
    found = Found()

    def note(row: FitRow) -> None:
        done.add(row)
        on_row(found, row)

    for row in known:
        done.add(row)
    asker = Asker(task, compiler, known, note, within)
    sizes = {axis: values[0] for axis, values in task.axes.items()}
    gaps: list[dict[str, Any]] = []
    if not task.axes:
        row = asker.ask(task.settings, "real")
        done.largest = {} if row.status in ("fits", "planned") else None
    for axis, values in task.axes.items():
        others = dict(sizes)

        def ask(size: float, kind: Kind, axis: str = axis, others: dict[str, float] = others) -> FitRow:
            return asker.ask({**task.settings, **others, axis: size}, kind)

        found = Found()
        try:
            search(values, ask, above=task.above, found=found)
        finally:
            gaps += [{**task.settings, **others, axis: size} for size in found.gaps]
            done.gaps = gaps
            done.inferred += len(found.inferred)
            done.largest = None if found.size is None else {**others, axis: found.size}
            done.planned = None if found.below is None else {**others, axis: found.below}
        if found.size is None:
            return
        sizes[axis] = found.size
    if task.confirm == "all":
        for row in [row for row in done.rows if row.status == "planned"]:
            asker.ask(row.settings, "real")
