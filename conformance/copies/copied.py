"""Programs that copy what they are handed, as one might write them; half of them were written after the rules."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.layout import Format, Layout
from jax.sharding import NamedSharding, PartitionSpec
from programs import Draw, Program, convolved, pinned

bf16 = jnp.bfloat16


@dataclass(frozen=True)
class Copied:
    """A program that copies arguments or results."""

    tpus: tuple[str, ...]
    make: Callable[[Draw], Program]
    is_held_out: bool


PROGRAMS: dict[str, Copied] = {}


def copied(*tpus: str, held_out: bool = False) -> Callable:
    """Adds the decorated function, by its name, to the programs."""

    def add(make: Callable[[Draw], Program]) -> Callable:
        PROGRAMS[make.__name__] = Copied(tpus, make, held_out)
        return make

    return add


@copied("v5e", "v6e")
def kernel_rows(draw: Draw) -> Program:
    """A Pallas kernel whose rows are half as wide as the lanes."""

    def kernel(x, scale, out):
        out[...] = x[...] * scale[...]

    def scaled(x, scale):
        rows, whole = pl.BlockSpec((1024, 64), lambda i: (i, 0)), pl.BlockSpec((1, 64), lambda i: (0, 0))
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, shape, grid=x.shape[0] // 1024, in_specs=[rows, whole], out_specs=rows)(x, scale)

    return Program(scaled, (draw.array((262144, 64)), draw.array((1, 64))))


@copied("v5e", "v4")
def embedding(draw: Draw) -> Program:
    """Rows of an embedding of 64 columns."""

    def lookup(table, ids):
        return jax.nn.relu(table[ids])

    return Program(lookup, (draw.array((500_000, 64), bf16), draw.array((64, 128), jnp.int32)))


@copied("v6e")
def embedding_gradient(draw: Draw) -> Program:
    """Gradients added to rows of a donated table."""

    def update(table, ids, gradient):
        return table.at[ids].add(gradient)

    arguments = draw.array((200_000, 64)), draw.array((8192,), jnp.int32), draw.array((8192, 64))
    return Program(update, arguments, {"donate_argnums": 0})


@copied("v5e", "v6e")
def sparse_momentum(draw: Draw) -> Program:
    """An optimizer's step on the rows of a batch, its state donated."""

    def step(table, m, ids, gradient):
        m = m.at[ids].multiply(0.9).at[ids].add(gradient)
        return table.at[ids].add(-0.1 * m[ids]), m

    table = draw.array((300_000, 48))
    arguments = table, table, draw.array((4096,), jnp.int32), draw.array((4096, 48))
    return Program(step, arguments, {"donate_argnums": (0, 1)})


@copied("v5e")
def experts(draw: Draw) -> Program:
    """Each token's expert is gathered from a stack of them, whose order is another program's."""

    def mixed(x, w, chosen):
        return jnp.einsum("bd,bdf->bf", x, w[chosen])

    w = pinned(draw.array((32, 512, 2048), bf16), 1, 2, 0)
    return Program(mixed, (draw.array((64, 512), bf16), w, draw.array((64,), jnp.int32)))


@copied("v5e", "v4")
def scanned_weights(draw: Draw) -> Program:
    """Layers in a scan, their weights stacked along the last dimension of memory."""

    def forward(x, ws):
        return jax.lax.scan(lambda x, w: (jnp.tanh(jnp.einsum("bd,fd->bf", x, w)), None), x, ws)[0]

    return Program(forward, (draw.array((32, 1024), bf16), pinned(draw.array((12, 1024, 1024), bf16), 1, 2, 0)))


@copied("v5e", "v6e")
def torch_kernels(draw: Draw) -> Program:
    """A convolution's kernels as another framework stores them."""

    def layer(x, w):
        return convolved(x, w, numbers=("NHWC", "OIHW", "NHWC"))

    x, w = draw.array((16, 56, 56, 256), bf16), pinned(draw.array((512, 256, 3, 3), bf16))
    return Program(layer, (x, w))


@copied("v5e", "v6e")
def images(draw: Draw) -> Program:
    """Images as a loader hands them over, row-major, in a network's first convolution."""

    def stem(x, w):
        return convolved(x.astype(bf16), w, 2)

    return Program(stem, (pinned(draw.array((64, 224, 224, 3))), draw.array((7, 7, 3, 64), bf16)))


@copied("v6e", "v5e")
def column_major_state(draw: Draw) -> Program:
    """Weights from a column-major checkpoint, beside a gradient and state that are not."""

    def step(w, m, gradient):
        m = 0.9 * m + gradient
        return w - 0.1 * m, m

    array = draw.array((4096, 2048))
    return Program(step, (pinned(array, 1, 0), array, array))


@copied("v7x")
def pipeline_stages(draw: Draw) -> Program:
    """Stages in a scan, whose results are also written into an array; v7x wants taller tiles than its defaults."""

    def forward(xs, ws, out):
        def stage(out, layer):
            x, w = layer
            y = jax.nn.relu(x @ w)
            return jax.lax.dynamic_update_slice(out, y[None], (1, 0, 0)), y

        return jax.lax.scan(stage, out, (xs, ws))

    xs, ws = draw.array((7, 48, 640), bf16), draw.array((7, 640, 640), bf16)
    return Program(forward, (xs, ws, xs))


@copied("v5e", "v6e")
def either_branch(draw: Draw) -> Program:
    """One of two lookups in the same table."""

    def lookup(forward, table, ids):
        return jax.lax.cond(forward, lambda: table[ids], lambda: table[ids[::-1]] * 2)

    return Program(lookup, (draw.array((), jnp.bool_), draw.array((300_000, 64)), draw.array((4096,), jnp.int32)))


@copied("v5e", "v6e", held_out=True)
def sparse_adagrad(draw: Draw) -> Program:
    """Another optimizer's step on the rows of a batch."""

    def step(table, squares, ids, gradient):
        squares = squares.at[ids].add(gradient * gradient)
        return table.at[ids].add(-0.01 * gradient * jax.lax.rsqrt(squares[ids] + 1e-6)), squares

    table = draw.array((500_000, 64))
    arguments = table, table, draw.array((16384,), jnp.int32), draw.array((16384, 64))
    return Program(step, arguments, {"donate_argnums": (0, 1)})


@copied("v6e", "v5p", held_out=True)
def factorization(draw: Draw) -> Program:
    """Gradients of two embeddings' products."""

    def step(users, items, user, item, rating):
        def loss(users, items):
            return jnp.mean((jnp.sum(users[user] * items[item], -1) - rating) ** 2)

        by_user, by_item = jax.grad(loss, (0, 1))(users, items)
        return users - 0.1 * by_user, items - 0.1 * by_item

    ids = draw.array((65536,), jnp.int32)
    arguments = draw.array((400_000, 32)), draw.array((100_000, 32)), ids, ids, draw.array((65536,))
    return Program(step, arguments, {"donate_argnums": (0, 1)})


@copied("v5e", "v7x", held_out=True)
def norm_kernel(draw: Draw) -> Program:
    """A Pallas kernel on rows of 96."""

    def kernel(x, out):
        out[...] = x[...] * jax.lax.rsqrt(jnp.mean(x[...] * x[...], -1, keepdims=True) + 1e-6)

    def normalized(x):
        rows = pl.BlockSpec((2048, 96), lambda i: (i, 0))
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(kernel, shape, grid=x.shape[0] // 2048, in_specs=[rows], out_specs=rows)(x)

    return Program(normalized, (draw.array((131072, 96)),))


@copied("v6e", "v4", held_out=True)
def torch_layers(draw: Draw) -> Program:
    """Four convolutions with kernels as another framework stores them."""

    def forward(x, ws):
        for w in ws:
            x = jax.nn.relu(convolved(x, w, numbers=("NHWC", "OIHW", "NHWC")))
        return x

    w = pinned(draw.array((256, 256, 3, 3), bf16))
    return Program(forward, (draw.array((8, 28, 28, 256), bf16), [w] * 4))


@copied("v5e", "v6e", held_out=True)
def scanned_blocks(draw: Draw) -> Program:
    """Blocks in a scan, the weights of each in an order of its own."""

    def forward(x, params):
        def block(x, layer):
            return x + jax.nn.gelu(x @ layer["up"]) @ layer["down"], None

        return jax.lax.scan(block, x, params)[0]

    up, down = pinned(draw.array((8, 512, 2048), bf16), 0, 2, 1), pinned(draw.array((8, 2048, 512), bf16), 1, 2, 0)
    return Program(forward, (draw.array((64, 512), bf16), {"up": up, "down": down}))


@copied("v5e", "v6e", held_out=True)
def decoding_loop(draw: Draw) -> Program:
    """Tokens decoded in a loop that looks each up in a column-major table and keeps a donated cache."""

    def decode(cache, wq, table, token):
        def step(i, state):
            cache, token = state
            h = table[token]
            cache = jax.lax.dynamic_update_slice(cache, h[:, None], (0, i, 0))
            scores = jax.nn.softmax(jnp.einsum("bd,bsd->bs", h @ wq, cache))
            out = jnp.einsum("bs,bsd->bd", scores, cache)
            return cache, jnp.argmax(out @ table.T, -1).astype(jnp.int32)

        return jax.lax.fori_loop(0, 128, step, (cache, token))

    table = pinned(draw.array((32000, 512), bf16), 1, 0)
    arguments = draw.array((16, 1024, 512), bf16), draw.array((512, 512), bf16), table, draw.array((16,), jnp.int32)
    return Program(decode, arguments, {"donate_argnums": 0})


@copied("v5e", "v4", held_out=True)
def graph_layer(draw: Draw) -> Program:
    """Messages of a graph's edges, summed at their nodes."""

    def layer(x, w, senders, receivers):
        return jax.ops.segment_sum(jax.nn.relu(x @ w)[senders], receivers, len(x))

    edges = draw.array((800_000,), jnp.int32)
    return Program(layer, (draw.array((200_000, 64)), draw.array((64, 64)), edges, edges))


@copied("v5e", "v6e", held_out=True)
def heads_last(draw: Draw) -> Program:
    """Scores with the heads last."""

    def scores(q, k):
        return jnp.einsum("bqnh,bknh->bnqk", q, k).transpose(0, 2, 3, 1)

    array = draw.array((4, 512, 16, 128), bf16)
    return Program(scores, (array, array))


@copied("v5e", held_out=True)
def sharded_lookup(draw: Draw) -> Program:
    """Each device looks its part of the batch up in the whole table."""

    def lookup(table, ids):
        return table[ids].sum(1)

    mesh = draw.mesh(x=4)
    on_all, by_batch = (NamedSharding(mesh, PartitionSpec(axis, None)) for axis in (None, "x"))
    return Program(lookup, (draw.array((1_000_000, 64), sharding=on_all), draw.array((8192, 8), jnp.int32, by_batch)))


@copied("v5e", "v6e", held_out=True)
def skip_connection(draw: Draw) -> Program:
    """Two convolutions, both results kept."""

    def layers(x, first, second):
        h = jax.nn.relu(convolved(x, first))
        return jax.nn.relu(convolved(h, second)), h

    kernels = draw.array((3, 3, 64, 128), bf16), draw.array((3, 3, 128, 128), bf16)
    return Program(layers, (draw.array((16, 64, 64, 64), bf16), *kernels))


@copied("v7x", held_out=True)
def stacked_layers(draw: Draw) -> Program:
    """Layers in a scan that keeps what comes before each."""

    def forward(x, w, bias):
        def layer(x, layer):
            w, bias = layer
            return jax.nn.relu(x @ w + bias), x

        return jax.lax.scan(layer, x, (w, bias))

    w = pinned(draw.array((16, 256, 256), bf16), 1, 0, 2)
    return Program(forward, (draw.array((256, 256), bf16), w, draw.array((16, 256), bf16)))


@copied("v7x", held_out=True)
def sampled_softmax(draw: Draw) -> Program:
    """Scores of a few of many classes, whose weights have 96 columns."""

    def scores(h, w, bias, sampled):
        return jax.nn.log_softmax(jnp.einsum("bd,bkd->bk", h, w[sampled]) + bias[sampled])

    classes = draw.array((200_000, 96), bf16), draw.array((200_000,), bf16)
    return Program(scores, (draw.array((1024, 96), bf16), *classes, draw.array((1024, 64), jnp.int32)))


@copied("v5e", "v6e", held_out=True)
def paged_cache(draw: Draw) -> Program:
    """A decoding step on a donated cache in pages."""

    def step(pages, slots, new, q, chosen):
        pages = pages.at[slots].set(new)
        keys = pages[chosen].reshape(16, -1, 8, 64)
        return pages, jnp.einsum("bnh,bsnh->bns", q, keys)

    slots, new = draw.array((16,), jnp.int32), draw.array((16, 8, 64), bf16)
    arguments = draw.array((65536, 8, 64), bf16), slots, new, new, draw.array((16, 256), jnp.int32)
    return Program(step, arguments, {"donate_argnums": 0})


@copied("v5e", held_out=True)
def volumes(draw: Draw) -> Program:
    """A convolution of volumes with four channels."""

    def layer(x, w):
        return jax.nn.relu(convolved(x, w, numbers=("NDHWC", "DHWIO", "NDHWC")))

    return Program(layer, (draw.array((4, 16, 64, 64, 4)), draw.array((3, 3, 3, 4, 32))))


@copied("v5e", "v4", held_out=True)
def bytes_to_channels_last(draw: Draw) -> Program:
    """Bytes with the channels first, and results with them last."""

    def layer(x, w):
        return convolved(x.astype(bf16) / 255, w, numbers=("NCHW", "HWIO", "NHWC"))

    return Program(layer, (draw.array((32, 16, 128, 128), jnp.uint8), draw.array((5, 5, 16, 64), bf16)))


@copied("v5e", "v6e", held_out=True)
def pinned_result(draw: Draw) -> Program:
    """A result in an order of the caller's, and rows of a column-major table."""

    def layer(x, w, table):
        h = jax.nn.gelu(x @ w)
        return h, table[h.argmax(-1)]

    w, table = pinned(draw.array((512, 2048)), 1, 0), pinned(draw.array((2048, 384)), 1, 0)
    formats = Format(Layout((1, 0)), draw.sharding), None
    return Program(layer, (draw.array((4096, 512)), w, table), {"out_shardings": formats})
