"""A pair of loops: the second computes again the values that the first one doesn't keep for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.equations import Block, bytes_of, needed
from tilewise._jax.internals import Scan
from tilewise._jax.jaxprs import makers, read_by, renamed, variables
from tilewise._remat.cut import Cut
from tilewise._remat.regions import Pair

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
