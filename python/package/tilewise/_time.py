"""`Time`: where the time of a run goes, estimated from the compiler's own cycle counts, not measured."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewise import _tilewise
from tilewise._shown import Shown

if TYPE_CHECKING:
    from tilewise._tilewise import Report


@dataclass(frozen=True)
class TimeRow:
    """An instruction's time. All executions together, in seconds.

    Attributes:
        instruction, computation: its name, and that of its computation.
        kind: ``matmul``, ``elementwise``, ``copy`` and so on, as the command line's JSON has it.
        basis: ``cycles`` (the compiler's), ``bound`` (bytes and operations at full rate: it takes at least so long),
            ``unknown`` (the same, where the compiler says that it doesn't know) or ``wait`` (for what runs beside the
            core).
        executions: how often it runs.
        estimate_seconds, floor_seconds, compiler_seconds: how long, by each of the three figures.
        bytes, padding_bytes: what one execution reads and writes in HBM, and the padding of that.
        flops: of the matrix multiplications and convolutions in it, for one execution.
        roof: what bounds it, ``memory`` or ``compute``; ``None`` where nothing tells.
        op_name: the framework's name of the operation.
        file, line: where it was written.

    Examples:
        >>> import pathlib
        >>> longest = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time.rows[0]
        >>> longest.instruction, longest.kind, longest.basis, longest.roof, longest.line
        ('fusion.6', 'matmul', 'cycles', 'memory', 439)
    """

    instruction: str
    computation: str
    kind: str
    basis: str
    executions: int
    estimate_seconds: float
    floor_seconds: float
    compiler_seconds: float
    bytes: int
    padding_bytes: int
    flops: int
    roof: str | None
    op_name: str | None
    file: str | None
    line: int | None


@dataclass(frozen=True)
class TimeGroup:
    """What operations take together that have something in common.

    Attributes:
        name: what: a kind, a line (``model.py:439``), a module of the network; empty where there is none.
        operations: how many.
        seconds: how long they take.
        bound_seconds: the part of it that is only a lower bound.

    Examples:
        >>> import pathlib
        >>> kinds = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time.kinds
        >>> [(each.name, each.operations) for each in kinds[:2]]
        [('matmul', 1), ('gather_scatter_sort', 3)]
    """

    name: str
    operations: int
    seconds: float
    bound_seconds: float


@dataclass(frozen=True, repr=False)
class Time(Shown):
    """Where the time of a run goes: the compiler's own estimate, not a measurement. ``str`` is a table of it.

    Returned by `Report.time`. As a table, it has a row for each instruction that takes time. docs/time.md says how far
    off the figures are.

    Attributes:
        text: all of it, as the ``time`` of the command line's JSON.
        words: the table that ``tilewise audit --time`` prints.

    Examples:
        >>> import pathlib
        >>> time = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time
        >>> time
        <Time: at least 0.00086 s a run, estimated, not measured>
        >>> time.is_at_least, [each.name for each in time.unpriced]
        (True, ['gather_scatter_sort'])
    """

    text: str
    words: str

    @cached_property
    def _fields(self) -> dict[str, Any]:
        held: dict[str, Any] = json.loads(self.text)
        return held

    @property
    def estimate_seconds(self) -> float:
        """How long a run takes: the compiler's figure, corrected where it charges narrow types like 4-byte ones."""
        return float(self._fields["estimate_seconds"])

    @property
    def floor_seconds(self) -> float:
        """The same with every operation at the memory's full rate or at the peak of the matrix unit."""
        return float(self._fields["floor_seconds"])

    @property
    def compiler_seconds(self) -> float:
        """The compiler's cycles at the core's clock."""
        return float(self._fields["compiler_seconds"])

    @property
    def cycles(self) -> int:
        """The compiler's cycles of a run, loops times their trips."""
        return int(self._fields["cycles"])

    @property
    def is_at_least(self) -> bool:
        """Whether a run takes longer: operations without cycle counts, or a loop of unknown trip count, are in it."""
        return bool(self._fields["is_at_least"])

    @property
    def bound_share(self) -> float:
        """The part of the estimate that is only a lower bound, 0 … 1."""
        return float(self._fields["bound_share"])

    @property
    def padding_seconds(self) -> float:
        """What padding takes of the operations that memory bounds."""
        return float(self._fields["padding_seconds"])

    @property
    def cores(self) -> int | None:
        """The cores that it is compiled for, of a chip whose two cores can be one device (v4, v5p); else ``None``."""
        cores: int | None = self._fields["cores"]
        return cores

    @property
    def unpriced(self) -> tuple[TimeGroup, ...]:
        """The operations without cycle counts, by kind, with what the estimate has for them."""
        rows = self._fields["unpriced"]
        return tuple(TimeGroup(row["kind"], row["operations"], row["seconds"], row["seconds"]) for row in rows)

    @property
    def kinds(self) -> tuple[TimeGroup, ...]:
        """By kind, the longest first."""
        return tuple(_group(row["kind"], row) for row in self._fields["kinds"])

    @property
    def lines(self) -> tuple[TimeGroup, ...]:
        """By line of the program, the longest first."""
        return tuple(_group(_place(row["source"]), row) for row in self._fields["lines"])

    @property
    def modules(self) -> tuple[TimeGroup, ...]:
        """By module of the network, the longest first."""
        return tuple(_group(row["module"], row) for row in self._fields["modules"])

    @property
    def rows(self) -> tuple[TimeRow, ...]:
        """Every instruction that takes time, the longest first."""
        return tuple(_row(held) for held in self._fields["rows"])

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        at_least = "at least " if self.is_at_least else ""
        return f"<Time: {at_least}{self.estimate_seconds:.2g} s a run, estimated, not measured>"

    def _rows(self) -> list[dict[str, Any]]:
        return [asdict(row) for row in self.rows]

    def _held(self) -> dict[str, Any]:
        return {"time": self._fields, "words": self.words}

    @classmethod
    def _of_held(cls, held: dict[str, Any]) -> Time:
        found = cls(json.dumps(held["time"]), held["words"])
        # Checks that nothing is missing.
        repr((found, found.rows, found.unpriced, found.kinds, found.lines, found.modules))
        return found


def _group(name: str, row: dict[str, Any]) -> TimeGroup:
    return TimeGroup(name, row["operations"], row["seconds"], row["bound_seconds"])


def _place(source: dict[str, Any] | None) -> str:
    return f"{source['file']}:{source['line']}" if source else ""


def _row(held: dict[str, Any]) -> TimeRow:
    source = held["source"] or {"file": None, "line": None}
    names = [name for name in TimeRow.__dataclass_fields__ if name not in ("file", "line")]
    return TimeRow(file=source["file"], line=source["line"], **{name: held[name] for name in names})


def time(report: Report) -> Time | None:
    """The time of a report; `Report.time` calls it."""
    held = _tilewise.time_of(report)
    return None if held is None else Time(*held)
