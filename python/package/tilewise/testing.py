"""Assertions about the memory of programs, for tests. With pytest they are fixtures of the same names.

>>> from tilewise.testing import assert_peak_below
>>> assert_peak_below("../examples/gnn_large.v5e.hlo", "1GiB", tpu="v5e")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewise._audit import audit
from tilewise._limits import bytes_of, in_words

if TYPE_CHECKING:
    from tilewise._tilewise import PeakBuffer, Report
    from tilewise._types import Program, Tpu

__all__ = ["assert_padding_below", "assert_peak_below"]

_ROWS = 5


def assert_padding_below(
    program: Program | Callable[..., Any] | Report, limit: float | str, *, tpu: Tpu, args: Sequence[Any] = ()
) -> None:
    """Fail if a program holds more padding at its peak.

    Args:
        program: whatever `audit` takes, a function among them, or a `Report`.
        limit: bytes, text such as ``"1GiB"``, or a share of what is alive at the peak, ``"10%"`` or 0.1.
        tpu: the generation, under any of its names (``"v5e"``).
        args: the function's arguments, abstract or real.

    Raises:
        AssertionError: there is more; the message has the lines of the program that own it.
        NotATpuProgram: the program has no tiles.

    Examples:
        >>> from tilewise.testing import assert_padding_below
        >>> assert_padding_below("../examples/gnn_large.v5e.hlo", "50%", tpu="v5e")
        Traceback (most recent call last):
        ...
        AssertionError: 268.55 MiB (281594300) of padding at the peak of jit_f, more than ...
    """
    __tracebackhide__ = True
    report = _report(program, args, tpu)
    padding = report.peak_padding_bytes
    if padding is None:
        message = f"{report.module} has no memory plan, so its padding at the peak is not known: it isn't scheduled"
        raise AssertionError(message)
    most = bytes_of(limit, report.peak_live_bytes or 0)
    if padding > most:
        owners = [(row, row.padding_bytes) for row in report.peak_buffers]
        head = f"{in_words(padding)} of padding at the peak of {report.module}, more than {in_words(most)}"
        raise AssertionError(_message(head, owners, report))


def assert_peak_below(
    program: Program | Callable[..., Any] | Report, limit: float | str, *, tpu: Tpu, args: Sequence[Any] = ()
) -> None:
    """Fail if a program holds more memory at its peak: arguments, results that don't lie in them, and temporaries.

    Args:
        program: whatever `audit` takes, a function among them, or a `Report`.
        limit: bytes, text such as ``"8GiB"``, or a share of the TPU's HBM, ``"50%"`` or 0.5.
        tpu: the generation, under any of its names (``"v5e"``).
        args: the function's arguments, abstract or real.

    Raises:
        AssertionError: it holds more; the message has the lines of the program that own it.
        NotATpuProgram: the program has no tiles.

    Examples:
        >>> from tilewise.testing import assert_peak_below
        >>> assert_peak_below("../examples/gnn_large.v5e.hlo", "10%", tpu="v5e")
    """
    __tracebackhide__ = True
    report = _report(program, args, tpu)
    peak = report.peak_bytes
    if peak is None:
        message = f"{report.module} has no memory plan, so its peak is not known: it isn't scheduled"
        raise AssertionError(message)
    most = bytes_of(limit, report.hbm_limit or 0)
    if peak > most:
        owners = [(row, row.bytes) for row in report.peak_buffers]
        head = f"{report.module} holds {in_words(peak)}, more than {in_words(most)}"
        raise AssertionError(_message(head, owners, report))


def _report(program: Any, args: Sequence[Any], tpu: Tpu) -> Report:
    from tilewise._tilewise import Report

    return program if isinstance(program, Report) else audit(program, *args, tpu=tpu)


def _message(head: str, owners: list[tuple[PeakBuffer, int]], report: Report) -> str:
    """What is wrong, the lines of the program that own the most of it, and what to try."""
    lines = [head]
    if report.peak_source:
        lines.append(f"the peak is at {report.peak_source}; the most is owned by")
    for row, count in sorted(owners, key=lambda owner: -owner[1])[:_ROWS]:
        lines.append(f"  {row.source or row.op_name or row.instruction}: {in_words(count)} in {row.shape}")
    lines += [f"try: {advice.sentence}" for advice in report.advice[:1]]
    return "\n".join(lines)
