"""Values that lie in the host's memory between the forward pass and the backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.jaxprs import renamed, variables
from tilewise._remat.equations import bytes_of

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
