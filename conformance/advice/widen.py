"""Computes a function as it is, but for two-byte floats: their numbers have four bytes, so that none is rounded to two.

Whether two programs compute the same shows in that: a sum that a loop keeps in two bytes loses its small terms, and loses
others in parts than in the whole.
"""

import functools

import follow  # noqa: F401 - for the package's code
import jax
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from tilewise._jax.internals import Scan
from tilewise._microbatch.program import _bound

NARROW = (jax.numpy.bfloat16, jax.numpy.float16)
CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""The parameters in which primitives that only call a function hold it."""


def widened(function):
    """The function, whose arrays of two-byte floats are of `float32`."""

    def computed(*arguments):
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        results = evaluated(closed.jaxpr, closed.consts, *jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(shape), results)

    return computed


def wide(value):
    """A float of two bytes as one of four; other values unchanged."""
    return value.astype(jax.numpy.float32) if getattr(value, "dtype", None) in NARROW else value


def with_wide_types(parameter):
    """A primitive's parameter: an element type, or what a scatter does with two numbers."""
    if isinstance(parameter, (ClosedJaxpr, Jaxpr)):
        jaxpr = parameter.jaxpr if isinstance(parameter, ClosedJaxpr) else parameter
        given = [jax.ShapeDtypeStruct(at.aval.shape, with_wide_types(at.aval.dtype)) for at in jaxpr.invars]
        closed = jax.make_jaxpr(called(parameter))(*given)
        return closed if isinstance(parameter, ClosedJaxpr) else closed.jaxpr
    return jax.numpy.dtype("float32") if isinstance(parameter, jax.numpy.dtype) and parameter in NARROW else parameter


def called(closed):
    """A jaxpr as a function of arrays."""
    jaxpr, consts = (closed.jaxpr, closed.consts) if isinstance(closed, ClosedJaxpr) else (closed, ())
    return functools.partial(evaluated, jaxpr, consts)


def evaluated(jaxpr, consts, *arguments):
    """The results of a traced function."""
    values = dict(zip(jaxpr.constvars, map(wide, consts), strict=True))
    values |= zip(jaxpr.invars, map(wide, arguments), strict=True)
    steps = [(equation.invars, equation) for equation in jaxpr.eqns] + [(jaxpr.outvars, None)]
    # A value is dropped after its last use, to free its memory.
    last = {at: number for number, (reads, _) in enumerate(steps) for at in reads if not isinstance(at, Literal)}
    for number, (reads, equation) in enumerate(steps):
        read = [wide(at.val) if isinstance(at, Literal) else values[at] for at in reads]
        for at in reads:
            if not isinstance(at, Literal) and last[at] == number:
                values.pop(at, None)
        if equation is None:
            return read
        results = zip(equation.outvars, made(equation, read), strict=True)
        values |= {at: value for at, value in results if at in last}


def made(equation, read):
    """The results of an equation for these operands."""
    parameters = equation.params
    match equation.primitive.name:
        case "scan":
            return scanned(equation, read)
        case "while":
            return repeated(parameters, read)
        case "cond":
            return lax.switch(read[0], [called(branch) for branch in parameters["branches"]], *read[1:])
        case "reduce_precision":
            return read
    inner = next((parameters[name] for name in CALLED if isinstance(parameters.get(name), (ClosedJaxpr, Jaxpr))), None)
    if inner is not None:
        return called(inner)(*read)
    parameters = {name: with_wide_types(parameter) for name, parameter in parameters.items()}
    results = _bound(equation.primitive, read, parameters)
    return results if equation.primitive.multiple_results else [results]


def scanned(equation, read):
    """A scan's carry and what it stacks up."""
    scan, parameters = Scan.of(equation), equation.params
    consts, carry, step = scan.consts, scan.carry, called(scan.body)

    def body(state, xs):
        results = step(*read[:consts], *state, *xs)
        return results[:carry], results[carry:]

    state, xs = read[consts : consts + carry], read[consts + carry :]
    state, stacked = lax.scan(body, state, xs, length=parameters["length"], reverse=parameters["reverse"])
    return [*state, *stacked]


def repeated(parameters, read):
    """The final state of a `while` loop."""
    of_test, of_body = parameters["cond_nconsts"], parameters["body_nconsts"]
    test, body = called(parameters["cond_jaxpr"]), called(parameters["body_jaxpr"])
    consts, state = read[of_test : of_test + of_body], read[of_test + of_body :]
    return lax.while_loop(lambda now: test(*read[:of_test], *now)[0], lambda now: body(*consts, *now), state)
