"""Which axes of the grid a block's index depends on, once the compiler has simplified its index map.

A window whose index depends on no axis has one buffer, so what counts is what the compiler still sees: Mosaic runs
MLIR's canonicalizer over the index map (folds and patterns of the `arith` dialect, constants, common subexpressions)
and looks at what is left. So do the functions here, on integers of 32 bits. What the canonicalizer leaves, such as
``min(i, 0)`` or ``i // 4``, depends on its axis even where its value never changes.

The rules are those of mlir/lib/Dialect/Arith/IR (``ArithOps.cpp``, ``ArithCanonicalization.td``), and three that only
the compiler's answers show: ``a - (a - b)`` is ``b``, ``a / a`` is 1, ``(a & c) & d`` is ``a & (c & d)``.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias


class _Operation:
    """An operation on values; equal ones are one object, as after the elimination of common subexpressions."""

    __slots__ = ("__weakref__", "name", "operands")

    def __init__(self, name: str, operands: tuple[Any, ...]) -> None:
        self.name, self.operands = name, operands


_Value: TypeAlias = int | _Operation

_OPERATIONS: weakref.WeakValueDictionary[tuple[Any, ...], _Operation] = weakref.WeakValueDictionary()


def _made(name: str, *operands: Any) -> _Operation:
    """An operation that no rule simplifies. Constants are last of what commutes, as in MLIR."""
    if name in _COMMUTATIVE:
        operands = tuple(sorted(operands, key=lambda each: (isinstance(each, int), id(each))))
    new = _Operation(name, operands)
    return _OPERATIONS.setdefault((name, *operands), new)


_COMMUTATIVE = {"add", "mul", "and", "or", "xor", "min", "max", "eq", "ne"}
_SMALLEST, _LARGEST = -(2**31), 2**31 - 1

# What leaves an integer as it is. Widths below 32 bits are only ever converted to and fro.
_SAME = {"multiple_of", "stop_gradient", "copy", "bitcast_convert_type"}
_CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat"}
_NAMES = {
    "shift_left": "shl",
    "shift_right_arithmetic": "sar",
    "shift_right_logical": "shr",
    "select_n": "select",
    "add_any": "add",
}


def axes(index_map: Any, rank: int) -> list[set[int]]:
    """For each dimension of a block, the axes of a grid of that rank that its index depends on.

    A prefetched scalar that is read at a fixed place depends on none.
    """
    jaxpr = getattr(index_map, "jaxpr", index_map)
    arguments: list[_Value] = [_made("axis", axis) for axis in range(rank)]
    arguments += [_made("argument", number) for number in range(rank, len(jaxpr.invars))]
    consts = [_made("const", number) for number in range(len(jaxpr.constvars))]
    return [_axes_of(value) for value in _results(jaxpr, consts, arguments)]


def _axes_of(value: _Value) -> set[int]:
    found: set[int] = set()
    pending: list[Any] = [value]
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if not isinstance(one, _Operation) or id(one) in seen:
            continue
        seen.add(id(one))
        if one.name == "axis":
            found.add(one.operands[0])
        else:
            pending += one.operands
    return found


def _results(jaxpr: Any, consts: Iterable[_Value], arguments: Iterable[_Value]) -> list[_Value]:
    """The values that a jaxpr returns."""
    values: dict[Any, _Value] = dict(zip(jaxpr.constvars, consts, strict=True))
    values |= dict(zip(jaxpr.invars, arguments, strict=True))

    def of(variable: Any) -> _Value:
        if not hasattr(variable, "val"):
            return values[variable]
        is_number = getattr(variable.aval, "shape", None) == () and variable.aval.dtype.kind in "iub"
        return _wrapped(int(variable.val)) if is_number else _made("literal", str(variable.val))

    for equation in jaxpr.eqns:
        found = _equation(equation, [of(variable) for variable in equation.invars])
        values |= dict(zip(equation.outvars, found, strict=True))
    return [of(variable) for variable in jaxpr.outvars]


def _equation(equation: Any, operands: list[_Value]) -> list[_Value]:
    """The values of an equation's results."""
    name, params = str(equation.primitive.name), equation.params
    if name in _CALLS:
        closed: Any = next((params[key] for key in ("jaxpr", "call_jaxpr") if key in params), None)
        inner: Any = getattr(closed, "jaxpr", closed)
        if hasattr(inner, "eqns") and len(inner.invars) == len(operands):
            return _results(inner, _constants(closed, inner), operands)
    if name == "cond":
        return _branches(params["branches"], operands)
    kinds = [_kind(variable) for variable in [*equation.invars, *equation.outvars]]
    if len(equation.outvars) == 1 and set(kinds) <= set("iub"):
        name = _NAMES.get(name, name)
        if kinds[-1] == "b" and name in ("and", "or", "xor", "not"):
            # True is all bits of a truth value.
            found = _FOLDS[name](*(-1 if value == 1 else value for value in operands))
            return [1 if found == -1 else found]
        if name in _FOLDS:
            return [_FOLDS[name](*operands)]
        if name in _SAME or (name == "convert_element_type" and kinds[-1] != "b"):
            return operands[:1]
        if name == "convert_element_type":
            return [_FOLDS["ne"](operands[0], 0)]
        if name == "integer_pow" and params["y"] in range(9):
            one: _Value = 1
            return [functools.reduce(_mul, [operands[0]] * params["y"], one)]
    # Not understood: equal ones of equal operands are still one value.
    is_pure = not getattr(equation, "effects", ()) or name in ("get", "load")
    mark = str(sorted((key, str(value)) for key, value in params.items())) if is_pure else str(id(equation))
    count = len(equation.outvars)
    unknown: list[_Value] = [_made(name, mark, str(number), *operands) for number in range(count)]
    return unknown


def _kind(variable: Any) -> str:
    """``i``, ``u``, ``b`` or ``f`` of a scalar, ``?`` of anything else."""
    aval = variable.aval
    return str(aval.dtype.kind) if getattr(aval, "shape", None) == () and hasattr(aval, "dtype") else "?"


def _constants(closed: Any, inner: Any) -> list[_Value]:
    """The constants of a jaxpr that is called."""
    consts = list(getattr(closed, "consts", ())) or inner.constvars
    return [_constant(value) for value in consts]


def _constant(value: Any) -> _Value:
    kind = "i" if isinstance(value, int) else getattr(getattr(value, "dtype", None), "kind", "")
    is_number = kind in ("i", "u", "b") and getattr(value, "shape", ()) == () and not hasattr(value, "aval")
    return _wrapped(int(value)) if is_number else _made("const", str(id(value)))


def _branches(branches: Any, operands: list[_Value]) -> list[_Value]:
    """A ``cond``: the branch that is taken, where it is known, or what all of them return."""
    index, *arguments = operands
    found: list[list[_Value]] = []
    for branch in branches:
        inner = getattr(branch, "jaxpr", branch)
        found.append(_results(inner, _constants(branch, inner), arguments))
    return [_select(index, *cases) for cases in zip(*found, strict=True)]


def _wrapped(number: int) -> int:
    return (number - _SMALLEST) % 2**32 + _SMALLEST


def _parts(value: _Value, name: str) -> tuple[Any, Any]:
    """The two operands of an operation of that name; of anything else `_NOTHING`, which equals nothing."""
    return value.operands if isinstance(value, _Operation) and value.name == name else (_NOTHING, _NOTHING)


_NOTHING: Any = object()


def _add(a: _Value, b: _Value) -> _Value:
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int) and isinstance(b, int):
        return _wrapped(a + b)
    if b == 0:
        return a
    for one, other in ((a, b), (b, a)):
        left, right = _parts(one, "sub")
        if right is other:
            return _known(left)
        left, right = _parts(other, "mul")
        if right == -1:
            return _sub(one, left)
    if isinstance(b, int):
        left, right = _parts(a, "add")
        if isinstance(right, int):
            return _add(left, _wrapped(right + b))
        left, right = _parts(a, "sub")
        if isinstance(right, int):
            return _add(left, _wrapped(b - right))
        if isinstance(left, int):
            return _sub(_wrapped(left + b), right)
    return _made("add", a, b)


def _sub(a: _Value, b: _Value) -> _Value:
    if isinstance(a, int) and isinstance(b, int):
        return _wrapped(a - b)
    if a is b:
        return 0
    if b == 0:
        return a
    left, right = _parts(a, "add")
    if b in (left, right):
        return _known(right if left == b else left)
    (kept, taken), (first, second) = _parts(a, "sub"), _parts(b, "sub")
    if first is a:
        return _known(second)
    if kept is b:
        return _sub(0, taken)
    if isinstance(b, int):
        if isinstance(right, int):
            return _add(left, _wrapped(right - b))
        if isinstance(taken, int):
            return _sub(kept, _wrapped(taken + b))
        if isinstance(kept, int):
            return _sub(_wrapped(kept - b), taken)
    if isinstance(a, int):
        left, right = _parts(b, "add")
        if isinstance(right, int):
            return _sub(_wrapped(a - right), left)
        if isinstance(second, int):
            return _sub(_wrapped(a + second), first)
        if isinstance(first, int):
            return _add(second, _wrapped(a - first))
    return _made("sub", a, b)


def _known(value: Any) -> _Value:
    """What was an operand, which is a value."""
    found: _Value = value
    return found


def _mul(a: _Value, b: _Value) -> _Value:
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int) and isinstance(b, int):
        return _wrapped(a * b)
    if b == 0 or b == 1:
        return a if b else 0
    left, right = _parts(a, "mul")
    if isinstance(b, int) and isinstance(right, int):
        return _mul(left, _wrapped(right * b))
    return _made("mul", a, b)


def _div(a: _Value, b: _Value) -> _Value:
    if b == 1:
        return a
    if a is b:
        return 1
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return _wrapped(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
    return _made("div", a, b)


def _rem(a: _Value, b: _Value) -> _Value:
    if b == 1:
        return 0
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    return _made("rem", a, b)


def _and(a: _Value, b: _Value) -> _Value:
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int) and isinstance(b, int):
        return a & b
    if b == 0 or a is b:
        return b
    if b == -1:
        return a
    if _are_opposite(a, b):
        return 0
    left, right = _parts(a, "and")
    if isinstance(b, int) and isinstance(right, int):
        return _and(left, right & b)
    return _made("and", a, b)


def _or(a: _Value, b: _Value) -> _Value:
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int) and isinstance(b, int):
        return a | b
    if b == 0 or a is b:
        return a
    return -1 if b == -1 or _are_opposite(a, b) else _made("or", a, b)


def _xor(a: _Value, b: _Value) -> _Value:
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int) and isinstance(b, int):
        return a ^ b
    if a is b:
        return 0
    if b == 0:
        return a
    for one, other in ((a, b), (b, a)):
        left, right = _parts(one, "xor")
        if other in (left, right):
            return _known(right if left == other else left)
    return _made("xor", a, b)


def _are_opposite(a: _Value, b: _Value) -> bool:
    """Whether one is the other with all bits turned."""
    return any(_parts(one, "xor") == (other, -1) for one, other in ((a, b), (b, a)))


def _shift(name: str, shifted: Callable[[int, int], int]) -> Callable[[_Value, _Value], _Value]:
    def fold(a: _Value, b: _Value) -> _Value:
        if b == 0:
            return a
        if isinstance(a, int) and isinstance(b, int) and 0 <= b < 32:
            return _wrapped(shifted(a, b))
        return _made(name, a, b)

    return fold


def _extreme(name: str, chosen: Callable[[int, int], int], least: int, most: int) -> Callable[[_Value, _Value], _Value]:
    """``min`` or ``max``: with `least` it is the other operand, with `most` that."""

    def fold(a: _Value, b: _Value) -> _Value:
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int) and isinstance(b, int):
            return chosen(a, b)
        if a is b or b == least:
            return a
        return b if b == most else _made(name, a, b)

    return fold


def _compare(name: str, holds: Callable[[int, int], bool]) -> Callable[[_Value, _Value], _Value]:
    def fold(a: _Value, b: _Value) -> _Value:
        if a is b:
            return int(holds(0, 0))
        if isinstance(a, int) and isinstance(b, int):
            return int(holds(a, b))
        return _made(name, a, b)

    return fold


def _select(which: _Value, *cases: _Value) -> _Value:
    """``select_n``, ``cond``: the case of that number; of two, the first is for a false predicate."""
    if isinstance(which, int):
        return cases[min(max(which, 0), len(cases) - 1)]
    if all(case == cases[0] for case in cases):
        return cases[0]
    if len(cases) != 2:
        return _made("select", which, *cases)
    no, yes = cases
    # What an inner choice by the same predicate would be.
    if isinstance(no, _Operation) and no.name == "select" and no.operands[0] is which:
        no = no.operands[1]
    if isinstance(yes, _Operation) and yes.name == "select" and yes.operands[0] is which:
        yes = yes.operands[-1]
    # Where the predicate compares the two cases, it chooses between equal values.
    for name, kept in (("eq", no), ("ne", yes)):
        if set(_parts(which, name)) == {no, yes}:
            return kept
    return no if no == yes else _made("select", which, no, yes)


_min = _extreme("min", min, _LARGEST, _SMALLEST)
_max = _extreme("max", max, _SMALLEST, _LARGEST)


def _clamp(low: _Value, a: _Value, high: _Value) -> _Value:
    return _min(_max(a, low), high)


def _not(a: _Value) -> _Value:
    return _xor(a, -1)


def _negative(a: _Value) -> _Value:
    return _sub(0, a)


def _absolute(a: _Value) -> _Value:
    return abs(a) if isinstance(a, int) else _made("abs", a)


def _sign(a: _Value) -> _Value:
    return (a > 0) - (a < 0) if isinstance(a, int) else _made("sign", a)


_FOLDS: dict[str, Callable[..., _Value]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "rem": _rem,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _not,
    "neg": _negative,
    "abs": _absolute,
    "sign": _sign,
    "min": _min,
    "max": _max,
    "clamp": _clamp,
    "shl": _shift("shl", lambda a, b: a << b),
    "sar": _shift("sar", lambda a, b: a >> b),
    "shr": _shift("shr", lambda a, b: (a % 2**32) >> b),
    "select": _select,
    "eq": _compare("eq", lambda a, b: a == b),
    "ne": _compare("ne", lambda a, b: a != b),
    "lt": _compare("lt", lambda a, b: a < b),
    "le": _compare("le", lambda a, b: a <= b),
    "gt": _compare("gt", lambda a, b: a > b),
    "ge": _compare("ge", lambda a, b: a >= b),
}
