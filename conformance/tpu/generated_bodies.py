"""Bodies of Pallas kernels, drawn by chance: each kind gives a kernel, its inputs and its outputs, for blocks of r × c.

An array is `b` if its rows move over the grid, `c` if its columns do, `h` if its second dimension does, `o` if each step has its
own, and `w` if it stays.
"""

import random

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

GENERATIONS = ("v5e", "v6e", "v7x")
STEPS = 4
bf16, f32, i8, i32 = jnp.bfloat16, jnp.float32, jnp.int8, jnp.int32
R = random.Random(2)
"""The source of random choices."""


def choice(*options):
    """One of them."""
    return R.choice(options)


def softmax(r, c, dt):
    """A softmax of each row."""

    def k(x, o):
        v = x[...].astype(f32)
        m = jnp.max(v, -1, keepdims=True)
        e = jnp.exp(v - m)
        o[...] = (e / jnp.sum(e, -1, keepdims=True)).astype(o.dtype)

    return k, [("b", (r, c), dt)], [("b", (r, c), dt)]


def norm(r, c, dt):
    """Each row over its root mean square."""

    def k(x, w, o):
        v = x[...].astype(f32)
        s = jnp.mean(v * v, -1, keepdims=True)
        o[...] = (v * jax.lax.rsqrt(s + 1e-6) * w[...]).astype(o.dtype)

    return k, [("b", (r, c), dt), ("w", (1, c), f32)], [("b", (r, c), dt)]


def chain(r, c, dt):
    """Elementwise operations on up to four operands; some of what they give is kept to the end."""
    n = R.randint(2, 14)
    ins = R.randint(1, 4)
    ops = [R.choice(["exp", "tanh", "mul", "add", "sel", "sq", "log", "keep"]) for _ in range(n)]

    def k(*refs):
        xs = [x[...].astype(f32) for x in refs[:ins]]
        v = xs[0]
        kept = []
        for q, op in enumerate(ops):
            y = xs[q % ins]
            v = {
                "exp": lambda: jnp.exp(v),
                "tanh": lambda: jnp.tanh(v),
                "mul": lambda: v * y,
                "add": lambda: v + y,
                "sel": lambda: jnp.where(v > y, v, -y),
                "sq": lambda: v * v,
                "log": lambda: jnp.log1p(jnp.abs(v)),
                "keep": lambda: v + 1,
            }[op]()
            if op == "keep":
                kept.append(v)
        for w in kept:
            v = v + w
        refs[ins][...] = v.astype(refs[ins].dtype)

    return k, [("b", (r, c), dt)] * ins, [("b", (r, c), dt)]


def dot(r, c, dt):
    """A product."""
    n = choice(128, 256, 512, 1024, 2048)
    scale = choice(0, 1)
    choice(0, 1)

    def k(x, w, o):
        d = jnp.dot(x[...], w[...], preferred_element_type=i32 if dt == i8 else f32)
        if scale:
            d = d.astype(f32) * 0.5
        o[...] = d.astype(o.dtype)

    return k, [("b", (r, c), dt), ("w", (c, n), dt)], [("b", (r, n), choice(f32, bf16))]


def dot_t(r, c, dt):
    """A product with what is transposed on the right."""
    n = choice(128, 256, 512, 1024, 2048)

    def k(x, w, o):
        o[...] = jax.lax.dot_general(
            x[...], w[...], (((1,), (1,)), ((), ())), preferred_element_type=i32 if dt == i8 else f32
        ).astype(o.dtype)

    return k, [("b", (r, c), dt), ("w", (n, c), dt)], [("b", (r, n), choice(f32, bf16))]


def dot_l(r, c, dt):
    """A product with what is transposed on the left."""
    n = choice(128, 256, 512, 1024)

    def k(x, w, o):
        o[...] = jax.lax.dot_general(x[...], w[...], (((0,), (0,)), ((), ())), preferred_element_type=f32).astype(o.dtype)

    return k, [("b", (c, r), bf16), ("w", (c, n), bf16)], [("b", (r, n), choice(f32, bf16))]


def mlp(r, c, dt):
    """Two products with an activation between."""
    n = choice(256, 512, 1024)

    def k(x, w1, w2, o):
        h = jnp.dot(x[...], w1[...], preferred_element_type=f32)
        h = h * jax.nn.sigmoid(h)
        o[...] = jnp.dot(h.astype(bf16), w2[...], preferred_element_type=f32).astype(o.dtype)

    return k, [("b", (r, c), bf16), ("w", (c, n), bf16), ("w", (n, c), bf16)], [("b", (r, c), bf16)]


def attention(r, c, dt):
    """One block of attention."""
    kv = choice(256, 512, 1024, 2048)
    d = 128
    causal = choice(0, 1)
    choice(f32, bf16)

    def k(q, kk, v, o):
        s = jax.lax.dot_general(q[...], kk[...], (((1,), (1,)), ((), ())), preferred_element_type=f32)
        if causal:
            i = jax.lax.broadcasted_iota(i32, s.shape, 0)
            j = jax.lax.broadcasted_iota(i32, s.shape, 1)
            s = jnp.where(i >= j, s, -1e30)
        m = jnp.max(s, -1, keepdims=True)
        p = jnp.exp(s - m)
        l = jnp.sum(p, -1, keepdims=True)
        o[...] = (jnp.dot(p.astype(bf16), v[...], preferred_element_type=f32) / l).astype(o.dtype)

    return k, [("b", (r, d), bf16), ("w", (kv, d), bf16), ("w", (kv, d), bf16)], [("b", (r, d), bf16)]


def heads(r, c, dt):
    """One block of attention for several heads, unrolled."""
    h = choice(2, 4, 8)
    kv = choice(128, 256, 512)
    d = 128

    def k(q, kk, v, o):
        for n in range(h):
            s = jax.lax.dot_general(q[n], kk[n], (((1,), (1,)), ((), ())), preferred_element_type=f32)
            p = jnp.exp(s - jnp.max(s, -1, keepdims=True))
            l = jnp.sum(p, -1, keepdims=True)
            o[n] = (jnp.dot(p.astype(bf16), v[n], preferred_element_type=f32) / l).astype(o.dtype)

    r = min(r, 512)
    return k, [("h", (h, r, d), bf16), ("w", (h, kv, d), bf16), ("w", (h, kv, d), bf16)], [("h", (h, r, d), bf16)]


def loop(r, c, dt):
    """Products summed in a loop, unrolled or not."""
    n = choice(2, 4, 8)
    un = choice(1, 2, n)
    kv = 128 * choice(1, 2, 4)
    d = 128

    def k(q, kk, o):
        def step(i, carry):
            s = jax.lax.dot_general(q[...], kk[pl.ds(i * kv, kv), :], (((1,), (1,)), ((), ())), preferred_element_type=f32)
            return carry + jnp.dot(jnp.exp(s).astype(bf16), kk[pl.ds(i * kv, kv), :], preferred_element_type=f32)

        o[...] = jax.lax.fori_loop(0, n, step, jnp.zeros(o.shape, f32), unroll=un).astype(o.dtype)

    return k, [("b", (r, d), bf16), ("w", (n * kv, d), bf16)], [("b", (r, d), bf16)]


def topk(r, c, dt):
    """The largest of each row, one after the other."""
    kk = choice(2, 4, 8)
    c = min(c, 1024)

    def k(x, o):
        v = x[...].astype(f32)
        idx = jax.lax.broadcasted_iota(i32, v.shape, 1)
        res = []
        for _ in range(kk):
            m = jnp.max(v, -1, keepdims=True)
            res.append(m)
            v = jnp.where(v == m, -jnp.inf, v)
        o[...] = jnp.concatenate(res + [jnp.zeros((v.shape[0], 128 - kk), f32)], -1)

    return k, [("b", (r, c), dt)], [("b", (r, 128), f32)]


def quant(r, c, dt):
    """A product of what is quantized in the kernel."""
    n = choice(256, 512, 1024)

    def k(x, w, s, o):
        v = x[...].astype(f32)
        a = jnp.max(jnp.abs(v), -1, keepdims=True) / 127
        q = jnp.round(v / a).astype(i8)
        o[...] = (jnp.dot(q, w[...], preferred_element_type=i32).astype(f32) * a * s[...]).astype(o.dtype)

    return k, [("b", (r, c), bf16), ("w", (c, n), i8), ("w", (1, n), f32)], [("b", (r, n), bf16)]


def dequant(r, c, dt):
    """A product with weights that are scaled in the kernel."""
    n = choice(256, 512, 1024)

    def k(x, w, s, o):
        o[...] = jnp.dot(x[...], (w[...].astype(f32) * s[...]).astype(bf16), preferred_element_type=f32).astype(o.dtype)

    return k, [("b", (r, c), bf16), ("w", (c, n), i8), ("w", (1, n), f32)], [("b", (r, n), bf16)]


def turn(r, c, dt):
    """A transpose."""

    def k(x, o):
        o[...] = x[...].T

    return k, [("b", (r, c), dt)], [("c", (c, r), dt)]


def colsum(r, c, dt):
    """Sums of columns."""

    def k(x, o):
        o[...] = jnp.sum(x[...].astype(f32), 0, keepdims=True)

    return k, [("b", (r, c), dt)], [("o", (1, c), f32)]


def acc(r, c, dt):
    """A product that is added to scratch, with an activation."""
    n = choice(256, 512, 1024)

    def k(x, w, o, s):
        s[...] += jnp.dot(x[...], w[...], preferred_element_type=f32)
        o[...] = (s[...] * jax.nn.sigmoid(s[...])).astype(o.dtype)

    return k, [("b", (r, c), bf16), ("w", (c, n), bf16)], [("b", (r, n), bf16)], [(r, n)]


def rope(r, c, dt):
    """Rotated halves of rows."""
    c = 256

    def k(x, cs, o):
        v = x[...].astype(f32)
        a, b = v[:, :128], v[:, 128:]
        cc, ss = cs[:, :128], cs[:, 128:]
        o[...] = jnp.concatenate([a * cc - b * ss, a * ss + b * cc], -1).astype(o.dtype)

    return k, [("b", (r, c), bf16), ("b", (r, c), f32)], [("b", (r, c), bf16)]


def unrolled(count):
    """`count` kernels of attention over blocks of keys, their loops unrolled, for some batches, with sums in scratch
    and one step along keys, or two, between which branches begin and end the sums."""
    draw = random.Random(7).choice
    for _ in range(count):
        steps, batches, parts = draw((4, 8, 10, 16, 20)), draw((1, 2, 4)), draw((1, 2))
        rows, width, tpu = draw((32, 64, 128)), draw((128, 256)), draw(GENERATIONS)

        def kernel(q, keys, values, out, most, total, sums, steps=steps, batches=batches, width=width):
            def each(batch):
                @pl.when(pl.program_id(1) == 0)
                def _():
                    most[batch] = jnp.full(most.shape[1:], -jnp.inf, f32)
                    total[batch] = jnp.zeros(total.shape[1:], f32)
                    sums[batch] = jnp.zeros(sums.shape[1:], f32)

                def step(at, _):
                    here = pl.ds(at * width, width)
                    s = jax.lax.dot_general(q[batch], keys[batch, here], (((1,), (1,)), ((), ())), preferred_element_type=f32)
                    before = most[batch, :, :1]
                    now = jnp.maximum(before, jnp.max(s, -1, keepdims=True))
                    p, scale = jnp.exp(s - now), jnp.exp(before - now)
                    most[batch] = jnp.broadcast_to(now, most.shape[1:])
                    total[batch] = total[batch] * scale + jnp.sum(p, -1, keepdims=True)
                    product = jnp.dot(p.astype(bf16), values[batch, here], preferred_element_type=f32)
                    sums[batch] = sums[batch] * scale + product

                jax.lax.fori_loop(0, steps, step, None, unroll=True)

                @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
                def _():
                    out[batch] = (sums[batch] / total[batch, :, :1]).astype(out.dtype)

            for batch in range(batches):
                each(batch)

        by_row = pl.BlockSpec((batches, rows, 128), lambda i, j: (0, i, 0))
        by_key = pl.BlockSpec((batches, steps * width, 128), lambda i, j: (0, j, 0))
        queries = jax.ShapeDtypeStruct((batches, rows * STEPS, 128), bf16)
        keys = jax.ShapeDtypeStruct((batches, steps * width * parts, 128), bf16)
        call = pl.pallas_call(
            kernel,
            grid=(STEPS, parts),
            in_specs=[by_row, by_key, by_key],
            out_specs=by_row,
            out_shape=queries,
            scratch_shapes=[pltpu.VMEM((batches, rows, 128), f32)] * 3,
            name="unrolled",
        )
        yield f"unrolled {batches}x{rows}x{steps}x{width} of {parts}", tpu, call, [queries, keys, keys]


KINDS = (softmax, norm, chain, dot, dot_t, dot_l, mlp, attention, heads, loop, topk, quant, dequant, turn, colsum, acc, rope)


def spec(role, block):
    """Where an array's blocks are, and its shape."""
    match role:
        case "b":
            return pl.BlockSpec(block, lambda i: (i, 0)), (block[0] * STEPS, *block[1:])
        case "h":
            return pl.BlockSpec(block, lambda i: (0, i, 0)), (block[0], block[1] * STEPS, block[2])
        case "c":
            return pl.BlockSpec(block, lambda i: (0, i)), (block[0], block[1] * STEPS)
        case "o":
            return pl.BlockSpec((None, *block), lambda i: (i, 0, 0)), (STEPS, *block)
    return pl.BlockSpec(block, lambda i: (0,) * len(block)), block


def drawn(count):
    """`count` kernels: a name, a generation, the function and its arguments."""
    while count:
        kind = choice(*KINDS)
        rows, columns = choice(64, 128, 256, 512, 1024), choice(128, 256, 512, 1024, 2048, 4096)
        element_type = choice(bf16, f32)
        if kind in (dot, dot_t) and R.random() < 0.25:
            element_type = i8
        tpu = choice(*GENERATIONS)
        if rows * columns > 1 << 21:
            continue
        kernel, inputs, (output,), *scratch = kind(rows, columns, element_type)
        specs = [spec(role, block) for role, block, _ in inputs]
        out_spec, out_shape = spec(*output[:2])
        call = pl.pallas_call(
            kernel,
            grid=(STEPS,),
            in_specs=[each for each, _ in specs],
            out_specs=out_spec,
            out_shape=jax.ShapeDtypeStruct(out_shape, output[2]),
            scratch_shapes=[pltpu.VMEM(shape, f32) for shape in (scratch[0] if scratch else [])],
            name=kind.__name__,
        )
        arguments = [jax.ShapeDtypeStruct(shape, each[2]) for (_, shape), each in zip(specs, inputs, strict=True)]
        yield f"{kind.__name__} {rows}x{columns} {jnp.dtype(element_type).name}", tpu, call, arguments
        count -= 1
