"""Loops and branches, and programs that carry their state in donated arguments."""

import jax
import jax.numpy as jnp
from jax import lax

from .draw import Draw, Program, program


@program()
def scan(draw: Draw) -> Program:
    length, batch, width, dtype = draw.between(1, 40), draw.size(1, 300), draw.size(1, 600), draw.real()
    unroll = draw.one(1, 1, 2)

    def function(state, inputs, weights):
        def body(carry, x):
            carry = jnp.tanh(carry @ weights + x)
            return carry, (carry.sum(axis=0), carry)

        return lax.scan(body, state, inputs, unroll=unroll)

    arguments = draw.array((batch, width), dtype), draw.array((length, batch, width), dtype)
    return Program(function, (*arguments, draw.array((width, width), dtype)), {"donate_argnums": draw.one((), (0,))})


@program()
def while_loop(draw: Draw) -> Program:
    """Conjugate gradients until they converge."""
    n = draw.size(4, 1500)

    def function(matrix, b):
        def going(state):
            return (jnp.vdot(state[1], state[1]) > 1e-6) & (state[3] < 100)

        def step(state):
            x, r, p, count = state
            product = matrix @ p
            alpha = jnp.vdot(r, r) / jnp.vdot(p, product)
            left = r - alpha * product
            return x + alpha * p, left, left + jnp.vdot(left, left) / jnp.vdot(r, r) * p, count + 1

        return lax.while_loop(going, step, (jnp.zeros_like(b), b, b, 0))

    return Program(function, (draw.array((n, n)), draw.array((n,))))


@program()
def nested_loops(draw: Draw) -> Program:
    depth, rows, columns, dtype = draw.between(2, 4), draw.size(1, 300), draw.size(1, 300), draw.real()

    def function(x, weights):
        def level(depth, x):
            if depth == 0:
                return jnp.tanh(x @ weights)

            def body(carry, _):
                return level(depth - 1, carry) + carry[::-1], None

            inner = lax.scan(body, x, None, length=depth + 2)[0]
            return inner if depth % 2 else lax.while_loop(lambda v: v[0, 0] < 9, lambda v: inner + v, x)

        return level(depth, x)

    return Program(function, (draw.array((rows, columns), dtype), draw.array((columns, columns), dtype)))


@program()
def conditional(draw: Draw) -> Program:
    n, branches = draw.size(2, 900), draw.between(2, 5)
    dtype = draw.real()

    def function(which, x, weights):
        choices = [
            lambda x, power=power: (jnp.linalg.matrix_power(weights, power + 1) @ x, x.sum(axis=0))
            for power in range(branches)
        ]
        chosen, sums = lax.switch(which, choices, x)
        return lax.cond(sums[0] > 0, lambda v: jnp.sort(v, axis=0), lambda v: v * 2, chosen)

    return Program(function, (draw.array((), jnp.int32), draw.array((n, n), dtype), draw.array((n, n), dtype)))


@program()
def conditional_in_loop(draw: Draw) -> Program:
    n, length = draw.size(2, 500), draw.between(2, 30)

    def function(x, flags):
        def body(carry, flag):
            state, best = carry
            state = lax.cond(flag, lambda v: v @ v, lambda v: jnp.roll(v, 1, axis=0), state)
            best = lax.cond(state.sum() > best.sum(), lambda: state, lambda: best)
            return (state, best), best[0]

        return lax.scan(body, (x, x), flags)

    return Program(function, (draw.array((n, n), draw.real()), draw.array((length,), jnp.bool_)))


@program()
def loop_over_batches(draw: Draw) -> Program:
    batches, rows, width = draw.between(2, 60), draw.size(1, 200), draw.size(1, 300)
    together = draw.one(None, 2)

    def function(x, weights):
        return lax.map(lambda part: jax.nn.softmax(part @ weights), x, batch_size=together)

    return Program(function, (draw.array((batches, rows, width), draw.real()), draw.array((width, width))))


@program()
def updated_cache(draw: Draw) -> Program:
    """A decoding step with a donated key and value cache."""
    batch, time, heads, width = draw.between(1, 16), draw.size(16, 1024), draw.between(1, 12), draw.one(64, 80, 128)
    layers, dtype = draw.between(1, 3), jnp.bfloat16

    def function(cache, x, weights, position):
        def layer(x, both):
            weights, (keys, values) = both
            q, k, v = jnp.einsum("bd,sdhk->sbhk", x, weights)
            keys = lax.dynamic_update_slice(keys, k[:, None], (0, position, 0, 0))
            values = lax.dynamic_update_slice(values, v[:, None], (0, position, 0, 0))
            scores = jnp.einsum("bhk,bthk->bht", q, keys) / width**0.5
            mixed = jnp.einsum("bht,bthk->bhk", jax.nn.softmax(scores), values)
            return mixed.reshape(batch, heads * width), (keys, values)

        return lax.scan(layer, x, (weights, cache))

    cache = draw.array((layers, batch, time, heads, width), dtype)
    weights = draw.array((layers, 3, heads * width, heads, width), dtype)
    arguments = (cache, cache), draw.array((batch, heads * width), dtype), weights, draw.array((), jnp.int32)
    return Program(function, arguments, {"donate_argnums": draw.one((), (0,), (0,))})


@program()
def decoding_loop(draw: Draw) -> Program:
    """Tokens one after another, until an end."""
    batch, steps, words, width = draw.between(1, 32), draw.between(4, 200), draw.size(50, 5000), draw.size(8, 256)

    def function(embedding, weights, first):
        def step(state):
            count, tokens, hidden = state
            hidden = jnp.tanh(embedding[tokens[:, count]] + hidden @ weights)
            chosen = jnp.argmax(hidden @ embedding.T, axis=-1).astype(jnp.int32)
            return count + 1, tokens.at[:, count + 1].set(chosen), hidden

        tokens = jnp.zeros((batch, steps + 1), jnp.int32).at[:, 0].set(first)
        start = 0, tokens, jnp.zeros((batch, width), embedding.dtype)
        return lax.while_loop(lambda s: (s[0] < steps) & jnp.any(s[1][:, s[0]] != 1), step, start)

    dtype = draw.real()
    arguments = draw.array((words, width), dtype), draw.array((width, width), dtype), draw.array((batch,), jnp.int32)
    return Program(function, arguments)


@program()
def donation(draw: Draw) -> Program:
    """Some arguments donated: to results of their shape, of another, or to none."""
    shapes = [(draw.size(1, 700), draw.size(1, 700)) for _ in range(draw.between(2, 6))]
    donated = tuple(draw.some(list(range(len(shapes))), draw.between(1, len(shapes))))

    def function(*values):
        return [value.T if number % 3 == 2 else value + 1 for number, value in enumerate(values)][::-1] + [values[0]]

    return Program(function, tuple(draw.array(shape, draw.real()) for shape in shapes), {"donate_argnums": donated})


@program()
def called_functions(draw: Draw) -> Program:
    n, dtype = draw.size(2, 600), draw.real()
    once = jax.jit(lambda x, w: jax.nn.gelu(x @ w), inline=False)

    def function(x, weights):
        for weight in weights:
            x = once(x, weight)
        return x

    return Program(function, (draw.array((n, n), dtype), [draw.array((n, n), dtype)] * draw.between(2, 8)))


@program()
def dynamic_bounds(draw: Draw) -> Program:
    """Loops of unknown length, and results whose size only the run decides, padded to their bound."""
    n, bound = draw.size(4, 3000), draw.between(2, 300)

    def function(x, count):
        total = lax.fori_loop(0, count, lambda i, sum: sum + x[i] * i, jnp.zeros(x.shape[1:], x.dtype))
        where = jnp.nonzero(x[:, 0] > 0, size=bound, fill_value=0)[0]
        return total, x[where], jnp.unique(x[:, 0], size=bound)

    return Program(function, (draw.array((n, draw.size(1, 100)), draw.real()), draw.array((), jnp.int32)))
