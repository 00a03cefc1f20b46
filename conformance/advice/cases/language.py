"""Language models: losses over vocabularies, attention, caches of keys and values, layers, embeddings, sampling."""

import jax
import jax.numpy as jnp
from jax import lax

from .case import Case, Draw, Program, case, compared


def cross_entropy(logits, labels):
    """The sum over tokens."""
    logits = logits.astype(jnp.float32)
    return jnp.sum(jax.nn.logsumexp(logits, axis=-1) - jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0])


@case("v5e", "v5p")
def vocabulary_loss(draw: Draw) -> Case:
    tokens, width, vocabulary = 8192, 512, 50257

    def loss(hidden, head, labels):
        logits = jnp.dot(hidden, head, preferred_element_type=jnp.float32)
        return cross_entropy(logits, labels) / tokens

    def narrow(hidden, head, labels):
        return cross_entropy(hidden @ head, labels) / tokens

    def chunked(hidden, head, labels):
        @jax.checkpoint
        def step(total, chunk):
            rows, labels = chunk
            logits = jnp.dot(rows, head, preferred_element_type=jnp.float32)
            return total + cross_entropy(logits, labels), None

        chunks = hidden.reshape(16, -1, width), labels.reshape(16, -1)
        return lax.scan(step, 0.0, chunks)[0] / tokens

    dtype = jnp.bfloat16
    arguments = draw.array((tokens, width), dtype), draw.array((width, vocabulary), dtype)
    arguments = (*arguments, draw.array((tokens,), jnp.int32))
    return compared(
        Program(jax.value_and_grad(loss, (0, 1)), arguments),
        ("chunked", "chunk", jax.value_and_grad(chunked, (0, 1))),
        ("narrow", "narrow value", jax.value_and_grad(narrow, (0, 1))),
    )


def attend(q, k, v, dtype=jnp.float32):
    """Attention of queries [T, H, D]."""
    score = jnp.einsum("qhd,khd->hqk", q, k, preferred_element_type=dtype) * 0.125
    weight = jax.nn.softmax(score, axis=-1).astype(v.dtype)
    return jnp.einsum("hqk,khd->qhd", weight, v)


@case("v5p", "v4")
def attention_scores(draw: Draw) -> Case:
    length, heads, width = 6144, 8, 64

    def chunked(q, k, v):
        # lax.map would attend with one query at a time.
        return lax.map(lambda rows: attend(rows, k, v), q.reshape(24, -1, heads, width)).reshape(q.shape)

    def narrow(q, k, v):
        return attend(q, k, v, jnp.bfloat16)

    arguments = (draw.array((length, heads, width), jnp.bfloat16),) * 3
    return compared(Program(attend, arguments), ("chunked", "chunk", chunked), ("narrow", "narrow value", narrow))


@case("v6e")
def attention_gradient(draw: Draw) -> Case:
    length, heads, width = 4096, 8, 64

    def loss(q, k, v):
        return jnp.sum(attend(q, k, v).astype(jnp.float32) ** 2)

    def chunked(q, k, v):
        step = jax.checkpoint(lambda total, rows: (total + loss(rows, k, v), None))
        return lax.scan(step, 0.0, q.reshape(16, -1, heads, width))[0]

    arguments = (draw.array((length, heads, width), jnp.bfloat16),) * 3
    return compared(Program(jax.grad(loss, (0, 1, 2)), arguments), ("chunked", "chunk", jax.grad(chunked, (0, 1, 2))))


@case("v6e", "v5e")
def cache_undonated(draw: Draw) -> Case:
    """A decoding step that returns the new cache of every layer, and leaves the old one alive."""
    layers, batch, length, heads, width = 8, 16, 2048, 8, 128

    def step(keys, values, q, k, v, position):
        keys = lax.dynamic_update_slice(keys, k[:, :, None], (0, 0, position, 0, 0))
        values = lax.dynamic_update_slice(values, v[:, :, None], (0, 0, position, 0, 0))
        score = jnp.einsum("lbhd,lbthd->lbht", q, keys, preferred_element_type=jnp.float32)
        weight = jax.nn.softmax(score, axis=-1).astype(values.dtype)
        return keys, values, jnp.einsum("lbht,lbthd->lbhd", weight, values)

    cache = draw.array((layers, batch, length, heads, width), jnp.bfloat16)
    token = draw.array((layers, batch, heads, width), jnp.bfloat16)
    arguments = (cache, cache, token, token, token, draw.array((), jnp.int32))
    return compared(
        Program(step, arguments), ("donated", "donate argument", step, arguments, {"donate_argnums": (0, 1)})
    )


@case("v6e")
def scanned_heads(draw: Draw) -> Case:
    """A loop over layers carries a cache of 12 heads of 64: row-major, it fills three of eight parts of its tiles."""
    layers, rows, length, heads, depth, width = 4, 32, 2048, 12, 64, 768

    def step_of(split, joined):
        def step(params, keys, values, x, at):
            def layer(carry, given):
                x, keys, values = carry
                number, weights = given
                q, k, v = ((x @ weights[name]).reshape(rows, heads, depth) for name in "qkv")
                places = number, 0, at, *[0] * (keys.ndim - 3)
                keys, values = (
                    lax.dynamic_update_slice(cache, joined(new)[None, :, None], places)
                    for cache, new in ((keys, k), (values, v))
                )
                scores = jnp.einsum("bhd,bthd->bht", q, split(keys[number])).astype(jnp.float32) / depth**0.5
                scores = jax.nn.softmax(jnp.where(jnp.arange(length) <= at, scores, -1e30))
                found = jnp.einsum("bht,bthd->bhd", scores.astype(x.dtype), split(values[number]))
                return (x + found.reshape(rows, width) @ weights["o"], keys, values), None

            return lax.scan(layer, (x, keys, values), (jnp.arange(layers), params))[0]

        return step

    params = {name: draw.array((layers, width, width), jnp.bfloat16) for name in "qkvo"}

    def arguments(*last):
        cache = draw.array((layers, rows, length, *last), jnp.bfloat16)
        return params, cache, cache, draw.array((rows, width), jnp.bfloat16), draw.array((), jnp.int32)

    jit = {"donate_argnums": (1, 2)}
    merged = step_of(lambda x: x.reshape(rows, length, heads, depth), lambda x: x.reshape(rows, width))
    return compared(
        Program(step_of(lambda x: x, lambda x: x), arguments(heads, depth), jit),
        ("merged", "reshape argument", merged, arguments(width)),
    )


@case("v5e")
def paged_cache(draw: Draw) -> Case:
    """Pages of 16 tokens are gathered by a table: heads of 64 fill half of a tile."""
    pages, batch, length, heads, width = 2048, 16, 128, 8, 64

    def attended(pages, table, q):
        rows = pages[table].reshape(batch, length * 16, heads, width)
        score = jnp.einsum("bhd,bthd->bht", q, rows, preferred_element_type=jnp.float32)
        return jnp.einsum("bht,bthd->bhd", jax.nn.softmax(score, axis=-1).astype(rows.dtype), rows)

    def flat(pages, table, q):
        rows = pages[table].reshape(batch, length * 16, heads * width)
        parts = [rows[:, :, i * width : (i + 1) * width] for i in range(heads)]
        score = jnp.stack(
            [
                jnp.einsum("bd,btd->bt", q[:, i], part, preferred_element_type=jnp.float32)
                for i, part in enumerate(parts)
            ],
            1,
        )
        weight = jax.nn.softmax(score, axis=-1).astype(rows.dtype)
        return jnp.stack([jnp.einsum("bt,btd->bd", weight[:, i], part) for i, part in enumerate(parts)], 1)

    def chunked(pages, table, q):
        return lax.map(lambda one: attend_one(pages, *one), (table, q), batch_size=2)

    def attend_one(pages, table, q):
        rows = pages[table].reshape(length * 16, heads, width)
        score = jnp.einsum("hd,thd->ht", q, rows, preferred_element_type=jnp.float32)
        return jnp.einsum("ht,thd->hd", jax.nn.softmax(score, axis=-1).astype(rows.dtype), rows)

    dtype = jnp.bfloat16
    rest = draw.array((batch, length), jnp.int32), draw.array((batch, heads, width), dtype)
    arguments = (draw.array((pages, 16, heads, width), dtype), *rest)
    return compared(
        Program(attended, arguments),
        ("flat", "reshape argument", flat, (draw.array((pages, 16, heads * width), dtype), *rest)),
        ("chunked", "chunk", chunked),
    )


def block(x, weights):
    """A layer: mixing of tokens, then a gated network."""
    mix, up, gate, down = weights
    score = jnp.einsum("btd,de,bse->bts", x, mix, x, preferred_element_type=jnp.float32)
    x = x + jnp.einsum("bts,bsd->btd", jax.nn.softmax(score * 0.05, axis=-1).astype(x.dtype), x)
    return x + (jax.nn.silu(x @ gate) * (x @ up)) @ down


def accumulated(loss):
    """Loss and gradient of one sample at a time, added up."""

    def run(weights, x):
        def add(total, row):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(weights, row[None])), None

        zero = jnp.zeros(()), jax.tree.map(lambda w: jnp.zeros(w.shape, w.dtype), weights)
        return lax.scan(add, zero, x)[0]

    return run


def layer_weights(draw: Draw, layers: tuple, width: int, dtype):
    shapes = (width, width), (width, 4 * width), (width, 4 * width), (4 * width, width)
    return tuple(draw.array((*layers, *shape), dtype) for shape in shapes)


@case("v5e", "v6e")
def scanned_layers(draw: Draw) -> Case:
    """The gradient through a scan over eight layers keeps what each computes."""
    layers, batch, length, width, dtype = 8, 8, 512, 512, jnp.bfloat16

    def loss(weights, x, step=block):
        x, _ = lax.scan(lambda x, w: (step(x, w), None), x, weights)
        return jnp.mean(x.astype(jnp.float32) ** 2)

    def remat(weights, x):
        return loss(weights, x, jax.checkpoint(block))

    arguments = layer_weights(draw, (layers,), width, dtype), draw.array((batch, length, width), dtype)
    return compared(
        Program(jax.value_and_grad(loss), arguments),
        ("remat", "checkpoint loop", jax.value_and_grad(remat)),
        ("accumulated", "chunk", accumulated(loss)),
    )


@case("v4", "v7x")
def unrolled_layers(draw: Draw) -> Case:
    """The gradient through a Python loop over six layers: nothing is stacked."""
    layers, batch, length, width, dtype = 6, 8, 512, 512, jnp.bfloat16

    def loss(weights, x, step=block):
        for w in weights:
            x = step(x, w)
        return jnp.mean(x.astype(jnp.float32) ** 2)

    def remat(weights, x):
        return loss(weights, x, jax.checkpoint(block))

    arguments = [layer_weights(draw, (), width, dtype)] * layers, draw.array((batch, length, width), dtype)
    return compared(
        Program(jax.value_and_grad(loss), arguments),
        ("remat", "checkpoint", jax.value_and_grad(remat)),
        ("accumulated", "chunk value", accumulated(loss)),
    )


@case("v4")
def embedding_sgd(draw: Draw) -> Case:
    """A step on a table of rows of 16, with a gradient as large as the table."""
    words, width, batch = 1_000_000, 16, 262_144

    def step(table, left, right):
        def loss(table):
            return -jnp.mean(jax.nn.log_sigmoid(jnp.sum(table[left] * table[right], axis=-1)))

        return table - 0.1 * jax.grad(loss)(table)

    def of_columns(columns, left, right):
        return -jnp.mean(jax.nn.log_sigmoid(sum(c[left] * c[right] for c in columns)))

    def gathered(table, left, right):
        return table - 0.1 * jax.grad(lambda table: of_columns(jnp.unstack(table, axis=1), left, right))(table)

    def columns(table, left, right):
        return [c - 0.1 * g for c, g in zip(table, jax.grad(of_columns)(table, left, right), strict=True)]

    index = draw.array((batch,), jnp.int32)
    arguments = (draw.array((words, width)), index, index)
    return compared(
        Program(step, arguments),
        ("donated", "donate argument", step, arguments, {"donate_argnums": 0}),
        ("columns", "split argument", columns, ([draw.array((words,))] * width, index, index)),
        ("gathered", "split upstream", gathered),
    )


@case("v5e")
def bag_of_words(draw: Draw) -> Case:
    """Means of 60 gathered rows a sample."""
    words, width, batch, bag = 200_000, 64, 16_384, 60

    def pooled(table, words, w):
        return jnp.mean(table[words], axis=1) @ w

    def chunked(table, words, w):
        return lax.map(lambda row: jnp.mean(table[row], axis=0), words, batch_size=256) @ w

    arguments = (draw.array((words, width)), draw.array((batch, bag), jnp.int32), draw.array((width, 10)))
    return compared(Program(pooled, arguments), ("chunked", "chunk", chunked))


@case("v6e")
def nucleus_sampling(draw: Draw) -> Case:
    """The logits of 1024 prompts, sorted."""
    batch, vocabulary, width = 1024, 32000, 1024

    def sampled(hidden, head, uniform):
        probability = jax.nn.softmax(jnp.dot(hidden, head, preferred_element_type=jnp.float32))
        index = jnp.argsort(-probability, axis=-1)
        mass = jnp.cumsum(jnp.take_along_axis(probability, index, axis=-1), axis=-1)
        pick = jnp.sum(mass < 0.9 * uniform[:, None], axis=-1)
        return jnp.take_along_axis(index, pick[:, None], axis=-1)[:, 0]

    def chunked(hidden, head, uniform):
        chunks = hidden.reshape(16, -1, width), uniform.reshape(16, -1)
        return lax.map(lambda chunk: sampled(chunk[0], head, chunk[1]), chunks).reshape(-1)

    dtype = jnp.bfloat16
    arguments = (draw.array((batch, width), dtype), draw.array((width, vocabulary), dtype), draw.array((batch,)))
    return compared(Program(sampled, arguments), ("chunked", "chunk", chunked))
