"""`Time`: where the time of a run goes, estimated from the compiler's own cycle counts, not measured."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tilewise import _tilewise
from tilewise._base.results import Shown
from tilewise._tilewise import Report


@dataclass(frozen=True)
class TimeRow:
    """An instruction's time. All executions together, in seconds.

    Attributes:
        instruction, computation: its name, and that of its computation.
        kind: ``matmul``, ``elementwise``, ``copy`` and so on, as the command line's JSON has it.
        basis: ``cycles`` (the compiler's), ``bound`` (bytes and operations at full rate: a lower bound),
            ``unknown`` (likewise, where the compiler marks its cycles as unknown) or ``wait`` (for work beside the
            core).
        executions: how often it runs.
        estimate_seconds, floor_seconds, compiler_seconds: how long, by each of the three figures.
        bytes, padding_bytes: the bytes that one execution reads and writes in HBM, and the padding in them.
        flops: of the matrix multiplications and convolutions in it, for one execution.
        roof: its bound, ``memory`` or ``compute``; ``None`` if unknown.
        op_name: the framework's name of the operation.
        file, line: where it was written.
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
    """The time of operations that have something in common.

    Attributes:
        name: the common kind, line (``model.py:439``) or module of the network; empty without one.
        operations: how many.
        seconds: how long they take.
        bound_seconds: the part of it that is only a lower bound.
    """

    name: str
    operations: int
    seconds: float
    bound_seconds: float


@dataclass(frozen=True, repr=False)
class Time(Shown):
    """The time of a run, by instruction: the compiler's own estimate, not a measurement. ``str`` is a table of it.

    Returned by `Report.time`. As a table, it has a row for each instruction that takes time. docs/time.md says how far
    off the figures are.

    Attributes:
        text: all of it, as the ``time`` of the command line's JSON.
        words: the table that ``tilewise audit --time`` prints.
        estimate_seconds: how long a run takes: the compiler's figure, corrected where it charges narrow types like
            4-byte ones.
        floor_seconds: the same with every operation at the memory's full rate or at the peak of the matrix unit.
        compiler_seconds: the compiler's cycles at the core's clock.
        cycles: the compiler's cycles of a run, loops times their trips.
        is_at_least: whether a run takes longer: operations without cycle counts, or a loop of unknown trip count, are
            in it.
        bound_share: the part of the estimate that is only a lower bound, 0 … 1.
        padding_seconds: the time of padding in the operations that memory bounds.
        cores: the cores that it is compiled for, of a chip whose two cores can be one device (v4, v5p); else ``None``.
        unpriced: the operations without cycle counts, by kind, with their time in the estimate.
        kinds, lines, modules: by kind, line of the program and module of the network, the longest first.
        rows: every instruction that takes time, the longest first.

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
    estimate_seconds: float = field(init=False, compare=False)
    floor_seconds: float = field(init=False, compare=False)
    compiler_seconds: float = field(init=False, compare=False)
    cycles: int = field(init=False, compare=False)
    is_at_least: bool = field(init=False, compare=False)
    bound_share: float = field(init=False, compare=False)
    padding_seconds: float = field(init=False, compare=False)
    cores: int | None = field(init=False, compare=False)
    unpriced: tuple[TimeGroup, ...] = field(init=False, compare=False)
    kinds: tuple[TimeGroup, ...] = field(init=False, compare=False)
    lines: tuple[TimeGroup, ...] = field(init=False, compare=False)
    modules: tuple[TimeGroup, ...] = field(init=False, compare=False)
    rows: tuple[TimeRow, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        held = json.loads(self.text)
        by = {"unpriced": "kind", "kinds": "kind", "lines": "source", "modules": "module"}
        rows: list[dict[str, Any]] = [
            {"file": None, "line": None, **row, **(row["source"] or {})} for row in held["rows"]
        ]
        groups = {name: [_group(row[each], row) for row in held[name]] for name, each in by.items()}
        self._view({**held, "rows": rows, **groups})

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        at_least = "at least " if self.is_at_least else ""
        return f"<Time: {at_least}{self.estimate_seconds:.2g} s a run, estimated, not measured>"

    def _held(self) -> dict[str, Any]:
        return {"time": json.loads(self.text), "words": self.words}

    @classmethod
    def _of_held(cls, held: dict[str, Any]) -> Time:
        return cls(json.dumps(held["time"]), held["words"])


def _group(of: Any, row: dict[str, Any]) -> dict[str, Any]:
    """A group of a kind, a line or a module; of those without cycle counts all is a bound."""
    name = f"{of['file']}:{of['line']}" if isinstance(of, dict) else of or ""
    return {"bound_seconds": row["seconds"], **row, "name": name}


def time(report: Report) -> Time | None:
    held = _tilewise.time_of(report)
    return None if held is None else Time(*held)
