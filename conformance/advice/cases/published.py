"""A third set of programs after public code, written before anybody saw what is advised for them."""

import itertools

import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Draw, Program, case, compared
from .libraries import normalized


def rotated(x):
    """Pairs of a head's channels turned by angles that grow with the position, of [batch, time, heads, depth]."""
    length, depth = x.shape[1], x.shape[-1]
    angles = jnp.outer(jnp.arange(length), 10000.0 ** (-jnp.arange(0, depth, 2) / depth))[:, None]
    even, odd = x[..., ::2].astype(jnp.float32), x[..., 1::2].astype(jnp.float32)
    turned = even * jnp.cos(angles) - odd * jnp.sin(angles), even * jnp.sin(angles) + odd * jnp.cos(angles)
    return jnp.stack(turned, -1).reshape(x.shape).astype(x.dtype)


@case("v5p")
def llama_pretraining(draw: Draw) -> Case:
    """After EasyLM's `llama_train`: queries in blocks, logits read twice, for a loss and the share of right guesses."""
    rows, length, width, heads, vocabulary, block = 12, 2048, 2048, 16, 32000, 512

    def layer(x, weights):
        cast = jax.tree.map(lambda leaf: leaf.astype(x.dtype), weights)
        q, k, v = (jnp.einsum("btw,whd->bthd", normalized(x), cast[name]) for name in "qkv")
        q, k = rotated(q), rotated(k)

        @jax.checkpoint
        def queried(start):
            now = lax.dynamic_slice_in_dim(q, start, block, 1)
            scores = jnp.einsum("bqhd,bkhd->bhqk", now, k).astype(jnp.float32) / (width // heads) ** 0.5
            before = jnp.arange(length) <= start + jnp.arange(block)[:, None]
            return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(before, scores, -1e30)).astype(x.dtype), v)

        found = lax.map(queried, jnp.arange(0, length, block)).swapaxes(0, 1)
        x = x + found.reshape(x.shape) @ cast["o"]
        y = normalized(x)
        return x + (jax.nn.silu(y @ cast["gate"]) * (y @ cast["up"])) @ cast["down"]

    def hidden(params, tokens):
        begun = jnp.pad(tokens, ((0, 0), (1, 0)), constant_values=1)[:, :-1]
        x = params["embedding"].astype(jnp.bfloat16)[begun]
        for weights in params["layers"]:
            x = jax.checkpoint(layer)(x, weights)
        return normalized(x)

    def scored(x, head, tokens, mask):
        logits = (x @ head.astype(x.dtype)).astype(jnp.float32)
        there = jnp.maximum(mask.sum(-1), 1e-10)
        chance = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], -1)[..., 0]
        right = jnp.where(mask > 0, logits.argmax(-1) == tokens, False)
        return -((chance * mask).sum(-1) / there).mean(), (right.sum(-1) / there).mean()

    def whole(params, tokens, mask):
        return scored(hidden(params, tokens), params["head"], tokens, mask)

    def chunked(params, tokens, mask):
        def row(now):
            return scored(now[0][None], params["head"], now[1][None], now[2][None])

        found = lax.map(jax.checkpoint(row), (hidden(params, tokens), tokens, mask))
        return jax.tree.map(jnp.mean, found)

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, mu_dtype=jnp.bfloat16))

    def step_of(loss):
        def step(params, opt, tokens, mask):
            (value, accuracy), gradient = jax.value_and_grad(loss, has_aux=True)(params, tokens, mask)
            update, opt = optimizer.update(gradient, opt, params)
            metrics = {"loss": value, "accuracy": accuracy, "norm": optax.global_norm(gradient)}
            return optax.apply_updates(params, update), opt, metrics

        return step

    shapes = dict.fromkeys("qkv", (width, heads, width // heads)) | {"o": (width, width)}
    shapes |= {"gate": (width, 5504), "up": (width, 5504), "down": (5504, width)}
    layers = [draw.named(shapes) for _ in range(2)]
    params = {"layers": layers, "embedding": draw.array((vocabulary, width)), "head": draw.array((width, vocabulary))}
    state = draw.like(jax.eval_shape(optimizer.init, params))
    arguments = params, state, draw.array((rows, length), jnp.int32), draw.array((rows, length))
    jit = {"donate_argnums": (0, 1)}
    return compared(Program(step_of(whole), arguments, jit), ("chunked", "chunk", step_of(chunked)))


@case("v4")
def evolved_policies(draw: Draw) -> Case:
    """After evosax's `Open_ES`: a population on both sides of a mean, each member a network tried on all pictures."""
    members, pictures, widths = 512, 512, (784, 512, 10)
    sizes = [(ins + 1) * outs for ins, outs in itertools.pairwise(widths)]
    optimizer = optax.adam(1e-2)

    def fitness(flat, x, label):
        first, second = jnp.split(flat, [sizes[0]])
        for weights, outs in ((first, widths[1]), (second, widths[2])):
            weights = weights.reshape(-1, outs)
            x = x @ weights[:-1] + weights[-1]
            x = jax.nn.relu(x) if outs == widths[1] else x
        return optax.softmax_cross_entropy_with_integer_labels(x, label).mean()

    def moved(mean, opt, slope):
        update, opt = optimizer.update(slope, opt)
        return optax.apply_updates(mean, update), opt

    def ranked(scores):
        return jnp.argsort(jnp.argsort(scores)) / (members - 1) - 0.5

    def generation(mean, opt, key, x, label):
        half = jax.random.normal(key, (members // 2, sum(sizes)))
        population = mean + 0.1 * jnp.concatenate([half, -half])
        scores = jax.vmap(fitness, (0, None, None))(population, x, label)
        slope = ranked(scores) @ ((population - mean) / 0.1) / (members * 0.1)
        return *moved(mean, opt, slope), scores.min()

    def in_parts(mean, opt, key, x, label):
        half = jax.random.normal(key, (members // 2, sum(sizes)))

        def tried(noise):
            return fitness(mean + 0.1 * noise, x, label), fitness(mean - 0.1 * noise, x, label)

        scores = jnp.concatenate(lax.map(tried, half, batch_size=16))
        above, below = jnp.split(ranked(scores), 2)
        return *moved(mean, opt, (above - below) @ half / (members * 0.1)), scores.min()

    mean = draw.array((sum(sizes),))
    state = draw.like(jax.eval_shape(optimizer.init, mean))
    arguments = (
        mean,
        state,
        draw.array((2,), jnp.uint32),
        draw.array((pictures, 784)),
        draw.array((pictures,), jnp.int32),
    )
    jit = {"donate_argnums": (0, 1)}
    return compared(Program(generation, arguments, jit), ("in_parts", "chunk value", in_parts))
