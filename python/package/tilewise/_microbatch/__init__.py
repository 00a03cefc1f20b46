"""`microbatch`: a step as it is, computed in parts of its batch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tilewise._base.errors import Error
from tilewise._base.modules import module
from tilewise._microbatch import passes
from tilewise._microbatch.made import Made
from tilewise._microbatch.passes import run
from tilewise._microbatch.rules import Each, RefusedError, Share, Whole

_F = TypeVar("_F", bound=Callable[..., Any])


def microbatch(
    step: _F,
    parts: int,
    batch_argnums: int | Sequence[int] = (),
    *,
    batch_argnames: str | Sequence[str] | Mapping[str, int] = (),
    axis: int = 0,
    made_at: str | None = None,
    size: int | None = None,
    recompute: bool = False,
) -> _F:
    """Make a step that goes through its batch in parts, one after the other, with the results of the whole batch.

    The step stays as it is: a training step with its loss, its gradient and its optimizer, or inference. It is traced
    once, for the whole batch. Values with a row for each sample are computed for a part at a time. The parts' shares of
    a sum over the batch, such as a gradient, are added up (two-byte floats in float32). Values that follow from these
    sums, such as the optimizer's update, are computed once. Means stay those of the whole batch, also where parts have
    unequal numbers of its tokens. Small rows of all samples are joined for what needs them together, such as a rank.
    A loop in whose turns samples meet, such as an iterative solver's, goes through the parts in each turn.
    Results equal the step's own but for rounding.

    Args:
        step: a function of arrays; it may be under `jax.jit`.
        parts: how many; they have equally many samples.
        batch_argnums: the positional arguments that have the batch, in all of their arrays.
        batch_argnames: these by the names of parameters, or of single arrays as reports have them, such as
            ``batch[1]`` or ``batch['mask']``; a mapping gives the dimension that is the batch for each name.
        axis: the dimension of these arrays that is the batch, where no mapping gives it.
        made_at: the line that makes the batch, ``file.py:30`` as in reports, where the step does so itself: pairs of
            all rows, samples that it draws, or what `jax.vmap` makes of an argument's rows. Each pass over the parts
            makes them anew, and so does each turn of a loop that reads them.
        size: the samples there, a dimension of the largest array that the line makes: that of number ``axis`` where it
            has this size.
        recompute: compute the samples again where what follows from all of them, such as the loss of all pairs of a
            contrastive model, decides each one's gradient; small rows of all, such as embeddings, are kept.

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

        All pairs of 8 rows, two rows of the matrix at a time:

        >>> def energies(x):
        ...     return jnp.exp(-((x[:, None] - x) ** 2).sum(-1)).sum(1)
        >>> line = f"{energies.__code__.co_filename}:{energies.__code__.co_firstlineno + 1}"
        >>> in_parts = jax.jit(microbatch(energies, 4, made_at=line, size=8))
        >>> bool(jnp.allclose(in_parts(x), energies(x)))
        True
    """
    jax = module("jax")
    if (made_at is None) != (size is None):
        raise Error("a batch that the step makes needs both `made_at` and `size`", kind="microbatch")
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
        if made_at is not None and size is not None:
            return _through_made(step, args, kwargs, parts, (made_at, axis, size))
        return parted(step, args, kwargs, parts, along, recompute=recompute)

    return in_parts  # type: ignore[return-value]


@dataclass
class _Traced:
    """A call of a step, as a function of its arrays alone."""

    name: str
    closed: Any
    leaves: list[Any]
    shape: Any

    @classmethod
    def of(cls, step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Traced:
        jax = module("jax")
        leaves, tree = jax.tree.flatten((args, kwargs))

        def flat(*leaves: Any) -> Any:
            args, kwargs = jax.tree.unflatten(tree, leaves)
            return step(*args, **kwargs)

        closed, shape = jax.make_jaxpr(flat, return_shape=True)(*leaves)
        return cls(getattr(step, "__name__", "the step"), closed, leaves, shape)

    def result(self, compute: Callable[[], list[Any]]) -> Any:
        jax = module("jax")
        try:
            return jax.tree.unflatten(jax.tree.structure(self.shape), compute())
        except RefusedError as error:
            raise Error(f"{self.name} can't be computed in parts of its batch: {error}", kind="microbatch") from None


def parted(
    step: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    parts: int,
    along: list[int | None],
    recompute: bool = False,
) -> Any:
    """The step's results in parts; the dimension that is the batch is given for each array of the arguments."""
    size = _size(module("jax").tree.leaves((args, kwargs)), along, parts)
    traced = _Traced.of(step, args, kwargs)
    shares: list[Share] = [Whole() if at is None else Each(at=at) for at in along]
    return traced.result(lambda: run(passes.parted(traced.closed, shares, (size, parts), recompute), traced.leaves))


def _through_made(
    step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], parts: int, made: tuple[str, int, int]
) -> Any:
    line, axis, size = made
    _equal_parts(size, parts)
    traced = _Traced.of(step, args, kwargs)
    as_function = module("jax.extend.core").jaxpr_as_fun

    def compute() -> list[Any]:
        changed = Made.of(traced.closed, line, axis, (size, parts)).in_parts(traced.closed)
        return list(as_function(changed)(*traced.leaves))

    return traced.result(compute)


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
    _equal_parts(size, parts)
    return size


def _equal_parts(size: int, parts: int) -> None:
    if parts < 1 or size % parts:
        raise Error(f"{size} samples aren't {parts} equal parts", kind="microbatch")
