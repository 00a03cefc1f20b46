"""A fourth set of programs after public code, written before any advice on it was seen."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from .case import Case, Draw, Program, case, compared
from .libraries import KEY, Block, normalized, recomputed, trained


@case("v4")
def patched_channels(draw: Draw) -> Case:
    """After PatchTST's `TSTEncoder`: 321 channels, a sequence each, scores handed on, normalized over the batch."""
    rows, channels, length, ahead, width, heads = 8, 321, 336, 96, 128, 16
    count, patches = rows * channels, (length - 16) // 8 + 2

    class Layer(nn.Module):
        in_parts: bool = False

        @nn.compact
        def __call__(self, x, before):
            q, k, v = (nn.Dense(width)(x).reshape(*x.shape[:2], heads, -1) for _ in "qkv")

            def attended(q, k, v, before):
                scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (width // heads) ** -0.5 + before
                return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v), scores

            if self.in_parts:
                parts = jax.tree.map(lambda leaf: leaf.reshape(channels, rows, *leaf.shape[1:]), (q, k, v, before))
                found = lax.map(jax.checkpoint(lambda part: attended(*part)), parts)
                found, scores = jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), found)
            else:
                found, scores = attended(q, k, v, before)
            x = nn.BatchNorm(False)(x + nn.Dense(width)(found.reshape(x.shape)))
            y = nn.Dense(width)(nn.gelu(nn.Dense(2 * width)(x)))
            return nn.BatchNorm(False)(x + y), scores

    class Network(nn.Module):
        layer: type = Layer

        @nn.compact
        def __call__(self, x):
            mean, spread = x.mean(1, keepdims=True), jnp.sqrt(x.var(1, keepdims=True) + 1e-5)
            scale = self.param("scale", nn.initializers.ones, (channels,))
            shift = self.param("shift", nn.initializers.zeros, (channels,))
            x = ((x - mean) / spread * scale + shift).swapaxes(1, 2)
            x = jnp.concatenate([x, jnp.repeat(x[..., -1:], 8, -1)], -1)
            x = x[..., jnp.arange(patches)[:, None] * 8 + jnp.arange(16)].reshape(count, patches, 16)
            x = nn.Dense(width)(x) + self.param("place", nn.initializers.uniform(), (patches, width))
            scores = jnp.zeros((count, heads, patches, patches))
            for number in range(2):
                x, scores = self.layer(name=f"layer_{number}")(x, scores)
            x = nn.Dense(ahead)(x.reshape(rows, channels, -1)).swapaxes(1, 2)
            return (x - shift) / (scale + 1e-10) * spread + mean

    def loss(network, params, x, y):
        found, _ = network.apply(params, x, mutable=["batch_stats"])
        return ((found - y) ** 2).mean()

    batch = draw.array((rows, length, channels)), draw.array((rows, ahead, channels))
    params = {"params": jax.eval_shape(Network().init, KEY, batch[0])["params"]}
    remat = functools.partial(loss, Network(nn.remat(Layer)))
    in_parts = functools.partial(loss, Network(functools.partial(Layer, True)))
    changes = [("remat", "checkpoint", remat), ("in_parts", "chunk", in_parts)]
    return trained(draw, functools.partial(loss, Network()), params, batch, changes, optax.adam(1e-4))


@case("v5p")
def distilled_crops(draw: Draw) -> Case:
    """After DINO's `DINOLoss`: ten crops of each picture against two of a teacher, over 65536 prototypes."""
    rows, width, prototypes, crops = 64, 384, 65536, 8

    class Network(nn.Module):
        layer: type = Block

        @nn.compact
        def __call__(self, groups):
            found = []
            patch = nn.Conv(width, (16, 16), (16, 16), dtype=jnp.bfloat16)
            layers = [self.layer(6, name=f"layer_{number}") for number in range(3)]
            norm = nn.LayerNorm(dtype=jnp.bfloat16)
            place = self.param("place", nn.initializers.normal(), (14, 14, width))
            for pictures in groups:
                x = patch(pictures)
                at = jax.image.resize(place, x.shape[1:], "bicubic") if x.shape[1] != 14 else place
                x = (x + at.astype(x.dtype)).reshape(len(x), -1, width)
                for layer in layers:
                    x = layer(x)
                found.append(norm(x).mean(1))
            x = jnp.concatenate(found).astype(jnp.float32)
            for wide in (2048, 2048):
                x = nn.gelu(nn.Dense(wide)(x))
            x = nn.Dense(256)(x)
            return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def scored(head, taught, center, said, told):
        """Of vectors with crops first: the summed loss and the summed logits of the teacher."""
        student = said @ (head / jnp.linalg.norm(head, axis=0)) / 0.1
        teacher = told @ (taught / jnp.linalg.norm(taught, axis=0))
        aims = lax.stop_gradient(jax.nn.softmax((teacher - center) / 0.04))
        total = 0.0
        for number, aim in enumerate(aims):
            for other, logits in enumerate(student):
                if other != number:
                    total += (-aim * jax.nn.log_softmax(logits)).sum(-1).sum()
        return total / (2 * (len(student) - 1)), teacher.sum((0, 1))

    def by_picture(compare, said, told):
        found = lax.map(jax.checkpoint(lambda row: compare(row[0][:, None], row[1][:, None])), (said, told))
        return jax.tree.map(lambda leaf: leaf.sum(0), found)

    def step_of(network, each):
        optimizer = optax.adamw(5e-4)

        def step(params, teacher, center, opt, large, small):
            told = Network().apply(teacher["network"], [large]).reshape(2, rows, -1)

            def loss(params):
                said = network.apply(params["network"], [large, small]).reshape(2 + crops, rows, -1)
                compare = functools.partial(scored, params["head"], teacher["head"], center)
                total, seen = each(compare, said, told)
                return total / rows, seen

            (value, seen), gradient = jax.value_and_grad(loss, has_aux=True)(params)
            update, opt = optimizer.update(gradient, opt, params)
            params = optax.apply_updates(params, update)
            teacher = jax.tree.map(lambda old, new: 0.996 * old + 0.004 * new, teacher, params)
            return params, teacher, 0.9 * center + 0.1 * seen / (2 * rows), opt, value

        return step

    def at_once(compare, said, told):
        return compare(said, told)

    def in_rows(compare, said, told):
        return by_picture(compare, said.swapaxes(0, 1), told.swapaxes(0, 1))

    large, small = draw.array((2 * rows, 224, 224, 3)), draw.array((crops * rows, 96, 96, 3))
    params = {"network": jax.eval_shape(Network().init, KEY, [large]), "head": draw.array((256, prototypes))}
    state = jax.eval_shape(optax.adamw(5e-4).init, params)
    arguments = draw.like(params), draw.like(params), draw.array((prototypes,)), draw.like(state), large, small
    jit = {"donate_argnums": (0, 1, 2, 3)}
    return compared(
        Program(step_of(Network(), at_once), arguments, jit),
        ("remat", "checkpoint", step_of(Network(nn.remat(Block)), at_once)),
        ("chunked", "chunk value", step_of(Network(), in_rows)),
    )


@case("v6e")
def heard_waves(draw: Draw) -> Case:
    """After fairseq's `Wav2Vec2Model`: seven convolutions of 512 channels on raw sound, and a hundred wrong answers a frame."""
    rows, samples, frames, width, wrong = 8, 160000, 499, 768, 100

    class Listener(nn.Module):
        kernel: int
        stride: int
        is_first: bool

        @nn.compact
        def __call__(self, x):
            x = nn.Conv(512, (self.kernel,), self.stride, "VALID", use_bias=False, dtype=jnp.bfloat16)(x)
            return nn.gelu(nn.GroupNorm(512, dtype=jnp.bfloat16)(x) if self.is_first else x)

    class Network(nn.Module):
        listener: type = Listener

        @nn.compact
        def __call__(self, sound, is_hidden):
            x = sound[..., None].astype(jnp.bfloat16)
            for number, (kernel, stride) in enumerate([(10, 5), *[(3, 2)] * 4, *[(2, 2)] * 2]):
                x = self.listener(kernel, stride, number == 0, name=f"listener_{number}")(x)
            x = nn.LayerNorm(dtype=jnp.bfloat16)(x)
            logits = nn.Dense(640)(x.astype(jnp.float32)).reshape(*x.shape[:2], 2, 320)
            soft = jax.nn.softmax(logits)
            hard = jax.nn.one_hot(logits.argmax(-1), 320)
            book = self.param("book", nn.initializers.uniform(), (2, 320, 128))
            codes = jnp.einsum("btgv,gvd->btgd", hard + soft - lax.stop_gradient(soft), book)
            codes = nn.Dense(256)(codes.reshape(*x.shape[:2], 256))
            mask = self.param("mask", nn.initializers.uniform(), (width,)).astype(jnp.bfloat16)
            x = jnp.where(is_hidden[..., None], mask, nn.Dense(width, dtype=jnp.bfloat16)(x))
            x = x + nn.gelu(nn.Conv(width, (128,), feature_group_count=16, dtype=jnp.bfloat16)(x))
            x = Block(12, name="Attended_0")(x)
            return nn.Dense(256)(x.astype(jnp.float32)), codes

    def like(x, y):
        lengths = jnp.linalg.norm(x, axis=-1) * jnp.linalg.norm(y, axis=-1)
        return (x * y).sum(-1) / jnp.maximum(lengths, 1e-8)

    def loss(network, params, sound, is_hidden, others):
        found, codes = network.apply(params, sound, is_hidden)
        negatives = jax.vmap(lambda codes, at: codes[at])(codes, others)
        aims = jnp.concatenate([codes[:, :, None], negatives], 2)
        logits = like(found[:, :, None], aims) / 0.1
        return (-jax.nn.log_softmax(logits)[..., 0] * is_hidden).mean()

    batch = draw.array((rows, samples)), draw.array((rows, frames), jnp.bool_)
    params = jax.eval_shape(Network().init, KEY, *batch)
    batch = *batch, draw.array((rows, frames, wrong), jnp.int32)
    variants = Network(), Network(nn.remat(Listener))
    return recomputed(draw, loss, variants, params, batch, optax.adamw(5e-4), parts=8)


@case("v5e")
def mixed_modes(draw: Draw) -> Case:
    """After FourCastNet's `AFNONet`: weather in patches whose Fourier modes are mixed by blocks of channels."""
    rows, tall, wide, fields, width, blocks = 2, 720, 1440, 20, 768, 8

    class Modes(nn.Module):
        @nn.compact
        def __call__(self, x):
            depth = width // blocks
            hat = jnp.fft.rfft2(x.astype(jnp.float32), axes=(1, 2), norm="ortho")
            hat = hat.reshape(*hat.shape[:3], blocks, depth)
            real, imag = hat.real, hat.imag
            for number, act in enumerate((nn.relu, lambda x: x)):
                weight = self.param(f"weight_{number}", nn.initializers.normal(), (2, blocks, depth, depth))
                bias = self.param(f"bias_{number}", nn.initializers.normal(), (2, blocks, depth))
                product = functools.partial(jnp.einsum, "bhwni,nio->bhwno")
                real, imag = (
                    act(product(real, weight[0]) - product(imag, weight[1]) + bias[0]),
                    act(product(imag, weight[0]) + product(real, weight[1]) + bias[1]),
                )
            real, imag = (jnp.sign(part) * nn.relu(jnp.abs(part) - 0.01) for part in (real, imag))
            hat = lax.complex(real, imag).reshape(*hat.shape[:3], width)
            return jnp.fft.irfft2(hat, x.shape[1:3], (1, 2), "ortho").astype(x.dtype) + x

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x + Modes()(nn.LayerNorm()(x))
            return x + nn.Dense(width)(nn.gelu(nn.Dense(4 * width)(nn.LayerNorm()(x))))

    class Network(nn.Module):
        block: type = Block

        @nn.compact
        def __call__(self, x):
            x = nn.Conv(width, (8, 8), (8, 8))(x)
            x = x + self.param("place", nn.initializers.normal(), x.shape[1:])
            for number in range(2):
                x = self.block(name=f"block_{number}")(x)
            x = nn.Dense(fields * 64, use_bias=False)(x).reshape(*x.shape[:3], 8, 8, fields)
            return x.swapaxes(2, 3).reshape(len(x), tall, wide, fields)

    def loss(network, params, now, after):
        apart = jnp.sqrt(((network.apply(params, now) - after) ** 2).sum((1, 2, 3)))
        return (apart / jnp.sqrt((after**2).sum((1, 2, 3)))).mean()

    batch = draw.array((rows, tall, wide, fields)), draw.array((rows, tall, wide, fields))
    params = jax.eval_shape(Network().init, KEY, batch[0])
    return recomputed(draw, loss, (Network(), Network(nn.remat(Block))), params, batch, parts=rows)


@case("v6e")
def implicit_filters(draw: Draw) -> Case:
    """After safari's `HyenaOperator`: filters as long as the text, which a small network writes and an FFT applies."""
    rows, length, width, order, inner, vocabulary = 4, 32768, 256, 2, 64, 16

    def filters(weights):
        time = jnp.linspace(0, 1, length)[:, None]
        angle = 2 * jnp.pi * jnp.arange(length)[:, None] / length * jnp.linspace(1e-4, 1, 2)
        x = jnp.concatenate([time, jnp.cos(angle), -jnp.sin(angle)], -1)
        for name in ("first", "second", "third"):
            x = jnp.sin(10 * (x @ weights[name]))
        fade = jnp.abs(jnp.linspace(jnp.log(1e-2) / 1.5, jnp.log(1e-2) / 0.3, width))
        return (x @ weights["last"] * jnp.exp(-time * fade)).T

    def convolved(x, kernel, bias):
        hat = jnp.fft.rfft(x.astype(jnp.float32), 2 * length) * jnp.fft.rfft(kernel, 2 * length)
        return (jnp.fft.irfft(hat, 2 * length)[..., :length] + x * bias[:, None]).astype(x.dtype)

    def layer(weights, x):
        y = (normalized(x) @ weights["in"].astype(x.dtype)).swapaxes(1, 2)
        past = jnp.pad(y, ((0, 0), (0, 0), (2, 0)))
        y = sum(past[..., at : at + length] * weights["short"][at].astype(x.dtype)[:, None] for at in range(3))
        first, second, value = jnp.split(y, order + 1, 1)
        value = convolved(value * second, filters(weights), weights["bias"])
        x = x + (value * first).swapaxes(1, 2) @ weights["out"].astype(x.dtype)
        y = jax.nn.gelu(normalized(x) @ weights["up"].astype(x.dtype))
        return x + y @ weights["down"].astype(x.dtype)

    def loss(wrap, params, tokens, targets):
        x = params["embedding"].astype(jnp.bfloat16)[tokens]
        for weights in params["layers"]:
            x = wrap(layer)(weights, x)
        logits = normalized(x).astype(jnp.float32) @ params["embedding"].T
        return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

    shapes = {"in": (width, 3 * width), "short": (3, 3 * width), "bias": (width,), "out": (width, width)}
    shapes |= {"first": (5, inner), "second": (inner, inner), "third": (inner, inner), "last": (inner, width)}
    shapes |= {"up": (width, 4 * width), "down": (4 * width, width)}
    layers = [draw.named(shapes) for _ in range(2)]
    params = {"layers": layers, "embedding": draw.array((vocabulary, width))}
    batch = draw.array((rows, length), jnp.int32), draw.array((rows, length), jnp.int32)
    variants = (lambda layer: layer), jax.checkpoint
    return recomputed(draw, loss, variants, params, batch, optax.adamw(6e-4), parts=rows)


@case("v7x")
def gathered_experts(draw: Draw) -> Case:
    """After gpt-oss's `MLPBlock`: each token of a prompt takes copies of the weights of its four experts."""
    tokens, width, inner, experts, chosen = 16, 2880, 2880, 32, 4

    def mixed(weights, x):
        y = normalized(x) * weights["norm"]
        logits, which = lax.top_k(y @ weights["router"] + weights["router_bias"], chosen)
        share = jax.nn.softmax(logits.astype(jnp.float32)).astype(x.dtype)
        y = jnp.einsum("beck,bk->bec", weights["up"][which], y) + weights["up_bias"][which]
        gate, wide = jnp.minimum(y[..., ::2], 7), jnp.clip(y[..., 1::2], -7, 7)
        y = gate * jax.nn.sigmoid(1.702 * gate) * (wide + 1)
        y = jnp.einsum("beck,bek->bec", weights["down"][which], y) + weights["down_bias"][which]
        return x + jnp.einsum("bec,be->bc", y, share)

    def by_token(weights, x):
        return lax.map(lambda row: mixed(weights, row[None])[0], x)

    shapes = {
        "norm": (width,),
        "router": (width, experts),
        "router_bias": (experts,),
        "up": (experts, 2 * inner, width),
    }
    shapes |= {"up_bias": (experts, 2 * inner), "down": (experts, width, inner), "down_bias": (experts, width)}
    weights = draw.named(shapes, jnp.bfloat16)
    arguments = weights, draw.array((tokens, width), jnp.bfloat16)
    return compared(Program(mixed, arguments), ("by_token", "chunk", by_token))


@case("v4")
def colliding_fluids(draw: Draw) -> Case:
    """After XLB's `IncompressibleNavierStokesStepper`: 19 populations a cell collide, bounce back and stream by rolls."""
    size = 224
    ways = np.array(
        [(i, j, k) for i in (0, 1, -1) for j in (0, 1, -1) for k in (0, 1, -1) if abs(i) + abs(j) + abs(k) < 3]
    )
    weights = np.array([(1 / 3, 1 / 18, 1 / 36)[abs(way).sum()] for way in ways], np.float32)
    opposite = np.array([next(n for n, other in enumerate(ways) if (other == -way).all()) for way in ways])

    def collided(populations, is_wall, omega):
        density = populations.sum(0)
        speed = jnp.tensordot(jnp.asarray(ways.T, jnp.float32), populations, 1) / density
        along = jnp.tensordot(jnp.asarray(ways, jnp.float32), speed, 1)
        square = 1.5 * (speed**2).sum(0)
        settled = density * weights[:, None, None, None] * (1 + along * (3 + 4.5 * along) - square)
        after = populations - omega * (populations - settled)
        return jnp.where(is_wall, populations[opposite], after)

    def step_of(collide):
        def step(populations, is_wall, omega):
            after = collide(populations, is_wall, omega)
            return jnp.stack([jnp.roll(after[number], way, (0, 1, 2)) for number, way in enumerate(ways)])

        return step

    def in_slabs(populations, is_wall, omega):
        def slab(number, after):
            cut = lax.dynamic_slice_in_dim(populations, number * 16, 16, 1)
            wall = lax.dynamic_slice_in_dim(is_wall, number * 16, 16)
            return lax.dynamic_update_slice_in_dim(after, collided(cut, wall, omega), number * 16, 1)

        return lax.fori_loop(0, size // 16, slab, jnp.zeros_like(populations))

    arguments = draw.array((19, size, size, size)), draw.array((size, size, size), jnp.bool_), draw.array(())
    return compared(
        Program(step_of(collided), arguments),
        ("donated", "donate argument", step_of(collided), arguments, {"donate_argnums": (0,)}),
        ("in_slabs", "chunk", step_of(in_slabs)),
    )


@case("v5p")
def repeated_layers(draw: Draw) -> Case:
    """After Praxis's `StackedTransformerRepeated`: tokens in a loop, layers in a loop in it, which stacks their caches anew."""
    rows, length, count, width, heads, depth, fresh = 64, 2048, 6, 1024, 16, 128, 8

    def attended(weights, keys, values, x, at):
        """With one key and value for all heads, and scores that fall with the distance."""
        y = normalized(x)
        q = jnp.einsum("bw,whd->bhd", y, weights["q"])
        keys, values = (
            lax.dynamic_update_slice(old, (y @ weights[name])[:, None], (0, at, 0))
            for name, old in (("k", keys), ("v", values))
        )
        apart = at - jnp.arange(length)
        slope = 2.0 ** (-8 * (1 + jnp.arange(heads)) / heads)
        scores = jnp.einsum("bhd,btd->bht", q, keys).astype(jnp.float32) / depth**0.5 - slope[:, None] * apart
        found = jax.nn.softmax(jnp.where(apart >= 0, scores, -1e30)).astype(x.dtype)
        x = x + jnp.einsum("bht,btd->bhd", found, values).reshape(rows, -1) @ weights["o"]
        return x + jax.nn.gelu(normalized(x) @ weights["up"]) @ weights["down"], keys, values

    def stacked(params, caches, x, at):
        def layer(x, given):
            x, *cache = attended(*given, x, at)
            return x, cache

        return lax.scan(layer, x, (params["layers"], *caches))

    def carried(params, caches, x, at):
        def layer(carry, given):
            x, *caches = carry
            number, weights = given
            x, *cache = attended(weights, *[whole[number] for whole in caches], x, at)
            return (x, *[whole.at[number].set(part) for whole, part in zip(caches, cache, strict=True)]), None

        (x, *caches), _ = lax.scan(layer, (x, *caches), (jnp.arange(count), params["layers"]))
        return x, caches

    def generator(step_of):
        def generate(params, caches, token, at):
            def step(state, _):
                caches, token, at = state
                x, caches = step_of(params, caches, params["embedding"][token], at)
                token = jnp.argmax(normalized(x) @ params["embedding"].T, -1)
                return (caches, token, at + 1), token

            (caches, _, _), found = lax.scan(step, (caches, token, at), None, fresh)
            return caches, found.T

        return generate

    shapes = {"q": (count, width, heads, depth), "k": (count, width, depth), "v": (count, width, depth)}
    shapes |= {"o": (count, heads * depth, width), "up": (count, width, 4 * width), "down": (count, 4 * width, width)}
    params = {"layers": draw.named(shapes, jnp.bfloat16)}
    params["embedding"] = draw.array((32000, width), jnp.bfloat16)
    caches = [draw.array((count, rows, length, depth), jnp.bfloat16) for _ in "kv"]
    arguments = params, caches, draw.array((rows,), jnp.int32), draw.array((), jnp.int32)
    jit = {"donate_argnums": (1,)}
    return compared(Program(generator(stacked), arguments, jit), ("carried", "carry loop", generator(carried)))
