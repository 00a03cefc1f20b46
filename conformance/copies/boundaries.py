"""Programs in which XLA copies where it meets a kernel, rebuilt from public threads, each before and after the remedy that
`tilewise audit` names first.

The threads are of other people's programs: the kernels here are small ones that take and make arrays of the same shapes in the
same order, so that XLA has the same copies to make.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from programs import Draw, pinned

bf16, f32, i32, i8 = jnp.bfloat16, jnp.float32, jnp.int32, jnp.int8


@dataclass
class Boundary:
    """A program before and after; where its remedy has code for the caller alone, `after` is that code's."""

    before: Callable
    arguments: tuple[Any, ...]
    after: Callable | None = None
    arguments_after: tuple[Any, ...] | None = None
    jit: dict[str, Any] = field(default_factory=dict)
    jit_after: dict[str, Any] | None = None


@dataclass(frozen=True)
class Known:
    """Where a case is from, and how it is made."""

    thread: str
    kernel: str
    tpu: str
    small: dict[str, int]
    make: Callable[..., Boundary]


BOUNDARIES: dict[str, Known] = {}


def boundary(thread: str, *, kernel: str, tpu: str = "v6e", **small: int) -> Callable:
    """Adds the decorated function, by its name, to the cases; `small` are the sizes that it is run with on a CPU."""

    def add(make: Callable[..., Boundary]) -> Callable:
        BOUNDARIES[make.__name__] = Known(thread, kernel, tpu, small, make)
        return make

    return add


ANY = pl.BlockSpec(memory_space=pl.ANY)


def call(name, kernel, out, grid, inputs, output, *arrays, **options):
    """`pl.pallas_call` of a kernel of that name, whose blocks are pairs of a shape and an index map."""
    specs = [block if isinstance(block, pl.BlockSpec) else pl.BlockSpec(*block) for block in inputs]
    outputs = [block if isinstance(block, pl.BlockSpec) else pl.BlockSpec(*block) for block in output]
    shapes = [jax.ShapeDtypeStruct(*shape) for shape in out]
    one = len(outputs) == 1
    return pl.pallas_call(
        kernel,
        shapes[0] if one else shapes,
        grid=grid,
        in_specs=specs,
        out_specs=outputs[0] if one else outputs,
        name=name,
        **options,
    )(*arrays)


def doubled(x, out):
    """Any kernel of one operand."""
    out[...] = x[...] * 2


def product(x, w, out):
    """x @ w."""
    out[...] = jnp.dot(x[...], w[...], preferred_element_type=wide(x)).astype(out.dtype)


def wide(x):
    """The type in which products of such numbers are summed."""
    return i32 if x.dtype == i8 else f32


def product_of_transposed(x, w, out):
    """x @ w.T, which contracts the lanes of both."""
    contracted = (((1,), (1,)), ((), ()))
    out[...] = jax.lax.dot_general(x[...], w[...], contracted, preferred_element_type=wide(x)).astype(out.dtype)


def matmul(x, w, is_transposed=False):
    """A product in blocks of columns."""
    (m, k), n = x.shape, w.shape[0 if is_transposed else 1]
    columns = min(n, 256)
    block = ((columns, k), lambda j: (j, 0)) if is_transposed else ((k, columns), lambda j: (0, j))
    body = product_of_transposed if is_transposed else product
    out = [((m, columns), lambda j: (0, j))]
    return call("matmul", body, [((m, n), x.dtype)], (n // columns,), [((m, k), lambda _: (0, 0)), block], out, x, w)


def grouped(x, w, is_transposed=False, out_type=None):
    """A product for each group."""
    groups, m, k = x.shape
    n = w.shape[1 if is_transposed else 2]
    whole = lambda *shape: ((None, *shape), lambda g: (g, 0, 0))  # noqa: E731
    body = product_of_transposed if is_transposed else product
    out = [((groups, m, n), out_type or x.dtype)]
    return call("gmm", body, out, (groups,), [whole(m, k), whole(*w.shape[1:])], [whole(m, n)], x, w)


@boundary("vllm-project/tpu-inference#3393", kernel="attend", tokens=256, width=256)
def queries_by_head(draw: Draw, tokens=2048, width=2048, heads=8, rows=128) -> Boundary:
    """Queries are swapped to [kv head, token] on a view whose rows are a pair of bfloat16."""

    def projected(x, w):
        return x @ w

    def before(x, w):
        q = projected(x, w).reshape(tokens, heads, 2, 2, 128).swapaxes(0, 1)
        block = ((1, rows, 2, 2, 128), lambda h, t: (h, t, 0, 0, 0))
        return call("attend", doubled, [(q.shape, q.dtype)], (heads, tokens // rows), [block], [block], q)

    def sliced(x, out):
        for head in range(4):
            out[0, :, head // 2, head % 2, :] = x[:, head * 128 : (head + 1) * 128] * 2

    def after(x, w):
        q = projected(x, w)
        out = (heads, tokens, 2, 2, 128), q.dtype
        blocks = ((rows, 512), lambda h, t: (t, h)), ((1, rows, 2, 2, 128), lambda h, t: (h, t, 0, 0, 0))
        return call("attend", sliced, [out], (heads, tokens // rows), [blocks[0]], [blocks[1]], q)

    return Boundary(before, (draw.array((tokens, width), bf16), draw.array((width, heads * 512), bf16)), after)


@boundary("vllm-project/tpu-inference#3366 (cos_sin_cache)", kernel="rotate", positions=512)
def rotary_table(draw: Draw, positions=65536, half=64, rows=256) -> Boundary:
    """A table of 64 columns, which XLA keeps column-major to save padding."""

    def rotated(x, table, out):
        out[...] = x[...] * jnp.concatenate([table[...]] * 2, -1)

    def rotated_transposed(x, table, out):
        out[...] = x[...] * jnp.concatenate([table[...].T] * 2, -1)

    def program(x, table, body, block):
        rows_of_x = ((rows, 2 * half), lambda i: (i, 0))
        return call("rotate", body, [(x.shape, x.dtype)], (positions // rows,), [rows_of_x, block], [rows_of_x], x, table)

    def before(x, table):
        return program(x, table, rotated, ((rows, half), lambda i: (i, 0)))

    def after(x, table):
        return program(x, table.T, rotated_transposed, ((half, rows), lambda i: (0, i)))

    return Boundary(before, (draw.array((positions, 2 * half)), draw.array((positions, half))), after)


@boundary("vllm-project/tpu-inference#3366 (tid_to_eid)", kernel="route", tokens=1024)
def expert_table(draw: Draw, tokens=129024, experts=8, rows=512) -> Boundary:
    """A table of the experts of each token, whose columns are far fewer than the lanes."""

    def routed(table, out):
        out[...] = jnp.sum(table[...], -1, keepdims=True).T

    def routed_transposed(table, out):
        out[...] = jnp.sum(table[...], 0, keepdims=True)

    def program(table, body, block):
        out = ((1, rows), lambda i: (0, i))
        return call("route", body, [((1, tokens), f32)], (tokens // rows,), [block], [out], table)

    def before(table):
        return program(table, routed, ((rows, experts), lambda i: (i, 0)))

    def after(table):
        return program(table.T, routed_transposed, ((experts, rows), lambda i: (0, i)))

    return Boundary(before, (draw.array((tokens, experts)),), after)


@boundary("vllm-project/tpu-inference#3366 (compressor)", kernel="matmul", m=128, k=256, n=256)
def transposed_projection(draw: Draw, m=512, k=2048, n=4096) -> Boundary:
    """Weights [n, k] are transposed in every forward pass."""
    return Boundary(lambda x, w: matmul(x, w.T), (draw.array((m, k), bf16), draw.array((n, k), bf16)))


@boundary("openxla/tokamax#1220", kernel="gmm", groups=2, m=128, k=256, n=128)
def gradient_of_inputs(draw: Draw, groups=8, m=256, k=3072, n=2048) -> Boundary:
    """Weights [group, k, n] are read as they are, and transposed for the gradient."""

    def before(x, w, dy):
        return grouped(x, w), grouped(dy, w.swapaxes(1, 2))

    def after(x, w, dy):
        return grouped(x, w), grouped(dy, w, is_transposed=True)

    arrays = (groups, m, k), (groups, k, n), (groups, m, n)
    return Boundary(before, tuple(draw.array(shape, bf16) for shape in arrays), after)


@boundary("vllm-project/vllm#18923", kernel="gmm", groups=2, m=128, k=256, n=128)
def experts_transposed(draw: Draw, groups=8, m=256, k=2048, n=1024) -> Boundary:
    """Experts' weights [group, n, k] are transposed for a kernel that takes [group, k, n]."""
    arguments = draw.array((groups, m, k), bf16), draw.array((groups, n, k), bf16)
    return Boundary(lambda x, w: grouped(x, w.transpose(0, 2, 1)), arguments)


@boundary("a public test of gmm_v2, test_accepts_8_row_tiled_rhs_without_copy", kernel="gmm", groups=2, k=256, n=128)
def int8_gradient(draw: Draw, groups=8, m=256, k=2048, n=1024) -> Boundary:
    """Weights [group, k, n] in int8 are read as they are, and transposed for the gradient."""

    def before(x, w, dy):
        return grouped(x, w, out_type=i32), grouped(dy, w.swapaxes(1, 2), out_type=i32)

    def after(x, w, dy):
        return grouped(x, w, out_type=i32), grouped(dy, w, is_transposed=True, out_type=i32)

    arrays = (groups, m, k), (groups, k, n), (groups, m, n)
    return Boundary(before, tuple(draw.array(shape, i8) for shape in arrays), after)


@boundary("vllm-project/tpu-inference#2551", kernel="mla", tokens=128, heads=8)
def latent_queries(draw: Draw, tokens=1024, heads=32, width=128, latent=512, rows=64) -> Boundary:
    """Queries are projected head by head, and a kernel takes them token by token."""

    def scored(q, out):
        out[...] = jnp.max(q[...], -1)

    def scored_by_head(q, out):
        out[...] = jnp.max(q[...], -1).T

    def program(q, body, block):
        out = ((rows, heads), lambda t: (t, 0))
        return call("mla", body, [((tokens, heads), f32)], (tokens // rows,), [block], [out], q)

    def before(q, w):
        return program(jnp.einsum("tnh,nhl->tnl", q, w), scored, ((rows, heads, latent), lambda t: (t, 0, 0)))

    def after(q, w):
        return program(jnp.einsum("tnh,nhl->ntl", q, w), scored_by_head, ((heads, rows, latent), lambda t: (0, t, 0)))

    return Boundary(before, (draw.array((tokens, heads, width)), draw.array((heads, width, latent))), after)


@boundary("vllm-project/tpu-inference#2725", kernel="mla", tokens=128, heads=8)
def latent_values(draw: Draw, tokens=1024, heads=32, latent=512, rows=64) -> Boundary:
    """A kernel makes values token by token; their reader wants them head by head."""

    def before(x):
        block = ((rows, heads, latent), lambda t: (t, 0, 0))
        made = call("mla", doubled, [(x.shape, x.dtype)], (tokens // rows,), [block], [block], x)
        return made.swapaxes(0, 1)

    return Boundary(before, (draw.array((tokens, heads, latent)),))


@boundary("AI-Hypercomputer/maxdiffusion#449", kernel="splash", batch=1, heads=2, tokens=256, width=128)
def heads_to_projection(draw: Draw, batch=2, heads=16, tokens=1024, width=1024, rows=256) -> Boundary:
    """Attention makes [head, token], and the projection behind it reads [token, head]."""
    by_head = ((None, None, rows, 128), lambda b, h, t: (b, h, t, 0))
    grid = batch, heads, tokens // rows

    def before(q, w):
        made = call("splash", doubled, [(q.shape, q.dtype)], grid, [by_head], [by_head], q)
        return made.swapaxes(1, 2).reshape(batch, tokens, heads * 128) @ w

    def after(q, w):
        out = [((batch, tokens, heads * 128), q.dtype)]
        return call("splash", doubled, out, grid, [by_head], [((None, rows, 128), lambda b, h, t: (b, t, h))], q) @ w

    return Boundary(before, (draw.array((batch, heads, tokens, 128), bf16), draw.array((heads * 128, width), bf16)), after)


@boundary("jax-ml/jax#18590", kernel="flash", batch=1, heads=2, tokens=256, width=128)
def projection_to_heads(draw: Draw, batch=2, heads=16, tokens=1024, width=1024, rows=256) -> Boundary:
    """A projection makes [token, head], and attention takes [head, token]."""
    by_head = ((None, None, rows, 128), lambda b, h, t: (b, h, t, 0))
    out, grid = (batch, heads, tokens, 128), (batch, heads, tokens // rows)

    def before(x, w):
        q = (x @ w).reshape(batch, tokens, heads, 128).swapaxes(1, 2)
        return call("flash", doubled, [(out, q.dtype)], grid, [by_head], [by_head], q)

    def after(x, w):
        return call("flash", doubled, [(out, x.dtype)], grid, [((None, rows, 128), lambda b, h, t: (b, t, h))], [by_head], x @ w)

    return Boundary(before, (draw.array((batch, tokens, width), bf16), draw.array((width, heads * 128), bf16)), after)


@boundary("jax-ml/jax#20021", kernel="matmul", m=128, k=256, n=256)
def tutorial(draw: Draw, m=1024, k=2048, n=2048) -> Boundary:
    """A matrix is transposed in front of a kernel, and read as it is elsewhere."""

    def before(x, y):
        return matmul(x, y.swapaxes(0, 1)), matmul(x, y)

    def after(x, y):
        return matmul(x, y, is_transposed=True), matmul(x, y)

    return Boundary(before, (draw.array((m, k), bf16), draw.array((n, k), bf16)), after)


@boundary("sgl-project/sglang-jax#1613 (flat view)", kernel="attend", pages=32)
def flat_pool(draw: Draw, pages=2048, rows=64, width=576) -> Boundary:
    """A pool of pages is read as flat rows; by default pages are its lanes."""

    def program(pool):
        flat = pool.reshape(pages * rows, width)
        out = ((rows, 128), lambda i: (i, 0))
        body = lambda x, out: out.__setitem__(..., x[:, :128])  # noqa: E731
        return call("attend", body, [((pages * rows, 128), bf16)], (pages,), [((rows, width), lambda i: (i, 0))], [out], flat)

    return Boundary(program, (draw.array((pages, rows, 1, width), bf16),))


@boundary("sgl-project/sglang-jax#1613 (cond)", kernel="attend", pages=32)
def pool_in_branch(draw: Draw, pages=2048, rows=64, width=576) -> Boundary:
    """A branch may write into the pool before a kernel reads it."""

    def program(pool, new, is_new):
        pool = jax.lax.cond(is_new, lambda pool: pool.at[:8].set(new), lambda pool: pool, pool)
        out = ((rows, 128), lambda i: (i, 0))
        body = lambda x, out: out.__setitem__(..., x[0, :, :128])  # noqa: E731
        block = ((1, rows, width), lambda i: (i, 0, 0))
        return pool, call("attend", body, [((pages * rows, 128), bf16)], (pages,), [block], [out], pool)

    arguments = draw.array((pages, rows, width), bf16), draw.array((8, rows, width), bf16), draw.array((), jnp.bool_)
    return Boundary(program, arguments, jit={"donate_argnums": 0})


@boundary("sgl-project/sglang-jax#1613 (flat view in a cond)", kernel="decode", pages=32)
def flat_pool_in_branch(draw: Draw, pages=1024, rows=32, width=640) -> Boundary:
    """One branch's kernel reads the pool as flat rows, the other's as it is; the pull request keeps it 4-D for both."""
    out = [((pages * rows, 128), bf16)]
    whole = ((1, rows, 2, width), lambda i: (i, 0, 0, 0))
    made = ((rows, 128), lambda i: (i, 0))

    def first(x, out):
        out[...] = x[0, :, 0, :128]

    def first_flat(x, out):
        out[...] = x[...].reshape(rows, 2, width)[:, 0, :128]

    def prefill(pool):
        return call("prefill", first, out, (pages,), [whole], [made], pool)

    def flat(pool):
        pool = pool.reshape(pages * rows * 2, width)
        return call("decode", first_flat, out, (pages,), [((rows * 2, width), lambda i: (i, 0))], [made], pool)

    def as_it_is(pool):
        return call("decode", first, out, (pages,), [whole], [made], pool)

    def program(pool, is_decode, decode):
        return jax.lax.cond(is_decode, decode, prefill, pool)

    arguments = draw.array((pages, rows, 2, width), bf16), draw.array((), jnp.bool_)
    return Boundary(lambda *given: program(*given, flat), arguments, lambda *given: program(*given, as_it_is))


@boundary("vllm-project/tpu-inference#3459", kernel="ring", pages=16)
def discarded_cache(draw: Draw, pages=1024, rows=64) -> Boundary:
    """A kernel that only reads the cache declares that it writes it, and the program reads the cache again."""

    def written(cache, q, updated, out):
        out[...] = q[...] + 1

    def read(cache, q, updated, out):
        out[...] = q[...] * 2

    def only_read(cache, q, out):
        out[...] = q[...] * 2

    def program(cache, q, launch):
        block = ((rows, 128), lambda i: (i, 0))
        grid = (q.shape[0] // rows,)
        both = [(cache.shape, cache.dtype), (q.shape, q.dtype)]
        if launch is only_read:
            q = call("ring", launch, both[1:], grid, [ANY, block], [block], cache, q)
        else:
            q = call("ring", launch, both, grid, [ANY, block], [ANY, block], cache, q, input_output_aliases={0: 0})[1]
        return call("ring_current", written, both, grid, [ANY, block], [ANY, block], cache, q, input_output_aliases={0: 0})

    arguments = draw.array((pages, 256, 2, 128), bf16), draw.array((1024, 128), bf16)
    donated = {"donate_argnums": 0}
    return Boundary(lambda *given: program(*given, read), arguments, lambda *given: program(*given, only_read), jit=donated)


@boundary("pytorch/xla#8385", kernel="plus_one", rows=512)
def in_place(draw: Draw, rows=8192) -> Boundary:
    """A kernel overwrites an argument that isn't donated."""

    def program(x):
        block = ((256, 1024), lambda i: (i, 0))
        body = lambda x, out: out.__setitem__(..., x[...] + 1)  # noqa: E731
        aliases = {"input_output_aliases": {0: 0}}
        return call("plus_one", body, [(x.shape, x.dtype)], (rows // 256,), [block], [block], x, **aliases)

    return Boundary(program, (draw.array((rows, 1024)),), program, jit_after={"donate_argnums": 0})


@boundary("vllm-project/vllm#19620", kernel="attend", pages=64)
def narrow_heads(draw: Draw, pages=2048, rows=16, heads=8, width=64, block=32) -> Boundary:
    """Heads of 64 columns in a cache of pages: by default pages are its lanes."""
    grid, out = (pages // block,), ((block, rows, 128), lambda i: (i, 0, 0))

    def first(cache, out):
        out[...] = jnp.concatenate([cache[:, :, 0, :], cache[:, :, 1, :]], -1)

    def before(cache):
        blocks = ((block, rows, heads, width), lambda i: (i, 0, 0, 0))
        return call("attend", first, [((pages, rows, 128), cache.dtype)], grid, [blocks], [out], cache)

    def after(cache):
        blocks = ((block, rows, heads * width), lambda i: (i, 0, 0))
        body = lambda cache, out: out.__setitem__(..., cache[:, :, :128])  # noqa: E731
        return call("attend", body, [((pages, rows, 128), cache.dtype)], grid, [blocks], [out], cache)

    stored = (draw.array((pages, rows, heads * width)),)
    return Boundary(before, (draw.array((pages, rows, heads, width)),), after, stored)


@boundary("vllm-project/tpu-inference#291", kernel="scores", batch=1, heads=2, tokens=256)
def padded_heads(draw: Draw, batch=4, heads=8, tokens=2048, width=96, rows=256) -> Boundary:
    """Heads of 96 columns are padded to 128 before each call."""
    grid = batch, heads, tokens // rows
    out = ((None, None, rows, 128), lambda b, h, t: (b, h, t, 0))
    shape = [((batch, heads, tokens, 128), bf16)]

    def before(q, k):
        q, k = (jnp.pad(x, [(0, 0)] * (x.ndim - 2) + pads) for x, pads in ((q, [(0, 0), (0, 128 - width)]), (k, [(0, 128 - width), (0, 0)])))
        blocks = [((None, None, rows, 128), lambda b, h, t: (b, h, t, 0)), ((128, 128), lambda *_: (0, 0))]
        return call("scores", product, shape, grid, blocks, [out], q, k)

    def transposed(q, k, out):
        contracted = (((0,), (0,)), ((), ()))
        out[...] = jax.lax.dot_general(q[...], k[...], contracted, preferred_element_type=f32).astype(out.dtype)

    def after(q, k):
        blocks = [((None, None, width, rows), lambda b, h, t: (b, h, 0, t)), ((width, 128), lambda *_: (0, 0))]
        return call("scores", transposed, shape, grid, blocks, [out], q.swapaxes(2, 3), k)

    return Boundary(before, (draw.array((batch, heads, tokens, width), bf16), draw.array((width, 128), bf16)), after)


@boundary("pytorch/xla#6826", kernel="scaled", rows=512)
def column_major(draw: Draw, rows=8192, columns=2048) -> Boundary:
    """An argument is handed over column-major."""

    def program(x):
        block = ((256, columns), lambda i: (i, 0))
        return call("scaled", doubled, [(x.shape, x.dtype)], (rows // 256,), [block], [block], x)

    return Boundary(program, (pinned(draw.array((rows, columns)), 1, 0),))


@boundary("vllm-project/tpu-inference#1882", kernel="attend", pages=64)
def device_put(draw: Draw, pages=2048, rows=16, heads=8, block=32) -> Boundary:
    """A cache is put onto devices head by head, and a kernel takes it page by page."""

    def program(cache):
        blocks = ((block, rows, heads, 128), lambda i: (i, 0, 0, 0))
        out = ((block, rows, 128), lambda i: (i, 0, 0))
        body = lambda cache, out: out.__setitem__(..., cache[:, :, 0, :])  # noqa: E731
        return call("attend", body, [((pages, rows, 128), cache.dtype)], (pages // block,), [blocks], [out], cache)

    return Boundary(program, (pinned(draw.array((pages, rows, heads, 128)), 2, 0, 1, 3),))


@boundary("pytorch/helion#2842", kernel="scale", rows=512)
def column_of_scales(draw: Draw, rows=65536, columns=256) -> Boundary:
    """A scale for each row, as an array of one column."""

    def scaled(x, scale, out):
        out[...] = x[...] * scale[...]

    def scaled_by_row(x, scale, out):
        out[...] = x[...] * scale[...].T

    def program(x, scale, body, block):
        rows_of_x = ((256, columns), lambda i: (i, 0))
        return call("scale", body, [(x.shape, x.dtype)], (rows // 256,), [rows_of_x, block], [rows_of_x], x, scale)

    def before(x, scale):
        return program(x, scale.reshape(rows, 1), scaled, ((256, 1), lambda i: (i, 0)))

    def after(x, scale):
        return program(x, scale.reshape(1, rows), scaled_by_row, ((1, 256), lambda i: (0, i)))

    return Boundary(before, (draw.array((rows, columns)), draw.array((rows,))), after)


@boundary("vllm-project/tpu-inference#159", kernel="update", pages=64, layers=2)
def cache_in_loop(draw: Draw, pages=2048, rows=16, heads=8, width=64, layers=4, block=32) -> Boundary:
    """A cache with heads of 64 columns is a loop's carry, which a kernel updates in place."""

    def program(cache, blocks, body):
        def layer(cache, _):
            aliases = {"input_output_aliases": {0: 0}}
            grid = (pages // block,)
            return call("update", body, [(cache.shape, cache.dtype)], grid, [blocks], [blocks], cache, **aliases), None

        return jax.lax.scan(layer, cache, length=layers)[0]

    def before(cache):
        return program(cache, ((block, rows, heads, width), lambda i: (i, 0, 0, 0)), doubled)

    def after(cache):
        return program(cache, ((block, rows, heads * width), lambda i: (i, 0, 0)), doubled)

    arrays = (pages, rows, heads, width), (pages, rows, heads * width)
    donated = {"donate_argnums": 0}
    return Boundary(before, (draw.array(arrays[0]),), after, (draw.array(arrays[1]),), jit=donated)
