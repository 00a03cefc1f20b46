"""Loops over time, and what their gradients keep of it."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.layout import Format, Layout

from .case import Case, Draw, Program, case, compared


@case("v5p", "v6e")
def neural_ode(draw: Draw) -> Case:
    """Runge-Kutta steps, whose stages the gradient keeps."""
    steps, batch, width = 200, 512, 128

    def slope(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return x

    def rk4(weights, x):
        a = slope(weights, x)
        b = slope(weights, x + 0.005 * a)
        c = slope(weights, x + 0.005 * b)
        d = slope(weights, x + 0.01 * c)
        return x + 0.01 / 6 * (a + 2 * b + 2 * c + d)

    def loss(weights, x, step=rk4):
        x, _ = lax.scan(lambda x, _: (step(weights, x), None), x, None, length=steps)
        return jnp.mean(x**2)

    def remat(weights, x):
        return loss(weights, x, jax.checkpoint(rk4))

    arguments = [draw.array((width, width))] * 3, draw.array((batch, width))
    return compared(
        Program(jax.value_and_grad(loss), arguments), ("remat", "checkpoint loop", jax.value_and_grad(remat))
    )


@case("v5e")
def rollout_columns(draw: Draw) -> Case:
    """A simulation that stacks a column of one number a sample and step."""
    steps, batch = 500, 4096

    def rolled(state, w):
        def step(x, _):
            x = jnp.tanh(x @ w)
            return x, jnp.sum(x, axis=-1, keepdims=True)

        return lax.scan(step, state, None, length=steps)

    def flat(state, w):
        def step(x, _):
            x = jnp.tanh(x @ w)
            return x, jnp.sum(x, axis=-1)

        return lax.scan(step, state, None, length=steps)

    arguments = (draw.array((batch, 128)), draw.array((128, 128)))
    row_major = Format(Layout((0, 1, 2)), draw.sharding)
    return compared(
        Program(rolled, arguments, {"out_shardings": (None, row_major)}),
        ("unpinned", "order result", rolled, arguments, {}),
        ("flat", "reshape result", flat, arguments, {}),
    )


@case("v4")
def linear_attention_states(draw: Draw) -> Case:
    """A linear recurrence by an associative scan over 8192 steps."""
    length, batch, width = 8192, 16, 256

    def mixed(decay, x):
        def combine(a, b):
            return a[0] * b[0], b[0] * a[1] + b[1]

        return lax.associative_scan(combine, (jax.nn.sigmoid(decay), x))[1].mean(axis=0)

    def chunked(decay, x):
        def combine(a, b):
            return a[0] * b[0], b[0] * a[1] + b[1]

        def part(carry, chunk):
            decay, x = lax.associative_scan(combine, (jax.nn.sigmoid(chunk[0]), chunk[1]))
            x = x + decay * carry[0]
            return (x[-1], carry[1] + x.sum(axis=0)), None

        chunks = [v.reshape(32, -1, batch, width) for v in (decay, x)]
        zero = jnp.zeros((batch, width))
        return lax.scan(part, (zero, zero), chunks)[0][1] / length

    arguments = (draw.array((length, batch, width)),) * 2
    return compared(Program(mixed, arguments), ("chunked", "chunk", chunked))


@case("v7x")
def viterbi(draw: Draw) -> Case:
    """Scores of all pairs of 48 tags at each step of 4096 sentences."""
    length, batch, tags = 64, 8192, 48

    def decoded(score, transition):
        def step(best, emission):
            pair = best[:, :, None] + transition
            return jnp.max(pair, axis=1) + emission, jnp.argmax(pair, axis=1).astype(jnp.int8)

        best, back = lax.scan(step, score[0], score[1:])

        def follow(tag, pointer):
            tag = jnp.take_along_axis(pointer, tag[:, None], axis=1)[:, 0].astype(jnp.int32)
            return tag, tag

        return lax.scan(follow, jnp.argmax(best, axis=1), back, reverse=True)[1]

    def chunked(score, transition):
        part = lax.map(lambda rows: decoded(rows, transition), score.reshape(length, 16, -1, tags).swapaxes(0, 1))
        return part.swapaxes(0, 1).reshape(length - 1, batch)

    arguments = (draw.array((length, batch, tags)), draw.array((tags, tags)))
    return compared(Program(decoded, arguments), ("chunked", "chunk", chunked))
