"""A traced program as equations without calls."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.jaxprs import CHECKPOINTS, INLINED, called, evaluated, is_literal, opened, read_by, variables

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


LANES = 128
"""The elements of a TPU's tile along the dimension that varies fastest."""


def tiled_bytes(aval: Any) -> int:
    """The bytes of an array whose last dimension fills whole lanes of a TPU's tiles."""
    itemsize = getattr(aval.dtype, "itemsize", 0)
    *rows, columns = aval.shape or (1,)
    return math.prod(rows) * -(-columns // LANES) * LANES * itemsize


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
    """Reads jaxprs into blocks. An equation that repeats another one with the same operands is not read again.

    `opens` are the calls whose equations are read, with the parameter that has them.
    """

    def __init__(self, constants: dict[Any, Any] | None = None, opens: Mapping[str, str] = CALLS) -> None:
        self._opens = opens
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
            call = called(equation, reads, self._opens)
            if call is not None and _is_open(equation):
                return self.read(*call, internals.within(equation, outer))
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
