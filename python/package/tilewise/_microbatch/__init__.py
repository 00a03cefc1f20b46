"""`microbatch`: a step as it is, computed in parts of its batch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tilewise._base.errors import Error
from tilewise._base.modules import module
from tilewise._microbatch.program import Program
from tilewise._microbatch.rules import Each, Partial, RefusedError, Share, Whole

LANES = 128
"""The elements of a TPU's tile along the dimension that varies fastest."""

_F = TypeVar("_F", bound=Callable[..., Any])


def microbatch(
    step: _F,
    parts: int,
    batch_argnums: int | Sequence[int] = (),
    *,
    batch_argnames: str | Sequence[str] | Mapping[str, int] = (),
    axis: int = 0,
) -> _F:
    """Make a step that goes through its batch in parts, one after the other, with the results of the whole batch.

    The step stays as it is: a training step with its loss, its gradient and its optimizer, or inference. It is traced
    once, for the whole batch. Values with a row for each sample are computed for a part at a time. The parts' shares of
    a sum over the batch, such as a gradient, are added up (two-byte floats in float32). Values that follow from these
    sums, such as the optimizer's update, are computed once. Means stay those of the whole batch, also where parts have
    unequal numbers of its tokens. Small rows of all samples are joined for what needs them together, such as a rank.
    Results equal the step's own but for rounding.

    Args:
        step: a function of arrays; it may be under `jax.jit`.
        parts: how many; they have equally many samples.
        batch_argnums: the positional arguments that have the batch, in all of their arrays.
        batch_argnames: these by the names of parameters, or of single arrays as reports have them, such as
            ``batch[1]`` or ``batch['mask']``; a mapping gives the dimension that is the batch for each name.
        axis: the dimension of these arrays that is the batch, where no mapping gives it.

    Raises:
        Error: when it is called, where parts compute something else than the whole, as with a contrastive loss or a
            batch norm, or where that isn't known; ``message`` says which operation joins samples.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> def step(weights, x, y, mask):
        ...     def loss(weights):
        ...         return (mask * (x @ weights - y) ** 2).sum() / mask.sum()
        ...     return weights - 0.1 * jax.grad(loss)(weights)
        >>> x, y, mask = jnp.ones((8, 4)), jnp.arange(8.0), jnp.arange(8) < 5
        >>> in_parts = jax.jit(microbatch(step, 4, batch_argnums=(1, 2, 3)))
        >>> bool(jnp.allclose(in_parts(jnp.ones(4), x, y, mask), step(jnp.ones(4), x, y, mask)))
        True
    """
    jax = module("jax")
    numbers = {batch_argnums} if isinstance(batch_argnums, int) else set(batch_argnums)
    named = (batch_argnames,) if isinstance(batch_argnames, str) else batch_argnames
    axes = dict(named) if isinstance(named, Mapping) else dict.fromkeys(named, axis)
    parameters = list(inspect.signature(step).parameters.values())

    @functools.wraps(step)
    def in_parts(*args: Any, **kwargs: Any) -> Any:
        paths, _ = jax.tree_util.tree_flatten_with_path((args, kwargs))
        names = [_names(jax, parameters, path) for path, _ in paths]
        is_numbered = [path[0].idx == 0 and path[1].idx in numbers for path, _ in paths]
        along = [axis if is_its else _axis(axes, its) for is_its, its in zip(is_numbered, names, strict=True)]
        unknown = [name for name in axes if not any(_is_of(name, its) for its in names)]
        if unknown:
            raise Error(f"no argument is {', '.join(f'`{name}`' for name in unknown)}", kind="microbatch")
        return parted(step, args, kwargs, parts, along)

    return in_parts  # type: ignore[return-value]


def parted(
    step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], parts: int, along: list[int | None]
) -> Any:
    """The step's results in parts; the dimension that is the batch is given for each array of the arguments."""
    jax = module("jax")
    leaves, tree = jax.tree.flatten((args, kwargs))
    size = _size(leaves, along, parts)

    def flat(*leaves: Any) -> Any:
        args, kwargs = jax.tree.unflatten(tree, leaves)
        return step(*args, **kwargs)

    closed, shape = jax.make_jaxpr(flat, return_shape=True)(*leaves)
    shares: list[Share] = [Whole() if at is None else Each(at=at) for at in along]
    try:
        program = Program(closed, shares, (size, parts))
        found = _run(program, leaves)
    except RefusedError as error:
        name = getattr(step, "__name__", "the step")
        raise Error(f"{name} can't be computed in parts of its batch: {error}", kind="microbatch") from None
    return jax.tree.unflatten(jax.tree.structure(shape), found)


def _names(jax: Any, parameters: list[inspect.Parameter], path: Any) -> list[str]:
    """The names of an argument's array in reports: by its parameter, or by its number if that isn't known."""
    of_kwargs, key, *rest = path
    at: int | None = None if of_kwargs.idx else key.idx
    name: str | None = key.key if of_kwargs.idx else None
    by_kind = {parameter.kind: number for number, parameter in enumerate(parameters)}
    variadic = by_kind.get(inspect.Parameter.VAR_POSITIONAL, len(parameters))
    found = [f"args[{at}]" if name is None else f"kwargs['{name}']"]
    if at is not None and at < variadic:
        found.append(parameters[at].name)
    elif at is not None and variadic < len(parameters):
        found.append(f"{parameters[variadic].name}[{at - variadic}]")
    elif name is not None and any(parameter.name == name for parameter in parameters):
        found.append(name)
    elif inspect.Parameter.VAR_KEYWORD in by_kind:
        found.append(f"{parameters[by_kind[inspect.Parameter.VAR_KEYWORD]].name}['{name}']")
    return [root + jax.tree_util.keystr(tuple(rest)) for root in found]


def _is_of(name: str, its: list[str]) -> bool:
    return any(found == name or found.startswith((f"{name}[", f"{name}.")) for found in its)


def _axis(axes: dict[str, int], its: list[str]) -> int | None:
    return next((axis for name, axis in axes.items() if _is_of(name, its)), None)


def _size(leaves: list[Any], along: list[int | None], parts: int) -> int:
    found: list[tuple[tuple[int, ...], int]] = [
        (module("jax.numpy").shape(leaf), at) for leaf, at in zip(leaves, along, strict=True) if at is not None
    ]
    sizes = {shape[at] if len(shape) > at else 0 for shape, at in found}
    if len(sizes) != 1 or 0 in sizes:
        bounds = ", ".join(f"{list(shape)} along dimension {at}" for shape, at in found) or "none"
        raise Error(f"all arrays of the batch need one size; they are {bounds}", kind="microbatch")
    size = next(iter(sizes))
    if parts < 1 or size % parts:
        raise Error(f"{size} samples aren't {parts} equal parts", kind="microbatch")
    return size


def _run(program: Program, leaves: list[Any]) -> list[Any]:
    """Goes through the parts as many times as sums over the batch follow from one another."""
    # The parts' shares of a result are added up like any sum.
    results = [program.added_up(at) for at in program.results]
    given = dict(zip(program.inputs, leaves, strict=True))
    batch = {at: leaf for at, leaf in given.items() if isinstance(program.shares[at], Each)}
    whole = program.constants | {at: leaf for at, leaf in given.items() if at not in batch}
    for targets in _turns(program, results, set(given) | set(program.constants)):
        sources = {at: program.sums.get(at, at) for at in targets}
        sums = [at for at in targets if isinstance(program.shares[sources[at]], Partial)]
        rows = [at for at in targets if at not in sums]
        added, each = [sources[at] for at in sums], [sources[at] for at in rows]
        # Values that all parts share are computed before them.
        steps = program.needed({*added, *each}, set(whole) | set(batch))
        read = {at for step in steps for at in step.reads if isinstance(program.shares[at], Whole)}
        ready = program.before_parts(read, set(whole))
        whole |= dict(zip(ready, program.run(ready, whole, 0), strict=True))
        totals, joined = _through(program, batch, whole, added, each)
        whole |= dict(zip(sums, totals, strict=True)) | dict(zip(rows, joined, strict=True))
    return program.run(results, whole | batch, 0)


def _turns(program: Program, results: list[int], known: set[int]) -> list[list[int]]:
    """The values computed in each pass over all parts: sums over the batch, and rows that are returned."""

    def of(at: int) -> tuple[set[int], set[int]]:
        """The sums that something follows from, and the costly operations on the way."""
        steps = program.needed({program.sums.get(at, at)}, known | set(program.sums))
        read = {read for step in steps for read in step.reads} & set(program.sums)
        return read, {made for step in steps if step.is_costly for made in step.makes}

    rows = {at for at in results if isinstance(program.shares[at], Each) and at not in known}
    direct = program.needed(set(results) - rows, known | set(program.sums) | rows)
    targets = rows | ({*results, *(at for step in direct for at in step.reads)} & set(program.sums))
    turns: list[list[int]] = []
    computed: set[int] = set()
    while targets:
        found: dict[int, tuple[set[int], set[int]]] = {at: of(at) for at in targets}
        before = set[int]().union(*(read for read, _ in found.values()))
        again = set[int]().union(*(of(at)[1] for at in before))
        # A loss that only the caller reads is computed with the gradient that has its forward pass.
        early = {at for at in targets - before if not found[at][0] and found[at][1] & again}
        now = sorted(targets - before - early)
        costly = set[int]().union(*(found[at][1] for at in now))
        if not now or costly & computed:
            raise RefusedError("what follows from all of the batch, such as its mean, is used for each sample")
        computed |= costly
        turns.append(now)
        targets = before | early
    return turns[::-1]


def _through(
    program: Program, batch: dict[int, Any], whole: dict[int, Any], added: list[int], each: list[int]
) -> tuple[list[Any], list[Any]]:
    """Goes through all parts once: their sums, and their rows, joined."""
    lax, jnp = module("jax.lax"), module("jax.numpy")
    rows = program.samples // program.parts
    axes = {at: share.at for at in batch if isinstance(share := program.shares[at], Each)}

    def wide(dtype: Any) -> Any:
        return jnp.float32 if jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize < 4 else dtype

    def one(totals: list[Any], number: Any) -> tuple[list[Any], list[Any]]:
        cut = {at: lax.dynamic_slice_in_dim(leaf, number * rows, rows, axes[at]) for at, leaf in batch.items()}
        found = program.run([*added, *each], whole | cut, number)
        totals = [total + new.astype(total.dtype) for total, new in zip(totals, found, strict=False)]
        # Short rows of results would be padded to whole lanes.
        results = zip(each, found[len(added) :], strict=True)
        return totals, [jnp.moveaxis(value, _place(program, at), -1) for at, value in results]

    avals = [program.avals[at] for at in added]
    zeros = [jnp.zeros(aval.shape, wide(aval.dtype)) for aval in avals]
    totals, joined = lax.scan(one, zeros, jnp.arange(program.parts))
    totals = [total.astype(aval.dtype) for total, aval in zip(totals, avals, strict=True)]
    return totals, [_joined(program, at, value) for at, value in zip(each, joined, strict=True)]


def _place(program: Program, at: int) -> int:
    """The dimension that is last while parts of a result are stacked up: the samples' own where the last is short."""
    share, shape = program.shares[at], program.avals[at].shape
    assert isinstance(share, Each)
    return share.at if 2 * shape[-1] <= LANES and shape[share.at] >= LANES * program.parts else len(shape) - 1


def _joined(program: Program, at: int, value: Any) -> Any:
    jnp = module("jax.numpy")
    share = program.shares[at]
    assert isinstance(share, Each)
    shape = program.avals[at].shape
    before, _, inner = program.apart(shape, share)[share.at : share.at + 3]
    value = jnp.moveaxis(value, -1, 1 + _place(program, at))
    parts, part = program.parts, value.shape[1:]
    value = value.reshape(parts, *part[: share.at], before, -1, inner, *part[share.at + 1 :])
    return jnp.moveaxis(value, 0, share.at + 1).reshape(shape)
