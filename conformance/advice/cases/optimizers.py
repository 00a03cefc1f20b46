"""Steps of optimizers and other states that are updated, and gradients a sample."""

import jax
import jax.numpy as jnp
from jax import lax

from .case import Case, Draw, Program, case, compared


def adam(state, gradient):
    def one(w, m, v, g):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

    return jax.tree.map(one, *state, gradient)


@case("v4")
def adam_odd(draw: Draw) -> Case:
    """Parameters of odd shapes, in donated state."""
    shapes = {"offsets": (700_000, 3), "table": (120_000, 10), "dense": (1000, 1000), "tail": (300, 7, 5)}

    def args(shapes):
        tree = draw.named(shapes)
        return (tree, tree, tree), tree

    flat = {name: (int(jnp.prod(jnp.array(shape))),) for name, shape in shapes.items()}
    donated = {"donate_argnums": 0}
    return compared(Program(adam, args(shapes), donated), ("flat", "reshape argument", adam, args(flat)))


@case("v5e", "v7x")
def adam_undonated(draw: Draw) -> Case:
    """State without padding that is returned anew."""
    tree = {"up": draw.array((4096, 4096)), "down": draw.array((4096, 1024)), "bias": draw.array((4096,))}
    arguments = ((tree, tree, tree), tree)
    return compared(Program(adam, arguments), ("donated", "donate argument", adam, arguments, {"donate_argnums": 0}))


@case("v5p", "v4")
def sparse_gradients(draw: Draw) -> Case:
    """Gradients of 64 samples, of each of which the largest entries are added up."""
    batch, width = 64, 500

    def loss(w, x, y):
        return jnp.sum((jnp.tanh(x @ w) - y) ** 2)

    def largest(w, x, y):
        gradient = jax.grad(loss)(w, x, y)
        size = jnp.abs(gradient)
        return jnp.where(size >= jnp.sort(size, axis=None)[-1000], gradient, 0)

    def summed(w, x, y):
        return jnp.sum(jax.vmap(largest, (None, 0, 0))(w, x, y), axis=0)

    def chunked(w, x, y):
        def add(total, chunk):
            return total + summed(w, *chunk), None

        return lax.scan(add, jnp.zeros(w.shape), (x.reshape(16, -1, width), y.reshape(16, -1, width)))[0]

    arguments = draw.array((width, width)), draw.array((batch, width)), draw.array((batch, width))
    return compared(Program(summed, arguments), ("chunked", "chunk", chunked))


@case("v6e")
def heat_equation(draw: Draw) -> Case:
    """A field that a loop updates; the old one stays alive."""

    def evolved(field):
        def step(_, u):
            around = sum(jnp.roll(u, shift, axis) for shift in (-1, 1) for axis in (0, 1))
            return u + 0.1 * (around - 4 * u)

        return lax.fori_loop(0, 100, step, field)

    arguments = (draw.array((6144, 6144)),)
    return compared(
        Program(evolved, arguments), ("donated", "donate argument", evolved, arguments, {"donate_argnums": 0})
    )
