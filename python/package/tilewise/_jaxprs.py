"""Jaxprs as all readers of traced functions see them."""

from __future__ import annotations

from typing import Any

INLINED = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "composite": "jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "eval_jaxpr": "call_jaxpr",
}
"""Calls whose callee stands in their place, with the parameter that has it."""


def opened(jaxpr: Any) -> Any:
    """The jaxpr without its constants: until JAX 0.11, those with them are of another class."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def inside(equation: Any) -> list[Any]:
    found: list[Any] = []
    pending = list(equation.params.values())[::-1]
    while pending:
        one = pending.pop()
        if hasattr(opened(one), "eqns"):
            found.append(opened(one))
        elif issubclass(type(one), dict):
            pending += reversed(one.values())
        elif issubclass(type(one), (tuple, list)):
            pending += reversed(one)
    return found
