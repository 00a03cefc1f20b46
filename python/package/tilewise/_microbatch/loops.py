"""Operations with programs of their own, such as loops, for a part of the batch of a `Program`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.jaxprs import CHECKPOINTS, accumulator
from tilewise._microbatch.rules import Each, Partial, RefusedError, Share, Whole, merged


class Parts(Protocol):
    """A `Program` as its loops see it."""

    is_within: bool
    shares: dict[int, Share]
    avals: dict[int, Any]
    constants: dict[int, Any]
    steps: list[Any]
    inputs: list[int]
    results: list[int]

    def within(self, jaxpr: Any, shares: list[Share]) -> Parts: ...
    def call(self, jaxpr: Any, consts: Sequence[Any], arguments: list[int], outer: Any = None) -> list[int]: ...
    def rows(self, at: int, rows: Each) -> int: ...
    def counted_once(self, at: int) -> int: ...
    def finished(self, at: int) -> int: ...
    def step(
        self, compute: Any, reads: list[int], results: list[tuple[Any, Share]], is_costly: bool = False
    ) -> list[int]: ...
    def needed(self, wanted: set[int], known: set[int]) -> list[Any]: ...
    def run(self, wanted: list[int], known: dict[int, Any], part: Any) -> list[Any]: ...


BODIES = {"scan": "jaxpr", "while": "body_jaxpr", **dict.fromkeys(CHECKPOINTS, "jaxpr")}
"""Operations that a program follows, with the parameter that has it."""


def read_in_turns(equation: Any) -> range:
    """The places of operands that a loop reads in each turn."""
    name, params = equation.primitive.name, equation.params
    if name == "scan":
        return range(internals.Scan.of(equation).consts)
    if name == "while":
        return range(params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"])
    return range(len(equation.invars)) if name in CHECKPOINTS else range(0)


def in_turn(equation: Any, shares: list[Share]) -> list[Share] | None:
    """The shares of what a loop's turn reads; `None` of other operations, and where turns go over the samples."""
    if equation.primitive.name not in ("scan", "while"):
        return None
    places = read_in_turns(equation)
    read = [replace(share, turn=0) for share in shares]
    first = internals.Scan.of(equation).carry if equation.primitive.name == "scan" else len(shares) - places.stop
    sliced = read[places.stop + first :]
    if any(isinstance(share, Each) and share.at == 0 for share in sliced):
        return None
    rows = [share.along(share.at - 1) if isinstance(share, Each) else share for share in sliced]
    return [*read[places.start : places.stop], *[Whole()] * first, *rows]


def _known(inputs: Sequence[int], values: Sequence[Any]) -> dict[int, Any]:
    """The values of inputs, of those that have one."""
    return {at: value for at, value in zip(inputs, values, strict=True) if value is not None}


def _split(items: list[Any], *counts: int) -> list[list[Any]]:
    found: list[list[Any]] = []
    at = 0
    for count in counts:
        found.append(items[at : at + count])
        at += count
    return [*found, items[at:]]


def _carried(
    shares: list[Share], step: Callable[[list[Share]], tuple[Parts, list[Share]]]
) -> tuple[Parts, list[Share]]:
    """A loop's body, once its carried values have equal shares before and after a step."""
    for _ in range(len(shares) + 2):
        body, after = step(shares)
        joined = [merged(one, other) for one, other in zip(shares, after, strict=True)]
        if joined == shares:
            return body, shares
        shares = joined
    raise RefusedError("a loop mixes samples")


def _given(program: Parts, at: int, share: Share) -> int:
    """A value with the share that a loop carries in its place."""
    own = program.shares[at]
    if isinstance(own, Whole) and isinstance(share, Each):
        return program.rows(at, share)
    if isinstance(own, Whole) and isinstance(share, Partial):
        return program.counted_once(at)
    return at


def _emit_loop(program: Parts, eqn: Any, reads: list[int], shares: list[Share], run: Any) -> list[int]:
    """A loop as two: values that all parts share are computed once, the rest for each part."""
    turn = max(program.shares[at].turn for at in reads)
    made: dict[int, int] = {}

    def compute(is_read: list[bool], places: list[int], values: list[Any], part: Any) -> list[Any]:
        given = iter(values)
        found: list[Any] = run([next(given) if is_it else None for is_it in is_read], part, places)
        return found

    for is_whole in (True, False):
        places = [at for at, share in enumerate(shares) if isinstance(share, Whole) == is_whole]
        if not places:
            continue
        results = [(eqn.outvars[at].aval, replace(shares[at], turn=turn)) for at in places]

        # The loop for values that all parts share reads nothing of samples.
        is_read = [not is_whole or isinstance(program.shares[at], Whole) for at in reads]
        needed = [at for at, is_it in zip(reads, is_read, strict=True) if is_it]
        step = functools.partial(compute, is_read, places)
        made.update(zip(places, program.step(step, needed, results, not is_whole), strict=True))
    return [made[at] for at in range(len(shares))]


def _accumulated(program: Parts, eqn: Any, reads: list[int], results: list[Share]) -> dict[int, int]:
    """By result, a sum over the batch, the value to which a loop adds it; the loop reads zeros in its place.

    So the sum doesn't wait for a value that may itself follow from another sum.
    """
    scan = internals.Scan.of(eqn)
    found: dict[int, int] = {}
    for place, share in enumerate(results):
        at = None if program.is_within or not isinstance(share, Partial) else accumulator(scan.body, place)
        is_carried = place < scan.carry
        own = at is not None and (at == scan.consts + place if is_carried else at >= scan.consts + scan.carry)
        if at is None or not own or not isinstance(program.shares[reads[at]], Whole):
            continue
        found[place], aval = reads[at], program.avals[reads[at]]
        [reads[at]] = program.step(functools.partial(_zeros, aval), [], [(aval, Whole())])
    return found


def _zeros(aval: Any, values: list[Any], part: Any) -> list[Any]:
    return [module("jax.numpy").zeros(aval.shape, aval.dtype)]


def _added(program: Parts, start: int, at: int) -> int:
    """A value and a sum over the batch, once all parts are added up."""
    total = program.finished(at)
    share = Whole(max(program.shares[start].turn, program.shares[total].turn))
    return program.step(lambda values, part: [values[0] + values[1]], [start, total], [(program.avals[at], share)])[0]


def _scan(program: Parts, eqn: Any, reads: list[int], shares: list[Share]) -> list[int]:
    lax, params = module("jax.lax"), eqn.params
    scan = internals.Scan.of(eqn)
    counts = scan.consts, scan.carry
    consts, carry, xs = _split(shares, *counts)
    for share in xs:
        if isinstance(share, Each) and share.at == 0:
            raise RefusedError("a loop goes over the batch")
    rows = [share.along(share.at - 1) if isinstance(share, Each) else share for share in xs]

    def step(carry: list[Share]) -> tuple[Parts, list[Share]]:
        body = program.within(params["jaxpr"], [*consts, *carry, *rows])
        return body, [body.shares[at] for at in body.results[: counts[1]]]

    body, carry = _carried(carry, step)
    stacked = [body.shares[at] for at in body.results[counts[1] :]]
    stacked = [share.along(share.at + 1) if isinstance(share, Each) else share for share in stacked]
    results = [*carry, *stacked]
    added = _accumulated(program, eqn, reads, results)
    starts = reads[counts[0] : counts[0] + counts[1]]
    reads[counts[0] : counts[0] + counts[1]] = [
        _given(program, at, share) for at, share in zip(starts, carry, strict=True)
    ]

    def run(values: list[Any], part: Any, places: list[int]) -> list[Any]:
        consts, start, xs = _split(values, *counts)
        # The wanted values may need more of the carried ones.
        carried = _closure(body, [body.results[at] for at in places], counts)
        known = _known(body.inputs[: counts[0]], consts)
        rows = _known(body.inputs[sum(counts) :], xs)
        asked = [at for at in places if at >= counts[1]]

        def one(state: list[Any], rows: dict[int, Any]) -> tuple[list[Any], list[Any]]:
            given = _known([body.inputs[counts[0] + at] for at in carried], state)
            wanted = [body.results[at] for at in [*carried, *asked]]
            found = body.run(wanted, known | given | rows, part)
            return found[: len(carried)], found[len(carried) :]

        options = {name: params[name] for name in ("length", "reverse", "unroll")}
        end, ys = lax.scan(one, [start[at] for at in carried], rows, **options)
        found = dict(zip(carried, end, strict=True)) | dict(zip(asked, ys, strict=True))
        return [found[at] for at in places]

    made = _emit_loop(program, eqn, reads, results, run)
    return [_added(program, added[place], at) if place in added else at for place, at in enumerate(made)]


def _closure(body: Parts, wanted: list[int], counts: tuple[int, int]) -> list[int]:
    """The places of all values that a loop must carry to make the wanted ones."""
    inputs = {at: place for place, at in enumerate(body.inputs[counts[0] : sum(counts)])}
    places = {place for place, at in enumerate(body.results[: counts[1]]) if at in wanted}
    while True:
        targets = {*wanted, *(body.results[place] for place in places)}
        read = {at for step in body.needed(targets, set(body.constants)) for at in step.reads} | targets
        found = places | {inputs[at] for at in read if at in inputs}
        if found == places:
            return sorted(places)
        places = found


def _while(program: Parts, eqn: Any, reads: list[int], shares: list[Share]) -> list[int]:
    lax, params = module("jax.lax"), eqn.params
    counts: tuple[int, int] = params["cond_nconsts"], params["body_nconsts"]
    asked, consts, carry = _split(shares, *counts)

    def step(carry: list[Share]) -> tuple[Parts, list[Share]]:
        body = program.within(params["body_jaxpr"], [*consts, *carry])
        return body, [body.shares[at] for at in body.results]

    body, carry = _carried(carry, step)
    condition = program.within(params["cond_jaxpr"], [*asked, *carry])
    if not isinstance(condition.shares[condition.results[0]], Whole):
        raise RefusedError("samples decide how often a loop runs")
    first = sum(counts)
    reads[first:] = [_given(program, at, share) for at, share in zip(reads[first:], carry, strict=True)]

    def run(values: list[Any], part: Any, places: list[int]) -> list[Any]:
        asked, consts, start = _split(values, *counts)
        of_condition: dict[int, int] = {condition.inputs[counts[0] + at]: at for at in range(len(start))}
        read = {at for step in condition.steps for at in step.reads} | {condition.results[0]}
        wanted = [body.results[at] for at in {*places, *(of_condition[at] for at in read if at in of_condition)}]
        carried = _closure(body, wanted, (counts[1], len(start)))

        def again(state: list[Any]) -> Any:
            given = _known([condition.inputs[counts[0] + at] for at in carried], state)
            return condition.run(condition.results, _known(condition.inputs[: counts[0]], asked) | given, part)[0]

        def one(state: list[Any]) -> list[Any]:
            given = _known([body.inputs[counts[1] + at] for at in carried], state)
            wanted = [body.results[at] for at in carried]
            return body.run(wanted, _known(body.inputs[: counts[1]], consts) | given, part)

        found = dict(zip(carried, lax.while_loop(again, one, [start[at] for at in carried]), strict=True))
        return [found[at] for at in places]

    return _emit_loop(program, eqn, reads, carry, run)


def _cond(program: Parts, eqn: Any, reads: list[int], shares: list[Share]) -> list[int]:
    lax = module("jax.lax")
    if not isinstance(shares[0], Whole):
        raise RefusedError("samples decide which branch runs")
    branches = [program.within(branch, shares[1:]) for branch in eqn.params["branches"]]
    results = [branches[0].shares[at] for at in branches[0].results]
    for branch in branches[1:]:
        others = (branch.shares[at] for at in branch.results)
        results = [merged(one, other) for one, other in zip(results, others, strict=True)]
    for branch in branches:
        branch.results = [_given(branch, at, share) for at, share in zip(branch.results, results, strict=True)]

    def run(values: list[Any], part: Any, places: list[int]) -> list[Any]:
        index, *rest = values

        def of(branch: Parts) -> Callable[..., list[Any]]:
            known = _known(branch.inputs, rest)
            return lambda: branch.run([branch.results[at] for at in places], known, part)

        return list(lax.switch(index, [of(branch) for branch in branches]))

    return _emit_loop(program, eqn, reads, results, run)


def _checkpoint(program: Parts, eqn: Any, reads: list[int], shares: list[Share]) -> list[int]:
    jax, params = module("jax"), eqn.params
    try:
        within = program.within(params["jaxpr"], shares)
    except RefusedError:
        # The checkpoint is lost, not its values.
        return program.call(params["jaxpr"], (), reads, eqn)

    def run(values: list[Any], part: Any, places: list[int]) -> list[Any]:
        given = _known(within.inputs, values)
        if params.get("prevent_cse") and params.get("differentiated"):
            given = jax.lax.optimization_barrier(given)
        return within.run([within.results[at] for at in places], given, part)

    return _emit_loop(program, eqn, reads, [within.shares[at] for at in within.results], run)


RULES: dict[str, Callable[[Parts, Any, list[int], list[Share]], list[int]]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    **dict.fromkeys(CHECKPOINTS, _checkpoint),
}
"""By the operation, the function that emits it for a part."""
