"""The places where both passes meet: in line, in bodies of loops, and in pairs of loops, with a choice in them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.equations import BODIES, Block, Reader, bytes_of, needed
from tilewise._jax.internals import Scan
from tilewise._jax.jaxprs import is_literal, makers, read_by, renamed, variables
from tilewise._remat.cut import Cut


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


_LEAST_BYTES = 2**20
"""The least size that is worth a transfer."""


def there_and_back(kept: Iterable[Any]) -> tuple[dict[Any, Any], list[Any], list[Any]]:
    """By value that is worth it its place in the host's memory, the equations that move it there, and those back."""
    jax = module("jax")
    spaces = jax.memory.Space
    places: dict[Any, Any] = {}
    there, back = list[Any](), list[Any]()

    def both(value: Any) -> Any:
        return jax.device_put(jax.device_put(value, spaces.Host), spaces.Device)

    for variable in kept:
        if bytes_of(variable) < _LEAST_BYTES:
            continue
        shape = jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype)
        one, two = jax.make_jaxpr(both)(shape).jaxpr.eqns
        places[variable] = internals.variable(one.outvars[0].aval)
        there.append(one.replace(invars=[variable], outvars=[places[variable]]))
        back.append(two.replace(invars=[places[variable]], outvars=[variable]))
    return places, there, back


def moved_back(late: Sequence[Any], back: Sequence[Any]) -> list[Any]:
    """The backward pass, that takes each value back before its first reader, under another name."""
    waiting = {equation.outvars[0]: equation for equation in back}
    names: dict[Any, Any] = {}
    found: list[Any] = []
    for equation in late:
        for atom in variables(equation.invars):
            if atom in waiting:
                names[atom] = internals.variable(atom.aval)
                found.append(waiting.pop(atom).replace(outvars=[names[atom]]))
        found.append(renamed(equation, names))
    return found


@dataclass
class Loops:
    """A pair of loops with a choice, which the pairs within have made in its early and late equations already.

    `host` has by kept value its place in the host's memory, the equations that move it there, and those back.
    """

    pair: Pair
    early: list[Any]
    late: list[Any]
    cut: Cut
    host: tuple[dict[Any, Any], list[Any], list[Any]]

    @property
    def _stored(self) -> list[Any]:
        return [self.host[0].get(each, each) for each in self.cut.kept]

    def ahead(self, forward: Any, backward: Any, elsewhere: set[Any]) -> tuple[Any, list[Any]]:
        """The first loop, which makes its carry, values that others read, and kept ones; and the stacks of these."""
        pair, (one, _) = self.pair, self.pair.loops
        constants, inputs = pair.first.constants, pair.first.inputs
        of_first = {*inputs, *makers(pair.early)}
        operands = zip(backward.invars, pair.second.inputs, strict=True)
        whole = set(variables(atom for atom, inner in operands if inner not in of_first))
        other = [at for at, each in enumerate(forward.outvars[one.carry :]) if each in elsewhere or each in whole]
        outputs = pair.first.outputs
        results = [*outputs[: one.carry], *(outputs[one.carry + at] for at in other), *self._stored]
        equations = needed([*self.early, *self.host[1]], results, lambda atom: atom in constants or atom in inputs)
        body = Block(inputs, equations, results, constants).closed()
        length = int(forward.params["length"])
        stacks = [
            internals.variable(each.aval.update(shape=(length, *each.aval.shape), weak_type=False))
            for each in self._stored
        ]
        outvars = [*forward.outvars[: one.carry], *(forward.outvars[one.carry + at] for at in other), *stacks]
        return Scan(one.consts, one.carry, body).put_into(forward, forward.invars, outvars), stacks

    def behind(self, forward: Any, backward: Any, stacks: list[Any]) -> Any:
        """The second loop, with the constants and slices that it reads, of both loops, and the kept values."""
        pair, (one, two) = self.pair, self.pair.loops
        inputs, constants = pair.second.inputs, pair.first.constants
        carry, kept = inputs[two.consts : two.consts + two.carry], set(self.cut.kept)
        made = set(makers(self.early))
        known = {*pair.first.inputs, *inputs, *constants} - made - set(pair.carried) | kept
        again = [self.early[at] for at in self.cut.again]
        equations = needed([*again, *self.late], pair.second.outputs, known.__contains__)
        read = {*read_by(equations), *variables(pair.second.outputs)}
        read -= made | kept | set(carry)
        operands = zip(
            _operands(pair.first.inputs, forward.invars, one), _operands(inputs, backward.invars, two), strict=True
        )
        fixed, rows = (
            {inner: atom for inner, atom in {**first, **second}.items() if inner in read} for first, second in operands
        )
        body = Block(
            [*fixed, *carry, *rows, *self._stored], [*self.host[2], *equations], pair.second.outputs, constants
        ).closed()
        starts = backward.invars[two.consts : two.consts + two.carry]
        given = [*fixed.values(), *starts, *rows.values(), *stacks]
        return Scan(len(fixed), two.carry, body).put_into(backward, given, backward.outvars)


def _operands(inner: list[Any], outer: list[Any], loop: Scan) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """By variable of a loop's body, its constants, and the arrays that are sliced for it."""
    slices = loop.consts + loop.carry
    return dict(zip(inner[: loop.consts], outer, strict=False)), dict(zip(inner[slices:], outer[slices:], strict=True))
