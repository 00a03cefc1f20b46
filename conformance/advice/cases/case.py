"""A case: a program as one might write it first, and an expert's changes to its source."""

from collections.abc import Callable
from dataclasses import dataclass

from programs import Draw, Program, convolved, pinned

__all__ = ["CASES", "Case", "Change", "Draw", "Program", "case", "compared", "convolved", "pinned"]


@dataclass
class Change:
    """The program as an expert would write it: a kind and a target of advice, as `tilewise audit` names them."""

    name: str
    kind: str
    target: str
    program: Program
    shape: str = ""
    """The type and dimensions of the buffer that it is about; empty where no other change is of its kind and target."""


@dataclass
class Case:
    """A program, and changes of it that compute the same."""

    program: Program
    changes: list[Change]


CASES: dict[str, tuple[tuple[str, ...], Callable[[Draw], Case]]] = {}


def case(*generations: str) -> Callable:
    """Adds the decorated function, by its name, to the cases of those generations."""

    def add(make: Callable[[Draw], Case]) -> Callable:
        CASES[make.__name__] = generations, make
        return make

    return add


def compared(program: Program, *changes: tuple) -> Case:
    """A program and its changes: of each a name, the kind of advice that it is for, and a function.

    The kind is followed by its target, unless that is a value. Arguments and options of `jax.jit` may follow the
    function; they are those of the program otherwise.
    """

    def changed(name, about, function, arguments=program.arguments, jit=program.jit):
        kind, _, target = about.partition(" ")
        return Change(name, kind, target or "value", Program(function, arguments, jit))

    return Case(program, [changed(*change) for change in changes])
