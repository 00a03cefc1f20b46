"""The equations of a forward pass once more, in the backward pass that reads them."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

from tilewise import _internals
from tilewise._modules import module
from tilewise._remat.costs import is_of_gradient
from tilewise._remat.equations import bytes_of, is_literal, read_by

_NEAR, _FEWER = 8, 8
"""How many operations before a gradient another one may stand for it; how many times fewer bytes are far fewer."""


@functools.cache
def _barrier() -> Any:
    jax = module("jax")
    return jax.make_jaxpr(jax.lax.optimization_barrier)(1.0).jaxpr.eqns[0]


def repeated(
    early: list[Any],
    late: list[Any],
    made: dict[Any, int],
    again: set[int],
    lost: set[Any],
    anew: set[Any],
    held: Collection[Any] = (),
    is_tied: bool = False,
) -> list[Any]:
    """The backward pass, with what it needs again before its first reader.

    A barrier keeps the compiler from finding the first computation again. Where it is tied, a part, which is all that
    leads to one another without a kept value between, begins once the gradient that it is read with is there; what is
    kept (`held`) is read no earlier either, since what follows from it may be larger. A value that is spread from
    little (`anew`), such as a mask that all layers have, is made for each of them: shared, it would always be alive.
    """
    parts = _parts(early, again, lost - anew)
    new: dict[Any, Any] = {}

    def is_missing(atom: Any) -> bool:
        return not is_literal(atom) and atom in lost and (atom not in new or atom in anew)

    found: list[Any] = []
    before: dict[Any, Any] = {}
    waiting_for = set(held) if is_tied else set[Any]()
    for at, equation in enumerate(late):
        # The last segment of the forward pass reads what is kept as it is there.
        is_behind = is_of_gradient(equation)
        kept = [atom for atom in equation.invars if is_behind and not is_literal(atom) and atom in waiting_for]
        if kept:
            waiting_for.difference_update(kept)
            tie = _tie(late[at:], before, lost | set(kept))
            if tie is not None:
                found.append(_behind(kept, new, tie))
        missing = [atom for atom in equation.invars if is_missing(atom)]
        if missing:
            if is_tied:
                chosen = {place for atom in missing for place in parts[made[atom]]}
                tie = _tie(late[at:], before, lost)
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
        if is_behind:
            before.update(dict.fromkeys(equation.outvars, equation))
    return found


def spread(equation: Any) -> list[Any]:
    """What an equation makes of far fewer bytes."""
    read = sum(map(bytes_of, equation.invars))
    return [variable for variable in equation.outvars if _FEWER * read <= bytes_of(variable)]


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


def _behind(kept: list[Any], new: dict[Any, Any], tie: Any) -> Any:
    """A barrier before values that are read once a gradient is there."""
    both = list(dict.fromkeys([*kept, tie]))
    barrier = _barrier().replace(
        invars=[new.get(each, each) for each in both], outvars=[_internals.variable(each.aval) for each in both]
    )
    new.update(zip(both, barrier.outvars, strict=True))
    return barrier


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


def _tie(late: list[Any], before: dict[Any, Any], repeated: set[Any]) -> Any:
    """The gradient that a part is read with: of the first reader that reads one, or a smaller one that leads to it."""
    derived: set[Any] = set(repeated)
    for equation in late:
        reads = [atom for atom in equation.invars if not is_literal(atom)]
        if derived.isdisjoint(reads):
            continue
        gradients = [atom for atom in reads if atom in before and atom not in derived]
        if gradients:
            return _smaller(gradients[-1], before)
        derived.update(equation.outvars)
    return None


def _smaller(gradient: Any, before: dict[Any, Any]) -> Any:
    """A gradient a few operations before this one that has far fewer bytes, if there is one.

    Nothing is fused through a barrier: what goes through it is written, in the layout of its shape alone.
    """
    enough, waiting = bytes_of(gradient) / _FEWER, [gradient]
    for _ in range(_NEAR):
        makers = [before[each] for each in waiting]
        waiting = [atom for atom in read_by(makers) if atom in before]
        smaller = [each for each in waiting if bytes_of(each) <= enough]
        if smaller:
            return max(smaller, key=bytes_of)
    return gradient
