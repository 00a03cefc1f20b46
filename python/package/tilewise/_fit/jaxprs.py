"""Steps that are read and rewritten as JAX traces them: what a loop keeps for its gradient, and what a batch leads to.

A rewritten equation keeps its source line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewise import _internals
from tilewise._errors import Skip
from tilewise._internals import Scan
from tilewise._modules import module

_DOTS = ("dot_general", "conv_general_dilated")

REMAT = ("none", "dots", "full")
"""What loops keep for the gradient: all that JAX keeps, results of matrix multiplications, or nothing but the carry."""


def traced(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
    """The function as a closed jaxpr without nested ``jax.jit``, and the tree of its results."""
    jax = module("jax")
    closed, result = jax.make_jaxpr(f, return_shape=True)(*args)
    inlined = jax.make_jaxpr(functools.partial(_run, closed))(*closed.in_avals)
    return inlined, jax.tree.structure(result)


def donated(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[int, ...]:
    """The arguments that a jitted function donates."""
    jax = module("jax")
    equations = jax.make_jaxpr(f)(*args).jaxpr.eqns
    if len(equations) != 1 or "donated_invars" not in equations[0].params:
        return ()
    flags = iter(equations[0].params["donated_invars"])
    held = [[next(flags, False) for _ in jax.tree.leaves(arg)] for arg in args]
    return tuple(number for number, each in enumerate(held) if each and all(each))


def call(closed: Any, tree: Any, *args: Any) -> Any:
    """The results of a traced function."""
    jax = module("jax")
    run = module("jax.extend.core").jaxpr_as_fun(closed)
    return jax.tree.unflatten(tree, run(*jax.tree.leaves(args)))


def part(closed: Any, equations: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """Some of the equations, as a closed jaxpr of its own; constants are among the inputs."""
    return _internals.changed(
        closed, [], constvars=[], invars=list(inputs), outvars=list(outputs), eqns=list(equations)
    )


def with_results(closed: Any, variables: Sequence[Any]) -> Any:
    """The same program, that returns these, too."""
    return _internals.changed(closed, closed.consts, outvars=[*closed.jaxpr.outvars, *variables])


def sliced(values: Sequence[Any], axes: Sequence[int | None], parts: int, number: int) -> list[Any]:
    """The arguments of one part of the batch."""
    jnp = module("jax.numpy")
    return [
        value if axis is None else _divided(jnp, value, axis, parts)[number]
        for value, axis in zip(values, axes, strict=True)
    ]


def _run(closed: Any, *values: Any) -> list[Any]:
    """Evaluate an equation after the other, those of nested functions, too."""
    core = module("jax.extend.core")
    held = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    held.update(zip(closed.jaxpr.invars, values, strict=True))

    def read(variable: Any) -> Any:
        return variable.val if is_literal(variable) else held[variable]

    for equation in closed.jaxpr.eqns:
        inputs = [read(variable) for variable in equation.invars]
        if _is_nested(equation):
            outputs = _run(equation.params["jaxpr"], *inputs)
        else:
            variables = list(dict.fromkeys(each for each in equation.invars if not is_literal(each)))
            one = part(closed, [equation], variables, equation.outvars)
            outputs = core.jaxpr_as_fun(one)(*(held[variable] for variable in variables))
        held.update(zip(equation.outvars, outputs, strict=True))
    return [read(variable) for variable in closed.jaxpr.outvars]


def _is_nested(equation: Any) -> bool:
    """Whether this is a jitted function that says nothing of shardings."""
    if equation.primitive.name not in ("jit", "pjit"):
        return False
    shardings = (*equation.params["in_shardings"], *equation.params["out_shardings"])
    return all(map(_internals.is_unspecified, shardings))


def is_literal(variable: Any) -> bool:
    """Whether an equation reads a constant of the program's text."""
    return isinstance(variable, module("jax.extend.core").Literal)


def rematerialised(closed: Any, keep: str) -> tuple[Any, list[Any]]:
    """The program whose loops compute again, in the backward pass, what they kept for it; and its gradients' variables.

    A loop's kept values are the stacked results that only one other loop, of as many trips, reads a slice a trip
    of. The second loop then gets the first one's carry instead, and computes the values from it.

    Raises:
        Skip: no loop keeps anything.
    """
    equations, gradients = list(closed.jaxpr.eqns), list[Any]()
    changed = False
    for number, forward in enumerate(equations):
        if forward.primitive.name != "scan":
            continue
        for other in range(number + 1, len(equations)):
            if equations[other].primitive.name != "scan":
                continue
            kept = _kept(closed, equations, equations[number], equations[other], keep)
            if kept:
                pair = _without(equations[number], equations[other], kept)
                equations[number], equations[other] = pair
                gradients += pair[1].outvars
                changed = True
    if not changed:
        raise Skip(f"remat={keep}: no loop keeps values for its gradient; unrolled layers need jax.checkpoint")
    read = [each for each in gradients if not _internals.is_dropped(each)]
    return _internals.changed(closed, closed.consts, eqns=equations), read


def _kept(closed: Any, equations: list[Any], forward: Any, backward: Any, keep: str) -> list[int]:
    """Which stacked results of a loop only the other one reads."""
    if forward.params["length"] != backward.params["length"]:
        return []
    loop, after = Scan.of(forward), Scan.of(backward)
    carry, body = loop.carry, loop.body
    first = after.consts + after.carry
    made_by = {variable: each for each in body.jaxpr.eqns for variable in each.outvars}
    found: list[int] = []
    frees = False
    for number, variable in enumerate(forward.outvars[carry:]):
        readers = [each for each in equations if variable in [v for v in each.invars if not is_literal(v)]]
        if readers != [backward] or variable in closed.jaxpr.outvars:
            continue
        if variable not in backward.invars[first:] or variable in backward.invars[:first]:
            continue
        value = body.jaxpr.outvars[carry + number]
        maker = None if is_literal(value) else made_by.get(value)
        if keep == "dots" and maker is not None and maker.primitive.name in _DOTS:
            continue
        found.append(number)
        frees = frees or maker is not None
    # The carry and slices of inputs alone are as much kept as computed.
    return found if frees else []


def _without(forward: Any, backward: Any, kept: list[int]) -> tuple[Any, Any]:
    """The two loops, of which the second computes those results of the first from its carry."""
    jax = module("jax")
    core = module("jax.extend.core")
    loop = Scan.of(forward)
    consts, carry, body = loop.consts, loop.carry, loop.body
    run = core.jaxpr_as_fun(body)
    dropped = {forward.outvars[carry + number]: number for number in kept}
    left = [number for number in range(len(forward.outvars) - carry) if number not in kept]

    def ahead(*values: Any) -> list[Any]:
        results = run(*values)
        stacked = results[carry:]
        return [*results[:carry], *(stacked[number] for number in left), *values[consts : consts + carry]]

    length = forward.params["length"]
    inner = jax.make_jaxpr(ahead)(*body.in_avals)
    carries = [
        jax.ShapeDtypeStruct((length, *each.shape), each.dtype) for each in body.in_avals[consts : consts + carry]
    ]
    stacks = jax.make_jaxpr(_same)(*carries).jaxpr.invars
    outs = [*forward.outvars[:carry], *(forward.outvars[carry + number] for number in left), *stacks]
    first = Scan(consts, carry, inner).put_into(forward, forward.invars, outs)

    after = Scan.of(backward)
    back_consts, back_carry, back_body = after.consts, after.carry, after.body
    back = core.jaxpr_as_fun(back_body)
    own = backward.invars[back_consts + back_carry :]
    others = [number for number, variable in enumerate(own) if variable not in dropped]

    def behind(*values: Any) -> list[Any]:
        given = iter(values)

        def take(count: int) -> list[Any]:
            return [next(given) for _ in range(count)]

        ahead_consts, my_consts, my_carry = take(consts), take(back_consts), take(back_carry)
        mine = dict(zip(others, take(len(others)), strict=True))
        states, inputs = take(carry), take(len(body.in_avals) - consts - carry)
        again = run(*ahead_consts, *states, *inputs)[carry:]
        slices = [mine[n] if n in mine else again[dropped[variable]] for n, variable in enumerate(own)]
        results: list[Any] = back(*my_consts, *my_carry, *slices)
        return results

    taken = [back_body.in_avals[back_consts + back_carry + number] for number in others]
    avals = [
        *body.in_avals[:consts],
        *back_body.in_avals[: back_consts + back_carry],
        *taken,
        *body.in_avals[consts:],
    ]
    variables = [
        *forward.invars[:consts],
        *backward.invars[: back_consts + back_carry],
        *(own[number] for number in others),
        *stacks,
        *forward.invars[consts + carry :],
    ]
    again = Scan(consts + back_consts, back_carry, jax.make_jaxpr(behind)(*avals))
    return first, again.put_into(backward, variables, backward.outvars)


def _same(*values: Any) -> tuple[Any, ...]:
    return values


class Batched:
    """A step in three parts: what doesn't depend on the batch, what is done for each part of it, and the update.

    What a value of another shape leads to, where that leads to another shape again, is done for each part. What
    leaves it has the same shape for any batch, such as a gradient.

    Args:
        small: the step for a part of the batch, as `traced` gives it.
        whole: the same for all of it.
        is_batch: of each argument.

    Attributes:
        cut: where the values are made that leave the second part: the numbers of an equation and its output.

    Raises:
        Skip: the step is another one for another batch, or a result has the batch.
    """

    def __init__(self, small: Any, whole: Any, is_batch: Sequence[bool]) -> None:
        self.small, self.whole, self.is_batch = small, whole, list(is_batch)
        pairs = list(zip(small.jaxpr.eqns, whole.jaxpr.eqns, strict=False))
        names = [[each.primitive.name for each in side.jaxpr.eqns] for side in (small, whole)]
        if names[0] != names[1]:
            raise Skip("the step is another one for a smaller batch")
        depends = {v for v, batch in zip(whole.jaxpr.invars, is_batch, strict=True) if batch}
        dependent: list[int] = []
        for number, (_, equation) in enumerate(pairs):
            if any(v in depends for v in equation.invars if not is_literal(v)):
                depends.update(equation.outvars)
                dependent.append(number)
        differs = {
            number
            for number, (one, all_of) in enumerate(pairs)
            if any(_shape(a) != _shape(b) for a, b in zip(_variables(one), _variables(all_of), strict=True))
        }
        leads: set[Any] = set()
        self.numbers: list[int] = []
        for number in reversed(dependent):
            equation = whole.jaxpr.eqns[number]
            if number in differs or any(v in leads for v in equation.outvars):
                leads.update(v for v in equation.invars if not is_literal(v))
                self.numbers.append(number)
        self.numbers.reverse()
        inside = set(self.numbers)
        self.update = [number for number in dependent if number not in inside]
        self.first = [number for number in range(len(pairs)) if number not in set(dependent)]
        read = {v for number in self.update for v in whole.jaxpr.eqns[number].invars if not is_literal(v)}
        read.update(v for v in whole.jaxpr.outvars if not is_literal(v))
        made = [(number, place) for number in self.numbers for place in range(len(whole.jaxpr.eqns[number].outvars))]
        self.cut = [(number, place) for number, place in made if whole.jaxpr.eqns[number].outvars[place] in read]
        if not self.cut:
            raise Skip("no result depends on the batch")
        if any(_shape(_at(small, each)) != _shape(_at(whole, each)) for each in self.cut):
            raise Skip("a result has the batch")

    def values(self, which: Any) -> Any:
        """The step, small or whole, with what leaves its second part as its results."""
        return _internals.changed(which, which.consts, outvars=[_at(which, each) for each in self.cut])

    def run(self, parts: int, sums: Sequence[bool], axes: Sequence[int | None], *values: Any) -> list[Any]:
        """The step in so many parts, whose values are summed, or averaged.

        Args:
            parts: how many.
            sums: of each value of `cut`, whether it is summed.
            axes: of each argument its axis that is the batch.
            values: the arguments of the whole step.
        """
        jax = module("jax")
        jnp = module("jax.numpy")
        divided = [
            _divided(jnp, value, axis, parts) for value, axis in zip(values, axes, strict=True) if axis is not None
        ]
        fixed = [value for value, axis in zip(values, axes, strict=True) if axis is None]
        run = module("jax.extend.core").jaxpr_as_fun(self.values(self.small))

        def one(total: list[Any], rows: Sequence[Any]) -> tuple[list[Any], None]:
            given, batch = iter(fixed), iter(rows)
            found = run(*(next(given) if axis is None else next(batch) for axis in axes))
            return [old + new for old, new in zip(total, found, strict=True)], None

        zeros = [jnp.zeros(_shape(_at(self.small, each)), _at(self.small, each).aval.dtype) for each in self.cut]
        totals, _ = jax.lax.scan(one, zeros, divided)
        means = [
            total if is_sum else (total / parts).astype(total.dtype) for total, is_sum in zip(totals, sums, strict=True)
        ]
        return self._updated(values, means)

    def _updated(self, values: Sequence[Any], leaving: Sequence[Any]) -> list[Any]:
        """The results of the whole step, from its arguments and what left its second part."""
        jaxpr = self.whole.jaxpr
        outside = [jaxpr.eqns[number] for number in sorted([*self.first, *self.update])]
        inputs = [*jaxpr.constvars, *jaxpr.invars, *(_at(self.whole, each) for each in self.cut)]
        rest = part(self.whole, outside, inputs, jaxpr.outvars)
        run = module("jax.extend.core").jaxpr_as_fun(rest)
        return list(run(*self.whole.consts, *values, *leaving))


def _at(closed: Any, place: tuple[int, int]) -> Any:
    return closed.jaxpr.eqns[place[0]].outvars[place[1]]


def _variables(equation: Any) -> Iterator[Any]:
    yield from equation.invars
    yield from equation.outvars


def _shape(variable: Any) -> Any:
    return getattr(variable.aval, "shape", None)


def _divided(jnp: Any, value: Any, axis: int, parts: int) -> Any:
    """An axis in parts, which become the first axis."""
    shape = value.shape
    apart = value.reshape((*shape[:axis], parts, shape[axis] // parts, *shape[axis + 1 :]))
    return jnp.moveaxis(apart, axis, 0)
