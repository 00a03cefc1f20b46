"""Pallas kernels, whose operands are row-major as the kernel's blocks are."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from .case import Case, Draw, Program, case, compared

ROWS = 1024


def call(kernel, arguments, axis, results):
    """A kernel over blocks of 1024 rows, which are along that axis of its first operand."""

    def block(shape):
        if len(shape) == 1 or shape[axis] == 1:
            return pl.BlockSpec(shape, lambda i: (0,) * len(shape))
        blocks = tuple(ROWS if d == axis else size for d, size in enumerate(shape))
        return pl.BlockSpec(blocks, lambda i: tuple(i if d == axis else 0 for d in range(len(shape))))

    return pl.pallas_call(
        kernel,
        grid=(arguments[0].shape[axis] // ROWS,),
        in_specs=[block(argument.shape) for argument in arguments],
        out_specs=[block(shape) for shape in results],
        out_shape=[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in results],
    )(*arguments)


@case("v5e", "v6e")
def box_kernel(draw: Draw) -> Case:
    """Boxes [N, 4] shifted by a kernel in blocks of [1024, 4]."""
    n = 1 << 20

    def kernel(boxes, shift, moved):
        moved[...] = jnp.clip(boxes[...] + shift[...], 0.0, 1.0)

    def rows(boxes, shift):
        return call(kernel, (boxes, shift), 0, [(n, 4)])[0]

    def columns(boxes, shift):
        return call(kernel, (boxes, shift), 1, [(4, n)])[0]

    return compared(
        Program(rows, (draw.array((n, 4)), draw.array((1, 4)))),
        ("columns", "transpose kernel", columns, (draw.array((4, n)), draw.array((4, 1)))),
    )


@case("v4", "v5p")
def rotation_kernel(draw: Draw) -> Case:
    """Points [N, 3] of a larger function go through a kernel."""
    n = 1 << 20

    def kernel(points, scale, out):
        p = points[...]
        out[...] = p * scale[...] * jax.lax.rsqrt(1.0 + p * p)

    def rows(points, scale):
        moved = call(kernel, (points * 2.0, scale), 0, [(n, 3)])[0]
        return jnp.sqrt(jnp.sum(moved * moved, axis=-1))

    def columns(points, scale):
        moved = call(kernel, (points * 2.0, scale), 1, [(3, n)])[0]
        return jnp.sqrt(jnp.sum(moved * moved, axis=0))

    def inner(points, scale):
        return columns(points.T, scale.T)

    arguments = (draw.array((n, 3)), draw.array((1, 3)))
    return compared(
        Program(rows, arguments),
        ("columns", "transpose kernel", columns, (draw.array((3, n)), draw.array((3, 1)))),
        ("inner", "transpose kernel", inner),
    )


@case("v6e")
def square_kernel(draw: Draw) -> Case:
    """Blocks that fill their tiles: nothing helps."""
    n = 16384

    def kernel(x, y, out):
        out[...] = x[...] * jax.nn.sigmoid(y[...])

    def gated(x, y):
        return call(kernel, (x, y), 0, [(n, 1024)])[0]

    return compared(Program(gated, (draw.array((n, 1024)),) * 2))
