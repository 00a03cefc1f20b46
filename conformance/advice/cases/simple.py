"""Programs that need what they take: no change frees anything."""

import jax
import jax.numpy as jnp

from .case import Case, Draw, Program, case, compared, convolved


@case("v5e", "v7x")
def dense_layer(draw: Draw) -> Case:
    def layer(x, w, bias):
        return jax.nn.relu(x @ w + bias)

    dtype = jnp.bfloat16
    return compared(
        Program(layer, (draw.array((8192, 4096), dtype), draw.array((4096, 4096), dtype), draw.array((4096,), dtype)))
    )


@case("v4")
def axpy_donated(draw: Draw) -> Case:
    def axpy(a, x, y):
        return a * x + y

    big = draw.array((64 << 20,))
    return compared(Program(axpy, (draw.array(()), big, big), {"donate_argnums": 2}))


@case("v6e")
def spectrum(draw: Draw) -> Case:
    def power(x):
        return jnp.abs(jnp.fft.rfft(x)) ** 2

    return compared(Program(power, (draw.array((4096, 4096)),)))


@case("v5p")
def residual_convolution(draw: Draw) -> Case:
    def layer(x, w):
        return x + jax.nn.relu(convolved(x, w))

    x, w = draw.array((32, 56, 56, 256), jnp.bfloat16), draw.array((3, 3, 256, 256), jnp.bfloat16)
    return compared(Program(layer, (x, w), {"donate_argnums": 0}))


@case("v5e")
def column_means(draw: Draw) -> Case:
    def means(x):
        return jnp.mean(x, axis=0), jnp.std(x, axis=0)

    return compared(Program(means, (draw.array((300_000, 256)),)))


@case("v6e")
def points_read_once(draw: Draw) -> Case:
    """Few components, in the compiler's own compact layout."""

    def extent(points):
        return jnp.min(points, axis=0), jnp.max(points, axis=0)

    return compared(Program(extent, (draw.array((8, 4_000_000)),)))
