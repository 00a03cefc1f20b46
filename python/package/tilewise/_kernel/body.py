"""VMEM of a kernel's body beyond the declared bytes, guessed from its jaxpr.

The compiler computes elementwise operations register by register, so that a value which is used up at once is never
there as a whole. A matrix product needs all of its left operand, and a value that is reduced and read again is held
until then. The guess is the largest of these, where registers don't hold it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tilewise._jax.jaxprs import ARITHMETIC, is_literal, nested

# Bytes of a core's registers: 64 of 8 × 128 words. Whole values beyond that spill.
_REGISTERS = 64 * 4096
# Primitives that read a reference: their results lie in VMEM already.
_READS = ("get", "load", "masked_load")


def guess_bytes(kernel: Any, size: Callable[[Any], int]) -> int:
    """The guess of a kernel's jaxpr; 0 where registers hold all values.

    Args:
        size: bytes of an abstract array as a block.
    """
    largest = 0
    for jaxpr in nested(kernel):
        made = {id(result): equation for equation in jaxpr.eqns for result in equation.outvars}
        readers = Counter(each for equation in jaxpr.eqns for each in {id(variable) for variable in equation.invars})
        readers.update(id(each) for each in jaxpr.outvars)
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            is_reduction = name.startswith(("reduce_", "argm"))
            if name == "dot_general" or (is_reduction and _is_read_again(equation.invars[0], made, readers)):
                largest = max(largest, size(equation.invars[0].aval))
    return largest if largest > _REGISTERS else 0


def _is_read_again(variable: Any, made: dict[int, Any], readers: Counter[int]) -> bool:
    """Whether a value is held: it is consumed as it is computed, unless it or one of its sources is read again."""
    pending, seen = [variable], set[int]()
    while pending:
        one = pending.pop()
        equation = made.get(id(one))
        if id(one) in seen or (equation is not None and equation.primitive.name in _READS):
            continue
        seen.add(id(one))
        # A value that isn't computed here, or not by an elementwise operation, is there as a whole.
        if equation is None or equation.primitive.name not in ARITHMETIC or readers[id(one)] > 1:
            return not is_literal(one)
        shape = one.aval.shape
        pending += [each for each in equation.invars if getattr(each.aval, "shape", None) == shape]
    return False
