"""The equations of a forward pass once more, in the backward pass that reads them."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.equations import bytes_of
from tilewise._jax.jaxprs import is_literal, read_by, renamed, variables
from tilewise._remat.costs import is_fused

_NEAR, _FEWER = 8, 8
"""The most operations from a gradient back to one that stands for it; the factor by which bytes are far fewer."""


@dataclass
class Forward:
    """A forward pass with parts that are repeated.

    Attributes:
        equations: in order.
        made: by variable, the place of its equation.
        again: the places of repeated equations.
        lost: the variables that the backward pass doesn't find.
        free: those of the places that cost nothing.
        kept: the variables that are kept for the backward pass.
        bounds: the places where segments begin, each repeated at once; empty where a part is all equations that lead to
            one another without a kept value between.
    """

    equations: Sequence[Any]
    made: dict[Any, int]
    again: set[int]
    lost: set[Any]
    free: set[int]
    kept: Collection[Any] = ()
    bounds: Sequence[int] = ()

    @functools.cached_property
    def anew(self) -> set[Any]:
        """Values spread from far fewer bytes, such as a mask of all layers: shared, they would always be alive."""
        return {variable for at in self.again & self.free for variable in spread(self.equations[at])}

    def parts(self) -> list[set[int]]:
        """The places of the equations repeated at once, the last part first."""
        if not self.bounds:
            return list({id(each): each for each in _connected(self).values()}.values())
        found: dict[int, set[int]] = {}
        for at in self.again:
            found.setdefault(self.segment(at), set()).add(at)
        return [found[each] for each in sorted(found, reverse=True)]

    def segment(self, at: int) -> int:
        return bisect.bisect_right(self.bounds, at)


def repeated(forward: Forward, late: Sequence[Any], is_tied: bool, releases: bool) -> list[Any]:
    """The backward pass, with repeated equations before their first reader.

    A barrier keeps the compiler from finding the first computation again. Where it is tied, a part begins once the
    gradient that it is read with is there; kept values are read no earlier either, since values that follow may be
    larger. As with ``jax.checkpoint``, one barrier holds all that a part and its gradient read. One that releases
    waits, too, for the gradients that are made of something larger than themselves, such as weights'.
    """
    return _Backward(forward, late, is_tied, releases).equations()


class _Backward:
    def __init__(self, forward: Forward, late: Sequence[Any], is_tied: bool, releases: bool) -> None:
        self._forward, self._late, self._is_tied, self._releases = forward, late, is_tied, releases
        self._last = {atom: at for at, each in enumerate(late) for atom in variables(each.invars)}
        self._parts = forward.parts() if is_tied else []
        self._waiting = set(forward.kept) if is_tied else set[Any]()
        self._new: dict[Any, Any] = {}
        self._shared: dict[Any, Any] = {}
        self._before: dict[Any, Any] = {}
        self._made_of: dict[Any, int] = {}

    def equations(self) -> list[Any]:
        found: list[Any] = []
        for at, equation in enumerate(self._late):
            missing = [atom for atom in equation.invars if self._is_missing(atom)]
            if missing:
                found += self._again(missing, at)
            # The last segment of the forward pass reads kept values as they are.
            of_gradient = internals.is_of_gradient(equation)
            if of_gradient:
                found += self._behind([atom for atom in read_by([equation]) if atom in self._waiting], at)
            found.append(equation.replace(invars=[self._read(atom, of_gradient) for atom in equation.invars]))
            if of_gradient:
                self._pass(equation)
        return found

    def _is_missing(self, atom: Any) -> bool:
        forward = self._forward
        return not is_literal(atom) and atom in forward.lost and (atom not in self._new or atom in forward.anew)

    def _read(self, atom: Any, of_gradient: bool) -> Any:
        """The variable that stands for a value: for a gradient's argument, the one that its repeated part read.

        Values that both make of it, such as a gathered weight, are then made once. The optimizer reads the
        argument itself, which may be donated.
        """
        if is_literal(atom):
            return atom
        return self._new.get(atom, self._shared.get(atom, atom) if of_gradient else atom)

    def _pass(self, equation: Any) -> None:
        """Notes gradients, and the bytes of the largest value that each is made of, if those are more than its own."""
        self._before.update(dict.fromkeys(equation.outvars, equation))
        reads = read_by([equation])
        sizes = (self._made_of.get(atom, 0) for atom in reads) if is_fused(equation) else map(bytes_of, reads)
        largest = max(sizes, default=0)
        self._made_of.update((each, largest) for each in equation.outvars if bytes_of(each) < largest)

    def _again(self, missing: list[Any], at: int) -> list[Any]:
        forward, made = self._forward, self._forward.made
        chosen = {made[atom] for atom in missing}
        if self._is_tied:
            # Gradients come to the last segment first; equations that another one shares with it are repeated with it.
            for part in self._parts[:1] if forward.bounds else self._parts:
                if not chosen.isdisjoint(part):
                    chosen |= part
                    self._parts = [each for each in self._parts if each is not part]
        waiting = list(chosen)
        while waiting:
            for atom in forward.equations[waiting.pop()].invars:
                if self._is_missing(atom) and made[atom] not in chosen:
                    chosen.add(made[atom])
                    waiting.append(made[atom])
        equations = [forward.equations[place] for place in sorted(chosen)]
        first: list[Any] = []
        is_tied = self._is_tied and not chosen <= forward.free
        if is_tied and (tie := _tie(self._late[at:], self._before, forward.lost)) is not None:
            reads = set(read_by(equations))
            segments = {forward.segment(place) for place in chosen} if forward.bounds else set[int]()
            first = [each for each in self._waiting if each in reads or forward.segment(made.get(each, -1)) in segments]
            self._waiting.difference_update(first)
            first += [tie, *(self._releasing(at) if self._releases else ())]
        return self._repeat(equations, first)

    def _releasing(self, at: int) -> list[Any]:
        """Gradients to make first: their operands, which are larger, can then be freed."""
        ends = len(self._late)
        found = [each for each in self._made_of if self._last.get(each, ends) >= at]
        for each in found:
            del self._made_of[each]
        return found

    def _repeat(self, equations: Sequence[Any], first: Iterable[Any]) -> list[Any]:
        """Equations with new variables, behind a barrier on all that they read and on the values to make first."""
        own = {variable for each in equations for variable in each.outvars}
        leaves = [atom for atom in read_by(equations) if atom not in own]
        first = list(dict.fromkeys(first))
        names: dict[Any, Any] = {}
        found: list[Any] = []
        held = list(dict.fromkeys([*leaves, *first]))
        if held:
            barrier = self._barrier(held)
            found.append(barrier)
            names.update(zip(held, barrier.outvars, strict=True))
            self._new.update((each, names[each]) for each in first)
            self._shared.update((each, names[each]) for each in leaves if each not in self._forward.made)
        for equation in equations:
            made = [internals.variable(each.aval) for each in equation.outvars]
            found.append(renamed(equation, names, outvars=made))
            names.update(zip(equation.outvars, made, strict=True))
            self._new.update(zip(equation.outvars, made, strict=True))
        return found

    def _behind(self, kept: list[Any], at: int) -> list[Any]:
        """A barrier before kept values, so that they are read once the gradient is there."""
        self._waiting.difference_update(kept)
        tie = _tie(self._late[at:], self._before, self._forward.lost.union(kept)) if kept else None
        if tie is None or bytes_of(tie) > max(map(bytes_of, self._late[at].outvars)):
            return []
        held = list(dict.fromkeys([*kept, tie]))
        barrier = self._barrier(held)
        self._new.update(zip(held, barrier.outvars, strict=True))
        return [barrier]

    def _barrier(self, held: Iterable[Any]) -> Any:
        reads = [self._new.get(each, each) for each in held]
        return _barrier().replace(invars=reads, outvars=[internals.variable(each.aval) for each in reads])


_barrier = functools.cache(lambda: module("jax").make_jaxpr(module("jax.lax").optimization_barrier)(1.0).jaxpr.eqns[0])


def spread(equation: Any) -> list[Any]:
    read = sum(map(bytes_of, equation.invars))
    return [variable for variable in equation.outvars if _FEWER * read <= bytes_of(variable)]


def _connected(forward: Forward) -> dict[int, set[int]]:
    """By repeated equation, those connected to it through values that aren't kept."""
    again, through = forward.again, forward.lost - forward.anew
    made = {variable: at for at in again for variable in forward.equations[at].outvars if variable in through}
    part = {at: {at} for at in again}
    for at in sorted(again):
        for atom in variables(forward.equations[at].invars):
            if atom in made and part[made[atom]] is not part[at]:
                large, small = sorted((part[made[atom]], part[at]), key=len, reverse=True)
                large |= small
                part.update(dict.fromkeys(small, large))
    return part


def _tie(late: Sequence[Any], before: dict[Any, Any], repeated: set[Any]) -> Any:
    """The gradient that a part is read with: of the first reader that reads one, or a smaller one that leads to it."""
    derived: set[Any] = set(repeated)
    for equation in late:
        reads = variables(equation.invars)
        if derived.isdisjoint(reads):
            continue
        gradients = [atom for atom in reads if atom in before and atom not in derived]
        if gradients:
            return _smaller(gradients[-1], before)
        derived.update(equation.outvars)
    return None


def _smaller(gradient: Any, before: dict[Any, Any]) -> Any:
    """A gradient a few operations before this one that has far fewer bytes, with no larger one between them.

    Nothing is fused through a barrier: a value that goes through it is written, in the layout of its shape alone.
    """
    most, waiting = bytes_of(gradient), [gradient]
    for _ in range(_NEAR):
        makers = [before[each] for each in waiting]
        waiting = [atom for atom in read_by(makers) if atom in before and bytes_of(atom) <= most]
        smaller = [each for each in waiting if _FEWER * bytes_of(each) <= most]
        if smaller:
            return max(smaller, key=bytes_of)
    return gradient
