"""VMEM of a kernel's body beyond the declared bytes: a guess, and the most in nine bodies of ten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilewise._jaxprs import ARITHMETIC, nested
from tilewise._liveness import READS, held, is_along_lanes

# Bytes of a core's registers: 64 of 8 × 128 words. Whole values beyond that spill.
_REGISTERS = 64 * 4096
# Bytes of registers that are free for values of several steps: the others are in use by the computation.
_FREE = 48 * 4096


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
    for equation, is_loaded, is_read_again in _equations(kernel):
        is_product = equation.primitive.name == "dot_general"
        if not (is_product or _is_reduction(equation)):
            continue
        taken = size(equation.invars[0].aval)
        if is_product or is_read_again:
            largest = max(largest, taken)
        if is_product or is_along_lanes(equation):
            loaded, computed = (max(loaded, taken), computed) if is_loaded else (loaded, max(computed, taken))
    found = held(kernel, size, one_step)
    guess = largest if largest > _REGISTERS else 0
    return Body(found.in_order, found.together, found.unrolled, computed, loaded, guess)


def _equations(kernel: Any) -> Iterator[tuple[Any, bool, bool]]:
    """The equations of a jaxpr and of those inside it, each with two properties of its first operand.

    These are whether it was only loaded, and for a reduction whether it, or a value it is computed from element by
    element, is read again: a value that isn't is used up as it is computed.
    """
    for jaxpr in nested(kernel):
        made = {id(result): equation for equation in jaxpr.eqns for result in equation.outvars}
        readers = Counter(id(each) for equation in jaxpr.eqns for each in {id(v): v for v in equation.invars}.values())
        readers.update(id(each) for each in jaxpr.outvars)
        for equation in jaxpr.eqns:
            first = equation.invars[0] if equation.invars else None
            is_read_again = _is_reduction(equation) and _is_read_again(first, made, readers)
            yield equation, _is_load(made.get(id(first))), is_read_again


def _is_reduction(equation: Any) -> bool:
    return bool(equation.primitive.name.startswith(("reduce_", "argm")))


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
            return not hasattr(one, "val")
        shape = one.aval.shape
        pending += [each for each in equation.invars if getattr(each.aval, "shape", None) == shape]
    return False


def _beyond(size: int) -> int:
    """The bytes of a size that free registers don't hold."""
    return max(0, size - _FREE)


# The weights of a body's parts in its most: the quantile at 0.96 of recorded bodies, in which an error
# counts as a part of the kernel's whole (`conformance/tpu/bodies.py fit`).
_MOST = {"in order": 1.29, "together": 0.36, "unrolled": 0.65, "computed": 0.38, "loaded": 0.94}
