"""VMEM of a kernel's body beyond the declared bytes: a guess, and the most in nine bodies of ten, from its jaxpr.

The compiler computes elementwise operations register by register, so that a value which is used up at once is never
there as a whole. It is where something must come between: a reduction, a product, a transpose, a loop, a store. These
are the *steps* of a body. A value that one step computes and a later one reads is held between them.

Two orders bound the held bytes: that of the program, and the one in which all steps that don't wait for each other come
together, as the compiler schedules heads that are unrolled. Branches keep steps apart, unless the grid decides them: of
``pl.when(pl.program_id(0) == 0)`` nothing is left where that axis has one step.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewise._jaxprs import ARITHMETIC, INLINED, inside, is_literal, nested, opened, variables

# Bytes of a core's registers: 64 of 8 × 128 words. Whole values beyond that spill.
_REGISTERS = 64 * 4096
# Bytes of registers that are free for values of several steps: the others are in use by the computation.
_FREE = 48 * 4096

READS = ("get", "load", "masked_load")
"""Primitives that read a reference: their results lie in VMEM already."""
_STORES = ("swap", "store", "masked_swap", "masked_store", "addupdate")
_PRODUCT = "dot_general"
_REDUCTIONS = ("reduce_", "argm", "cum")
# Each element of the result may need all of the operand.
_WHOLE = ("transpose", "sort", "gather", "scatter", "top_k")
# Made again wherever it is read.
_CHEAP = ("broadcast_in_dim", "iota", "program_id", "num_programs")
# Of a few steps, one after the other is in registers again before the next begins.
_MANY = 8
_CALLS = (*INLINED, "run_scoped")


@dataclass(frozen=True)
class Body:
    """The figures of a body that decide its spills. Sizes are in bytes, with the padding of tiles.

    Attributes:
        in_order_bytes: the most that is held at a time, in the order of the program.
        together_bytes: the most that is held at a time, where steps that don't wait for each other come together.
        unrolled_bytes: the most that loops of many steps hold, all unrolled, where those come together that no branch
            keeps apart.
        computed_bytes: the largest value that was computed, and that a matrix product has on its left or that is
            reduced along its lanes.
        loaded_bytes: the largest value of this kind that was only loaded.
        guess_bytes: the guess: the largest value that is on the left of a product, or that is reduced and read again;
            0 if registers hold it.
    """

    in_order_bytes: int
    together_bytes: int
    unrolled_bytes: int
    computed_bytes: int
    loaded_bytes: int
    guess_bytes: int

    @property
    def parts(self) -> dict[str, int]:
        """The terms that `most_bytes` weights and sums."""
        in_order = _beyond(self.in_order_bytes)
        return {
            "in order": in_order,
            "together": max(0, _beyond(self.together_bytes) - in_order),
            "unrolled": max(0, _beyond(self.unrolled_bytes) - in_order),
            "computed": self.computed_bytes,
            "loaded": _beyond(self.loaded_bytes),
        }

    @property
    def most_bytes(self) -> int:
        """The most that nine of ten bodies with these figures take. The least may be 0."""
        return int(sum(_MOST[name] * size for name, size in self.parts.items()))


def body_of(kernel: Any, size: Callable[[Any], int], one_step: frozenset[int] = frozenset()) -> Body:
    """The body of a kernel's jaxpr.

    Args:
        size: bytes of an abstract array as a block.
        one_step: the axes of the grid that have one step.
    """
    computed = loaded = largest = 0
    for jaxpr in nested(kernel):
        made = {id(result): equation for equation in jaxpr.eqns for result in equation.outvars}
        readers = Counter(id(each) for equation in jaxpr.eqns for each in {id(v): v for v in equation.invars}.values())
        readers.update(id(each) for each in jaxpr.outvars)
        for equation in jaxpr.eqns:
            is_product = equation.primitive.name == _PRODUCT
            if not (is_product or equation.primitive.name.startswith(("reduce_", "argm"))):
                continue
            first = equation.invars[0]
            taken = size(first.aval)
            # A reduced value is consumed as it is computed, unless it or its sources are read again.
            if is_product or _is_read_again(first, made, readers):
                largest = max(largest, taken)
            if is_product or is_along_lanes(equation):
                is_loaded = _is_load(made.get(id(first)))
                loaded, computed = (max(loaded, taken), computed) if is_loaded else (loaded, max(computed, taken))
    found = _Steps(size, one_step).of(kernel)
    guess = largest if largest > _REGISTERS else 0
    return Body(found.in_order, found.together, found.unrolled, computed, loaded, guess)


def _is_load(equation: Any) -> bool:
    return equation is not None and equation.primitive.name in READS


def _is_read_again(variable: Any, made: dict[int, Any], readers: Counter[int]) -> bool:
    pending, seen = [variable], set[int]()
    while pending:
        one = pending.pop()
        equation = made.get(id(one))
        if id(one) in seen or _is_load(equation):
            continue
        seen.add(id(one))
        # A value that isn't computed here, or not by an elementwise operation, is there as a whole.
        if equation is None or equation.primitive.name not in ARITHMETIC or readers[id(one)] > 1:
            return not is_literal(one)
        shape = one.aval.shape
        pending += [each for each in equation.invars if getattr(each.aval, "shape", None) == shape]
    return False


def _beyond(size: int) -> int:
    """The bytes of a size that free registers don't hold."""
    return max(0, size - _FREE)


# The weights of a body's parts in its most: the quantile at 0.96 of recorded bodies, in which an error
# counts as a part of the kernel's whole (`conformance/tpu/bodies.py fit`).
_MOST = {"in order": 1.29, "together": 0.36, "unrolled": 0.65, "computed": 0.38, "loaded": 0.94}


@dataclass
class _Value:
    """The result of an equation.

    Attributes:
        name: the equation's primitive.
        size: bytes, with the padding of tiles.
        is_step: whether it is one of the body's steps.
        depth: how many steps it waits for, one after the other.
        until: the largest depth of its readers.
        first, last: the steps that compute it and that read it last; -1 for none.
        ready: the last step that it waits for; -1 for none.
        readers: how many equations read it.
        is_decided: whether it follows from the grid alone; of a branch, which one is taken.
    """

    name: str
    size: int
    inputs: list[_Value]
    is_step: bool
    depth: int
    until: int = -1
    first: int = -1
    last: int = -1
    ready: int = -1
    readers: int = 0
    is_decided: bool = False

    @property
    def is_flow(self) -> bool:
        return not self.is_step and self.name not in (*READS, *_CHEAP)


@dataclass(frozen=True)
class _Held:
    """The most bytes that a body holds at a time.

    Attributes:
        in_order: in the order of the program.
        together: where steps that don't wait for each other come together.
        unrolled: of loops of many steps, all unrolled, where those come together that no branch keeps apart.
    """

    in_order: int
    together: int
    unrolled: int


class _Steps:
    """One jaxpr, with those that it calls, and without its loops and branches: those are steps."""

    def __init__(self, size: Callable[[Any], int], one_step: frozenset[int]) -> None:
        self._size, self._one_step = size, one_step
        self._values: list[_Value] = []
        self._steps: list[tuple[_Value, Any, list[Any]]] = []

    def of(self, jaxpr: Any) -> _Held:
        results = self._walk(jaxpr, {})
        for number, (step, _, _) in enumerate(self._steps):
            for each in step.inputs:
                _read(each, number)
        for each in results:
            _read(each, len(self._steps))
        return self._held()

    def _walk(self, jaxpr: Any, known: dict[int, _Value]) -> list[_Value]:
        """Adds the equations of a jaxpr, whose variables are known by their identity; its results."""

        def values(variables: Any) -> list[_Value]:
            return [known[id(each)] for each in variables if id(each) in known]

        jaxpr = opened(jaxpr)
        readers = Counter(id(each) for equation in jaxpr.eqns for each in equation.invars)
        readers.update(id(each) for each in jaxpr.outvars)
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            inner = inside(equation)
            if name in _CALLS and len(inner) == 1:
                called = inner[0]
                taken = called.invars if name != "run_scoped" else called.constvars
                arguments = {
                    id(to): known[id(of)] for to, of in zip(taken, equation.invars, strict=False) if id(of) in known
                }
                self._walk(called, arguments)
                for to, of in zip(equation.outvars, called.outvars, strict=False):
                    if id(of) in arguments:
                        known[id(to)] = arguments[id(of)]
                continue
            made = self._value(equation, values(equation.invars), is_inner=bool(inner))
            if name == "cond":
                index = values(equation.invars[:1])
                made.is_decided = bool(index) and index[0].is_decided
            if made.is_step:
                made.first = len(self._steps)
                self._steps.append((made, equation, inner))
            known.update({id(each): made for each in equation.outvars})
            made.readers = sum(readers[id(each)] for each in equation.outvars)
        return values(jaxpr.outvars)

    def _value(self, equation: Any, inputs: list[_Value], *, is_inner: bool) -> _Value:
        name = equation.primitive.name
        is_step = is_inner or name in (*_STORES, *_WHOLE, _PRODUCT) or name.startswith(_REDUCTIONS)
        depth = max((each.depth + each.is_step for each in inputs), default=0)
        sizes = [self._size(each.aval) for each in equation.outvars]
        made = _Value(name, 0 if name in _STORES else sum(sizes), inputs, is_step, depth)
        made.is_decided = len(inputs) == len(variables(equation.invars)) and all(each.is_decided for each in inputs)
        if name == "program_id":
            made.is_decided = equation.params["axis"] in self._one_step
        made.ready = len(self._steps) if is_step else max((each.ready for each in inputs), default=-1)
        if made.is_flow and made.ready >= 0 and _spares(made):
            # Computed as soon as it can be, as sums of products are.
            for each in inputs:
                _read(each, made.ready)
            made.first = made.ready
        pending = list(inputs)
        while pending:
            each = pending.pop()
            if each.until < depth:
                each.until = depth
                pending += each.inputs if each.name in _CHEAP else ()
        self._values.append(made)
        return made

    def _held(self) -> _Held:
        between, beside = _Amounts(), _Amounts()
        for value in self._values:
            if value.first < 0 or not (value.is_flow or value.is_step) or self._goes_to_a_store(value):
                continue
            between.add(value.first, value.last, value.size)
            begins = value.depth + value.is_step
            if value.until > begins or value.name in (_PRODUCT, *_WHOLE):
                beside.add(value.depth, value.until + 1, value.size)
        in_order, together = between.most(), beside.most()
        after = between.until(len(self._steps))
        # Unrolled loops that no branch keeps apart, by the number of steps that they wait for.
        beside_loops: Counter[tuple[int, int]] = Counter()
        unrolled = branches = 0
        for number, (step, equation, inner) in enumerate(self._steps):
            # Bytes held both before the step and after it.
            through = min(after[number - 1] if number else 0, after[number])
            if step.name in (_PRODUCT, *_WHOLE) and step.inputs and step.inputs[0].name not in READS:
                first = self._size(equation.invars[0].aval)
                in_order, together = max(in_order, through + first), max(together, first)
            elif inner:
                parts = [_Steps(self._size, self._one_step).of(each) for each in inner]
                is_loop = step.name in ("scan", "while")
                branches += step.name == "cond" and not step.is_decided
                given = sum(each.size for each in step.inputs if each.name not in READS)
                carried = max(given, sum(self._size(each.aval) for each in equation.outvars)) if is_loop else 0
                times = max(int(equation.params.get("unroll", 1) or 1), 1) if step.name == "scan" else 1
                in_order = max(in_order, through + carried + max(each.in_order for each in parts))
                most = carried + times * max(each.together for each in parts)
                together = max(together, most)
                unrolled = max(unrolled, *(each.unrolled for each in parts))
                if times >= _MANY and times >= int(equation.params["length"]):
                    beside_loops[branches, step.depth] += most
        return _Held(in_order, together, max(unrolled, *beside_loops.values(), 0))

    def _goes_to_a_store(self, value: _Value) -> bool:
        """Whether a product is read by the next step alone, which stores it: it comes in parts."""
        following = value.first + 1
        if value.name != _PRODUCT or value.last != following or following >= len(self._steps):
            return False
        return self._steps[following][0].name in _STORES


class _Amounts:
    """Bytes that are there from one number to another."""

    def __init__(self) -> None:
        self._changes: defaultdict[int, int] = defaultdict(int)

    def add(self, first: int, end: int, size: int) -> None:
        if end > first and size:
            self._changes[first] += size
            self._changes[end] -= size

    def most(self) -> int:
        return max(itertools.accumulate(change for _, change in sorted(self._changes.items())), default=0)

    def until(self, end: int) -> list[int]:
        return list(itertools.accumulate(self._changes.get(number, 0) for number in range(end)))


def _spares(value: _Value) -> bool:
    """Whether less is held once it is computed: the values that only it reads are larger."""
    taken = sum(each.size for each in value.inputs if each.readers == 1 and each.name not in (*READS, *_CHEAP))
    return taken > value.size or (taken == value.size and len(value.inputs) > 1)


def _read(value: _Value, number: int) -> None:
    """Notes that a step reads a value, and with it the values computed for it then."""
    pending = [value]
    while pending:
        each = pending.pop()
        is_new = each.first < 0 and not each.is_step
        if is_new or each.name in _CHEAP:
            pending += each.inputs
        if is_new:
            each.first = number
        each.last = max(each.last, number)


def is_along_lanes(equation: Any) -> bool:
    name = equation.primitive.name
    if name.startswith("cum"):
        return True
    if not name.startswith(("reduce_", "argm")):
        return False
    last = len(getattr(equation.invars[0].aval, "shape", ())) - 1
    return last in equation.params.get("axes", (last,))
