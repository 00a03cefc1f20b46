"""A traced step as equations without calls, and their times. An author's checkpoint repeats none here."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewise import _tilewise
from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.internals import Scan
from tilewise._jax.jaxprs import CHECKPOINTS, INLINED, evaluated, is_literal, opened, read_by, variables

CALLS = {**INLINED, **dict.fromkeys(CHECKPOINTS, "jaxpr")}
"""Primitives that stand for the equations of a program of their own, with the parameter that has it."""

BODIES = {**CALLS, "scan": "jaxpr", "shard_map": "jaxpr"}
"""Primitives that have a program and may stay: loops, and calls that place values; with its parameter."""

_NEVER_TWICE = ("optimization_barrier", "rng_uniform", "infeed", "outfeed", "random_wrap")
"""Primitives whose equal equations are never merged."""


def bytes_of(atom: Any) -> int:
    """The bytes of an array, without the padding of a TPU."""
    aval = atom.aval
    itemsize = getattr(getattr(aval, "dtype", None), "itemsize", None)
    return 0 if itemsize is None else math.prod(aval.shape) * itemsize


_empty = functools.cache(lambda: module("jax").make_jaxpr(tuple)())


@dataclass
class Block:
    """Equations in the order of the trace, with their inputs and outputs; an output may be a literal.

    `constants` has, of all blocks of a step, the values of variables that no equation makes.
    """

    inputs: list[Any]
    equations: list[Any]
    outputs: list[Any]
    constants: dict[Any, Any] = field(repr=False)

    def closed(self) -> Any:
        read = [*read_by(self.equations), *variables(self.outputs)]
        own = [each for each in dict.fromkeys(read) if each in self.constants]
        effects = frozenset[Any]().union(*(each.effects for each in self.equations))
        return internals.changed(
            _empty(),
            [self.constants[each] for each in own],
            constvars=own,
            invars=list(self.inputs),
            outvars=list(self.outputs),
            eqns=list(self.equations),
            effects=effects,
        )


class Reader:
    """Reads jaxprs into blocks. An equation that repeats another one with the same operands is not read again."""

    def __init__(self, constants: dict[Any, Any] | None = None) -> None:
        self.constants: dict[Any, Any] = {} if constants is None else constants
        self.equations: list[Any] = []
        self._known: dict[Any, list[Any]] = {}
        self._names: dict[int, tuple[Any, str]] = {}

    def block(self, closed: Any) -> Block:
        inputs = [internals.variable(each.aval) for each in opened(closed).invars]
        outputs = self.read(closed, inputs)
        return Block(inputs, self.equations, outputs, self.constants)

    def read(self, closed: Any, operands: Sequence[Any], outer: Any = None) -> list[Any]:
        def constant(value: Any, atom: Any) -> Any:
            if is_literal(atom):
                return atom
            variable = internals.variable(atom.aval)
            self.constants[variable] = value
            return variable

        def results(equation: Any, reads: list[Any]) -> list[Any]:
            called = equation.params.get(CALLS.get(equation.primitive.name, ""))
            if called is not None and _is_open(equation):
                return self.read(called, reads, internals.within(equation, outer))
            return self._made(equation, reads, outer)

        return evaluated(opened(closed), getattr(closed, "consts", ()), operands, constant, results)

    def _made(self, equation: Any, reads: list[Any], outer: Any) -> list[Any]:
        key = self._key(equation, reads)
        if key is not None and key in self._known:
            return self._known[key]
        makes = [internals.variable(each.aval) for each in equation.outvars]
        self.equations.append(internals.within(equation, outer, invars=reads, outvars=makes))
        if key is not None:
            self._known[key] = makes
        return makes

    def _key(self, equation: Any, reads: list[Any]) -> Any:
        if equation.effects or equation.primitive.name in _NEVER_TWICE:
            return None
        operands = tuple((str(atom.val), str(atom.aval)) if is_literal(atom) else atom for atom in reads)
        params = tuple((name, self._named(value)) for name, value in sorted(equation.params.items()))
        key = (equation.primitive, operands, params)
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def _named(self, value: Any) -> Any:
        """A parameter as it is compared: programs by their text."""
        if isinstance(value, tuple):
            return tuple(map(self._named, value))  # pyright: ignore[reportUnknownArgumentType]
        if not internals.is_jaxpr(value):
            return value
        if id(value) not in self._names:
            # The value is kept, so that its number stays its own.
            self._names[id(value)] = (value, str(value))
        return self._names[id(value)][1]


def _is_open(equation: Any) -> bool:
    """Whether a call says nothing of shardings, which its equations alone would not keep."""
    params = equation.params
    shardings = (*params.get("in_shardings", ()), *params.get("out_shardings", ()))
    return all(map(internals.is_unspecified, shardings))


def needed(equations: Sequence[Any], wanted: Iterable[Any], known: Callable[[Any], bool]) -> list[Any]:
    """The equations that make the wanted values from the known ones, in order."""
    missing = {each for each in variables(wanted) if not known(each)}
    found: list[Any] = []
    for equation in reversed(equations):
        if not missing.isdisjoint(equation.outvars):
            found.append(equation)
            missing.difference_update(equation.outvars)
            missing.update(atom for atom in variables(equation.invars) if not known(atom))
    return found[::-1]


NEVER = math.inf

PRODUCTS = ("dot_general", "conv_general_dilated")

_FREE = frozenset(
    {"broadcast_in_dim", "reshape", "iota", "squeeze", "convert_element_type", "transpose", "name", "copy", "slice"}
    | {"sharding_constraint", "expand_dims", "stop_gradient", "bitcast_convert_type", "rev", "pvary"}
)
"""Primitives that the compiler fuses into their readers."""
_NEVER = frozenset(("while", "infeed", "outfeed", "rng_uniform", "optimization_barrier"))
"""Primitives that aren't repeated: their time isn't known, or they must stay as they are."""
_SCATTERED = ("gather", "scatter", "dynamic_update_slice", "sort", "cumsum", "cumlogsumexp", "cummax", "cumprod")
_SCATTERED_PASSES = 4
"""The factor by which unordered access to memory is slower than its rate; a guess."""
_COLLECTIVES = ("psum", "all_gather", "all_to_all", "reduce_scatter", "ppermute", "psum_invariant", "pmax")


@dataclass(frozen=True)
class Costs:
    """Times of equations on a TPU, by its rates per second."""

    flops: float
    hbm_bytes: float
    link_bytes: float

    @classmethod
    def of(cls, tpu: str) -> Costs:
        return cls(*_tilewise.rates(tpu))

    def seconds(self, equation: Any) -> float:
        """Seconds of repeating an equation; infinite where it must not be repeated."""
        name, params = equation.primitive.name, equation.params
        if equation.effects or name in _NEVER:
            return NEVER
        if is_fused(equation):
            return 0.0
        reads = sum(bytes_of(atom) for atom in equation.invars if not is_literal(atom))
        makes = sum(map(bytes_of, equation.outvars))
        moved = (reads + makes) / self.hbm_bytes
        if name == "dot_general":
            (contracted, _), _ = params["dimension_numbers"]
            depth = math.prod(equation.invars[0].aval.shape[at] for at in contracted)
            return self._product(equation, depth, moved)
        if name == "conv_general_dilated":
            kernel, numbers = equation.invars[1].aval.shape, params["dimension_numbers"]
            depth = math.prod(kernel) // kernel[numbers.rhs_spec[0]]
            return self._product(equation, depth, moved)
        if name == "scan":
            return int(params["length"]) * self.all_of(Scan.of(equation).body)
        if name == "cond":
            return max(self.all_of(branch) for branch in params["branches"])
        if name == "pallas_call":
            noted = params.get("cost_estimate")
            return max(getattr(noted, "flops", 0) / self.flops, moved)
        if name in BODIES:
            return self.all_of(params[BODIES[name]])
        if name.startswith(_COLLECTIVES):
            return makes / self.link_bytes
        if name.startswith(_SCATTERED):
            return _SCATTERED_PASSES * makes / self.hbm_bytes
        if name in ("custom_call", "ffi_call", "pure_callback", "io_callback", "custom_linear_solve"):
            return NEVER
        if name.startswith(("reduce", "arg")):
            return reads / self.hbm_bytes / 2
        # Most of its operands are made, and its results read, in one fusion.
        return makes / self.hbm_bytes / 4

    def _product(self, equation: Any, depth: int, moved: float) -> float:
        """Seconds of a product, which is read by the operations after it in its own fusion, or made in theirs."""
        flops = 2 * math.prod(equation.outvars[0].aval.shape) * depth
        return float(max(flops / self.flops, moved / 2))

    def all_of(self, program: Any) -> float:
        return sum(map(self.seconds, opened(program).eqns))


def is_fused(equation: Any) -> bool:
    """Whether the compiler fuses it into whatever reads it, so that it costs nothing."""
    return equation.primitive.name in _FREE


def is_of_gradient(equation: Any) -> bool:
    """Whether JAX made it by transposing a program."""
    return "transpose(" in internals.scope(equation)
