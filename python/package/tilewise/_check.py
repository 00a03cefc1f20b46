"""`check_fix`: whether a change helps, as the compiler says."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tilewise._plan import plan_of
from tilewise._renamed import renamed
from tilewise._shown import Shown
from tilewise._tilewise import Report

if TYPE_CHECKING:
    from tilewise._types import Tpu


_SIZES = ("argument_bytes", "output_bytes", "alias_bytes", "temporary_bytes")


@dataclass(frozen=True)
class Measured:
    """What the compiler reports of a program's memory on one device (``memory_analysis()``), in bytes.

    Attributes:
        argument_bytes: its arguments.
        output_bytes: its results.
        alias_bytes: results that reuse the memory of donated arguments.
        temporary_bytes: its temporaries.
        report: the audit of the program.

    Examples:
        >>> report = audit("x = f32[8,128]{1,0:T(8,128)} parameter(0)")
        >>> Measured(argument_bytes=4096, output_bytes=0, alias_bytes=0, temporary_bytes=8, report=report).peak_bytes
        4104
    """

    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    report: Report

    @property
    def peak_bytes(self) -> int:
        """What it takes together: arguments, results that don't lie in them, constants, and temporaries."""
        return self.argument_bytes + self.output_bytes - self.alias_bytes + self.constant_bytes + self.temporary_bytes

    @property
    def constant_bytes(self) -> int:
        """Constants, such as arrays that the function closes over, which ``memory_analysis()`` leaves out."""
        return self.report.constant_bytes

    @property
    def peak_padding_bytes(self) -> int:
        """Padding of what is alive at the peak."""
        return self.report.peak_padding_bytes or 0

    @property
    @renamed("peak_padding_bytes")
    def padding_bytes(self) -> int:
        """The old name of `peak_padding_bytes`."""
        return self.peak_padding_bytes

    def _held(self) -> dict[str, Any]:
        sizes = {name: getattr(self, name) for name in _SIZES}
        return {**sizes, "report": json.loads(self.report.to_json())}

    @classmethod
    def _of_held(cls, held: dict[str, Any]) -> Measured:
        sizes = {name: held[name] for name in _SIZES}
        return cls(**sizes, report=Report.from_json(json.dumps(held["report"])))


@dataclass(frozen=True)
class FixCheck(Shown):
    """A program before and after a change, both as the compiler reports them. ``str`` is a table.

    Returned by `check_fix`.

    Attributes:
        before: the first program.
        after: the second.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = jax.ShapeDtypeStruct((8, 128), jnp.float32)
        >>> check_fix(jnp.tanh, jnp.exp, x, tpu="v5e").peak_bytes_saved
        0
    """

    before: Measured
    after: Measured

    @property
    def peak_bytes_saved(self) -> int:
        """By how much the peak falls, in bytes; negative if it rises."""
        return self.before.peak_bytes - self.after.peak_bytes

    def _rows(self) -> list[dict[str, Any]]:
        """A row for each number of bytes."""
        return compared(self.before, self.after)

    def _held(self) -> dict[str, Any]:
        return {"before": self.before._held(), "after": self.after._held()}

    @classmethod
    def _of_held(cls, held: dict[str, Any]) -> FixCheck:
        return cls(Measured._of_held(held["before"]), Measured._of_held(held["after"]))

    def __str__(self) -> str:
        return table_of(self._rows())


def compared(before: Measured, after: Measured) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in ("argument", "output", "alias", "constant", "temporary", "peak", "peak_padding"):
        old, new = (getattr(side, f"{name}_bytes") for side in (before, after))
        rows.append({"name": name.replace("_", " "), "before_bytes": old, "after_bytes": new, "bytes_saved": old - new})
    return rows


def table_of(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'bytes':<12}  {'before':>14}  {'after':>14}  {'saved':>14}"]
    for row in rows:
        name, before, after, saved = row.values()
        lines.append(f"{name:<12}  {before:>14}  {after:>14}  {saved:>14}")
    return "\n".join(lines)


def check_fix(
    f: Callable[..., Any],
    g: Callable[..., Any],
    /,
    *args: Any,
    tpu: Tpu,
    args_after: Sequence[Any] | None = None,
    topology: str | None = None,
    jit_options: Mapping[str, Any] | None = None,
    confirm: bool = False,
    **kwargs: Any,
) -> FixCheck:
    """Compile a function before and after a change, and compare what the compiler plans.

    Programs that don't fit are compared, too.

    Args:
        f: the function as it is.
        g: the function with the change.
        args: the arguments of both, as `compile_for` takes them.
        tpu: the generation, under any of its names (``"v5e"``).
        args_after: the arguments of ``g``, where the change is to them.
        topology, jit_options: as `compile_for` takes them, for both.
        confirm: compile both to the end, as `audit` does with it.
        kwargs: the keyword arguments of both.

    Raises:
        ImportError: JAX or libtpu is missing.
        ParseError: ``tpu`` names no TPU generation.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> rows = jax.ShapeDtypeStruct((524288, 8, 4), jnp.float32)
        >>> checked = check_fix(
        ...     lambda x: x.sum(), lambda x: x.sum(), rows, tpu="v5e", args_after=[rows.update(shape=(524288, 32))]
        ... )
        >>> checked.peak_bytes_saved >= 0
        True
    """

    def measured(function: Callable[..., Any], args: tuple[Any, ...]) -> Measured:
        answer, _ = plan_of(
            function, args, kwargs, tpu=tpu, topology=topology, jit_options=jit_options, confirm=confirm
        )
        assert answer.sizes is not None
        assert answer.report is not None
        return Measured(**asdict(answer.sizes), report=answer.report)

    return FixCheck(measured(f, args), measured(g, args if args_after is None else tuple(args_after)))
