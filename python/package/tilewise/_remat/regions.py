"""Where a forward pass meets its backward pass, and the equations that another choice of what is kept makes of both."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tilewise import _internals
from tilewise._internals import Scan
from tilewise._modules import module
from tilewise._remat.costs import NEVER, PRODUCTS, Costs, is_of_gradient
from tilewise._remat.cut import minimum_cut
from tilewise._remat.equations import Block, Reader, bytes_of, is_literal, needed, read_by
from tilewise._remat.hosts import moved_back, there_and_back
from tilewise._remat.segments import segments


@dataclass(frozen=True)
class Choice:
    """How to choose what is kept.

    Attributes:
        price: bytes that a second is worth.
        share: of what is made between two places where all that is alive is kept, how much counts as held while it
            is repeated; ``None`` for no such places.
        is_tied: whether a part is repeated only once the gradient has come to it.
        is_of_loops: whether only what loops stack is chosen anew.
        keeps_products: whether products and convolutions are never repeated.
        offloads: whether what is kept lies in the host's memory.
    """

    price: float
    share: float | None = None
    is_tied: bool = False
    is_of_loops: bool = False
    keeps_products: bool = False
    offloads: bool = False


@dataclass(frozen=True)
class Value:
    """A value that is kept or computed again, and how many times a step does it.

    Attributes:
        variable, equation: the value and its maker; ``None`` for what a loop hands on.
        times: how many there are in a step.
        ends_line: whether it is the value of its maker's line of the program.
    """

    variable: Any
    equation: Any
    times: int
    ends_line: bool = False

    @property
    def bytes(self) -> int:
        """All of them together."""
        return bytes_of(self.variable) * self.times


@dataclass
class Chosen:
    """What a choice comes to.

    Attributes:
        kept, again: values.
        seconds: what repeating takes, as it is guessed.
        in_line: how many equations are repeated that are in no loop with its own backward pass.
    """

    kept: list[Value] = field(default_factory=list[Value])
    again: list[Value] = field(default_factory=list[Value])
    seconds: float = 0.0
    in_line: int = 0

    @property
    def bytes(self) -> int:
        """What is kept."""
        return sum(each.bytes for each in self.kept)

    @property
    def key(self) -> Any:
        """What tells it from others."""
        # Variables are new each time that a choice is made; their equations' outputs are in one order.
        return tuple((str(each.variable.aval), each.times) for each in self.kept), len(self.again)


@dataclass
class Pair:
    """Two loops of as many turns in opposite directions: the second one reads what the first one stacks.

    Attributes:
        at: the places of both in their block.
        loops: both loops' parts.
        early: the equations of the first that hold no gradient, and those of the second that could be there.
        late: the other equations of the second.
        first, second: the bodies' blocks.
        stacked: by variable of the block that the first loop stacks, its place among what is stacked.
        within: pairs inside of it.
    """

    at: tuple[int, int]
    loops: tuple[Scan, Scan]
    first: Block
    second: Block
    early: list[Any]
    late: list[Any]
    stacked: dict[Any, int]
    within: list[Pair]


@dataclass
class Region:
    """A program, with the pairs of loops in it and the programs of its other loops."""

    block: Block
    pairs: list[Pair]
    bodies: dict[int, Region]

    @property
    def has_gradient(self) -> bool:
        """Whether any equation of it was made by transposing a program."""
        return any(map(is_of_gradient, self.block.equations)) or bool(self.pairs or self.bodies)

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
        # A loop that goes through parts of a batch has both passes in its body.
        if at not in paired and equation.primitive.name == "scan" and _has_gradient(equation.params["jaxpr"]):
            bodies[at] = region(Reader(block.constants).block(Scan.of(equation).body))
    return Region(block, pairs, bodies)


def _has_gradient(closed: Any) -> bool:
    within = [value for each in closed.jaxpr.eqns for value in each.params.values() if _internals.is_jaxpr(value)]
    return any(map(is_of_gradient, closed.jaxpr.eqns)) or any(
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
    # What both loops take from the same place is one value.
    slices = one.consts + one.carry
    same = {
        atom: first.inputs[place] for place, atom in enumerate(forward.invars[: one.consts]) if not is_literal(atom)
    }
    rows = {
        atom: first.inputs[slices + place] for place, atom in enumerate(forward.invars[slices:]) if not is_literal(atom)
    }
    inputs: list[Any] = []
    for place, (atom, inner) in enumerate(zip(backward.invars, two.body.jaxpr.invars, strict=True)):
        found = None
        if not is_literal(atom) and place < two.consts:
            found = same.get(atom)
        elif not is_literal(atom) and place >= two.consts + two.carry:
            found = first.outputs[one.carry + stacked[atom]] if atom in stacked else rows.get(atom)
            found = None if is_literal(found) else found
        inputs.append(_internals.variable(inner.aval) if found is None else found)
    outputs = reader.read(two.body, inputs)
    second = Block(inputs, reader.equations[count:], outputs, constants)
    early, late = list(reader.equations[:count]), list[Any]()
    known = {*first.inputs, *constants, *(variable for each in early for variable in each.outvars)}
    for equation in second.equations:
        is_early = not equation.effects and all(is_literal(atom) or atom in known for atom in equation.invars)
        (early if is_early else late).append(equation)
        known.update(equation.outvars if is_early else ())
    return Pair(at, (one, two), first, second, early, late, stacked, _pairs([*early, *late], constants))


@dataclass
class Chooser:
    """Makes one choice in all regions of a step."""

    costs: Costs
    choice: Choice
    chosen: Chosen = field(default_factory=Chosen)
    _stacked: set[Any] = field(default_factory=set[Any])

    def program(self, region: Region, times: int = 1) -> Block:
        """The program with this choice."""
        block, equations = region.block, list(region.block.equations)
        for at, body in region.bodies.items():
            loop, equation = Scan.of(equations[at]), equations[at]
            inner = self.program(body, times * int(equation.params["length"]))
            parts = Scan(loop.consts, loop.carry, inner.closed())
            equations[at] = parts.put_into(equation, equation.invars, equation.outvars)
        ends = {atom for atom in block.outputs if not is_literal(atom)}
        self._apply(region.pairs, equations, ends, times)
        return Block(block.inputs, self._in_line(equations, ends, times), block.outputs, block.constants)

    def _seconds(self, equation: Any) -> float:
        if self.choice.keeps_products and equation.primitive.name in PRODUCTS:
            return NEVER
        return self.costs.seconds(equation)

    def _apply(self, pairs: list[Pair], equations: list[Any], ends: set[Any], times: int) -> None:
        for pair in pairs:
            one, two = pair.at
            others = read_by(each for at, each in enumerate(equations) if at not in pair.at)
            equations[one], equations[two] = self._pair(pair, equations[one], equations[two], ends.union(others), times)

    def _note(self, kept: list[Any], equations: list[Any], again: list[int], seconds: list[float], times: int) -> None:
        places = {variable: at for at, each in enumerate(equations) for variable in each.outvars}
        readers: dict[Any, list[Any]] = {}
        for each in equations:
            for atom in each.invars:
                if not is_literal(atom):
                    readers.setdefault(atom, []).append(each)
        for variable in kept:
            at = places.get(variable)
            if variable in self._stacked:
                continue
            maker = None if at is None else equations[at]
            # What nothing of the forward pass reads is a line's value where no other equation of the line follows.
            others = [] if at is None else readers.get(variable, equations[at + 1 : at + 2])
            line = None if maker is None else _internals.place(maker)
            ends = maker is None or not others or any(_internals.place(each) != line for each in others)
            self.chosen.kept.append(Value(variable, maker, times, ends))
        self.chosen.again += [Value(equations[at].outvars[0], equations[at], times) for at in again]
        self.chosen.seconds += times * sum(seconds[at] for at in again)

    def _pair(self, pair: Pair, forward: Any, backward: Any, elsewhere: set[Any], times: int) -> tuple[Any, Any]:
        times *= int(forward.params["length"])
        one, two = pair.loops
        inside = [*pair.early, *pair.late]
        outs = {atom for atom in (*pair.first.outputs, *pair.second.outputs) if not is_literal(atom)}
        self._apply(pair.within, inside, outs, times)
        early, late = inside[: len(pair.early)], inside[len(pair.early) :]
        constants = pair.first.constants
        carried = pair.first.inputs[one.consts : one.consts + one.carry]
        made = {variable for each in early for variable in each.outvars}
        read = dict.fromkeys([*read_by(late), *(atom for atom in pair.second.outputs if not is_literal(atom))])
        wanted = [atom for atom in read if atom in made or atom in carried]
        seconds = list(map(self._seconds, early))
        cut = minimum_cut(early, wanted, seconds, self.choice.price, given=carried)
        self._note(cut.kept, early, cut.again, seconds, times)
        kept = set(cut.kept)
        places, there, back = there_and_back(cut.kept if self.choice.offloads else ())
        stored = [places.get(each, each) for each in cut.kept]
        # The first loop: its carry, what others read, and what is kept.
        of_first = {*pair.first.inputs, *(variable for each in pair.early for variable in each.outvars)}
        whole = {
            atom
            for atom, inner in zip(backward.invars, pair.second.inputs, strict=True)
            if not is_literal(atom) and inner not in of_first
        }
        other = [at for at, each in enumerate(forward.outvars[one.carry :]) if each in elsewhere or each in whole]
        results = [*pair.first.outputs[: one.carry], *(pair.first.outputs[one.carry + at] for at in other), *stored]
        ahead = needed([*early, *there], results, lambda atom: atom in constants or atom in pair.first.inputs)
        body = Block(pair.first.inputs, ahead, results, constants).closed()
        length = int(forward.params["length"])
        stacks = [
            _internals.variable(each.aval.update(shape=(length, *each.aval.shape), weak_type=False))
            for each in stored
        ]
        self._stacked.update(stacks)
        outvars = [*forward.outvars[: one.carry], *(forward.outvars[one.carry + at] for at in other), *stacks]
        first = Scan(one.consts, one.carry, body).put_into(forward, forward.invars, outvars)
        # The second: what it needs of the first one's constants and slices, its own, and what was kept.
        own_consts, own_carry = pair.second.inputs[: two.consts], pair.second.inputs[two.consts :][: two.carry]
        own_slices = pair.second.inputs[two.consts + two.carry :]
        known = {*pair.first.inputs, *own_consts, *own_carry, *own_slices, *constants} - made - set(carried) | kept
        behind = needed([*(early[at] for at in cut.again), *late], pair.second.outputs, known.__contains__)
        read_there = {*read_by(behind), *(atom for atom in pair.second.outputs if not is_literal(atom))}
        fixed, rows = _operands(pair.first.inputs, forward.invars, one)
        of_consts, of_rows = _operands(pair.second.inputs, backward.invars, two)
        fixed, rows = {**fixed, **of_consts}, {**rows, **of_rows}
        skip = made | kept | set(own_carry)
        fixed = {inner: atom for inner, atom in fixed.items() if inner in read_there and inner not in skip}
        rows = {inner: atom for inner, atom in rows.items() if inner in read_there and inner not in skip}
        inputs = [*fixed, *own_carry, *rows, *stored]
        operands = [*fixed.values(), *backward.invars[two.consts : two.consts + two.carry], *rows.values(), *stacks]
        again = Block(inputs, [*back, *behind], pair.second.outputs, constants).closed()
        second = Scan(len(fixed), two.carry, again).put_into(backward, operands, backward.outvars)
        return first, second

    def _in_line(self, equations: list[Any], ends: set[Any], times: int) -> list[Any]:
        """What lies before the fullest moment and is read behind it is kept, or computed again there."""
        if self.choice.is_of_loops:
            return equations
        turn = fullest(equations) + 1
        seconds = list(map(self._seconds, equations[:turn]))
        fixed = set[Any]()
        if self.choice.share is not None:
            # The backward pass begins with the last segment, whose values would be repeated at once.
            fixed, turn = segments(equations[:turn], seconds, ends, self.choice.share)
        early, late = equations[:turn], equations[turn:]
        made = {variable: at for at, each in enumerate(early) for variable in each.outvars}
        wanted = [atom for atom in read_by(late) if atom in made and atom not in ends]
        if not any(map(is_of_gradient, late)) or not wanted:
            return equations
        cut = minimum_cut(early, wanted, seconds, self.choice.price, free=ends, fixed=fixed)
        self._note(cut.kept, early, cut.again, seconds, times)
        again = set(cut.again)
        self.chosen.in_line += len(again)
        repeated = {variable for at in again for variable in early[at].outvars} - set(cut.kept) - ends
        spread = {variable for at in again if seconds[at] == 0 for variable in _spread(early[at])}
        late = _repeated(early, late, made, again, repeated, spread, self.choice.is_tied)
        if not self.choice.offloads:
            return [*early, *late]
        _, there, back = there_and_back(each for each in cut.kept if each not in self._stacked)
        return [*early, *there, *moved_back(late, back)]


def _operands(inner: list[Any], outer: list[Any], loop: Scan) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """By variable of a loop's body, the constant or what is sliced for it."""
    slices = loop.consts + loop.carry
    return dict(zip(inner[: loop.consts], outer, strict=False)), dict(zip(inner[slices:], outer[slices:], strict=True))


def fullest(equations: list[Any]) -> int:
    """Where most bytes wait for an operation of the gradient, in the order of the trace.

    What only the optimizer reads, such as the weights' gradients, isn't among them: it has no choice.
    """
    gradients = list(map(is_of_gradient, equations))
    last: dict[Any, int] = {}
    for at, equation in enumerate(equations):
        if gradients[at]:
            last.update((atom, at) for atom in equation.invars if not is_literal(atom))
    change = [0] * (len(equations) + 1)
    for at, equation in enumerate(equations):
        for variable in equation.outvars:
            if last.get(variable, -1) > at:
                change[at] += bytes_of(variable)
                change[last[variable]] -= bytes_of(variable)
    waiting = list(itertools.accumulate(change))
    return waiting.index(max(waiting))


@functools.cache
def _barrier() -> Any:
    jax = module("jax")
    return jax.make_jaxpr(jax.lax.optimization_barrier)(1.0).jaxpr.eqns[0]


def _repeated(
    early: list[Any],
    late: list[Any],
    made: dict[Any, int],
    again: set[int],
    repeated: set[Any],
    spread: set[Any],
    is_tied: bool,
) -> list[Any]:
    """The backward pass, with what it needs again before its first reader.

    A barrier keeps the compiler from finding the first computation again. Where it is tied, a part, which is all that
    leads to one another without a kept value between, begins once the gradient that it is read with is there. What is
    spread from little, such as a mask that all layers have, is made anew for each: shared, it would always be alive.
    """
    parts = _parts(early, again, repeated - spread)
    new: dict[Any, Any] = {}

    def is_missing(atom: Any) -> bool:
        return not is_literal(atom) and atom in repeated and (atom not in new or atom in spread)

    found: list[Any] = []
    before: set[Any] = set()
    for at, equation in enumerate(late):
        missing = [atom for atom in equation.invars if is_missing(atom)]
        if missing:
            if is_tied:
                chosen = {place for atom in missing for place in parts[made[atom]]}
                tie = _tie(late[at:], before, repeated)
            else:
                chosen = {made[atom] for atom in missing}
                tie = None
            waiting = list(chosen)
            while waiting:
                for atom in early[waiting.pop()].invars:
                    if is_missing(atom) and made[atom] not in chosen:
                        chosen.add(made[atom])
                        waiting.append(made[atom])
            found += _again([early[place] for place in sorted(chosen)], new, tie)
        reads = [atom if is_literal(atom) else new.get(atom, atom) for atom in equation.invars]
        found.append(equation.replace(invars=reads))
        before.update(equation.outvars)
    return found


def _spread(equation: Any) -> list[Any]:
    """What an equation makes of far fewer bytes."""
    read = sum(map(bytes_of, equation.invars))
    return [variable for variable in equation.outvars if 8 * read <= bytes_of(variable)]


def _parts(early: list[Any], again: set[int], repeated: set[Any]) -> dict[int, set[int]]:
    """By equation that is repeated, those that it hangs together with through values that aren't kept."""
    made = {variable: at for at in again for variable in early[at].outvars if variable in repeated}
    part = {at: {at} for at in again}
    for at in sorted(again):
        for atom in early[at].invars:
            if not is_literal(atom) and atom in made and part[made[atom]] is not part[at]:
                large, small = sorted((part[made[atom]], part[at]), key=len, reverse=True)
                large |= small
                part.update(dict.fromkeys(small, large))
    return part


def _again(chosen: list[Any], new: dict[Any, Any], tie: Any) -> list[Any]:
    """Equations of the forward pass with new variables, behind a barrier."""
    own = {variable for each in chosen for variable in each.outvars}
    leaves = [atom for atom in read_by(chosen) if atom not in own]
    names: dict[Any, Any] = {}
    found: list[Any] = []
    held = [*(new.get(atom, atom) for atom in leaves), *([] if tie is None else [new.get(tie, tie)])]
    if held:
        after = [_internals.variable(atom.aval) for atom in held]
        found.append(_barrier().replace(invars=held, outvars=after))
        names.update(zip(leaves, after, strict=False))
        if tie is not None:
            new[tie] = after[-1]
    for equation in chosen:
        made = [_internals.variable(each.aval) for each in equation.outvars]
        reads = [atom if is_literal(atom) else names.get(atom, atom) for atom in equation.invars]
        found.append(equation.replace(invars=reads, outvars=made))
        names.update(zip(equation.outvars, made, strict=True))
        new.update(zip(equation.outvars, made, strict=True))
    return found


def _tie(late: list[Any], before: set[Any], repeated: set[Any]) -> Any:
    """The gradient that a part is read with: of the first reader that reads one."""
    derived: set[Any] = set(repeated)
    for equation in late:
        reads = [atom for atom in equation.invars if not is_literal(atom)]
        if derived.isdisjoint(reads):
            continue
        gradients = [atom for atom in reads if atom in before and atom not in derived]
        if gradients:
            return gradients[-1]
        derived.update(equation.outvars)
    return None
