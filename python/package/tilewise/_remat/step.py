"""A training step as it is traced, and the program that a choice of kept values makes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tilewise._base.errors import Error
from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.device import traced_for
from tilewise._jax.equations import BODIES, Block, Reader, bytes_of
from tilewise._jax.jaxprs import makers, read_by, variables
from tilewise._jax.lowering import Request
from tilewise._jax.topologies import slice_with
from tilewise._remat.again import Forward, repeated
from tilewise._remat.costs import NEVER, PRODUCTS, Costs
from tilewise._remat.cut import Cut, minimum_cut, segments
from tilewise._remat.forms import Form, form_of
from tilewise._remat.regions import Loops, Pair, Region, fullest, moved_back, region, there_and_back


@dataclass(frozen=True)
class Choice:
    """The settings of a choice of kept values.

    Attributes:
        price: bytes that a second is worth.
        share: of the bytes made between two places where all live values are kept, the share that counts as held
            while they are repeated; ``None`` for no such places.
        is_tied: whether a part is repeated only once the gradient has come to it.
        releases: whether it waits for gradients that free more than they hold, too.
        is_of_loops: whether only values that loops stack are chosen anew.
        keeps_products: whether products and convolutions are never repeated.
        offloads: whether kept values lie in the host's memory.
        dearer, part: the part that is kept of values repeated at ``price`` and not at this higher one, last first: one
            price keeps all of the values that are alike, such as those of each layer, or none.
    """

    price: float
    share: float | None = None
    is_tied: bool = False
    releases: bool = False
    is_of_loops: bool = False
    keeps_products: bool = False
    offloads: bool = False
    dearer: float = 0.0
    part: float = 0.0


@dataclass(frozen=True)
class Value:
    """A value that is kept or computed again, and how many times a step does it; a loop hands on one without a maker.

    `ends_line` says whether it is the value of its maker's line of the program.
    """

    variable: Any
    equation: Any
    times: int
    ends_line: bool = False

    @property
    def bytes(self) -> int:
        return bytes_of(self.variable) * self.times


@dataclass
class Chosen:
    """The outcome of a choice.

    Attributes:
        kept, again: values.
        seconds: the guessed time of repeating.
        in_line: how many equations are repeated that are in no loop with its own backward pass.
        in_line_bytes: the bytes of their results.
    """

    kept: list[Value] = field(default_factory=list[Value])
    again: list[Value] = field(default_factory=list[Value])
    seconds: float = 0.0
    in_line: int = 0
    in_line_bytes: int = 0

    @property
    def is_in_line(self) -> bool:
        """Whether most of the repeated bytes are in line, as where layers are written out and loops are within them."""
        return 2 * self.in_line_bytes > sum(each.bytes for each in self.again)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.kept)

    @property
    def key(self) -> Any:
        # Variables are new each time that a choice is made; their equations' outputs are in one order.
        return tuple((str(each.variable.aval), each.times) for each in self.kept), len(self.again)


@dataclass
class Chooser:
    """Makes one choice in all regions of a step."""

    costs: Costs
    choice: Choice
    chosen: Chosen = field(default_factory=Chosen)
    _stacked: set[Any] = field(default_factory=set[Any])

    def program(self, region: Region, times: int = 1) -> Block:
        block, equations = region.block, list(region.block.equations)
        for at, body in region.bodies.items():
            equation = equations[at]
            inner = self.program(body, times * int(equation.params.get("length", 1))).closed()
            equations[at] = internals.with_program(equation, BODIES[equation.primitive.name], inner)
        ends = set(variables(block.outputs))
        self._apply(region.pairs, equations, ends, times)
        return Block(block.inputs, self._in_line(equations, ends, times), block.outputs, block.constants)

    def _seconds(self, equation: Any) -> float:
        if self.choice.keeps_products and equation.primitive.name in PRODUCTS:
            return NEVER
        return self.costs.seconds(equation)

    def _cut(self, early: Sequence[Any], wanted: Collection[Any], seconds: Sequence[float], **given: Any) -> Cut:
        price, dearer = self.choice.price, self.choice.dearer
        found = minimum_cut(early, wanted, [price * each for each in seconds], **given)
        if not self.choice.part:
            return found
        above = minimum_cut(early, wanted, [dearer * each for each in seconds], **given)
        between = sorted(set(found.again).difference(above.again), reverse=True)
        left, last = self.choice.part * sum(seconds[at] for at in between), set[int]()
        for at in between:
            left -= seconds[at]
            if left < 0:
                break
            last.add(at)
        worth = [each * (dearer if at in last else price) for at, each in enumerate(seconds)]
        return minimum_cut(early, wanted, worth, **given)

    def _apply(self, pairs: list[Pair], equations: list[Any], ends: set[Any], times: int) -> None:
        for pair in pairs:
            one, two = pair.at
            others = read_by(each for at, each in enumerate(equations) if at not in pair.at)
            equations[one], equations[two] = self._pair(pair, equations[one], equations[two], ends.union(others), times)

    def _note(self, kept: list[Any], equations: list[Any], again: list[int], seconds: list[float], times: int) -> None:
        places = makers(equations)
        readers: dict[Any, list[Any]] = {}
        for each in equations:
            for atom in variables(each.invars):
                readers.setdefault(atom, []).append(each)
        for variable in kept:
            at = places.get(variable)
            if variable in self._stacked:
                continue
            maker = None if at is None else equations[at]
            # A value that the forward pass doesn't read is a line's value where no other equation of the line follows.
            others = [] if at is None else readers.get(variable, equations[at + 1 : at + 2])
            line = None if maker is None else internals.place(maker)
            ends = maker is None or not others or any(internals.place(each) != line for each in others)
            self.chosen.kept.append(Value(variable, maker, times, ends))
        self.chosen.again += [Value(equations[at].outvars[0], equations[at], times) for at in again]
        self.chosen.seconds += times * sum(seconds[at] for at in again)

    def _pair(self, pair: Pair, forward: Any, backward: Any, elsewhere: set[Any], times: int) -> tuple[Any, Any]:
        times *= int(forward.params["length"])
        inside = [*pair.early, *pair.late]
        self._apply(pair.within, inside, set(variables([*pair.first.outputs, *pair.second.outputs])), times)
        early, late = inside[: len(pair.early)], inside[len(pair.early) :]
        made = makers(early)
        read = dict.fromkeys([*read_by(late), *variables(pair.second.outputs)])
        wanted = [atom for atom in read if atom in made or atom in pair.carried]
        seconds = list(map(self._seconds, early))
        cut = self._cut(early, wanted, seconds, given=pair.carried)
        self._note(cut.kept, early, cut.again, seconds, times)
        loops = Loops(pair, early, late, cut, there_and_back(cut.kept if self.choice.offloads else ()))
        first, stacks = loops.ahead(forward, backward, elsewhere)
        self._stacked.update(stacks)
        return first, loops.behind(forward, backward, stacks)

    def _in_line(self, equations: list[Any], ends: set[Any], times: int) -> list[Any]:
        """Keeps values made before the fullest moment and read behind it, or computes them again there."""
        if self.choice.is_of_loops:
            return equations
        turn = fullest(equations) + 1
        seconds = list(map(self._seconds, equations[:turn]))
        fixed, bounds = set[Any](), list[int]()
        if self.choice.share is not None:
            # The backward pass begins with the last segment, whose values would be repeated at once.
            fixed, bounds = segments(equations[:turn], seconds, ends, self.choice.share)
            turn = bounds[-1]
        early, late = equations[:turn], equations[turn:]
        made = makers(early)
        wanted = [atom for atom in read_by(late) if atom in made and atom not in ends]
        if not any(map(internals.is_of_gradient, late)) or not wanted:
            return equations
        cut = self._cut(early, wanted, seconds, free=ends, fixed=fixed)
        self._note(cut.kept, early, cut.again, seconds, times)
        again = set(cut.again)
        self.chosen.in_line += len(again)
        self.chosen.in_line_bytes += times * sum(bytes_of(early[at].outvars[0]) for at in again)
        lost = {variable for at in again for variable in early[at].outvars} - set(cut.kept) - ends
        free = {at for at in again if seconds[at] == 0}
        forward = Forward(early, made, again, lost, free, cut.kept, bounds)
        late = repeated(forward, late, self.choice.is_tied, self.choice.releases)
        if not self.choice.offloads:
            return [*early, *late]
        _, there, back = there_and_back(each for each in cut.kept if each not in self._stacked)
        return [*early, *there, *moved_back(late, back)]


POLICIES = ("full", "dots")
"""Values that ``jax.checkpoint`` keeps around each layer: its operands alone, or results of products, too."""


@dataclass(frozen=True)
class Step:
    """A step that was traced.

    Attributes:
        request: the step as it is.
        form: the step as a function of arrays alone.
        region: its equations, where both passes meet.
    """

    request: Request
    form: Form
    region: Region

    @classmethod
    def of(cls, request: Request) -> Step:
        """Traces a step.

        Raises:
            Error: it has no gradient, so that nothing is kept for one.
        """
        jax, form = module("jax"), form_of(request.f, request.args)
        tpu = request.generation
        devices = slice_with(tpu, request.topology, 1)[1]
        closed = traced_for(tpu, lambda: jax.make_jaxpr(form.flat)(*form.leaves), devices)
        found = region(Reader().block(closed))
        if not found.has_gradient:
            message = "the step has no gradient, so nothing is kept for one: remat is for training steps"
            raise Error(message, kind="remat")
        return cls(request, form, found)

    def chosen(self, choice: Choice) -> tuple[Block, Chosen]:
        """The step's equations with this choice, and the choice's outcome."""
        chooser = Chooser(Costs.of(self.request.generation), choice)
        return chooser.program(self.region), chooser.chosen

    def function(self, block: Block) -> Callable[..., Any]:
        """A function of the step's own form."""
        return self.form.callable_of(module("jax.extend.core").jaxpr_as_fun(block.closed()))

    def with_policy(self, policy: str) -> Callable[..., Any]:
        """The step as ``jax.checkpoint`` around each of its layers would make it.

        Args:
            policy: one of `POLICIES`.

        Raises:
            Error: that repeats nothing.
        """
        share = None if policy == "dots" else SHARES[0]
        choice = Choice(1.0, share, is_tied=True, releases=True, keeps_products=policy == "dots")
        block, chosen = self.chosen(choice)
        if self.region.has_pairs and not chosen.is_in_line:
            # The layers are the steps of loops.
            block, chosen = self.chosen(replace(choice, is_of_loops=True))
        if not chosen.again:
            raise Error(f"remat={policy} repeats nothing", kind="remat")
        return self.function(block)


SHARES = (0.25, 0.12, 0.06)
"""Shares of a segment's bytes that count as held while it is repeated: the larger, the shorter segments are."""
