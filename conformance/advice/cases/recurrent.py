"""Loops over time, and what their gradients keep of it."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.layout import Format, Layout

from .case import Case, Change, Draw, Program, case


def lstm(weights, carry, x):
    h, c = carry
    i, f, g, o = jnp.split(x @ weights["in"] + h @ weights["hidden"] + weights["bias"], 4, axis=-1)
    c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


@case("v5e", "v4")
def lstm_forecast(draw: Draw) -> Case:
    length, batch, inputs, width = 1024, 20, 24, 90

    def loss(weights, x, y, step=lstm):
        start = (jnp.zeros((batch, width)),) * 2
        _, h = lax.scan(lambda carry, x: step(weights, carry, x), start, x)
        return jnp.mean((h @ weights["out"] - y) ** 2)

    def remat(weights, x, y):
        return loss(weights, x, y, jax.checkpoint(lstm))

    def chunked(weights, x, y):
        @jax.checkpoint
        def part(carry, xy):
            carry, h = lax.scan(lambda carry, x: lstm(weights, carry, x), carry, xy[0])
            return carry, jnp.sum((h @ weights["out"] - xy[1]) ** 2)

        parts = jax.tree.map(lambda v: v.reshape(32, -1, *v.shape[1:]), (x, y))
        _, losses = lax.scan(part, (jnp.zeros((batch, width)),) * 2, parts)
        return jnp.sum(losses) / y.size

    shapes = {"in": (inputs, 4 * width), "hidden": (width, 4 * width), "bias": (4 * width,), "out": (width, 1)}
    weights = {name: draw.array(shape) for name, shape in shapes.items()}
    arguments = (weights, draw.array((length, batch, inputs)), draw.array((length, batch, 1)))
    return Case(
        Program(jax.value_and_grad(loss), arguments),
        [
            Change("remat", "checkpoint", "loop", Program(jax.value_and_grad(remat), arguments)),
            Change("chunked", "chunk", "value", Program(jax.value_and_grad(chunked), arguments)),
        ],
    )


@case("v6e")
def gru_language(draw: Draw) -> Case:
    """Recurrent states in bf16, and a vocabulary of 5000."""
    length, batch, width, words, dtype = 512, 32, 256, 5000, jnp.bfloat16

    def cell(weights, h, x):
        z, r = jnp.split(jax.nn.sigmoid(jnp.concatenate([x, h], -1) @ weights["gates"]), 2, axis=-1)
        new = jnp.tanh(jnp.concatenate([x, r * h], -1) @ weights["new"])
        h = (1 - z) * h + z * new
        return h, h

    def token_loss(weights, h, labels):
        logits = jnp.dot(h, weights["out"], preferred_element_type=jnp.float32)
        return jnp.sum(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[..., None], -1)[..., 0])

    def states(weights, tokens, step):
        _, h = lax.scan(lambda h, x: step(weights, h, x), jnp.zeros((batch, width), dtype), weights["table"][tokens])
        return h

    def loss(weights, tokens, labels):
        return token_loss(weights, states(weights, tokens, cell), labels) / labels.size

    def chunked(weights, tokens, labels):
        step = jax.checkpoint(lambda total, chunk: (total + token_loss(weights, *chunk), None))
        chunks = states(weights, tokens, cell).reshape(32, -1, batch, width), labels.reshape(32, -1, batch)
        return lax.scan(step, 0.0, chunks)[0] / labels.size

    def narrow(weights, tokens, labels):
        logits = (states(weights, tokens, cell) @ weights["out"]).astype(jnp.float32)
        picked = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)

    def remat(weights, tokens, labels):
        return token_loss(weights, states(weights, tokens, jax.checkpoint(cell)), labels) / labels.size

    shapes = {
        "table": (words, width),
        "gates": (2 * width, 2 * width),
        "new": (2 * width, width),
        "out": (width, words),
    }
    weights = {name: draw.array(shape, dtype) for name, shape in shapes.items()}
    tokens = draw.array((length, batch), jnp.int32)
    arguments = (weights, tokens, tokens)
    return Case(
        Program(jax.value_and_grad(loss), arguments),
        [
            Change("chunked", "chunk", "value", Program(jax.value_and_grad(chunked), arguments)),
            Change("narrow", "narrow", "value", Program(jax.value_and_grad(narrow), arguments)),
            Change("remat", "checkpoint", "loop", Program(jax.value_and_grad(remat), arguments)),
        ],
    )


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
    return Case(
        Program(jax.value_and_grad(loss), arguments),
        [Change("remat", "checkpoint", "loop", Program(jax.value_and_grad(remat), arguments))],
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
    return Case(
        Program(rolled, arguments, {"out_shardings": (None, row_major)}),
        [
            Change("unpinned", "order", "result", Program(rolled, arguments)),
            Change("flat", "reshape", "result", Program(flat, arguments)),
        ],
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
    return Case(Program(mixed, arguments), [Change("chunked", "chunk", "value", Program(chunked, arguments))])


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
    return Case(Program(decoded, arguments), [Change("chunked", "chunk", "value", Program(chunked, arguments))])
