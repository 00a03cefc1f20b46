"""The passes over all parts of a batch, as sums over it follow from one another."""

from __future__ import annotations

from typing import Any

from tilewise._base.modules import module
from tilewise._jax.equations import LANES
from tilewise._microbatch.program import Program
from tilewise._microbatch.rules import Each, Partial, RefusedError, Share, Whole


def parted(closed: Any, shares: list[Share], sizes: tuple[int, int], recomputes: bool = False) -> Program:
    """The program in parts, and each turn of a loop in which samples meet."""

    def of_turn(body: Any, shares: list[Share]) -> tuple[Any, int]:
        program = parted(body, shares, sizes, recomputes)
        return traced(program), program.largest

    return Program(closed, shares, sizes, recomputes=recomputes, of_turn=of_turn)


def traced(program: Program) -> Any:
    """The program of all parts, as JAX traces it."""
    jax = module("jax")
    avals = [program.avals[at] for at in program.inputs]
    structs = [jax.ShapeDtypeStruct(each.shape, each.dtype, weak_type=each.weak_type) for each in avals]
    return jax.make_jaxpr(lambda *leaves: run(program, list(leaves)))(*structs)


def run(program: Program, leaves: list[Any]) -> list[Any]:
    """Goes through the parts as many times as sums over the batch follow from one another."""
    # The parts' shares of a result are added up like any sum.
    results = [program.added_up(at) for at in program.results]
    given = dict(zip(program.inputs, leaves, strict=True))
    batch = {at: leaf for at, leaf in given.items() if isinstance(program.shares[at], Each)}
    whole = program.constants | {at: leaf for at, leaf in given.items() if at not in batch}
    whole |= {number: given[at] for number, at in program.wholes.items()}
    returned: dict[int, Any] = {}
    for targets in _turns(program, results, set(whole) | set(batch)):
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
        whole |= dict(zip(sums, totals, strict=True))
        # Rows that are returned are made anew by later passes.
        for at, value in zip(rows, joined, strict=True):
            (whole if at in program.sums else returned)[at] = value
    return program.run(results, whole | batch | returned, 0)


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
        if not now or (costly & computed and not program.recomputes):
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
