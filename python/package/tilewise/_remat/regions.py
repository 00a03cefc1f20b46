"""The places where a forward pass meets its backward pass: in line, in pairs of loops, and in the bodies of loops."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tilewise._jax import internals
from tilewise._jax.equations import BODIES, Block, Reader, bytes_of
from tilewise._jax.internals import Scan
from tilewise._jax.jaxprs import is_literal, makers, variables


@dataclass
class Pair:
    """Two loops with equal trip counts in opposite directions: the second reads the values that the first stacks.

    Attributes:
        at: the places of both in their block.
        first, second: the bodies' blocks.
        early: the equations of the first that hold no gradient, and those of the second that could be there.
        late: the other equations of the second.
        within: pairs inside of it.
    """

    at: tuple[int, int]
    loops: tuple[Scan, Scan]
    first: Block
    second: Block
    early: list[Any]
    late: list[Any]
    within: list[Pair]

    @property
    def carried(self) -> list[Any]:
        one = self.loops[0]
        return self.first.inputs[one.consts : one.consts + one.carry]


@dataclass
class Region:
    """A program, with the pairs of loops in it and the programs of its other loops and calls."""

    block: Block
    pairs: list[Pair]
    bodies: dict[int, Region]

    @property
    def has_gradient(self) -> bool:
        return any(map(internals.is_of_gradient, self.block.equations)) or bool(self.pairs or self.bodies)

    @property
    def has_passes(self) -> bool:
        """Whether it has both passes: a program that was transposed as a whole has the second one alone."""
        scopes = map(internals.scope, self.block.equations)
        is_forward = any("jvp(" in scope and "transpose(" not in scope for scope in scopes)
        return self.has_gradient and (is_forward or bool(self.pairs or self.bodies))

    @property
    def has_pairs(self) -> bool:
        """Whether a loop goes through layers or times, and another one back."""
        return bool(self.pairs) or any(body.has_pairs for body in self.bodies.values())


def region(block: Block) -> Region:
    """Finds the pairs of a block, inside out."""
    pairs = _pairs(block.equations, block.constants)
    paired = {place for pair in pairs for place in pair.at}
    bodies: dict[int, Region] = {}
    for at, equation in enumerate(block.equations):
        # A loop that goes through parts of a batch has both passes in its body, and so has a program of each device.
        program = equation.params.get(BODIES.get(equation.primitive.name, ""))
        if at not in paired and program is not None and _has_gradient(program):
            held = len(block.constants)
            found = region(Reader(block.constants).block(program))
            # A call of a program with constants is left as it is: not every kind of call can hold them.
            if equation.primitive.name == "scan" or (found.has_passes and len(block.constants) == held):
                bodies[at] = found
    return Region(block, pairs, bodies)


def _has_gradient(closed: Any) -> bool:
    within = [value for each in closed.jaxpr.eqns for value in each.params.values() if internals.is_jaxpr(value)]
    return any(map(internals.is_of_gradient, closed.jaxpr.eqns)) or any(
        _has_gradient(value) for value in within if hasattr(value, "jaxpr")
    )


def _pairs(equations: list[Any], constants: dict[Any, Any]) -> list[Pair]:
    scans = [at for at, each in enumerate(equations) if each.primitive.name == "scan"]
    made = {variable: at for at in scans for variable in equations[at].outvars}
    found: dict[int, Pair] = {}
    for at in scans:
        loop, params = Scan.of(equations[at]), equations[at].params
        sliced = equations[at].invars[loop.consts + loop.carry :]
        sources = Counter(made[atom] for atom in sliced if not is_literal(atom) and made.get(atom, at) < at)
        for source, _ in sources.most_common(1):
            other = equations[source].params
            if source not in found and other["length"] == params["length"] and other["reverse"] != params["reverse"]:
                found[source] = _pair((source, at), equations, constants)
    return list(found.values())


def _pair(at: tuple[int, int], equations: list[Any], constants: dict[Any, Any]) -> Pair:
    forward, backward = (equations[each] for each in at)
    one, two = Scan.of(forward), Scan.of(backward)
    reader = Reader(constants)
    first = reader.block(one.body)
    count = len(first.equations)
    stacked = {variable: place for place, variable in enumerate(forward.outvars[one.carry :])}
    # An operand that both loops take from the same place is one value.
    slices = one.consts + one.carry
    same = _inner(forward.invars[: one.consts], first.inputs[: one.consts])
    rows = _inner(forward.invars[slices:], first.inputs[slices:])
    inputs: list[Any] = []
    for place, (atom, inner) in enumerate(zip(backward.invars, two.body.jaxpr.invars, strict=True)):
        found = None
        if not is_literal(atom) and place < two.consts:
            found = same.get(atom)
        elif not is_literal(atom) and place >= two.consts + two.carry:
            found = first.outputs[one.carry + stacked[atom]] if atom in stacked else rows.get(atom)
        is_new = found is None or is_literal(found)
        inputs.append(internals.variable(inner.aval) if is_new else found)
    outputs = reader.read(two.body, inputs)
    second = Block(inputs, reader.equations[count:], outputs, constants)
    early, late = list(reader.equations[:count]), list[Any]()
    known = {*first.inputs, *constants, *makers(early)}
    for equation in second.equations:
        is_early = not equation.effects and all(is_literal(atom) or atom in known for atom in equation.invars)
        (early if is_early else late).append(equation)
        known.update(equation.outvars if is_early else ())
    return Pair(at, (one, two), first, second, early, late, _pairs([*early, *late], constants))


def _inner(operands: list[Any], inputs: list[Any]) -> dict[Any, Any]:
    return {atom: inner for atom, inner in zip(operands, inputs, strict=True) if not is_literal(atom)}


def fullest(equations: list[Any]) -> int:
    """The place where most bytes wait for an operation of the gradient, in the order of the trace.

    Values that only the optimizer reads, such as the weights' gradients, aren't among them: they have no choice.
    """
    gradients = list(map(internals.is_of_gradient, equations))
    last: dict[Any, int] = {}
    for at, equation in enumerate(equations):
        if gradients[at]:
            last.update(dict.fromkeys(variables(equation.invars), at))
    change = [0] * (len(equations) + 1)
    for at, equation in enumerate(equations):
        for variable in equation.outvars:
            if last.get(variable, -1) > at:
                change[at] += bytes_of(variable)
                change[last[variable]] -= bytes_of(variable)
    waiting = list(itertools.accumulate(change))
    return waiting.index(max(waiting))
