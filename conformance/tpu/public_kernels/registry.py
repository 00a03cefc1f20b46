"""Kernels by their names, and the arguments that they are called with."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp

bf16, f32, i32, i8, f8 = (jnp.bfloat16, jnp.float32, jnp.int32, jnp.int8, jnp.float8_e4m3fn)

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function, and its arguments without data."""


@dataclass(frozen=True)
class Public:
    """A kernel of a library.

    Attributes:
        library: whose it is.
        make: the function and its arguments, for options by name.
        choices: the options, as the library's own tests and tuning tables have them; the first stands in tables.
    """

    library: str
    make: Callable[..., Call]
    choices: tuple[dict[str, Any], ...]

    def bodies(self) -> Iterator[tuple[str, Callable[[], Call]]]:
        """The options of each choice in words, and a function that makes its call."""
        for choice in self.choices:
            words = ",".join(f"{name}={_word(value)}" for name, value in choice.items())
            yield words, lambda choice=choice: self.make(**choice)


def _word(value: Any) -> str:
    return jnp.dtype(value).name if isinstance(value, type) else str(value).replace(" ", "")


PUBLIC: dict[str, Public] = {}

SHORT = {"tpu-inference": "inference", "sglang-jax": "sglang"}


def public(kernel: str, where: dict[str, str], *choices: dict[str, Any]) -> Callable:
    """Adds what the decorated function makes of each library's kernel: of `where`, libraries and `module:function`."""

    def add(make):
        for library, path in where.items():
            module, _, name = path.partition(":")

            def made(module=module, name=name, **options):
                return make(getattr(import_module(module), name), import_module(module), **options)

            key = f"{SHORT.get(library.split()[0], library.split()[0])}_{kernel}{'_'.join(['', *library.split()[1:]])}"
            PUBLIC[key] = Public(library.split()[0], made, choices or ({},))
        return make

    return add


def array(*shape, dtype=bf16):
    return jax.ShapeDtypeStruct(shape, dtype)


def ints(*shape):
    return array(*shape, dtype=i32)
