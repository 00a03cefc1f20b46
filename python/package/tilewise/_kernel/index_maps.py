"""Finds the axes of the grid that a block's index depends on, once the compiler has simplified its index map.

A window whose index depends on no axis has one buffer, so only the simplified map counts: Mosaic runs
MLIR's canonicalizer over the index map and reads the result. So do the functions here, on integers of 32 bits:
they write the index map in the ``arith`` dialect and have jaxlib simplify it. An index that it leaves as
``min(i, 0)`` or ``i // 4`` depends on its axis even where its value never changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewise._base.modules import module
from tilewise._jax import internals
from tilewise._jax.jaxprs import INLINED, evaluated, opened

_CALLS = {**INLINED, "remat": "jaxpr"}
# Primitives that leave an integer as it is. Widths below 32 bits are only ever converted to and fro.
_COPIES = {"multiple_of", "stop_gradient", "copy", "bitcast_convert_type"}
_OPERATIONS = {
    "add": "addi", "add_any": "addi", "sub": "subi", "mul": "muli", "div": "divsi", "rem": "remsi",
    "and": "andi", "or": "ori", "xor": "xori", "min": "minsi", "max": "maxsi",
    "shift_left": "shli", "shift_right_arithmetic": "shrsi", "shift_right_logical": "shrui",
    "eq": "cmpi eq,", "ne": "cmpi ne,", "lt": "cmpi slt,", "le": "cmpi sle,", "gt": "cmpi sgt,", "ge": "cmpi sge,",
}  # fmt: skip


def axes(index_map: Any, rank: int) -> list[set[int]]:
    """For each dimension of a block, the axes of a grid of that rank that its index depends on.

    A prefetched scalar that is read at a fixed place depends on none.
    """
    jaxpr = opened(index_map)
    written = _Function()
    arguments = [f"%a{number}" for number in range(len(jaxpr.invars))]
    results = written.jaxpr(jaxpr, jaxpr.constvars, arguments)
    parameters = ", ".join(f"{name}: i32" for name in arguments)
    types = ", ".join("i32" for _ in results)
    lines = [f"func.func @index({parameters}) -> ({types}) {{", *written.lines]
    lines += [f"return {', '.join(results)} : {types}" if results else "return", "}"]
    read = internals.read_by_results("\n".join(lines))
    return [{number for number in each if number < rank} for each in read]


class _Function:
    """An index map as text of MLIR, whose values have names: ``i1`` for truth values, ``i32`` for all others."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._marks: dict[tuple[str, ...], int] = {}
        # A second operand, which makes a cast unknown to the canonicalizer: a cast of a single value may be undone.
        self._beside = self._add("arith.constant 0.0 : f64")

    def _add(self, operation: str) -> str:
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = {operation}")
        return name

    def _arith(self, name: str, *operands: str, type: str = "i32") -> str:
        return self._add(f"arith.{name} {', '.join(operands)} : {type}")

    def _constant(self, value: int, type: str = "i32") -> str:
        wrapped = (value + 2**31) % 2**32 - 2**31
        return self._add(f"arith.constant {str(bool(value)).lower() if type == 'i1' else f'{wrapped} : i32'}")

    def _unknown(self, *mark: str, operands: Iterable[tuple[str, str]] = (), type: str = "i32") -> str:
        """A value with nothing known but its operands; equal marks of equal operands give one value."""
        names, types = zip((self._beside, "f64"), *operands, strict=True)
        number = self._marks.setdefault(mark, len(self._marks))
        cast = f"builtin.unrealized_conversion_cast {', '.join(names)} : {', '.join(types)} to {type}"
        return self._add(f"{cast} {{mark = {number} : i64}}")

    def jaxpr(self, jaxpr: Any, consts: Iterable[Any], arguments: Iterable[str]) -> list[str]:
        return evaluated(jaxpr, consts, arguments, self._value, self._equation)

    def _value(self, value: Any, atom: Any) -> str:
        """A constant of an integer; a value without a number, or of another kind, is unknown."""
        if _kind(atom) in "iub" and hasattr(value, "__int__") and not isinstance(value, module("jax").core.Tracer):
            return self._constant(int(value), _type(atom))
        return self._unknown("value", str(value), type=_type(atom))

    def _called(self, closed: Any, arguments: list[str]) -> list[str]:
        inner = opened(closed)
        consts = list(getattr(closed, "consts", ())) or inner.constvars
        return self.jaxpr(inner, consts, arguments)

    def _equation(self, equation: Any, operands: list[str]) -> list[str]:
        name, params = str(equation.primitive.name), equation.params
        closed: Any = params.get(_CALLS.get(name))
        if hasattr(opened(closed), "eqns") and len(opened(closed).invars) == len(operands):
            return self._called(closed, operands)
        if name == "cond":
            return self._branches(equation, operands)
        variables = [*equation.invars, *equation.outvars]
        if len(equation.outvars) == 1 and {_kind(each) for each in variables} <= set("iub"):
            known = self._integer(name, params, [_type(each) for each in variables], operands)
            if known is not None:
                return [known]
        is_pure = not getattr(equation, "effects", ()) or name in ("get", "load")
        mark = str(sorted((key, str(value)) for key, value in params.items())) if is_pure else str(id(equation))
        typed = list(zip(operands, map(_type, equation.invars), strict=True))
        return [
            self._unknown(name, mark, str(number), operands=typed, type=_type(result))
            for number, result in enumerate(equation.outvars)
        ]

    def _integer(self, name: str, params: Any, types: list[str], operands: list[str]) -> str | None:
        """The result of an equation on integers, in the operations that JAX has for it; ``None`` where unknown."""
        first, *others = operands
        of, to = types[0], types[-1]
        if name in _OPERATIONS:
            return self._arith(_OPERATIONS[name], *operands, type=of)
        if name in _COPIES or (name == "convert_element_type" and of == to):
            return first
        if name == "convert_element_type":
            return self._add(f"arith.extui {first} : i1 to i32") if of == "i1" else self._is_not_zero(first)
        if name == "not":
            return self._arith("xori", first, self._constant(1 if of == "i1" else -1, of), type=of)
        if name == "neg":
            return self._arith("subi", self._constant(0), first)
        if name == "abs":
            return self._add(f"math.absi {first} : i32")
        if name == "sign":
            return self._arith("minsi", self._arith("maxsi", first, self._constant(-1)), self._constant(1))
        if name == "clamp":
            return self._arith("minsi", self._arith("maxsi", others[0], first), others[1])
        if name == "select_n" and len(others) == 2:
            which = first if of == "i1" else self._is_not_zero(first)
            return self._arith("select", which, *reversed(others), type=to)
        if name == "integer_pow" and params["y"] in range(9):
            power = self._constant(1)
            for _ in range(params["y"]):
                power = self._arith("muli", power, first)
            return power
        return None

    def _is_not_zero(self, value: str) -> str:
        return self._arith("cmpi ne,", value, self._constant(0))

    def _branches(self, equation: Any, operands: list[str]) -> list[str]:
        """The results of the branch of that number; the first's below, and the last's above."""
        index, *arguments = operands
        first, *others = (self._called(branch, arguments) for branch in equation.params["branches"])
        types = list(map(_type, equation.outvars))
        for number, branch in enumerate(others):
            is_beyond = self._arith("cmpi sgt,", index, self._constant(number))
            cases = zip(branch, first, types, strict=True)
            first = [self._arith("select", is_beyond, yes, no, type=type) for yes, no, type in cases]
        return first


def _kind(atom: Any) -> str:
    """``i``, ``u``, ``b`` or ``f`` of a scalar, ``?`` of anything else."""
    aval = atom.aval
    return str(aval.dtype.kind) if getattr(aval, "shape", None) == () and hasattr(aval, "dtype") else "?"


def _type(atom: Any) -> str:
    return "i1" if _kind(atom) == "b" else "i32"
