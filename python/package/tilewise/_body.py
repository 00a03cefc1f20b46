"""What the body of a kernel takes of VMEM besides what it declares: a guess, and what it takes at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

# What a core holds in registers: 64 of 8 × 128 words. Larger values that the body needs whole spill.
_REGISTERS = 64 * 4096

# Primitives that read a reference: what they give lies in VMEM already.
_LOADS = ("get", "load", "masked_load", "swap")


@dataclass(frozen=True)
class Body:
    """What of a body decides how much it spills. Sizes are in bytes, with the padding of tiles.

    Attributes:
        computed_bytes: the largest value that was computed, and that a matrix product has on its left or that is
            reduced along its lanes: it is there as a whole before its first element is used up.
        loaded_bytes: the largest value of this kind that was only loaded.
        computed_sum_bytes: all computed ones together, those of an unrolled loop as often as it is unrolled.
        transposed_bytes: the largest value that is transposed.
        value_bytes: the largest value of all.
        guess_bytes: the guess: the largest value that is reduced or on the left of a product; 0 if registers hold it.
    """

    computed_bytes: int
    loaded_bytes: int
    computed_sum_bytes: int
    transposed_bytes: int
    value_bytes: int
    guess_bytes: int

    @property
    def parts(self) -> dict[str, int]:
        """What `most_bytes` is a sum of."""
        return {
            "computed": self.computed_bytes,
            "loaded": self.loaded_bytes,
            # Of one softmax there are three: what is reduced twice, and the left of a product.
            "others": max(0, self.computed_sum_bytes - 3 * self.computed_bytes),
            "transposed": self.transposed_bytes,
        }

    @property
    def most_bytes(self) -> int:
        """What nine bodies of ten that hold as much take at most. At least it may be nothing."""
        return int(sum(_MOST[name] * size for name, size in self.parts.items()))


@dataclass(frozen=True)
class _Step:
    """An equation, how often it stands in the unrolled body, and whether it works on what was only loaded."""

    equation: Any
    times: int
    is_loaded: bool


def body_of(kernel: Any, jaxprs: Callable[[Any], Iterator[Any]], size: Callable[[Any], int]) -> Body:
    """The body of a kernel's jaxpr.

    Args:
        kernel: the jaxpr.
        jaxprs: the jaxprs in a parameter of an equation.
        size: bytes of an abstract array as a block.
    """
    computed = loaded = computed_sum = transposed = value = largest = 0
    for step in _steps(kernel, jaxprs):
        equation, name = step.equation, step.equation.primitive.name
        value = max([value, *(size(each.aval) for each in equation.outvars)])
        if name == "transpose":
            transposed = max(transposed, size(equation.invars[0].aval))
        is_reduced = name.startswith(("reduce_", "argm"))
        if not (is_reduced or name == "dot_general"):
            continue
        taken = size(equation.invars[0].aval)
        largest = max(largest, taken)
        rank = len(getattr(equation.invars[0].aval, "shape", ()))
        if is_reduced and rank - 1 not in equation.params.get("axes", (rank - 1,)):
            # Rows are added up as they come.
            continue
        if step.is_loaded:
            loaded = max(loaded, taken)
        else:
            computed = max(computed, taken)
            computed_sum += step.times * taken
    return Body(computed, loaded, computed_sum, transposed, value, largest if largest > _REGISTERS else 0)


def _steps(kernel: Any, jaxprs: Callable[[Any], Iterator[Any]]) -> Iterator[_Step]:
    """The equations of a jaxpr and of those inside it."""
    pending: list[tuple[Any, int]] = [(kernel, 1)]
    while pending:
        jaxpr, times = pending.pop()
        loaded = set[int]()
        for equation in jaxpr.eqns:
            first = equation.invars[0] if equation.invars else None
            yield _Step(equation, times, id(first) in loaded)
            if equation.primitive.name in _LOADS:
                loaded |= {id(each) for each in equation.outvars}
            unrolled = equation.params.get("unroll", 1) if equation.primitive.name == "scan" else 1
            inner = [each for parameter in equation.params.values() for each in jaxprs(parameter)]
            pending += [(each, times * max(int(unrolled), 1)) for each in reversed(inner)]


# What the most of a body grows by with each of its parts: the quantile at 0.96 of recorded bodies, in which an error
# counts as a part of the kernel's whole (`conformance/tpu/bodies.py fit`).
_MOST = {"computed": 0.99, "loaded": 1.14, "others": 1.04, "transposed": 5.69}
