"""Assertions about the memory of programs, for tests. With pytest they are fixtures of the same names.

>>> from tilewise.testing import assert_peak_below
>>> assert_peak_below("../examples/gnn_large.v5e.hlo", limit="1GiB", tpu="v5e")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tilewise._audit.audit import audit
from tilewise._base.limits import bytes_of, in_words, share_of
from tilewise._base.types import Limit, Program, Tpu
from tilewise._fit import lock as locks
from tilewise._jax.lowering import Request
from tilewise._tilewise import PeakBuffer, Report, Shape

__all__ = ["assert_bitcast", "assert_no_copies", "assert_padding_below", "assert_peak_below", "assert_plan"]

_ROWS = 5

updates_plans = False
"""Whether `assert_plan` writes the lock instead of comparing with it: pytest's ``--update-plans``."""


def assert_bitcast(
    from_shape: Shape | str, to_shape: Shape | str, /, *, reading: Literal["any", "reshape", "transpose"] = "any"
) -> None:
    """Fail if the bytes of one array can't be read as another: if XLA has to copy.

    Args:
        from_shape: the array with its layout, as its producer leaves it.
        to_shape: the array with its layout, as a kernel takes it.
        reading: the wanted reading of the bytes: a ``"reshape"``, a ``"transpose"``, or ``"any"`` of these.

    Raises:
        AssertionError: they can't; the message has an element that lies elsewhere.

    Examples:
        >>> from tilewise.testing import assert_bitcast
        >>> assert_bitcast("bf16[256,32,128]{2,1,0:T(8,128)(2,1)}", "bf16[256,16,2,128]{3,2,1,0:T(2,128)(2,1)}")
    """
    __tracebackhide__ = True
    relation = Shape(from_shape).bitcast(to_shape, reading=reading)
    if not relation:
        lines = [f"{to_shape} isn't a bitcast of {from_shape}: {relation.reason}"]
        if element := relation.counterexample:
            index, to_index, offset, to_offset = element
            lines.append(f"{index} is at offset {offset}; as {to_index} it would be at {to_offset}")
        raise AssertionError("\n".join(lines))


def assert_no_copies(
    program: Program | Callable[..., Any] | Report,
    /,
    *args: Any,
    tpu: Tpu,
    into: str | None = None,
    above: Limit = "1MiB",
    **kwargs: Any,
) -> None:
    """Fail if a program copies: if XLA brings arrays into another order, or makes them twice.

    Transfers of the same bytes into another memory, as XLA prefetches operands into VMEM, aren't copies.

    Args:
        program: whatever `audit` takes, a function among them, or a `Report`.
        args: the function's arguments, abstract or real.
        tpu: the generation, under any of its names (``"v5e"``).
        into: a kernel: only copies of operands and results of kernels with this in their name count.
        above: how much may be copied: bytes that are read and written in a run, or text such as ``"1MiB"``.
        kwargs: the function's keyword arguments.

    Raises:
        AssertionError: more is copied, or no kernel has that name; the message has the arrays, their shapes, and
            changes that spare copies.
        NotATpuProgram: the program has no tiles.

    Examples:
        >>> from tilewise.testing import assert_no_copies
        >>> assert_no_copies("../examples/gnn_large.v5e.hlo", tpu="v5e")
        Traceback (most recent call last):
        ...
        AssertionError: jit_f copies ...
    """
    __tracebackhide__ = True
    report = _report(program, args, kwargs, tpu)
    most = bytes_of(above, 0)
    kernels = report.kernels
    if into is not None:
        kernels = [kernel for kernel in kernels if into in kernel.instruction or into in (kernel.op_name or "")]
        if not kernels:
            raise AssertionError(f"{report.module} has no kernel {into!r}")
    copied = report.copied_bytes if into is None else sum(kernel.copied_bytes for kernel in kernels)
    if copied <= most:
        return
    end = "" if into is None else f" into and out of {into}"
    lines = [f"{report.module} copies {in_words(copied)}{end}, more than {in_words(most)}"]
    arrays = ((array, kernel) for kernel in kernels for array in (*kernel.operands, *kernel.results))
    found = [(array, kernel) for array, kernel in arrays if array.copied_bytes]
    for array, kernel in sorted(found, key=lambda pair: -pair[0].copied_bytes)[:_ROWS]:
        where = kernel.source or kernel.op_name or kernel.instruction
        by = f", forced by the {array.forced_by}" if array.forced_by else ""
        count = in_words(array.copied_bytes)
        lines.append(f"  {where}: {count} for {array.side} {array.index} of {kernel.instruction}, {array.shape}{by}")
        if array.remedy:
            lines.append(f"    try: {array.remedy.sentence}")
    if into is None:
        known = {change.instruction for array, _ in found for change in array.between}
        others = [copy for copy in report.copies if copy.class_name != "transfer" and copy.instruction not in known]
        for copy in sorted(others, key=lambda copy: -copy.read_bytes - copy.written_bytes)[:_ROWS]:
            where = copy.source or copy.op_name or copy.instruction
            lines.append(f"  {where}: {copy.from_shape} to {copy.to_shape}; {copy.why}")
    raise AssertionError("\n".join(lines))


def assert_padding_below(
    program: Program | Callable[..., Any] | Report, /, *args: Any, limit: Limit, tpu: Tpu, **kwargs: Any
) -> None:
    """Fail if a program holds more padding at its peak.

    Args:
        program, args, tpu, kwargs: as `assert_no_copies` takes them.
        limit: bytes, text such as ``"1GiB"``, or a share of the bytes alive at the peak, ``"10%"``.

    Raises:
        AssertionError: there is more; the message has the lines of the program that own it.
        NotATpuProgram: the program has no tiles.

    Examples:
        >>> from tilewise.testing import assert_padding_below
        >>> assert_padding_below("../examples/gnn_large.v5e.hlo", limit="50%", tpu="v5e")
        Traceback (most recent call last):
        ...
        AssertionError: 268.55 MiB (281594300) of padding at the peak of jit_f, more than ...
    """
    __tracebackhide__ = True
    report = _report(program, args, kwargs, tpu)
    most = bytes_of(limit, report.peak_live_bytes or 0)
    told = "", f" of padding at the peak of {report.module}"
    _assert_below(report, report.peak_padding_bytes, most, told, "padding at the peak", lambda row: row.padding_bytes)


def assert_peak_below(
    program: Program | Callable[..., Any] | Report, /, *args: Any, limit: Limit, tpu: Tpu, **kwargs: Any
) -> None:
    """Fail if a program holds more memory at its peak: arguments, results that don't lie in them, and temporaries.

    Args:
        program, args, tpu, kwargs: as `assert_no_copies` takes them.
        limit: bytes, text such as ``"8GiB"``, or a share of the TPU's HBM, ``"50%"``.

    Raises:
        AssertionError: it holds more; the message has the lines of the program that own it.
        NotATpuProgram: the program has no tiles.

    Examples:
        >>> from tilewise.testing import assert_peak_below
        >>> assert_peak_below("../examples/gnn_large.v5e.hlo", limit="10%", tpu="v5e")
    """
    __tracebackhide__ = True
    report = _report(program, args, kwargs, tpu)
    most = bytes_of(limit, report.hbm_limit or 0)
    _assert_below(report, report.peak_bytes, most, (f"{report.module} holds ", ""), "peak", lambda row: row.bytes)


def assert_plan(
    f: Callable[..., Any],
    /,
    *args: Any,
    lock: str | os.PathLike[str],
    tpu: Tpu | None = None,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
    name: str | None = None,
    tolerance: float | str = "1%",
    exact: bool = False,
    any_compiler: bool = False,
    **kwargs: Any,
) -> None:
    """Fail if the memory plan of a function is worse than the one that a lock has.

    Worse is: a larger total, or more bytes of copies or collectives, by more than the tolerance and a MiB; a new
    rematerialisation; or that it no longer fits. ``pytest --update-plans`` writes the lock.

    Args:
        f: the function.
        args: its arguments, abstract or real.
        lock: the file, which is committed.
        tpu, topology: the slice; by default the lock's.
        jit_options: as `tilewise.compile_for` takes them.
        name: the program's name in the lock, by default the function's.
        tolerance: the share that bytes may grow by, ``"1%"`` or 0.01.
        exact: fail on any change.
        any_compiler: compare with the plan of another compiler, too.
        kwargs: the function's keyword arguments.

    Raises:
        AssertionError: it is worse, not in the lock, or locked with another compiler; the message says which.
        ValueError: with ``--update-plans``, other programs of the lock are another compiler's.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        >>> from tilewise.testing import assert_plan
        >>> assert_plan(jnp.tanh, x, lock="no/plan.lock", tpu="v5e")
        Traceback (most recent call last):
        ...
        AssertionError: no/plan.lock has no program tanh: pytest --update-plans writes it
    """
    __tracebackhide__ = True
    path = Path(lock)
    held: dict[str, Any] = locks.read(path) if path.exists() else {"programs": {}}
    known = str(name or getattr(f, "__name__", type(f).__name__))
    before: dict[str, Any] = held["programs"].get(known, {})
    if not before and not updates_plans:
        raise AssertionError(f"{path} has no program {known}: pytest --update-plans writes it")
    tpu, topology = tpu or before.get("tpu"), topology or before.get("topology")
    if tpu is None:
        raise TypeError(f"say which TPU {known} is for: tpu='v5e'")
    request = Request(f, args, tpu, topology, jit_options, kwargs=kwargs)
    after = locks.of_function(request, {}, locks.root_of(path))
    if updates_plans:
        locks.update(path, {known: after.entry})
        return
    allowed = {"tolerance": share_of(tolerance), "exact": exact, "any_compiler": any_compiler}
    compared = locks.compare(known, before, after, held["compiler"], **allowed)
    if compared.verdict in ("worse", "other compiler"):
        raise AssertionError(str(compared))


def _report(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any], tpu: Tpu) -> Report:
    return program if isinstance(program, Report) else audit(program, *args, tpu=tpu, **kwargs)


def _assert_below(
    report: Report, size: int | None, most: int, told: tuple[str, str], what: str, of: Callable[[PeakBuffer], int]
) -> None:
    """Fail with the lines of the program that own the most of it, and a change to try."""
    __tracebackhide__ = True
    if size is None:
        raise AssertionError(f"{report.module} has no memory plan, so its {what} is not known: it isn't scheduled")
    if size <= most:
        return
    lines = [f"{in_words(size).join(told)}, more than {in_words(most)}"]
    if report.peak_source:
        lines.append(f"the peak is at {report.peak_source}; the most is owned by")
    for row in sorted(report.peak_buffers, key=of, reverse=True)[:_ROWS]:
        lines.append(f"  {row.source or row.op_name or row.instruction}: {in_words(of(row))} in {row.shape}")
    lines += [f"try: {advice.sentence}" for advice in report.advice[:1]]
    raise AssertionError("\n".join(lines))
