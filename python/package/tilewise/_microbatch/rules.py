"""The share of a traced program's values in the samples of a batch, and the rules of operations on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tilewise._jax.jaxprs import ARITHMETIC


class RefusedError(Exception):
    """Parts of the batch would compute something else than the whole."""


@dataclass(frozen=True)
class Share:
    """A value's share of the samples; `turn` counts the passes over all parts before it is known.

    It is one if the value follows from a sum over them.
    """

    turn: int = 0


@dataclass(frozen=True)
class Whole(Share):
    """A value that all parts share."""


@dataclass(frozen=True)
class Partial(Share):
    """A part's share of a sum over the batch."""


@dataclass(frozen=True)
class Each(Share):
    """Rows of each sample along dimension `at`: `inner` of them in a row, then the next sample's, and again."""

    at: int = 0
    inner: int = 1

    def along(self, at: int) -> Each:
        return replace(self, at=at)


#: Reasons why parts would compute something else.
PAIRS = "a value has one number for each two samples"
NEIGHBOURS = "samples are neighbours of one another in a window"
PART = "a part of the batch is taken"
JOINED = "arrays are joined along the batch"


def has_samples(size: int, samples: int) -> bool:
    """Whether a dimension of this size may be the samples', alone or merged with others."""
    return size >= samples and size % samples == 0


def together(shares: list[Share]) -> Each:
    """The rows that values have in common which are combined element by element; there is at least one with rows."""
    rows = [share for share in shares if isinstance(share, Each)]
    first = rows[0]
    if any((row.at, row.inner) != (first.at, first.inner) for row in rows):
        raise RefusedError(PAIRS)
    return replace(first, turn=max(share.turn for share in shares))


def merged(one: Share, other: Share) -> Share:
    """The share of a loop's carried value that has one before a step and the other after it."""
    turn = max(one.turn, other.turn)
    if isinstance(one, Whole):
        return replace(other, turn=turn)
    if isinstance(other, Whole):
        return replace(one, turn=turn)
    if type(one) is not type(other):
        raise RefusedError("a loop carries a sum over the batch as if it were of each sample")
    if isinstance(one, Each):
        return together([one, other])
    return Partial(turn)


@dataclass
class Outcome:
    """The outcome of an operation's rule.

    Attributes:
        results: each result's share of the samples; their turn is the latest of the operands'.
        operands: the rows that an operand is to have, where it is the same for all parts but has a row for each sample.
        params: parameters that change.
        zeros: the number of an operand that only the first part has, and others zeros of its shape.
        counted: whether the indices count the part's own samples, from 0.
    """

    results: list[Share]
    operands: dict[int, Each] = field(default_factory=dict[int, Each])
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    zeros: int | None = None
    counted: bool = False


@dataclass(frozen=True)
class Operation:
    """An operation as rules see it: parameters, the shapes of its operands and results, and its operands' shares.

    Of indices, `own` are the column with each sample's own number, as in ``x[jnp.arange(n), i]``, and the dimension
    along which it counts.
    """

    name: str
    params: dict[str, Any]
    operands: list[tuple[int, ...]]
    results: list[tuple[int, ...]]
    shares: list[Share]
    samples: int
    parts: int
    own: tuple[int, int] | None = None

    def rows(self, number: int = 0) -> Each:
        share = self.shares[number]
        if not isinstance(share, Each):
            raise RefusedError(f"`{self.name}` of what is the same for all samples, by what isn't")
        return share

    def whole(self, rows: Each) -> dict[int, Each]:
        """These rows for each operand that is the same for all parts."""
        return {number: rows for number, share in enumerate(self.shares) if isinstance(share, Whole)}

    def counts(self, dimensions: Any) -> int | None:
        """The dimension of the first operand whose place the indices give by each sample's own number."""
        at = dimensions[self.own[0]] if self.own else None
        return at if at is not None and self.operands[0][at] == self.samples else None

    def cut(self, shape: tuple[int, ...], rows: Each) -> tuple[int, ...]:
        return tuple(size // self.parts if at == rows.at else size for at, size in enumerate(shape))


ELEMENTWISE = ARITHMETIC | frozenset([
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i0e", "bessel_i1e", "bitcast_convert_type", "cbrt",
    "clz", "complex", "conj", "copy_p", "cosh", "digamma", "eq_to", "erf_inv", "erfc", "igamma", "igamma_grad_a",
    "igammac", "imag", "le_to", "lgamma", "lt_to", "nextafter", "one_minus_square", "polygamma", "population_count",
    "real", "reduce_precision", "regularized_incomplete_beta", "sharding_constraint", "sinh", "stop_gradient",
    "threefry2x32", "zeta",
])  # fmt: skip
LINEAR = frozenset([
    "add", "add_any", "convert_element_type", "copy", "copy_p", "neg", "reduce_sum", "reshape", "squeeze", "sub",
    "transpose",
])  # fmt: skip
"""Operations on sums over the batch that may be done on each part's share."""
_MOVING = ["broadcast_in_dim", "concatenate", "cumsum", "pad", "rev", "slice", "split", "stack", "unstack"]
_TOGETHER = {
    **dict.fromkeys([*LINEAR, *_MOVING], slice(None)),
    **dict.fromkeys(["dynamic_slice", "gather"], slice(1)),
    "dynamic_update_slice": slice(2),
    **dict.fromkeys(["scatter", "scatter-add"], slice(0, 3, 2)),
    "select_n": slice(1, None),
}
"""The operands in which an operation is linear, all of them together; others are predicates and places."""
_ALONE = {"conv_general_dilated": 2, "div": 1, "dot_general": 2, "mul": 2, "scatter-mul": 1}
"""How many of the first operands an operation is linear in, each alone."""
COSTLY = frozenset([
    "checkpoint", "cond", "conv_general_dilated", "dot_general", "ragged_dot_general", "remat", "scan", "while",
])  # fmt: skip
"""Operations that are too costly to do twice."""

Rule = Callable[[Operation], Outcome]


def linear_in(name: str, sums: list[bool]) -> range | None:
    """The operands in which an operation is linear together, if sums over the batch are all among them.

    In a loop's step, it may be done on each part's share; outside of loops, sums are added up first, which may be
    smaller.
    """
    if name in _TOGETHER:
        places = range(len(sums))[_TOGETHER[name]]
    elif sum(sums) == 1 and sums.index(True) < _ALONE.get(name, 0):
        places = range(sums.index(True), sums.index(True) + 1)
    else:
        return None
    return places if all(at in places for at, is_sum in enumerate(sums) if is_sum) else None


def elementwise(op: Operation) -> Outcome:
    rows = together(op.shares)
    wanted: dict[int, Each] = {}
    for number, (shape, share) in enumerate(zip(op.operands, op.shares, strict=True)):
        if isinstance(share, Whole) and shape and shape[rows.at] != 1:
            wanted[number] = rows
    return Outcome([rows] * len(op.results), wanted)


def broadcast_in_dim(op: Operation) -> Outcome:
    rows = op.rows().along(op.params["broadcast_dimensions"][op.rows().at])
    return Outcome([rows], params={"shape": op.cut(op.results[0], rows)})


def reshape(op: Operation) -> Outcome:
    rows, before, after = op.rows(), op.operands[0], op.results[0]
    # The number of elements at slower-varying indices, those of this dimension among them.
    slower = math.prod(before[: rows.at + 1]) // (op.samples * rows.inner)
    for at, bound in enumerate(after):
        outside = math.prod(after[:at])
        if slower % outside == 0 and bound % (slower // outside * op.samples) == 0:
            found = replace(rows, at=at, inner=bound // (slower // outside * op.samples))
            return Outcome([found], params={"new_sizes": op.cut(after, found)})
    raise RefusedError("a reshape takes the batch apart")


def transpose(op: Operation) -> Outcome:
    return Outcome([op.rows().along(op.params["permutation"].index(op.rows().at))])


def squeeze(op: Operation) -> Outcome:
    rows = op.rows()
    return Outcome([rows.along(rows.at - sum(at < rows.at for at in op.params["dimensions"]))])


def reduced(op: Operation) -> Outcome:
    rows, axes = together(op.shares), op.params["axes"]
    if rows.at not in axes:
        return Outcome([rows.along(rows.at - sum(at < rows.at for at in axes))] * len(op.results))
    if op.name != "reduce_sum":
        raise RefusedError(f"`{op.name}` goes over the batch")
    return Outcome([Partial()])


def along_an_axis(op: Operation) -> Outcome:
    """Scans, sorts and the like: along another dimension than the samples'."""
    axes = [op.params[name] for name in ("axis", "dimension") if name in op.params]
    axes += list(op.params.get("dimensions", ()))
    rows = together(op.shares)
    last = len(op.operands[0]) - 1
    if rows.at in (axes or [last]):
        raise RefusedError(f"`{op.name}` goes along the batch")
    return Outcome([rows] * len(op.results), op.whole(rows))


def concatenate(op: Operation) -> Outcome:
    rows = together(op.shares)
    if op.params["dimension"] == rows.at and any(shape[rows.at] % (op.samples * rows.inner) for shape in op.operands):
        raise RefusedError(JOINED)
    return Outcome([rows], op.whole(rows))


def stack(op: Operation) -> Outcome:
    rows = together(op.shares)
    return Outcome([rows.along(rows.at + (op.params["axis"] <= rows.at))], op.whole(rows))


def unstack(op: Operation) -> Outcome:
    rows, axis = op.rows(), op.params["axis"]
    if rows.at == axis:
        raise RefusedError("samples are taken apart")
    return Outcome([rows.along(rows.at - (axis < rows.at))] * len(op.results))


def pad(op: Operation) -> Outcome:
    if any(op.params["padding_config"][op.rows().at]):
        raise RefusedError("the batch is padded")
    return Outcome([op.rows()])


def slice_(op: Operation) -> Outcome:
    rows, params = op.rows(), op.params
    bounds = [list(params[name]) for name in ("start_indices", "limit_indices")]
    is_all = not any(bound[rows.at] % (op.samples * rows.inner) for bound in bounds)
    if not is_all or (params["strides"] or [1] * len(bounds[0]))[rows.at] != 1:
        raise RefusedError(PART)
    starts, limits = (op.cut(tuple(bound), rows) for bound in bounds)
    return Outcome([rows], params={"start_indices": starts, "limit_indices": limits})


def dynamic_slice(op: Operation) -> Outcome:
    rows, sizes = op.rows(), op.params["slice_sizes"]
    if sizes[rows.at] != op.operands[0][rows.at] or any(isinstance(share, Each) for share in op.shares[1:]):
        raise RefusedError(PART)
    return Outcome([rows], params={"slice_sizes": op.cut(sizes, rows)})


def dynamic_update_slice(op: Operation) -> Outcome:
    rows = together(op.shares[:2])
    if op.operands[0][rows.at] != op.operands[1][rows.at] or any(isinstance(share, Each) for share in op.shares[2:]):
        raise RefusedError("a part of the batch is overwritten")
    wanted = {number: rows for number in (0, 1) if isinstance(op.shares[number], Whole)}
    return Outcome([rows], wanted)


def window(op: Operation) -> Outcome:
    rows, params = together(op.shares), op.params
    names = ("window_dimensions", "window_strides", "base_dilation", "window_dilation")
    if any(params[name][rows.at] != 1 for name in names if name in params) or any(params["padding"][rows.at]):
        raise RefusedError(NEIGHBOURS)
    given = zip(op.shares, op.operands, strict=True)
    wanted = {number: rows for number, (share, shape) in enumerate(given) if isinstance(share, Whole) and shape}
    return Outcome([rows] * len(op.results), wanted)


def before_the_last(count: int) -> Rule:
    def rule(op: Operation) -> Outcome:
        rows = together(op.shares)
        if rows.at >= len(op.operands[0]) - count:
            raise RefusedError(f"`{op.name}` works on all of the batch")
        return Outcome([rows] * len(op.results), op.whole(rows))

    return rule


def triangular_solve(op: Operation) -> Outcome:
    """One matrix may be all samples', with a right-hand side of each beside the others'."""
    matrix, sides = op.shares
    rank = len(op.operands[1])
    own = rank - 1 if op.params["left_side"] else rank - 2
    if isinstance(matrix, Whole) and isinstance(sides, Each) and sides.at == own:
        return Outcome([sides])
    return before_the_last(2)(op)


def dot_general(op: Operation) -> Outcome:
    (contracted, batched) = op.params["dimension_numbers"]
    places = [kept(contracted[side], batched[side], len(op.operands[side])) for side in (0, 1)]
    free = [len(op.operands[0]) - len(contracted[0]) - len(batched[0]), 0]
    return _product(op, contracted, batched, [places[0], [at + free[0] for at in places[1]]])


def kept(contracted: Any, batched: Any, rank: int) -> list[int]:
    """By dimension of a factor, its place in the product, the other factor's free dimensions left out; -1 if summed."""
    places, at = [-1] * rank, len(batched)
    for number, dimension in enumerate(batched):
        places[dimension] = number
    for dimension in range(rank):
        if dimension not in batched and dimension not in contracted:
            places[dimension], at = at, at + 1
    return places


def _product(op: Operation, contracted: Any, batched: Any, places: list[list[int]]) -> Outcome:
    sides = [side for side in (0, 1) if isinstance(op.shares[side], Each)]
    rows = op.rows(sides[0])
    one, other = sides[0], 1 - sides[0]
    for pairs, is_sum in ((contracted, True), (batched, False)):
        if rows.at in pairs[one]:
            number = list(pairs[one]).index(rows.at)
            across = rows.along(pairs[other][number])
            if len(sides) == 2 and (op.rows(other).at, op.rows(other).inner) != (across.at, across.inner):
                raise RefusedError(PAIRS)
            wanted = {} if len(sides) == 2 else {other: across}
            kept: Share = Partial() if is_sum else rows.along(number)
            return Outcome([kept], wanted)
    if len(sides) == 2:
        raise RefusedError(PAIRS)
    return Outcome([rows.along(places[one][rows.at])])


def convolution(op: Operation) -> Outcome:
    numbers = op.params["dimension_numbers"]
    left, right, out = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    # The gradient of a grouped convolution's weights has groups of features there, and adds up over the batch.
    sides = zip(op.shares, (left[1], right[1]), strict=True)
    is_summed = all(share.at == features for share, features in sides if isinstance(share, Each))
    if op.params["batch_group_count"] != 1 and not is_summed:
        raise RefusedError("a convolution has groups of the batch")
    for share, spec in zip(op.shares, (left, right), strict=True):
        if isinstance(share, Each) and share.at not in spec[:2]:
            raise RefusedError(NEIGHBOURS)
    # Features of the first are those that the second reads; a gradient of the weights has the batch there.
    features = ((left[1],), (right[1],)) if op.params["feature_group_count"] == 1 else ((), ())
    free = [(left[0], out[0]), (right[0], out[1])]
    places = [
        [made if at == own else -1 for at in range(len(shape))]
        for (own, made), shape in zip(free, op.operands, strict=True)
    ]
    return _product(op, features, ((), ()), places)


def gather(op: Operation) -> Outcome:
    numbers, sizes = op.params["dimension_numbers"], op.params["slice_sizes"]
    rank = len(op.results[0])
    of_result = [at for at in range(rank) if at not in numbers.offset_dims]
    taken, indices = op.shares[:2]
    if isinstance(taken, Whole):
        rows = op.rows(1)
        return Outcome([rows.along(of_result[rows.at])])
    rows = op.rows(0)
    if op.counts(numbers.start_index_map) == rows.at and rows.inner == 1:
        assert op.own
        counted = rows.along(op.own[1])
        if isinstance(indices, Each):
            together([counted, indices])
        return Outcome([rows.along(of_result[counted.at])], op.whole(counted), counted=True)
    if rows.at in numbers.operand_batching_dims:
        batching: tuple[int, ...] = tuple(numbers.operand_batching_dims)
        across: int = numbers.start_indices_batching_dims[batching.index(rows.at)]
        found = rows.along(of_result[across])
        if isinstance(indices, Each):
            together([rows.along(across), indices])
            return Outcome([found])
        return Outcome([found], {1: rows.along(across)})
    if isinstance(indices, Each) or sizes[rows.at] != op.operands[0][rows.at]:
        raise RefusedError("samples are looked up in one another")
    left_out = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    windows = [at for at in range(len(op.operands[0])) if at not in left_out]
    found = rows.along(numbers.offset_dims[windows.index(rows.at)])
    return Outcome([found], params={"slice_sizes": op.cut(sizes, rows)})


def scatter(op: Operation) -> Outcome:
    numbers = op.params["dimension_numbers"]
    into, indices, updates = op.shares
    of_updates = [at for at in range(len(op.operands[2])) if at not in numbers.update_window_dims]
    left_out = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    windows = [at for at in range(len(op.operands[0])) if at not in left_out]
    # The dimension of each operand that is one and the same: a batch's, or a window's, which indices don't have.
    shared: list[tuple[int, int | None, int]] = [
        (at, across, of_updates[across])
        for at, across in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    ]
    shared += [(at, None, of) for at, of in zip(windows, numbers.update_window_dims, strict=True)]
    counted = op.counts(numbers.scatter_dims_to_operand_dims)
    if op.own and counted is not None and counted in numbers.inserted_window_dims:
        shared.insert(0, (counted, op.own[1], of_updates[op.own[1]]))
    having = [(number, share) for number, share in enumerate(op.shares) if isinstance(share, Each)]
    for places in shared:
        if all(share.at == places[of] for of, share in having):
            rows = together([share.along(places[0]) for _, share in having])
            whole = [of for of, share in enumerate(op.shares) if isinstance(share, Whole)]
            wanted = {of: rows.along(at) for of in whole if (at := places[of]) is not None}
            return Outcome([rows], wanted, counted=places[0] == counted)
    # Rows of all samples are added up, such as the gradient of an embedding.
    is_of_rows = not isinstance(updates, Each) or updates.at in of_updates
    if op.name != "scatter-add" or isinstance(into, Each) or not is_of_rows:
        raise RefusedError("samples are written to one place")
    if isinstance(updates, Each):
        across = updates.along(of_updates.index(updates.at))
        return Outcome([Partial()], {} if isinstance(indices, Each) else {1: across}, zeros=0)
    return Outcome([Partial()], {2: op.rows(1).along(of_updates[op.rows(1).at])}, zeros=0)


RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    "broadcast_in_dim": broadcast_in_dim,
    "reshape": reshape,
    "transpose": transpose,
    "squeeze": squeeze,
    "concatenate": concatenate,
    "stack": stack,
    "unstack": unstack,
    "fft": lambda op: before_the_last(len(op.params["fft_lengths"]))(op),
    "pad": pad,
    "slice": slice_,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "dot_general": dot_general,
    "conv_general_dilated": convolution,
    "gather": gather,
    "scatter": scatter,
    "scatter-add": scatter,
    "triangular_solve": triangular_solve,
    **dict.fromkeys(["cholesky", "lu", "qr", "geqrf", "svd", "eigh"], before_the_last(2)),
    **dict.fromkeys(["lu_pivots_to_permutation", "random_wrap"], before_the_last(1)),
    **dict.fromkeys(
        ["random_bits", "random_split", "random_fold_in", "random_unwrap"], lambda op: Outcome([op.rows()])
    ),
    **dict.fromkeys(
        ["reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "argmax", "argmin"],
        reduced,
    ),
    **dict.fromkeys(
        ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "sort", "rev", "split", "top_k"], along_an_axis
    ),
    **dict.fromkeys([f"reduce_window_{name}" for name in ("max", "sum", "min")], window),
    **dict.fromkeys(["select_and_scatter_add", "select_and_gather_add"], window),
}
