"""`watch`, which audits what a jitted function compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewise import _tilewise
from tilewise._audit import audit
from tilewise._dump import dumped
from tilewise._errors import PaddingError
from tilewise._explain import Wrapped
from tilewise._limits import bytes_of, in_words
from tilewise._modules import module

if TYPE_CHECKING:
    from tilewise._tilewise import Report
    from tilewise._types import Limit, Tpu


def watch(
    f: Callable[..., Any],
    /,
    *,
    tpu: Tpu | None = None,
    fail_above: Limit | None = None,
    on_report: Callable[[Report], object] = print,
    confirm: bool = False,
) -> Any:
    """Audit every program that a jitted function compiles, once each, before it runs.

    Args:
        f: the function; one that is not jitted is.
        tpu: compiles for that generation, as `audit` does, whatever this machine runs; ``None`` for what the function
            is compiled for anyway, a TPU.
        fail_above: raises where the padding at the peak is above this: bytes, text such as ``"1GiB"``, or a share of
            what is alive then, ``"10%"``.
        on_report: takes each report.
        confirm: with ``tpu``, compile to the end, as `audit` does with it.

    Returns:
        A function with the attributes of ``f``, ``lower`` among them, that computes the same.

    Raises:
        PaddingError: from a call, where ``fail_above`` says so.

    Examples:
        >>> import jax.numpy as jnp
        >>> peaks = []
        >>> f = watch(jnp.tanh, tpu="v5e", on_report=lambda report: peaks.append(report.peak_bytes))
        >>> x = jnp.ones((8, 128))
        >>> _ = f(x), f(x)
        >>> peaks
        [8192]
    """
    jitted = f
    if not hasattr(f, "lower"):
        jax = module("jax")

        jitted = jax.jit(f)
    seen: set[Any] = set()

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        key = _signature(args, kwargs)
        if key not in seen:
            report = _audited(function, args, kwargs, tpu, confirm)
            on_report(report)
            _check(report, fail_above)
            seen.add(key)
        return function(*args, **kwargs)

    return Wrapped(jitted, call)


def _signature(args: Any, kwargs: Any) -> Any:
    """What decides whether JAX compiles anew."""
    jax = module("jax")

    leaves, tree = jax.tree.flatten((args, kwargs))

    def one(leaf: Any) -> Any:
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            weak, sharding = getattr(leaf, "weak_type", False), getattr(leaf, "sharding", None)
            return tuple(leaf.shape), leaf.dtype, weak, sharding
        return type(leaf) if isinstance(leaf, (bool, int, float, complex)) else leaf

    return tree, tuple(one(leaf) for leaf in leaves)


def _audited(function: Callable[..., Any], args: Any, kwargs: Any, tpu: Tpu | None, confirm: bool) -> Report:
    if tpu is None:
        jitted: Any = function
        # The dump is there for a program that does not fit, too.
        name = getattr(function, "__name__", type(function).__name__)
        return _tilewise.audit_text(dumped(jitted.lower(*args, **kwargs)), name, None, None)
    return audit(function, *args, tpu=tpu, confirm=confirm, **kwargs)


def _check(report: Report, fail_above: Limit | None) -> None:
    if fail_above is None:
        return
    padding = report.peak_padding_bytes or 0
    limit = bytes_of(fail_above, report.peak_live_bytes or 0)
    if padding > limit:
        line = f", at {report.peak_source}" if report.peak_source else ""
        message = f"{in_words(padding)} of padding at the peak of {report.module}{line}, more than {in_words(limit)}"
        raise PaddingError(message, kind="padding", help=_first_advice(report))


def _first_advice(report: Report) -> str | None:
    advice = report.advice
    return advice[0].sentence if advice else None
