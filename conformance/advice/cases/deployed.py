"""A third set of programs that serve, sample or search, written before anybody saw what is advised for them."""

import functools
import itertools

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import lax

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, shaped


def normalized(x):
    """Rows of mean zero and variance one."""
    mean, spread = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(spread + 1e-5)


@case("v5e")
def transcribed_speech(draw: Draw) -> Case:
    """After whisper-jax's `FlaxWhisperAttention`: caches with time last, a token added by a one-hot row, nothing donated."""
    rows, length, frames, width, heads, depth, vocabulary = 32, 448, 1500, 1280, 20, 64, 51866

    def attended(q, keys, values, seen):
        scores = jnp.einsum("bhd,bhdt->bht", q, keys).astype(jnp.float32) / depth**0.5
        found = jax.nn.softmax(jnp.where(seen, scores, -1e10)).astype(q.dtype)
        return jnp.einsum("bht,bhdt->bhd", found, values).reshape(rows, -1)

    def layer(weights, cache, heard, x, at):
        y = normalized(x)
        q, k, v = (jnp.einsum("bw,whd->bhd", y, weights[name]) for name in "qkv")
        now = jax.nn.one_hot(at, length, dtype=x.dtype)
        keys, values = cache["k"] + k[..., None] * now, cache["v"] + v[..., None] * now
        x = x + attended(q, keys, values, jnp.arange(length) <= at) @ weights["o"]
        q = jnp.einsum("bw,whd->bhd", normalized(x), weights["ask"])
        keys_heard, values_heard = (
            jnp.einsum("btw,whd->bhdt", heard, weights[name]) for name in ("heard_k", "heard_v")
        )
        x = x + attended(q, keys_heard, values_heard, True) @ weights["told"]
        return x + jax.nn.gelu(normalized(x) @ weights["up"]) @ weights["down"], {"k": keys, "v": values}

    def decode(params, caches, heard, token, at):
        x, after = params["embedding"][token] + params["place"][at], []
        for weights, cache in zip(params["layers"], caches, strict=True):
            x, cache = layer(weights, cache, heard, x, at)
            after.append(cache)
        return jnp.argmax(normalized(x) @ params["embedding"].T, -1), after, at + 1

    shapes = dict.fromkeys(("q", "k", "v", "ask", "heard_k", "heard_v"), (width, heads, depth))
    shapes |= {"o": (width, width), "told": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    params = {"layers": [{name: draw.array(shape, jnp.bfloat16) for name, shape in shapes.items()} for _ in range(4)]}
    params |= {
        "embedding": draw.array((vocabulary, width), jnp.bfloat16),
        "place": draw.array((448, width), jnp.bfloat16),
    }
    caches = [{name: draw.array((rows, heads, depth, length), jnp.bfloat16) for name in "kv"} for _ in range(4)]
    arguments = params, caches, draw.array((rows, frames, width), jnp.bfloat16)
    arguments = *arguments, draw.array((rows,), jnp.int32), draw.array((), jnp.int32)
    donated = Program(decode, arguments, {"donate_argnums": (1,)})
    return Case(Program(decode, arguments), [Change("donated", "donate", "argument", donated)])


class Spatial(nn.Module):
    """Attention of a picture's places among each other and to a text, of which one head at a time may be computed."""

    heads: int
    in_parts: bool

    @nn.compact
    def __call__(self, x, text):
        def one(given):
            q, k, v = given
            scores = (q @ k.swapaxes(-1, -2)) / q.shape[-1] ** 0.5
            return jax.nn.softmax(scores) @ v

        def attention(x, seen):
            depth = x.shape[-1] // self.heads
            q, k, v = (nn.Dense(x.shape[-1], use_bias=False, dtype=jnp.bfloat16)(given) for given in (x, seen, seen))
            q, k, v = (
                part.reshape(*part.shape[:2], self.heads, -1).swapaxes(1, 2).reshape(-1, part.shape[1], depth)
                for part in (q, k, v)
            )
            found = lax.map(one, (q, k, v)) if self.in_parts else one((q, k, v))
            found = found.reshape(len(x), self.heads, *found.shape[1:]).swapaxes(1, 2).reshape(x.shape)
            return nn.Dense(x.shape[-1], dtype=jnp.bfloat16)(found)

        rows, size, _, width = x.shape
        y = nn.Dense(width, dtype=jnp.bfloat16)(nn.GroupNorm(32)(x).reshape(rows, size * size, width))
        z = nn.LayerNorm(dtype=jnp.bfloat16)(y)
        y = y + attention(z, z)
        y = y + attention(nn.LayerNorm(dtype=jnp.bfloat16)(y), text)
        wide, gate = jnp.split(nn.Dense(8 * width, dtype=jnp.bfloat16)(nn.LayerNorm(dtype=jnp.bfloat16)(y)), 2, -1)
        y = y + nn.Dense(width, dtype=jnp.bfloat16)(wide * nn.gelu(gate))
        return x + nn.Dense(width, dtype=jnp.bfloat16)(y).reshape(x.shape)


@case("v6e")
def guided_sampling(draw: Draw) -> Case:
    """After Diffusers' `FlaxAttentionBlock`: steps of a U-Net with a text and without, its heads in the batch."""

    class Residual(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x, time):
            y = nn.Conv(self.width, (3, 3), dtype=jnp.bfloat16)(nn.swish(nn.GroupNorm(32)(x)))
            y = y + nn.Dense(self.width, dtype=jnp.bfloat16)(nn.swish(time))[:, None, None]
            y = nn.Conv(self.width, (3, 3), dtype=jnp.bfloat16)(nn.swish(nn.GroupNorm(32)(y)))
            return y + (x if x.shape[-1] == self.width else nn.Conv(self.width, (1, 1), dtype=jnp.bfloat16)(x))

    class Network(nn.Module):
        in_parts: bool = False

        @nn.compact
        def __call__(self, x, time, text):
            angles = time[:, None] * jnp.exp(-jnp.log(1e4) * jnp.arange(160) / 160)
            time = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1).astype(jnp.bfloat16)
            time = nn.Dense(1280, dtype=jnp.bfloat16)(nn.swish(nn.Dense(1280, dtype=jnp.bfloat16)(time)))
            x = nn.Conv(320, (3, 3), dtype=jnp.bfloat16)(x)
            fine = Spatial(8, self.in_parts)(Residual(320)(x, time), text)
            x = nn.Conv(320, (3, 3), 2, dtype=jnp.bfloat16)(fine)
            x = Spatial(8, self.in_parts)(Residual(640)(x, time), text)
            x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
            x = jnp.concatenate([nn.Conv(640, (3, 3), dtype=jnp.bfloat16)(x), fine], -1)
            x = Spatial(8, self.in_parts)(Residual(320)(x, time), text)
            return nn.Conv(4, (3, 3), dtype=jnp.bfloat16)(nn.swish(nn.GroupNorm(32)(x)))

    def sampler(network):
        def sample(params, noise, text, kept, steps):
            def step(x, now):
                share, before, time = now
                both = jnp.concatenate([x, x]).astype(jnp.bfloat16)
                found = network.apply(params, both, jnp.full(len(both), time), text).astype(jnp.float32)
                without, given = jnp.split(found, 2)
                found = without + 7.5 * (given - without)
                clean = (x - jnp.sqrt(1 - share) * found) / jnp.sqrt(share)
                return jnp.sqrt(before) * clean + jnp.sqrt(1 - before) * found, None

            return lax.scan(step, noise, (kept[1:], kept[:-1], steps))[0]

        return sample

    noise, text = draw.array((4, 64, 64, 4)), draw.array((8, 77, 768), jnp.bfloat16)
    example = draw.array((8, 64, 64, 4), jnp.bfloat16), draw.array((8,)), text
    params = jax.eval_shape(Network().init, KEY, *example)
    params = jax.tree.map(lambda leaf: draw.array(leaf.shape, jnp.bfloat16), params)
    arguments = params, noise, text, draw.array((51,)), draw.array((50,))
    in_parts = Program(sampler(Network(True)), arguments)
    return Case(Program(sampler(Network()), arguments), [Change("in_parts", "chunk", "value", in_parts)])


@case("v5e")
def decoded_pictures(draw: Draw) -> Case:
    """After MaxDiffusion's `FlaxAutoencoderKL`: latents to eight pictures of 512 by 512, each normalized in groups."""

    class Residual(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x):
            y = nn.Conv(self.width, (3, 3))(nn.swish(nn.GroupNorm(32)(x)))
            y = nn.Conv(self.width, (3, 3))(nn.swish(nn.GroupNorm(32)(y)))
            return y + (x if x.shape[-1] == self.width else nn.Conv(self.width, (1, 1))(x))

    class Decoder(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Conv(512, (3, 3))(nn.Conv(4, (1, 1))(x / 0.18215))
            y = nn.GroupNorm(32)(x).reshape(len(x), -1, 512)
            q, k, v = (nn.Dense(512)(y) for _ in "qkv")
            found = nn.Dense(512)(jax.nn.softmax(q @ k.swapaxes(1, 2) / 512**0.5) @ v)
            x = Residual(512)(x + found.reshape(x.shape))
            for width in (512, 512, 256):
                x = jnp.repeat(jnp.repeat(Residual(width)(x), 2, 1), 2, 2)
                x = nn.Conv(width, (3, 3))(x)
            x = nn.Conv(3, (3, 3))(nn.swish(nn.GroupNorm(32)(Residual(128)(x))))
            return jnp.clip(x / 2 + 0.5, 0, 1)

    latents = draw.array((8, 64, 64, 4))
    params = shaped(draw, jax.eval_shape(Decoder().init, KEY, latents))

    def decode(params, latents):
        return Decoder().apply(params, latents)

    def by_picture(params, latents):
        return lax.map(lambda latent: decode(params, latent[None])[0], latents)

    change = Change("by_picture", "chunk", "value", Program(by_picture, (params, latents)))
    return Case(Program(decode, (params, latents)), [change])


@case("v4")
def late_interaction(draw: Draw) -> Case:
    """After ColBERT's `decompress_residuals`: words of passages from centroids and from two bits a number."""
    words, passages, length, width = 32, 4096, 220, 128

    def scored(question, centroids, weights, codes, residuals, mask):
        bits = (residuals[..., None] >> jnp.array([6, 4, 2, 0], jnp.uint8)) & 3
        vectors = centroids[codes] + weights[bits.reshape(*codes.shape, width)]
        vectors = vectors / jnp.linalg.norm(vectors, axis=-1, keepdims=True)
        found = jnp.where(mask[..., None], vectors @ question.T, -9999)
        return found.max(1).sum(-1)

    def ranked(*given):
        return lax.top_k(scored(*given), 1000)

    def in_parts(question, centroids, weights, *kept):
        parts = jax.tree.map(lambda leaf: leaf.reshape(32, -1, *leaf.shape[1:]), kept)
        return lax.top_k(lax.map(lambda part: scored(question, centroids, weights, *part), parts).reshape(-1), 1000)

    arguments = draw.array((words, width)), draw.array((65536, width)), draw.array((4,))
    arguments = *arguments, draw.array((passages, length), jnp.int32), draw.array((passages, length, 32), jnp.uint8)
    arguments = *arguments, draw.array((passages, length), jnp.bool_)
    return Case(Program(ranked, arguments), [Change("in_parts", "chunk", "value", Program(in_parts, arguments))])


@case("v7x")
def table_cells(draw: Draw) -> Case:
    """After TabPFN's second version: cells of a table attend along its rows, then down its columns."""
    train, test, columns, width, heads = 2048, 512, 16, 192, 6

    def attention(weights, x, seen):
        q, k, v = (
            (given @ weights[name]).reshape(*given.shape[:2], heads, -1)
            for name, given in zip("qkv", (x, seen, seen), strict=True)
        )
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width // heads) ** 0.5
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape) @ weights["o"]

    def looked_up(weights, columns):
        return attention(weights, columns, columns[:, :train])

    def predictor(each):
        def predict(params, cells):
            for weights in params["layers"]:
                cells = normalized(cells + attention(weights["row"], cells, cells))
                down = cells.swapaxes(0, 1)
                down = down + each(functools.partial(looked_up, weights["column"]), down)
                cells = normalized(down.swapaxes(0, 1))
                cells = normalized(cells + jax.nn.gelu(cells @ weights["up"]) @ weights["down"])
            return jax.nn.softmax(jax.nn.gelu(cells[train:, -1] @ params["wide"]) @ params["head"])

        return predict

    def by_column(attend, columns):
        return lax.map(lambda column: attend(column[None])[0], columns)

    shapes = dict.fromkeys("qkvo", (width, width))
    layers = [
        {way: {name: draw.array(shape) for name, shape in shapes.items()} for way in ("row", "column")}
        | {"up": draw.array((width, 4 * width)), "down": draw.array((4 * width, width))}
        for _ in range(3)
    ]
    params = {"layers": layers, "wide": draw.array((width, 4 * width)), "head": draw.array((4 * width, 10))}
    arguments = params, draw.array((train + test, columns, width))
    program = Program(predictor(lambda attend, columns: attend(columns)), arguments)
    return Case(program, [Change("by_column", "chunk", "value", Program(predictor(by_column), arguments))])


@case("v5p")
def encoded_views(draw: Draw) -> Case:
    """After Segment Anything's `ImageEncoderViT`: 4096 patches in windows, then all together, biased by rows and columns."""
    rows, size, window, width, heads = 4, 64, 14, 768, 12
    depth = width // heads

    def positioned(table, size):
        return table[jnp.arange(size)[:, None] - jnp.arange(size) + size - 1]

    def attended(weights, x):
        length, size = x.shape[0], x.shape[1]
        q, k, v = jnp.einsum("nhwc,cpgd->pnghwd", x, weights["qkv"]).reshape(3, length * heads, size, size, depth)
        scores = jnp.einsum("nijd,nkld->nijkl", q, k) / depth**0.5
        tall = jnp.einsum("nijd,ikd->nijk", q, positioned(weights["tall"], size))
        wide = jnp.einsum("nijd,jld->nijl", q, positioned(weights["wide"], size))
        scores = (scores + tall[..., None] + wide[..., None, :]).reshape(length * heads, size, size, -1)
        found = jnp.einsum("nijp,npd->nijd", jax.nn.softmax(scores), v.reshape(length * heads, -1, depth))
        return (
            found.reshape(length, heads, size, size, depth).transpose(0, 2, 3, 1, 4).reshape(x.shape) @ weights["out"]
        )

    def windowed(weights, x):
        more = -size % window
        x = jnp.pad(x, ((0, 0), (0, more), (0, more), (0, 0)))
        count = x.shape[1] // window
        x = x.reshape(rows, count, window, count, window, width).swapaxes(2, 3).reshape(-1, window, window, width)
        x = attended(weights, x).reshape(rows, count, count, window, window, width).swapaxes(2, 3)
        return x.reshape(rows, count * window, count * window, width)[:, :size, :size]

    def encoder(each):
        def encode(params, pictures):
            x = lax.conv_general_dilated(
                pictures, params["patch"], (16, 16), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = x + params["place"]
            for weights, is_whole in zip(params["layers"], (False, False, True), strict=True):
                y = normalized(x)
                x = x + (each(weights, y) if is_whole else windowed(weights, y))
                x = x + jax.nn.gelu(normalized(x) @ weights["up"]) @ weights["down"]
            return normalized(x @ params["neck"])

        return encode

    def by_picture(weights, x):
        return lax.map(lambda picture: attended(weights, picture[None])[0], x)

    def by_query(weights, x):
        length, size = x.shape[0], x.shape[1]
        q, k, v = jnp.einsum("nhwc,cpgd->pnghwd", x, weights["qkv"]).reshape(3, length * heads, size, size, depth)
        tall, wide = positioned(weights["tall"], size), positioned(weights["wide"], size)

        def of_row(now):
            q, tall = now
            scores = jnp.einsum("njd,nkld->njkl", q, k) / depth**0.5
            scores += jnp.einsum("njd,kd->njk", q, tall)[..., None] + jnp.einsum("njd,jld->njl", q, wide)[..., None, :]
            scores = jax.nn.softmax(scores.reshape(length * heads, size, -1))
            return jnp.einsum("njp,npd->njd", scores, v.reshape(length * heads, -1, depth))

        found = lax.map(of_row, (q.swapaxes(0, 1), tall), batch_size=4).swapaxes(0, 1)
        return (
            found.reshape(length, heads, size, size, depth).transpose(0, 2, 3, 1, 4).reshape(x.shape) @ weights["out"]
        )

    def layer(size):
        shapes = {"qkv": (width, 3, heads, depth), "out": (width, width), "up": (width, 4 * width)}
        shapes |= {"down": (4 * width, width), "tall": (2 * size - 1, depth), "wide": (2 * size - 1, depth)}
        return {name: draw.array(shape, jnp.bfloat16) for name, shape in shapes.items()}

    params = {"layers": [layer(window), layer(window), layer(size)], "neck": draw.array((width, 256), jnp.bfloat16)}
    params |= {
        "patch": draw.array((16, 16, 3, width), jnp.bfloat16),
        "place": draw.array((1, 64, 64, width), jnp.bfloat16),
    }
    arguments = params, draw.array((rows, 1024, 1024, 3), jnp.bfloat16)
    changes = [
        Change("by_picture", "chunk", "value", Program(encoder(by_picture), arguments)),
        Change("by_query", "chunk", "value", Program(encoder(by_query), arguments)),
    ]
    return Case(Program(encoder(attended), arguments), changes)


@case("v6e")
def transported_points(draw: Draw) -> Case:
    """After OTT's `Sinkhorn` on a `PointCloud` without `batch_size`: costs of all pairs stay while the potentials settle."""
    left, right, width, blur, part = 16384, 12288, 64, 0.05, 512

    def costs(x, y):
        return (x**2).sum(-1)[:, None] + (y**2).sum(-1) - 2 * x @ y.T

    def solved(x, y, down, along):
        def step(state):
            count, f, g, _ = state
            g = g + blur * (-jnp.log(right) - down(f, g))
            after = f + blur * (-jnp.log(left) - along(f, g))
            return count + 1, after, g, jnp.abs(after - f).max()

        start = jnp.int32(0), jnp.zeros(left), jnp.zeros(right), jnp.float32(jnp.inf)
        _, f, g, _ = lax.while_loop(lambda state: (state[0] < 2000) & (state[3] > 1e-3), step, start)
        return f, g, f.mean() + g.mean()

    def transport(x, y):
        cost = costs(x, y)

        def shared(f, g):
            return (f[:, None] + g - cost) / blur

        def down(f, g):
            return jax.nn.logsumexp(shared(f, g), 0)

        def along(f, g):
            return jax.nn.logsumexp(shared(f, g), 1)

        return solved(x, y, down, along)

    def online(x, y):
        def summed(x, y, f, g):
            parts = x.reshape(-1, part, width), f.reshape(-1, part)
            each = lax.map(lambda now: jax.nn.logsumexp((now[1][:, None] + g - costs(now[0], y)) / blur, 1), parts)
            return each.reshape(-1)

        return solved(x, y, lambda f, g: summed(y, x, g, f), lambda f, g: summed(x, y, f, g))

    arguments = draw.array((left, width)), draw.array((right, width))
    return Case(Program(transport, arguments), [Change("online", "chunk", "value", Program(online, arguments))])


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
    state = shaped(draw, jax.eval_shape(optimizer.init, mean))
    arguments = (
        mean,
        state,
        draw.array((2,), jnp.uint32),
        draw.array((pictures, 784)),
        draw.array((pictures,), jnp.int32),
    )
    jit = {"donate_argnums": (0, 1)}
    change = Change("in_parts", "chunk", "value", Program(in_parts, arguments, jit))
    return Case(Program(generation, arguments, jit), [change])
