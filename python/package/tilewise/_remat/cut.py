"""Values to keep and equations to compute again: as a minimum cut, or between segments of a forward pass.

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

import itertools
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tilewise._base.modules import module
from tilewise._jax.equations import bytes_of
from tilewise._jax.jaxprs import makers, variables

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


_PARTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
"""Into how many segments of equal bytes, at least."""


def segments(
    early: Sequence[Any], seconds: Sequence[float], ends: Collection[Any], share: float
) -> tuple[set[Any], list[int]]:
    """The values alive between segments, and the places where each begins, of the cut that holds the fewest bytes.

    A cut holds its kept values, and a share of the bytes that its last segment and the largest of the others make:
    that share is alive while a segment is repeated. Values that cost nothing to make again, such as a broadcast mask
    or a copy in another precision, are neither kept nor counted: their operands are.
    """
    spans, made = _alive(early, seconds, ends)
    change = [0] * (len(early) + 1)
    for variable, (first, last) in spans.items():
        change[first] += bytes_of(variable)
        change[last] -= bytes_of(variable)
    weight = list(itertools.accumulate(change))[:-1]
    best, least = (set[Any](), [0]), float("inf")
    for parts in _PARTS:
        places = cheapest(weight, made, made[-1] / parts, share)
        kept = {each for each, (first, last) in spans.items() if any(first <= at < last for at in places)}
        bounds = [0, *(made[at + 1] for at in places)]
        # The last segment isn't repeated: its results are there once.
        longest = max((two - one for one, two in itertools.pairwise(bounds)), default=0)
        held = sum(map(bytes_of, kept)) + share * (longest + made[-1] - bounds[-1])
        if held < least:
            best, least = (kept, [0, *(place + 1 for place in places)]), held
    return best


def _alive(
    early: Sequence[Any], seconds: Sequence[float], ends: Collection[Any]
) -> tuple[dict[Any, tuple[int, int]], list[int]]:
    """From which place to which a value is read, and the bytes made before each place."""
    sources: dict[Any, frozenset[Any]] = {}
    spans: dict[Any, tuple[int, int]] = {}
    made = [0]
    for at, equation in enumerate(early):
        operands = (sources[atom] for atom in variables(equation.invars) if atom in sources)
        read = frozenset[Any]().union(*operands)
        spans.update({each: (spans[each][0], at) for each in read})
        is_free = seconds[at] == 0
        for variable in equation.outvars:
            if variable not in ends:
                sources[variable] = read if is_free else frozenset((variable,))
                if not is_free:
                    spans[variable] = (at, at)
        made.append(made[-1] + (0 if is_free else sum(map(bytes_of, equation.outvars))))
    return spans, made


def cheapest(weight: Sequence[int], made: Sequence[int], segment: float, share: float) -> list[int]:
    """The places of least weight, ascending, such that a segment that ends at one makes no more than `segment`.

    The weight of a place is the bytes alive there; the last segment may make more, each byte of which weighs a share.
    """
    best: list[tuple[int, int]] = []
    # Places before the present one that a segment may begin behind, the least sum first.
    window: deque[int] = deque()
    for at in range(len(weight)):
        while window and made[at + 1] - made[window[0] + 1] > segment and window[0] != at - 1:
            window.popleft()
        if made[at + 1] <= segment:
            least = (0, -1)
        elif window:
            least = (best[window[0]][0], window[0])
        else:
            # One equation makes more than a segment has.
            least = (best[at - 1][0], at - 1) if at else (0, -1)
        best.append((least[0] + weight[at], least[1]))
        while window and best[window[-1]][0] >= best[at][0]:
            window.pop()
        window.append(at)
    # No cut where nothing is alive.
    ends = (-1, *(place for place, held in enumerate(weight) if held))

    def cost(end: int) -> float:
        return (best[end][0] if end >= 0 else 0) + share * max(0.0, made[-1] - made[end + 1] - segment)

    at = min(ends, key=cost)
    found: list[int] = []
    while at >= 0:
        found.append(at)
        at = best[at][1]
    return found[::-1]
