"""Three programs of a small server, which shares its weights and a cache in pages: docs/server.md."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import ShapeDtypeStruct

LAYERS, WIDTH, HEADS, HEAD, WORDS, PAGE = 2, 1024, 8, 128, 8192, 16


def step(weights, cache, tokens, tables, positions):
    """A token of each sequence through all layers, attending to the pages that its table names."""
    x = weights["embed"][tokens]
    for number, layer in enumerate(weights["layers"]):
        q, k, v = (jnp.einsum("bd,dhn->bhn", x, layer[name]) for name in "qkv")
        page, row = tables[:, 0] + positions // PAGE, positions % PAGE
        keys, values = cache[number]
        keys, values = keys.at[page, row].set(k), values.at[page, row].set(v)
        cache = [*cache[:number], (keys, values), *cache[number + 1 :]]
        near = keys[tables].reshape(tables.shape[0], -1, HEADS, HEAD)
        scores = jax.nn.softmax(jnp.einsum("bhn,bthn->bht", q, near).astype(jnp.float32))
        held = values[tables].reshape(tables.shape[0], -1, HEADS, HEAD)
        out = jnp.einsum("bht,bthn->bhn", scores.astype(x.dtype), held)
        x = x + jnp.einsum("bhn,hnd->bd", out, layer["o"])
    return (x @ weights["head"]).astype(jnp.float32), cache


def program(batch, pages=1024, donate=True):
    """A step for `batch` sequences, with its arguments and the options of `jax.jit`."""
    array, number = (partial(ShapeDtypeStruct, dtype=dtype) for dtype in (jnp.bfloat16, jnp.int32))
    layer = {name: array((WIDTH, HEADS, HEAD)) for name in "qkv"} | {"o": array((HEADS, HEAD, WIDTH))}
    weights = {"embed": array((WORDS, WIDTH)), "head": array((WIDTH, WORDS)), "layers": [layer] * LAYERS}
    cache = [(array((pages, PAGE, HEADS, HEAD)),) * 2] * LAYERS
    options = {"donate_argnums": 1} if donate else {}
    return step, (weights, cache, number((batch,)), number((batch, 8)), number((batch,))), options


def server(pages=1024):
    """The programs by name; the last returns the cache without being donated it."""
    return {"small": program(8, pages), "large": program(256, pages), "undonated": program(64, pages, donate=False)}
