"""Programs, their classes, and the random choices that make one program of a class."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

ALL = ("v2", "v3", "v4", "v5e", "v5p", "v6e", "v7x")
"""The generations of TPU."""


@dataclass
class Program:
    """A function to compile, its arguments by their shapes, and how `jax.jit` and the compiler are to treat it."""

    function: Callable
    arguments: tuple
    jit: dict[str, Any] = field(default_factory=dict)
    compiler: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Class:
    """A class of programs: its name, the generations it is for, and the function that makes one."""

    name: str
    generations: tuple[str, ...]
    make: Callable[["Draw"], Program]


def pinned(argument: jax.ShapeDtypeStruct, *order: int) -> jax.ShapeDtypeStruct:
    """The argument in a layout that the caller insists on: row-major, unless dimensions follow from major to minor."""
    layout = Layout(order or tuple(range(len(argument.shape))))
    return jax.ShapeDtypeStruct(argument.shape, argument.dtype, sharding=Format(layout, argument.sharding))


def convolved(x, w, strides=1, padding="SAME", numbers=("NHWC", "HWIO", "NHWC"), **options):
    """A convolution of images whose channels come last, unless their dimensions have other names."""
    strides = (strides,) * (x.ndim - 2)
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers, **options)


CLASSES: dict[str, Class] = {}


def program(*generations: str) -> Callable:
    """Adds the decorated function, by its name, to the classes; no generations mean all."""

    def add(make: Callable) -> Callable:
        CLASSES[make.__name__] = Class(make.__name__, generations or ALL, make)
        return make

    return add


class Draw:
    """Random choices of one program, which the seed alone decides, and arrays on the devices of one generation."""

    def __init__(self, seed: str, generation: str, devices: list):
        self.random = random.Random(seed)
        self.generation = generation
        self.devices = devices
        # Programs that fit on chip leave little to plan: some are large throughout.
        self.is_large = self.random.random() < 0.4
        self.sharding = SingleDeviceSharding(devices[0])

    def one(self, *choices: Any) -> Any:
        """One of the choices."""
        return self.random.choice(choices)

    def some(self, choices: list, count: int) -> list:
        """`count` of the choices, or all if they are fewer, each at most once."""
        return self.random.sample(choices, min(count, len(choices)))

    def between(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return self.random.randint(low, high)

    def size(self, low: int = 1, high: int = 2048) -> int:
        """A size of a dimension: any, or one near a multiple of what tiles are made of.

        In large programs it is up to twice the highest.
        """
        if self.is_large:
            low, high = max(low, high // 4), 2 * high
        step = self.one(1, 1, 8, 128)
        value = round(np.exp(self.random.uniform(np.log(low), np.log(high))))
        return int(min(max(value // step * step + self.one(0, 0, 0, 1, -1), low), high))

    def even(self, low: int, high: int, step: int) -> int:
        """A multiple of the step."""
        return self.between(-(-low // step), high // step) * step

    def real(self) -> Any:
        """A floating-point type that every generation computes with."""
        return self.one(jnp.float32, jnp.bfloat16, jnp.bfloat16)

    def array(self, shape: tuple, dtype: Any = jnp.float32, sharding: Any = None) -> jax.ShapeDtypeStruct:
        """An argument."""
        return jax.ShapeDtypeStruct(tuple(shape), dtype, sharding=sharding or self.sharding)

    def like(self, tree: Any, dtype: Any = None) -> Any:
        """Arguments as those of the tree."""
        return jax.tree.map(lambda leaf: self.array(leaf.shape, dtype or leaf.dtype, leaf.sharding), tree)

    def named(self, shapes: dict[str, tuple], dtype: Any = jnp.float32) -> dict[str, jax.ShapeDtypeStruct]:
        """Arguments of these shapes, each by its name."""
        return {name: self.array(shape, dtype) for name, shape in shapes.items()}

    def mesh(self, **axes: int) -> Mesh:
        """A mesh of the first devices."""
        count = int(np.prod(list(axes.values())))
        return Mesh(np.array(self.devices[:count]).reshape(tuple(axes.values())), tuple(axes))

    def sharded(self, mesh: Mesh, shape: tuple, *spec: Any, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
        """An argument divided over a mesh."""
        return self.array(shape, dtype, NamedSharding(mesh, PartitionSpec(*spec)))
