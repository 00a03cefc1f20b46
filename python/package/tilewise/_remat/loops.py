"""A pair of loops: the second computes again the values that the first one doesn't keep for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise._jax import internals
from tilewise._jax.internals import Scan
from tilewise._jax.jaxprs import makers, read_by, variables
from tilewise._remat.cut import Cut
from tilewise._remat.equations import Block, needed
from tilewise._remat.regions import Pair


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
