"""Jaxprs as all readers of traced functions see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")

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

SOLVED = {**INLINED, "custom_linear_solve": "jaxprs"}
"""These and linear solvers, whose programs for gradients, such as the transpose, a traced gradient has no use for."""

CHECKPOINTS = ("checkpoint", "remat", "remat2")
"""Names that JAX has had for the call of ``jax.checkpoint``, whose parameter is ``jaxpr``."""

ARITHMETIC = frozenset([
    "abs", "add", "add_any", "and", "atan2", "ceil", "clamp", "convert_element_type", "copy", "cos", "div", "eq",
    "erf", "exp", "exp2", "expm1", "floor", "ge", "gt", "integer_pow", "is_finite", "le", "log", "log1p",
    "logistic", "lt", "max", "min", "mul", "ne", "neg", "not", "or", "pow", "rem", "round", "rsqrt", "select_n",
    "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sqrt", "square", "sub", "tan",
    "tanh", "xor",
])  # fmt: skip
"""Primitives that compute each element of their result from one of each operand.

Those that the TPU's compiler was seen to compute block by block, where a kernel lets it (`allow_input_fusion`).
"""


def is_literal(atom: Any) -> bool:
    """Whether an equation reads a constant of the program's text."""
    return hasattr(atom, "val")


def variables(atoms: Iterable[Any]) -> list[Any]:
    return [atom for atom in atoms if not is_literal(atom)]


def read_by(equations: Iterable[Any]) -> list[Any]:
    """The variables that equations read, each once."""
    return list(dict.fromkeys(variables(atom for each in equations for atom in each.invars)))


def makers(equations: Iterable[Any]) -> dict[Any, int]:
    """By variable the place of the equation that makes it."""
    return {variable: at for at, each in enumerate(equations) for variable in each.outvars}


def renamed(equation: Any, names: Mapping[Any, Any], **fields: Any) -> Any:
    """The equation that reads variables by other names."""
    reads = [atom if is_literal(atom) else names.get(atom, atom) for atom in equation.invars]
    return equation.replace(invars=reads, **fields)


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


def nested(jaxpr: Any) -> Iterator[Any]:
    """The jaxpr and those inside it, without their constants."""
    pending = [opened(jaxpr)]
    while pending:
        one = pending.pop()
        yield one
        pending += [inner for equation in one.eqns for inner in inside(equation)]


def called(equation: Any, operands: list[_T], calls: Mapping[str, str]) -> tuple[Any, list[_T]] | None:
    """The program in a call's place, with its operands; `None` for operations that aren't among these calls."""
    name = equation.primitive.name
    program = equation.params.get(calls.get(name, ""))
    if program is None or name != "custom_linear_solve":
        return None if program is None else (program, operands)
    lengths = equation.params["const_lengths"]
    first = lengths.matvec + lengths.vecmat
    last = first + lengths.solve
    return program.solve, operands[first:last] + operands[last + lengths.transpose_solve :]


def accumulator(jaxpr: Any, place: int) -> int | None:
    """The place of an input to which a program adds something for a result, and that it reads for nothing else.

    The gradient of a loop that hands its weights on, as Flax NNX's does, has one for each weight.
    """
    program = opened(jaxpr)
    result, made = program.outvars[place], makers(program.eqns)
    reads = Counter(variables(atom for each in program.eqns for atom in each.invars) + variables(program.outvars))
    if is_literal(result) or result not in made or reads[result] != 1:
        return None
    equation = program.eqns[made[result]]
    callee = equation.params.get({**INLINED, **dict.fromkeys(CHECKPOINTS, "jaxpr")}.get(equation.primitive.name, ""))
    if equation.primitive.name in ("add", "add_any"):
        atoms = equation.invars
    else:
        at = None if callee is None else accumulator(callee, equation.outvars.index(result))
        atoms = [] if at is None else [equation.invars[at]]
    inputs = {variable: at for at, variable in enumerate(program.invars)}
    found = [inputs[atom] for atom in variables(atoms) if atom in inputs and reads[atom] == 1]
    return found[0] if len(found) == 1 else None


def evaluated(
    jaxpr: Any,
    consts: Iterable[Any],
    arguments: Iterable[_T],
    constant: Callable[[Any, Any], _T],
    results: Callable[[Any, list[_T]], Iterable[_T]],
) -> list[_T]:
    """The results of a jaxpr, whose values have a type of its reader's own.

    Of a constant, it gets the value and the variable or literal; of an equation, the values of its operands.
    """
    known: dict[Any, _T] = dict(zip(jaxpr.invars, arguments, strict=True))
    known |= {each: constant(value, each) for each, value in zip(jaxpr.constvars, consts, strict=True)}

    def of(atom: Any) -> _T:
        return constant(atom.val, atom) if is_literal(atom) else known[atom]

    for equation in jaxpr.eqns:
        made = results(equation, [of(atom) for atom in equation.invars])
        known.update(zip(equation.outvars, made, strict=True))
    return [of(atom) for atom in jaxpr.outvars]
