"""`check_fix`: a function before and after a change, by the compiler's plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewise._base.types import Tpu
from tilewise._compiler.compile import plan_of
from tilewise._jax.lowering import Request
from tilewise._tilewise import Comparison, Report


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
) -> Comparison:
    """Compile a function before and after a change, and compare the compiler's plans.

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

    def report(function: Callable[..., Any], args: tuple[Any, ...]) -> Report:
        return plan_of(Request(function, args, tpu, topology, jit_options, kwargs=kwargs), confirm=confirm).report

    return report(f, args).diff(report(g, args if args_after is None else tuple(args_after)))
