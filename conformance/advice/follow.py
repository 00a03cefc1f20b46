"""Follows advice by its own code, without touching the program."""

import inspect
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import jax

PACKAGE = Path(__file__).parents[2] / "python/package/tilewise"

# The package's code in Python, without the extension that it isn't built for here.
tilewise = sys.modules["tilewise"] = ModuleType("tilewise")
tilewise.__path__ = [str(PACKAGE)]
from tilewise._microbatch import microbatch  # noqa: E402

tilewise.microbatch = microbatch


class Caller:
    """Stands in for `jax` in followed code: arrays are shapes, and options of `jax.jit` add to the program's."""

    def __init__(self):
        self.jitted = {}

    def __getattr__(self, name):
        return getattr(jax, name)

    def device_put(self, argument, format):
        return jax.ShapeDtypeStruct(argument.shape, argument.dtype, sharding=format)

    def jit(self, function, **options):
        self.jitted |= options
        return function


def open_tuples(tree):
    """The tree with lists in place of tuples, to whose places code can assign."""
    if isinstance(tree, (list, tuple)):
        return [open_tuples(inner) for inner in tree]
    if isinstance(tree, dict):
        return {key: open_tuples(inner) for key, inner in tree.items()}
    return tree


def followed(program, advice):
    """The program once the advice's code has run where its function is called."""
    name = program.function.__name__
    # A lambda has no name to call it by.
    name = name if name.isidentifier() else "f"
    bound = inspect.signature(program.function).bind(*program.arguments)
    names = {key: open_tuples(value) for key, value in bound.arguments.items()} | {name: program.function}
    exec(advice.get("imports") or "", names)
    names["jax"] = caller = Caller()
    exec(advice["code"], names)
    function = names.get(f"{name}_in_parts", names[name])
    # Advice that follows calls it by its old name.
    function.__name__ = name
    bound.arguments.update({key: names[key] for key in bound.arguments})
    leaves, before = jax.tree.leaves(bound.args), jax.tree.leaves(program.arguments)
    is_same = all(new is old for new, old in zip(leaves, before, strict=True))
    if function is program.function and is_same and not caller.jitted:
        raise ValueError("the code changes neither an argument nor the function")
    arguments = jax.tree.unflatten(jax.tree.structure(program.arguments), leaves)
    return replace(program, function=function, arguments=arguments, jit=program.jit | caller.jitted)
