"""Tests whether two programs compute the same, on this machine's CPU with numbers of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewise._errors import Skip
from tilewise._jaxprs import nested
from tilewise._modules import module

_LARGEST_BYTES = 2**32
_TOLERANCES = {8: 1e-9, 4: 1e-4, 2: 2e-2, 1: 0.25}
"""Tolerances by bytes of floats, relative to the largest of an array: sums of parts are rounded otherwise.

Computation in few bytes is rounded so, whatever the results' type.
"""


def sample(closed: Any) -> list[Any]:
    """Numbers for a traced program's arguments. All are positive, and sums over a row stay about one.

    Raises:
        Skip: they are too many for this machine.
    """
    jax = module("jax")
    jnp, numpy = module("jax.numpy"), module("numpy")
    random = numpy.random.default_rng(0)

    def one(aval: Any) -> Any:
        if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key):
            return jax.random.split(jax.random.key(0, impl=aval.dtype), aval.shape)
        if aval.dtype == bool:
            return random.integers(0, 2, aval.shape).astype(bool)
        if jnp.issubdtype(aval.dtype, jnp.integer):
            return random.integers(0, 2, aval.shape).astype(aval.dtype)
        rows = aval.shape[-2] if len(aval.shape) > 1 else 1
        return (random.random(aval.shape, "float32") * (2 / max(1, min(rows, 2**16)))).astype(aval.dtype)

    taken = sum(int(aval.size) * getattr(aval.dtype, "itemsize", 8) for aval in closed.in_avals)
    if taken > _LARGEST_BYTES:
        raise Skip(f"its {taken} bytes of arguments are too many to compare results on this machine")
    return [one(aval) for aval in closed.in_avals]


def _runner(function: Callable[..., Any]) -> Callable[[Sequence[Any]], list[Any]]:
    """Computes a function on the CPU; compiled once. Random keys are given as numbers."""
    jax = module("jax")
    # Else each program skips the rounding between those operations that it fuses.
    options = {"xla_allow_excess_precision": False}
    compiled = jax.jit(function, compiler_options=options)

    def numbers(each: Any) -> Any:
        is_key = jax.dtypes.issubdtype(each.dtype, jax.dtypes.prng_key)
        return module("numpy").asarray(jax.random.key_data(each) if is_key else each)

    def run(values: Sequence[Any]) -> list[Any]:
        with jax.default_device(jax.devices("cpu")[0]):
            return list(map(numbers, jax.tree.leaves(compiled(*values))))

    return run


def difference(one: Callable[..., Any], other: Callable[..., Any], args: Sequence[Any]) -> float:
    """The largest difference between the results of two functions, as a share of the largest number of its array.

    Raises:
        Skip: it is more than rounding.
    """
    jax, numpy = module("jax"), module("numpy")
    leaves, narrowest = jax.tree.leaves, min(_widths(jax.make_jaxpr(one)(*args)), default=8)
    found = 0.0
    for number, (a, b) in enumerate(zip(*(leaves(_runner(each)(args)) for each in (one, other)), strict=True)):
        words = _differs(a, b, narrowest)
        if words is not None:
            raise Skip(f"result {number} {words}")
        if a.size and a.dtype.kind in "fV":
            wide, narrow = a.astype("float64"), b.astype("float64")
            found = max(found, float(numpy.abs(wide - narrow).max() / max(numpy.abs(wide).max(), 1e-300)))
    return found


def _widths(program: Any) -> Iterator[int]:
    jnp = module("jax.numpy")
    made = (variable.aval for jaxpr in nested(program) for each in jaxpr.eqns for variable in each.outvars)
    types = (aval.dtype for aval in made if hasattr(aval, "dtype"))
    return (each.itemsize for each in types if jnp.issubdtype(each, jnp.floating))


def _differs(one: Any, other: Any, narrowest: int) -> str | None:
    numpy = module("numpy")
    if not module("jax.numpy").issubdtype(one.dtype, numpy.inexact):
        return None if numpy.array_equal(one, other) else "changes"
    wide = one.astype("complex128" if one.dtype.kind == "c" else "float64")
    if not numpy.isfinite(wide).all():
        return "isn't finite, so that nothing can be compared"
    scale = float(abs(wide).max(initial=0.0))
    difference = float(abs(wide - other.astype(wide.dtype)).max(initial=0.0))
    if difference <= _TOLERANCES.get(min(narrowest, one.dtype.itemsize), 1e-4) * scale:
        return None
    return f"changes by {difference:.2g} of {scale:.2g}"
