"""A row of `tw.fit`: the compiler's answer on one program."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from tilewise import _tilewise
from tilewise._audit.comparison import Owner
from tilewise._base.results import read
from tilewise._compiler.process import Answer, Mode, Status
from tilewise._compiler.program import Program
from tilewise._tilewise import Report


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
    bytes_source: Literal["compiled"] | Literal["plan"] | Literal["message"] | None
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
        shown = {name: value for name, value in vars(self).items() if name != "_text"}
        held = {name: dict(value) if isinstance(value, Mapping) else value for name, value in shown.items()}
        owner = None if self.owner is None else asdict(self.owner)
        return {**held, "owner": owner, "headroom_bytes": self.headroom_bytes}

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
        held["owner"] = asdict(Owner(file, line, name, str(largest.shape), largest.bytes))
    if answer.mode == "full" and report.time is not None:
        held["seconds"] = report.time.estimate_seconds
    return _row(held, zlib.compress(report.text.encode(), 1))
