"""What the body of a kernel takes of VMEM besides what it declares: a guess, and what it takes at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilewise._held import READS, held, is_along_lanes

# What a core holds in registers: 64 of 8 × 128 words. What the body needs whole beyond that spills.
_REGISTERS = 64 * 4096
# What of them a value of several steps finds free: the others are being computed with.
_FREE = 48 * 4096


@dataclass(frozen=True)
class Body:
    """What of a body decides how much it spills. Sizes are in bytes, with the padding of tiles.

    Attributes:
        in_order_bytes: the most that is held at a time, in the order of the program.
        together_bytes: the most that is held at a time, where steps that don't wait for each other come together.
        computed_bytes: the largest value that was computed, and that a matrix product has on its left or that is
            reduced along its lanes.
        loaded_bytes: the largest value of this kind that was only loaded.
        guess_bytes: the guess: the largest value that is reduced or on the left of a product; 0 if registers hold it.
    """

    in_order_bytes: int
    together_bytes: int
    computed_bytes: int
    loaded_bytes: int
    guess_bytes: int

    @property
    def parts(self) -> dict[str, int]:
        """What `most_bytes` is a sum of."""
        in_order = _beyond(self.in_order_bytes)
        return {
            "in order": in_order,
            "together": max(0, _beyond(self.together_bytes) - in_order),
            "computed": self.computed_bytes,
            "loaded": _beyond(self.loaded_bytes),
        }

    @property
    def most_bytes(self) -> int:
        """What nine bodies of ten that hold as much take at most. At least it may be nothing."""
        return int(sum(_MOST[name] * size for name, size in self.parts.items()))


def body_of(kernel: Any, jaxprs: Callable[[Any], Iterator[Any]], size: Callable[[Any], int]) -> Body:
    """The body of a kernel's jaxpr.

    Args:
        kernel: the jaxpr.
        jaxprs: the jaxprs in a parameter of an equation.
        size: bytes of an abstract array as a block.
    """
    computed = loaded = largest = 0
    for equation, is_loaded in _equations(kernel, jaxprs):
        is_product = equation.primitive.name == "dot_general"
        if not (is_product or equation.primitive.name.startswith(("reduce_", "argm"))):
            continue
        taken = size(equation.invars[0].aval)
        largest = max(largest, taken)
        if is_product or is_along_lanes(equation):
            loaded, computed = (max(loaded, taken), computed) if is_loaded else (loaded, max(computed, taken))
    found = held(kernel, jaxprs, size)
    guess = largest if largest > _REGISTERS else 0
    return Body(found.in_order, found.together, computed, loaded, guess)


def _equations(kernel: Any, jaxprs: Callable[[Any], Iterator[Any]]) -> Iterator[tuple[Any, bool]]:
    """The equations of a jaxpr and of those inside it, each with whether it works on what was only loaded."""
    pending = [kernel]
    while pending:
        loaded = set[int]()
        for equation in pending.pop().eqns:
            yield equation, bool(equation.invars) and id(equation.invars[0]) in loaded
            if equation.primitive.name in READS:
                loaded |= {id(each) for each in equation.outvars}
            pending += reversed([each for parameter in equation.params.values() for each in jaxprs(parameter)])


def _beyond(size: int) -> int:
    """What of a size free registers don't hold."""
    return max(0, size - _FREE)


# What the most of a body grows by with each of its parts: the quantile at 0.96 of recorded bodies, in which an error
# counts as a part of the kernel's whole (`conformance/tpu/bodies.py fit`).
_MOST = {"in order": 1.29, "together": 0.36, "computed": 0.32, "loaded": 0.94}
