"""Tests whether two programs compute the same, on this machine's CPU with numbers of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewise._base.errors import Skip
from tilewise._base.modules import module
from tilewise._jax.jaxprs import nested

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


def _results(function: Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """The results of a function, computed on the CPU. Random keys are given as numbers."""
    jax, numpy = module("jax"), module("numpy")
    # Else each program skips the rounding between those operations that it fuses.
    compiled = jax.jit(function, compiler_options={"xla_allow_excess_precision": False})
    with jax.default_device(jax.devices("cpu")[0]):
        found = jax.tree.leaves(compiled(*args))
        is_key = [jax.dtypes.issubdtype(each.dtype, jax.dtypes.prng_key) for each in found]
        return [numpy.asarray(jax.random.key_data(a) if is_its else a) for a, is_its in zip(found, is_key, strict=True)]


def difference(one: Callable[..., Any], other: Callable[..., Any], args: Sequence[Any]) -> float:
    """The largest difference between the results of two functions, as a share of the largest number of its array.

    Raises:
        Skip: it is more than rounding.
    """
    narrowest = min(_widths(module("jax").make_jaxpr(one)(*args)), default=8)
    pairs = zip(_results(one, args), _results(other, args), strict=True)
    return max((_difference(f"result {number}", *pair, narrowest) for number, pair in enumerate(pairs)), default=0.0)


def _widths(program: Any) -> Iterator[int]:
    jnp = module("jax.numpy")
    made = (variable.aval for jaxpr in nested(program) for each in jaxpr.eqns for variable in each.outvars)
    types = (aval.dtype for aval in made if hasattr(aval, "dtype"))
    return (each.itemsize for each in types if jnp.issubdtype(each, jnp.floating))


def _difference(name: str, one: Any, other: Any, narrowest: int) -> float:
    """The difference of real numbers; all others have to be equal, or nearly so."""
    numpy = module("numpy")
    if not module("jax.numpy").issubdtype(one.dtype, numpy.inexact):
        if not numpy.array_equal(one, other):
            raise Skip(f"{name} changes")
        return 0.0
    wide = one.astype("complex128" if one.dtype.kind == "c" else "float64")
    if not numpy.isfinite(wide).all():
        raise Skip(f"{name} isn't finite, so that nothing can be compared")
    scale = float(abs(wide).max(initial=0.0))
    difference = float(abs(wide - other.astype(wide.dtype)).max(initial=0.0))
    is_rounding = difference <= _TOLERANCES.get(min(narrowest, one.dtype.itemsize), 1e-4) * scale
    if not is_rounding:
        raise Skip(f"{name} changes by {difference:.2g} of {scale:.2g}")
    return difference / max(scale, 1e-300) if one.dtype.kind in "fV" else 0.0
