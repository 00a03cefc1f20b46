"""The operands that an operation's samples come from: the rules of operations, from a result back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewise._microbatch import rules
from tilewise._microbatch.rules import Each, Operation, RefusedError, has_samples


@dataclass
class Starts:
    """The operations at which a batch begins that the program makes itself.

    Attributes:
        operands: by the first result of an operation, the operands that are cut into parts there, and their rows.
        least: the bytes up to which values that are made of larger ones are joined.
    """

    operands: dict[Any, dict[int, Each]]
    least: int


def origins(equation: Any, result: int, rows: Each, sizes: tuple[int, int]) -> list[tuple[int, Each]]:
    """The operands that have the rows of a result, each with their place in it; none where the dimension begins.

    Raises:
        RefusedError: it isn't known.
    """
    name = equation.primitive.name
    rule = _BACK.get(name)
    if rule is None:
        raise RefusedError(f"where `{name}` has its samples from isn't known")
    shapes = [tuple(getattr(atom.aval, "shape", ())) for atom in equation.invars]
    made = tuple(equation.outvars[result].aval.shape)
    found = rule(Operation(name, equation.params, [made], shapes, [rows], *sizes))
    return [(number, each) for number, each in found if shapes[number][each.at] != 1]


Back = Callable[[Operation], list[tuple[int, Each]]]
"""A rule that is given a result as the operation's operand, and its operands as results."""


def _in_place(op: Operation) -> list[tuple[int, Each]]:
    """Operands with the samples where the result has them. The way forward shows if it goes along them."""
    rows = op.rows()
    return [
        (number, rows)
        for number, its in enumerate(op.results)
        if len(its) > rows.at and has_samples(its[rows.at], op.samples)
    ]


def _broadcast(op: Operation) -> list[tuple[int, Each]]:
    places = list(op.params["broadcast_dimensions"])
    return [(0, op.rows().along(places.index(op.rows().at)))] if op.rows().at in places else []


def _reshape(op: Operation) -> list[tuple[int, Each]]:
    found = rules.reshape(op).results[0]
    assert isinstance(found, Each)
    return [(0, found)]


def _transpose(op: Operation) -> list[tuple[int, Each]]:
    return [(0, op.rows().along(op.params["permutation"][op.rows().at]))]


def _without(left_out: Any, at: int, rank: int) -> int:
    """The dimension of an operand that is this one of the result, which has others left out."""
    return [each for each in range(rank) if each not in left_out][at]


def _fewer(name: str) -> Back:
    def rule(op: Operation) -> list[tuple[int, Each]]:
        at = _without(op.params[name], op.rows().at, len(op.results[0]))
        return [(number, op.rows().along(at)) for number in range(len(op.results))]

    return rule


def _concatenate(op: Operation) -> list[tuple[int, Each]]:
    rows = op.rows()
    sizes = [shape[rows.at] for shape in op.results]
    if op.params["dimension"] == rows.at and any(size % (op.samples * rows.inner) for size in sizes):
        raise RefusedError(rules.JOINED)
    return [(number, rows) for number in range(len(op.results))]


def _stack(op: Operation) -> list[tuple[int, Each]]:
    rows, axis = op.rows(), op.params["axis"]
    if rows.at == axis:
        raise RefusedError(rules.JOINED)
    return [(number, rows.along(rows.at - (axis < rows.at))) for number in range(len(op.results))]


def _unstack(op: Operation) -> list[tuple[int, Each]]:
    return [(0, op.rows().along(op.rows().at + (op.params["axis"] <= op.rows().at)))]


def _dot_general(op: Operation) -> list[tuple[int, Each]]:
    (contracted, batched), rows = op.params["dimension_numbers"], op.rows()
    found: list[tuple[int, Each]] = []
    free = 0
    for side in (0, 1):
        places = rules.kept(contracted[side], batched[side], len(op.results[side]))
        moved = [at + free if at >= len(batched[side]) else at for at in places]
        found += [(side, rows.along(own)) for own, at in enumerate(moved) if at == rows.at]
        free = len(op.results[0]) - len(contracted[0]) - len(batched[0])
    return found


def _gather(op: Operation) -> list[tuple[int, Each]]:
    numbers, rows = op.params["dimension_numbers"], op.rows()
    if rows.at in numbers.offset_dims:
        left_out = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        at = _without(left_out, list(numbers.offset_dims).index(rows.at), len(op.results[0]))
        return [(0, rows.along(at))]
    own = rows.at - sum(at < rows.at for at in numbers.offset_dims)
    pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    return [(1, rows.along(own)), *((0, rows.along(at)) for at, across in pairs if across == own)]


def _random(op: Operation) -> list[tuple[int, Each]]:
    if op.rows().at < len(op.results[0]):
        return [(0, op.rows())]
    raise RefusedError("one key draws for all samples; `jax.vmap` over `jax.random.split(key, n)` draws for each")


_REDUCED = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "argmax", "argmin")

_IN_PLACE = (rules.along_an_axis, rules.elementwise, rules.pad, rules.slice_)

_BACK: dict[str, Back] = {
    **{name: _in_place for name, rule in rules.RULES.items() if rule in _IN_PLACE},
    "fft": _in_place,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "squeeze": _fewer("dimensions"),
    **dict.fromkeys(_REDUCED, _fewer("axes")),
    "concatenate": _concatenate,
    "stack": _stack,
    "unstack": _unstack,
    "dot_general": _dot_general,
    "gather": _gather,
    "iota": lambda op: [],
    **dict.fromkeys(["random_bits", "random_split", "random_fold_in", "random_wrap", "random_unwrap"], _random),
}
