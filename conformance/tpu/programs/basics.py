"""Single operations and short chains of them, on one device."""

import jax
import jax.numpy as jnp
from jax import lax

from .draw import Draw, Program, program


@program()
def elementwise(draw: Draw) -> Program:
    shape = tuple(draw.size(1, 600) for _ in range(draw.between(1, 3)))
    operations = draw.some([jnp.exp, jnp.tanh, jnp.cos, jax.nn.gelu, lax.rsqrt, jnp.log1p, jnp.sign], 4)

    def function(x, y):
        for operation in operations:
            x = operation(x) * y + x
        return x, x > y

    return Program(function, (draw.array(shape, draw.real()), draw.array(shape, draw.real())))


@program()
def matmul(draw: Draw) -> Program:
    sizes = [draw.size(1, 3000) for _ in range(draw.between(3, 6))]
    dtype = draw.real()

    def function(*matrices):
        product = matrices[0]
        for matrix in matrices[1:]:
            product = jax.nn.relu(product @ matrix)
        return product

    return Program(function, tuple(draw.array(pair, dtype) for pair in zip(sizes, sizes[1:], strict=False)))
