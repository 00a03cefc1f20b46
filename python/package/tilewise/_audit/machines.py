"""`compare_machines`: the memory of one function on several machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewise._audit.audit import audit
from tilewise._base.errors import Error
from tilewise._base.limits import in_words
from tilewise._base.results import Listed
from tilewise._tilewise import Report

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
            cells = ["-" if size is None else in_words(size).partition(" (")[0] for size in sizes]
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
