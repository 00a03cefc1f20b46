"""Values to keep and equations to compute again, as a minimum cut.

For each value there is a node *available*, for each equation a node *again*. A cut between the source and the sink
keeps a value (its bytes), or computes an equation again (its seconds, times a price in bytes a second):

- source → available(v), never cut, for each v that the backward pass reads;
- available(v) → again(maker of v): the bytes of v;
- again(e) → sink: the price of e; never cut where e must not run twice;
- again(e) → available(w), never cut, for each w that e reads; again(e) → available(v) for each v that it makes.

The cut of a joint graph of both passes is how PyTorch's partitioner chooses values to save
(`torch._functorch.partitioners.min_cut_rematerialization_partition`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tilewise._base.modules import module
from tilewise._jax.jaxprs import makers, variables
from tilewise._remat.equations import bytes_of

_INFINITE = 2**29
_WHOLE = 2**28
"""The largest capacity, far below the limit of 32 bits: sums of capacities stay below it."""


@dataclass(frozen=True)
class Cut:
    """The choice in a region: variables to keep, and the places of the equations to repeat, ascending."""

    kept: list[Any]
    again: list[int]


def minimum_cut(
    equations: Sequence[Any],
    wanted: Collection[Any],
    worth: Sequence[float],
    *,
    free: Collection[Any] = (),
    given: Collection[Any] = (),
    fixed: Collection[Any] = (),
) -> Cut:
    """The cut with the least sum of kept bytes and of the worth of repeated equations.

    Args:
        wanted: the values that the backward pass reads.
        worth: of each equation, the bytes that its seconds are worth; infinite where it must not be repeated.
        free: results of the equations that are alive without being kept.
        given: inputs that can be kept, and can't be made again; other inputs cost nothing.
        fixed: values that can be kept, and are not to be made again.
    """
    numpy, sparse = module("numpy"), module("scipy.sparse")
    flow = module("scipy.sparse.csgraph").maximum_flow
    made = makers(equations)
    free, given, fixed = set(free), set(given), set(fixed)
    numbers: dict[Any, int] = {"source": 0, "sink": 1}

    def node(key: Any) -> int:
        return numbers.setdefault(key, len(numbers))

    # Only equations that lead to a wanted value are in the graph.
    inside: set[int] = set()
    waiting = [each for each in wanted if each in made or each in given]
    ends = {each for each in waiting if each in given}
    while waiting:
        at = made.get(waiting.pop())
        if at is None or at in inside:
            continue
        inside.add(at)
        for atom in variables(equations[at].invars):
            if atom in made and atom not in free:
                waiting.append(atom)
            elif atom in given and atom not in free:
                ends.add(atom)
    total = sum(bytes_of(variable) for at in inside for variable in equations[at].outvars) + sum(map(bytes_of, ends))
    unit = max(1.0, total / _WHOLE)
    edges: dict[tuple[int, int], int] = {}

    def edge(one: Any, other: Any, capacity: float) -> None:
        key = node(one), node(other)
        edges[key] = min(_INFINITE, edges.get(key, 0) + int(capacity))

    for variable in ends:
        edge(("value", variable), "sink", max(1, bytes_of(variable) / unit))
    for at in sorted(inside):
        equation, cost = equations[at], worth[at]
        never = cost == float("inf") or not fixed.isdisjoint(equation.outvars)
        edge(("again", at), "sink", _INFINITE if never else cost / unit)
        for variable in equation.outvars:
            if variable not in free:
                edge(("value", variable), ("again", at), max(1, bytes_of(variable) / unit))
                edge(("again", at), ("value", variable), _INFINITE)
        for atom in variables(equation.invars):
            if atom not in free and (atom in made or atom in given):
                edge(("again", at), ("value", atom), _INFINITE)
    for variable in wanted:
        if variable not in free and (variable in made or variable in given):
            edge("source", ("value", variable), _INFINITE)
    if not edges:
        return Cut([], [])
    places, capacities = numpy.array(list(edges)), numpy.array(list(edges.values()), dtype="int32")
    shape = (len(numbers), len(numbers))
    graph = sparse.csr_matrix((capacities, (places[:, 0], places[:, 1])), shape=shape, dtype="int32")
    left = (graph - flow(graph, 0, 1).flow).tocsr()
    left.data[left.data < 0] = 0
    left.eliminate_zeros()
    reached = set(module("scipy.sparse.csgraph").breadth_first_order(left, 0, return_predecessors=False).tolist())

    def is_reached(key: Any) -> bool:
        return key in numbers and numbers[key] in reached

    kept = [v for v, at in made.items() if is_reached(("value", v)) and not is_reached(("again", at))]
    kept += [variable for variable in ends if is_reached(("value", variable))]
    return Cut(kept, [at for at in sorted(inside) if is_reached(("again", at))])
