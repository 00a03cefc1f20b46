"""Models and their training steps, on one device."""

from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from .draw import Draw, Program, convolved, program


def perceptron(weights, x):
    for weight, bias in weights:
        x = jax.nn.gelu(x @ weight + bias)
    return x


@program()
def sgd_step(draw: Draw) -> Program:
    sizes, batch, dtype = [draw.size(4, 2000) for _ in range(draw.between(3, 6))], draw.size(4, 2000), draw.real()
    weights = [(draw.array(pair, dtype), draw.array(pair[1:], dtype)) for pair in pairwise(sizes)]

    def step(weights, x, y):
        loss = lambda weights: jnp.square(perceptron(weights, x) - y).mean()
        value, gradients = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradients), value

    data = draw.array((batch, sizes[0]), dtype), draw.array((batch, sizes[-1]), dtype)
    return Program(step, (weights, *data), {"donate_argnums": draw.one((), (0,))})


@program()
def adam_step(draw: Draw) -> Program:
    """bf16 weights with f32 moments."""
    shapes = [(draw.size(1, 1500), draw.size(1, 1500)) for _ in range(draw.between(2, 7))] + [(draw.size(),)]
    weights = [draw.array(shape, jnp.bfloat16) for shape in shapes]

    def step(weights, moments, gradients, count):
        def update(weight, moment, gradient):
            gradient = gradient.astype(jnp.float32)
            first = 0.9 * moment[0] + 0.1 * gradient
            second = 0.999 * moment[1] + 0.001 * jnp.square(gradient)
            change = first / (1 - 0.9**count) / (jnp.sqrt(second / (1 - 0.999**count)) + 1e-8)
            return weight - (1e-3 * change).astype(weight.dtype), (first, second)

        norm = jnp.sqrt(sum(jnp.square(g.astype(jnp.float32)).sum() for g in gradients))
        scaled = [g / jnp.maximum(norm, 1).astype(g.dtype) for g in gradients]
        return [update(*each) for each in zip(weights, moments, scaled, strict=True)], count + 1

    moments = [(wide, wide) for wide in draw.like(weights, jnp.float32)]
    arguments = weights, moments, weights, draw.array(())
    return Program(step, arguments, {"donate_argnums": draw.one((0, 1), (0, 1, 2, 3), (1,), ())})


def attention(x, weights, heads, mask):
    batch, time, width = x.shape
    q, k, v = (part.reshape(batch, time, heads, -1) for part in jnp.split(x @ weights["qkv"], 3, axis=-1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width / heads) ** 0.5
    scores = jnp.where(mask, scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores.astype(jnp.float32)).astype(x.dtype), v)
    return mixed.reshape(batch, time, width) @ weights["out"]


def transformer_layer(x, weights, heads):
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    norm = lambda x: x * lax.rsqrt(jnp.square(x).mean(axis=-1, keepdims=True) + 1e-6)
    x = x + attention(norm(x), weights, heads, mask)
    return x + jax.nn.gelu(norm(x) @ weights["up"]) @ weights["down"]


def transformer_weights(array, layers, width):
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    return {name: array((layers, *shape)) for name, shape in shapes.items()}


@program()
def attention_gradient(draw: Draw) -> Program:
    batch, time, heads, width = draw.between(1, 8), draw.size(8, 512), draw.between(1, 12), draw.one(40, 64, 80, 128)
    dtype = draw.real()

    def loss(x, weights):
        mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
        return jnp.square(attention(x, weights, heads, mask)).astype(jnp.float32).mean()

    width *= heads
    weights = {"qkv": draw.array((width, 3 * width), dtype), "out": draw.array((width, width), dtype)}
    return Program(jax.value_and_grad(loss, argnums=(0, 1)), (draw.array((batch, time, width), dtype), weights))


@program()
def transformer_step(draw: Draw) -> Program:
    """Layers in a scan, kept or computed again for the gradient."""
    layers, batch, time = draw.between(2, 12), draw.between(1, 16), draw.even(32, 512, 32)
    heads, words, dtype = draw.between(1, 8), draw.size(100, 8000), draw.real()
    width = heads * draw.one(32, 64, 128)
    remat = draw.one(lambda f: f, jax.checkpoint, "dots_saveable", "nothing_saveable")
    if isinstance(remat, str):
        policy = getattr(jax.checkpoint_policies, remat)
        remat = lambda f: jax.checkpoint(f, policy=policy)

    def step(weights, embedding, tokens):
        def loss(both):
            weights, embedding = both
            layer = remat(lambda x, weights: (transformer_layer(x, weights, heads), None))
            logits = lax.scan(layer, embedding[tokens[:, :-1]], weights)[0] @ embedding.T
            chosen = jnp.take_along_axis(jax.nn.log_softmax(logits.astype(jnp.float32)), tokens[:, 1:, None], axis=-1)
            return -chosen.mean()

        value, gradients = jax.value_and_grad(loss)((weights, embedding))
        return jax.tree.map(lambda w, g: w - 0.1 * g, (weights, embedding), gradients), value

    weights = transformer_weights(lambda shape: draw.array(shape, dtype), layers, width)
    arguments = weights, draw.array((words, width), dtype), draw.array((batch, time + 1), jnp.int32)
    return Program(step, arguments, {"donate_argnums": draw.one((), (0, 1))})


@program()
def rematerialised(draw: Draw) -> Program:
    """A chain of layers, unrolled, with some of their results named and kept."""
    depth, batch, width, dtype = draw.between(3, 9), draw.size(8, 2000), draw.size(8, 1000), draw.real()
    policy = draw.one(
        jax.checkpoint_policies.save_only_these_names("kept"),
        jax.checkpoint_policies.everything_saveable,
        jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    )

    def loss(weights, x):
        for weight in weights:
            layer = lambda x, w: jnp.sin(checkpoint_name(jnp.tanh(x @ w), "kept")) * x
            x = jax.checkpoint(layer, policy=policy)(x, weight)
        return jnp.square(x).astype(jnp.float32).mean()

    weights = [draw.array((width, width), dtype)] * depth
    return Program(jax.value_and_grad(loss, argnums=(0, 1)), (weights, draw.array((batch, width), dtype)))


@program()
def recurrent(draw: Draw) -> Program:
    """An LSTM's gradient through time."""
    time, batch, width, dtype = draw.between(3, 100), draw.size(1, 128), draw.size(4, 512), draw.real()

    def loss(weights, inputs):
        def step(state, x):
            hidden, cell = state
            i, f, g, o = jnp.split(jnp.concatenate([x, hidden], axis=-1) @ weights, 4, axis=-1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (hidden, cell), hidden

        start = jnp.zeros((batch, width), dtype)
        return jnp.square(lax.scan(step, (start, start), inputs)[1]).astype(jnp.float32).mean()

    arguments = draw.array((2 * width, 4 * width), dtype), draw.array((time, batch, width), dtype)
    return Program(jax.value_and_grad(loss, argnums=draw.one(0, (0, 1))), arguments)


@program()
def residual_network(draw: Draw) -> Program:
    batch, size, features, depth = draw.between(1, 32), draw.even(8, 56, 8), draw.one(16, 48, 64), draw.between(1, 3)
    dtype = draw.real()

    def loss(kernels, images, labels):
        x = convolved(images, kernels[0])
        for kernel in kernels[1:]:
            normal = (x - x.mean(axis=(0, 1, 2))) * lax.rsqrt(x.var(axis=(0, 1, 2)) + 1e-5)
            x = x + convolved(jax.nn.relu(normal), kernel)
        logits = x.mean(axis=(1, 2)).astype(jnp.float32)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()

    kernels = [draw.array((3, 3, inputs, features), dtype) for inputs in (3, *[features] * depth)]
    data = draw.array((batch, size, size, 3), dtype), draw.array((batch,), jnp.int32)
    return Program(jax.value_and_grad(loss), (kernels, *data))


@program()
def embedding_step(draw: Draw) -> Program:
    """Bags of rows of a table, and the table's sparse gradient."""
    rows, width, batch, bag = draw.size(100, 50000), draw.size(4, 256), draw.size(1, 1024), draw.between(1, 20)

    def step(table, where, wanted):
        loss = lambda table: jnp.square(table[where].sum(axis=1) - wanted).mean()
        value, gradient = jax.value_and_grad(loss)(table)
        return table - 0.1 * gradient, value

    arguments = draw.array((rows, width)), draw.array((batch, bag), jnp.int32), draw.array((batch, width))
    return Program(step, arguments, {"donate_argnums": draw.one((), (0,))})


@program()
def mixture_of_experts(draw: Draw) -> Program:
    tokens, width, experts, capacity = draw.size(16, 2048), draw.size(8, 512), draw.one(4, 8, 16), draw.between(4, 256)
    dtype = draw.real()

    def loss(weights, x):
        gates, chosen = lax.top_k(jax.nn.softmax(x @ weights["router"]), 2)
        hot = jax.nn.one_hot(chosen, experts, dtype=jnp.int32)
        place = (jnp.cumsum(hot.reshape(-1, experts), axis=0) - 1).reshape(hot.shape)
        slot = jax.nn.one_hot(jnp.where(hot > 0, place, -1), capacity, dtype=x.dtype)
        sent = jnp.einsum("tkec,td->ecd", slot, x)
        done = jnp.einsum("ecf,efd->ecd", jax.nn.gelu(jnp.einsum("ecd,edf->ecf", sent, weights["up"])), weights["down"])
        out = jnp.einsum("tkec,ecd,tk->td", slot, done, gates)
        return jnp.square(out).astype(jnp.float32).mean()

    shapes = {"router": (width, experts), "up": (experts, width, 2 * width), "down": (experts, 2 * width, width)}
    weights = {name: draw.array(shape, dtype) for name, shape in shapes.items()}
    return Program(draw.one(loss, jax.value_and_grad(loss)), (weights, draw.array((tokens, width), dtype)))


@program()
def softmax_loss(draw: Draw) -> Program:
    batch, words, width, dtype = draw.size(1, 512), draw.size(100, 33000), draw.size(8, 512), draw.real()

    def loss(hidden, table, labels):
        logits = (hidden @ table).astype(jnp.float32)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        return -(chosen * (labels != 0)).sum() / jnp.maximum((labels != 0).sum(), 1)

    arguments = draw.array((batch, width), dtype), draw.array((width, words), dtype), draw.array((batch,), jnp.int32)
    return Program(jax.value_and_grad(loss, argnums=(0, 1)), arguments)


@program()
def accumulated_gradients(draw: Draw) -> Program:
    """Small batches in a loop, their gradients added up."""
    parts, batch, sizes = draw.between(2, 10), draw.size(4, 512), [draw.size(8, 900) for _ in range(3)]
    weights = [(draw.array(pair), draw.array(pair[1:])) for pair in pairwise(sizes)]

    def step(weights, data):
        def add(total, x):
            gradients = jax.grad(lambda w: jnp.square(perceptron(w, x)).mean())(weights)
            return jax.tree.map(jnp.add, total, gradients), None

        total = lax.scan(add, jax.tree.map(jnp.zeros_like, weights), data)[0]
        return jax.tree.map(lambda w, g: w - g / parts, weights, total)

    return Program(step, (weights, draw.array((parts, batch, sizes[0]))), {"donate_argnums": draw.one((), (0,))})


@program()
def sampler(draw: Draw) -> Program:
    """A denoising loop with random noise."""
    shape = draw.between(1, 4), draw.even(8, 64, 8), draw.even(8, 64, 8), 4
    steps, width = draw.between(4, 50), draw.size(8, 128)

    def function(kernels, seed):
        def step(i, state):
            x, key = state
            key, other = jax.random.split(key)
            noise = convolved(jax.nn.silu(convolved(x, kernels[0])), kernels[1])
            return x - noise / (i + 1) + 0.1 * jax.random.normal(other, shape), key

        key = jax.random.key(seed)
        return lax.fori_loop(0, steps, step, (jax.random.normal(key, shape), key))[0]

    kernels = draw.array((3, 3, 4, width)), draw.array((3, 3, width, 4))
    return Program(function, (kernels, draw.array((), jnp.uint32)))
