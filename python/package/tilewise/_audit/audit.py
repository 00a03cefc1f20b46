"""`audit`, which takes a compiled program in any form, or compiles one; `compare_machines`, on several machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, overload

from tilewise import _tilewise
from tilewise._base.errors import Error, HloError
from tilewise._base.limits import hbm_of, rounded
from tilewise._base.results import Listed
from tilewise._base.types import Limit, Program, Tpu
from tilewise._compiler.compile import lowered_of, plan_of, report_on
from tilewise._compiler.libtpu import libtpu_version
from tilewise._jax.dump import dumped
from tilewise._jax.lowering import Request
from tilewise._tilewise import Report


@overload
def audit(
    program: Program,
    /,
    *,
    tpu: Tpu | None = None,
    machine: str | None = None,
    hbm_limit: Limit | None = None,
    libtpu: str | None = None,
) -> Report: ...
@overload
def audit(
    program: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu | None = None,
    machine: str | None = None,
    hbm_limit: Limit | None = None,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
    confirm: bool = False,
    libtpu: str | None = None,
    **kwargs: Any,
) -> Report: ...
@overload
def audit(
    program: list[Program] | tuple[Program, ...] | Iterator[Program],
    /,
    *,
    tpu: Tpu | None = None,
    machine: str | None = None,
    hbm_limit: Limit | None = None,
) -> list[Report | Error | OSError]: ...
def audit(
    program: Any,
    /,
    *args: Any,
    tpu: Tpu | None = None,
    machine: str | None = None,
    hbm_limit: Limit | None = None,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
    confirm: bool = False,
    libtpu: str | None = None,
    **kwargs: Any,
) -> Report | list[Report | Error | OSError]:
    """Find a compiled program's peak memory, its padding waste, and changes that save memory.

    Args:
        program: one of

            - a function of any kind that `compile_for` takes, compiled for ``tpu`` with no TPU at hand, as far as the
              compiler's memory plan: one that does not fit has its report, too;
            - the result of ``lower`` for a TPU, which is compiled for ``tpu`` likewise;
            - the result of ``jax.jit(f).lower(...).compile()``, or any other object with an ``as_text`` or
              ``to_string`` method;
            - the path of a file of HLO, or an open file: text or a serialised proto, plain or gzip; or of a folder of
              dumps that holds one final program;
            - HLO text: a ``str`` with line breaks or ``" = "``, or one that begins with ``HloModule``;
            - ``bytes`` of a file's content, or a message of the Protocol Buffers library;
            - a list or an iterator of these, for a list of reports: one that can't be read is its error in the list,
              and a folder is all of its final programs, as ``tilewise audit`` takes them.
        args: the function's arguments, abstract (``jax.ShapeDtypeStruct``) or real.
        tpu: the generation that runs the program, under any of its names (``"v5e"``) or as a JAX device. Its layouts
            price the advice, and its HBM is the default of ``hbm_limit``. Programs for another machine are refused.
        machine: the machine that runs the program, in place of ``tpu``: ``"cpu"``, for which a function is compiled
            here; ``"gpu:h100"`` or another of ``gpu:a100``, ``a100-40gb``, ``h200``, ``b200``, ``b300``, for which
            JAX's plugin compiles it without a card (``pip install 'jax[cuda12]'``); ``"gpu"``, any; or ``"tpu:v5e"``.
        hbm_limit: the memory that the program has to fit into: bytes, text such as ``"14GiB"``, or a share, ``"90%"``;
            of a GPU by default ``"75%"``, the share of JAX's pool (``XLA_PYTHON_CLIENT_MEM_FRACTION``).
        topology, jit_options: for a function, as `compile_for` takes them.
        confirm: compile a function to the end, which takes 10 to 50 times as long. Only then is it known that the
            program's own code fits, too; the bytes are the same.
        libtpu: the version of libtpu that compiles a function, such as ``"0.0.48"``, installed from PyPI beside the
            cache the first time; of a text, the version that compiled it. By default the installed one, and the one
            that the text names.
        kwargs: the function's keyword arguments.

    Raises:
        Error: a function is to be compiled for a GPU, and this JAX can't (``kind`` is ``needs_gpu_compiler``); or by a
            libtpu that can't be installed (``no_libtpu``).
        HloError: the text is not HLO, or of another machine than ``machine``.
        NotATpuProgram: the program has no tiles, and ``tpu`` is given.
        ParseError: ``tpu`` names no TPU generation.
        OSError: the file can't be read.
        ImportError: a function is to be compiled, and JAX or libtpu is missing.
        JaxRuntimeError: the compiler refuses a function for another reason than its HBM.

    Examples:
        >>> report = audit('''
        ... ENTRY main {
        ...   x = f32[400000,12]{1,0:T(8,128)} parameter(0)
        ...   ROOT y = f32[400000,12]{1,0:T(8,128)} negate(x)
        ... }''')
        >>> report.padding_bytes
        371200000
        >>> report.largest_padding()[0].causes
        ['dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used']
    """
    # An open file iterates over its lines.
    if isinstance(program, (list, tuple)) or (isinstance(program, Iterator) and not hasattr(program, "read")):

        def one(each: Program) -> Report | Error | OSError:
            try:
                return audit(each, tpu=tpu, machine=machine, hbm_limit=hbm_limit)
            except (Error, OSError) as error:
                return error

        return [one(each) for every in cast("Iterable[Program]", program) for each in _files_of(every)]
    if machine is not None and tpu is not None:
        raise TypeError("tpu= and machine= say the same: give one of them")
    if machine is not None and (name := _tilewise.machine_name(machine)[0]).startswith("tpu:"):
        tpu, machine = name.partition(":")[2], None
    limit = hbm_of(hbm_limit, tpu, machine)
    if _is_function(program) or (tpu is not None and hasattr(program, "compile")):
        if machine is not None:
            if topology is not None or confirm or libtpu is not None:
                raise TypeError("topology=, confirm= and libtpu= are for TPUs")
            request = Request(program, args, machine, None, jit_options, None, kwargs)
            return report_on(machine, request, limit)
        if tpu is None:
            raise TypeError("audit compiles a function for a TPU: say which, as in audit(f, x, tpu='v5e')")
        request = Request(program, args, tpu, topology, jit_options, libtpu, kwargs)
        return plan_of(request, hbm_limit=limit, confirm=confirm).with_source(request).report
    if args or kwargs or topology is not None or jit_options is not None or confirm:
        raise TypeError(f"arguments are those of a function to compile, not of {type(program).__name__}")
    text, source = _text_of(program)
    # A program compiled in this process was compiled by its libtpu.
    compiled_here = libtpu_version() if hasattr(program, "memory_analysis") else None
    return _tilewise.audit_text(text, source, tpu, limit, machine, libtpu or compiled_here)


def _files_of(program: Program) -> Sequence[Program]:
    """The final programs in a folder; anything else as it is, also a folder without any, which is then an error."""
    try:
        return _programs_in(program) or [program]
    except Error:
        return [program]


def _programs_in(program: Program) -> list[Path] | None:
    """The final programs in a folder; ``None`` for anything but a folder."""
    is_path = isinstance(program, os.PathLike) or (isinstance(program, str) and not _is_hlo(program))
    return _tilewise.programs_in(cast("str | os.PathLike[str]", program)) if is_path else None


def _is_function(program: Any) -> bool:
    """Whether this is to be compiled; a compiled program can be called, too."""
    is_traced = hasattr(program, "lower") or (hasattr(program, "call") and hasattr(program, "mlir_module"))
    is_text = hasattr(program, "as_text") or hasattr(program, "to_string")
    return (callable(program) and not is_text) or (is_traced and not isinstance(program, (str, bytes, bytearray)))


def _text_of(program: Any) -> tuple[str, str]:
    if isinstance(program, str) and _is_hlo(program):
        return program, "text"
    if isinstance(program, (str, os.PathLike)):
        path = cast("str | os.PathLike[str]", program)
        # No system has longer ones.
        if len(os.fspath(path)) > _LONGEST_PATH:
            raise ValueError("neither a program nor a path: HLO text, or the path of a file or a folder, is wanted")
        files = _programs_in(path)
        if files is not None:
            if len(files) > 1:
                raise HloError(
                    f"{os.fspath(path)} holds {len(files)} programs",
                    kind="several_programs",
                    help="`audit([folder])` audits all of them",
                )
            (path,) = files
        # Not every path is valid Unicode.
        return _tilewise.read(path), os.fsencode(path).decode(errors="replace")
    source = type(program).__name__
    if hasattr(program, "read"):
        source, held = str(getattr(program, "name", source)), program.read()
    elif hasattr(program, "SerializeToString"):
        held = program.SerializeToString()
    elif isinstance(program, (bytes, bytearray, memoryview)):
        source, held = "bytes", bytes(cast("bytes", program))
    else:
        held = _text_of_object(program, source)
    return (held if isinstance(held, str) else _tilewise.decode(held)), source


_LONGEST_PATH = 32_767
"""Characters, on Windows; Linux has 4095."""


def _is_hlo(text: str) -> bool:
    return "\n" in text or text.startswith("HloModule") or " = " in text


def _text_of_object(program: Any, source: str) -> str:
    if hasattr(program, "as_text"):
        # An object with `compile` is only lowered: its default text is StableHLO.
        try:
            text = program.as_text("hlo") if hasattr(program, "compile") else program.as_text()
        except RuntimeError as error:
            # JAX can't print programs with some asynchronous instructions.
            lowered = lowered_of(program)
            if lowered is not None:
                return dumped(lowered)
            help = "`audit(f, *args, tpu=…)` reads the compiler's own dump"
            raise HloError(f"this {source} can't be printed: {error}", kind="not_printable", help=help) from error
    elif hasattr(program, "to_string"):
        text = program.to_string()
    else:
        raise TypeError(f"audit takes a compiled program, a function, a path, or HLO text, not {source}")
    if not isinstance(text, str):
        raise TypeError(f"this {source} has no text: its compiler does not keep any")
    return text


MACHINES = ("tpu:v5e", "tpu:v6e", "tpu:v7x", "gpu:h100", "gpu:b200", "cpu")


@dataclass(frozen=True)
class OnMachine:
    """A function's memory on one machine.

    Attributes:
        machine: its name, such as ``"tpu:v5e"`` or ``"gpu:h100"``.
        report: the audit of the function compiled for it; ``None`` where that is impossible here.
        error: the reason; ``None`` where it was compiled.
    """

    machine: str
    report: Report | None
    error: str | None

    @property
    def peak_bytes(self) -> int | None:
        """Arguments, results that don't lie in them, constants and temporaries, in bytes."""
        return None if self.report is None else self.report.peak_bytes


@dataclass(frozen=True)
class Machines(Listed[OnMachine]):
    """A function on several machines; a sequence of `OnMachine`. ``str`` is a table.

    Attributes:
        machines: its memory on each, in the order that was asked for.

    Examples:
        >>> str(Machines((OnMachine("cpu", None, "no compiler"),))).splitlines()[1]
        'cpu        no compiler'
    """

    machines: tuple[OnMachine, ...]

    def __str__(self) -> str:
        names = ("arguments", "results", "temporaries", "in all", "of", "fits")
        lines = [f"{'machine':<9}" + "".join(f"{name:>13}" for name in names)]
        for row in self.machines:
            report = row.report
            if report is None:
                lines.append(f"{row.machine:<9}  {row.error}")
                continue
            sizes = (
                report.argument_bytes,
                report.output_bytes - report.alias_bytes,
                report.temporary_bytes,
                report.peak_bytes,
                report.hbm_limit,
            )
            cells = ["-" if size is None else rounded(size) for size in sizes]
            cells.append({True: "yes", False: "no", None: "-"}[report.fits])
            lines.append(f"{row.machine:<9}" + "".join(f"{cell:>13}" for cell in cells))
        return "\n".join(lines)


def compare_machines(
    f: Callable[..., Any],
    /,
    *args: Any,
    machines: Sequence[str] = MACHINES,
    jit_options: Mapping[str, Any] | None = None,
) -> Machines:
    """Compare a function's memory on several machines, with none of them at hand.

    Each is asked as `audit` does. TPUs need ``pip install 'tilewise[tpu]'``, GPUs ``pip install 'jax[cuda12]'``; if
    one is missing, that is the row's ``error``.

    Args:
        f: the function, or the result of ``jax.jit``.
        args: its arguments, abstract (``jax.ShapeDtypeStruct``) or real.
        machines: their names.
        jit_options: arguments of ``jax.jit``, such as ``{"donate_argnums": 0}``.

    Raises:
        ParseError: there is no such machine.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = jax.ShapeDtypeStruct((400000, 12), jnp.float32)
        >>> found = compare_machines(jnp.tanh, x, machines=["tpu:v5e", "cpu"])
        >>> [row.peak_bytes for row in found]
        [51200000, 38400000]
    """

    def on(machine: str) -> OnMachine:
        try:
            return OnMachine(machine, audit(f, *args, machine=machine, jit_options=jit_options), None)
        except ImportError as error:
            return OnMachine(machine, None, str(error))
        except Error as error:
            if error.kind not in ("needs_gpu_compiler", "too_few_devices"):
                raise
            return OnMachine(machine, None, f"{error.message}: {error.help}")

    return Machines(tuple(map(on, machines)))
