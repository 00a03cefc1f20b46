"""A second set of programs after public code, written after the rules of 23 November, each with its source named."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Draw, Program, case, compared, convolved
from .libraries import KEY, accumulated, normalized, recomputed, trained
from .research import Encoder


@case("v6e")
def masked_patches(draw: Draw) -> Case:
    """After M3AE's `mae_main`: a quarter of the patches is encoded, and a narrow decoder predicts all pixels."""

    class Masked(nn.Module):
        layer: type = Encoder

        @nn.compact
        def __call__(self, patches, noise):
            order = jnp.argsort(noise, -1)
            back, kept = jnp.argsort(order, -1), order[:, :49]
            x = nn.Dense(384)(patches) + self.param("position", nn.initializers.normal(), (1, 196, 384))
            x = jnp.take_along_axis(x, kept[..., None], 1)
            for number in range(3):
                x = self.layer(name=f"encoder_{number}")(x)
            x = nn.Dense(192)(nn.LayerNorm()(x))
            empty = jnp.broadcast_to(self.param("mask", nn.initializers.normal(), (192,)), (len(x), 147, 192))
            x = jnp.take_along_axis(jnp.concatenate([x, empty], 1), back[..., None], 1)
            x = x + self.param("place", nn.initializers.normal(), (1, 196, 192))
            for number in range(2):
                x = self.layer(3, name=f"decoder_{number}")(x)
            return nn.Dense(768)(nn.LayerNorm()(x)), (back >= 49).astype(jnp.float32)

    def loss(model, params, patches, noise):
        found, hidden = model.apply(params, patches, noise)
        mean, spread = patches.mean(-1, keepdims=True), patches.var(-1, keepdims=True)
        lost = jnp.mean((found - (patches - mean) / jnp.sqrt(spread + 1e-6)) ** 2, -1)
        return jnp.sum(lost * hidden) / jnp.sum(hidden)

    batch = draw.array((256, 196, 768)), draw.array((256, 196))
    params = jax.eval_shape(Masked().init, KEY, *batch)
    return recomputed(draw, loss, (Masked(), Masked(nn.remat(Encoder))), params, batch)


@case("v5p")
def click_rate(draw: Draw) -> Case:
    """After AlgoPerf's `criteo1tb` DLRM: 26 rows of one table a sample, and the products of all pairs of them."""

    class Ranker(nn.Module):
        @nn.compact
        def __call__(self, dense, ids):
            for width in (512, 256, 128):
                dense = nn.relu(nn.Dense(width)(dense))
            table = self.param("table", nn.initializers.uniform(), (262144, 128))
            rows = table[ids.reshape(-1) % 262144].reshape(len(dense), 26, 128)
            features = jnp.concatenate([dense[:, None], rows], 1)
            pairs = jnp.matmul(features, features.transpose(0, 2, 1))
            above = jnp.triu_indices(27)
            x = jnp.concatenate([dense, pairs[:, above[0], above[1]]], -1)
            for width in (1024, 1024, 512, 256):
                x = nn.relu(nn.Dense(width)(x))
            return nn.Dense(1)(x)[:, 0]

    model = Ranker()
    dense, ids, clicks = draw.array((65536, 13)), draw.array((65536, 26), jnp.int32), draw.array((65536,))

    def loss(params, dense, ids, clicks):
        return optax.sigmoid_binary_cross_entropy(model.apply(params, dense, ids), clicks).mean()

    params = jax.eval_shape(model.init, KEY, dense, ids)
    changes = [("accumulated", "chunk", accumulated(loss, 8))]
    return trained(draw, loss, params, (dense, ids, clicks), changes, optax.adagrad(1e-2))


class Styled(nn.Module):
    """A convolution whose channels a style scales, and each sample's filters normalized."""

    width: int

    @nn.compact
    def __call__(self, x, style):
        channels = x.shape[-1]
        weight = self.param("weight", nn.initializers.normal(), (3, 3, channels, self.width))
        scale = nn.Dense(channels, bias_init=nn.initializers.ones)(style)
        x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2) * scale[:, None, None]
        x = convolved(x, weight)
        norm = lax.rsqrt(jnp.einsum("hwio,bi->bo", weight**2, scale**2) + 1e-8)
        return nn.leaky_relu(x * norm[:, None, None] + self.param("bias", nn.initializers.zeros, (self.width,)), 0.2)


@case("v6e")
def styled_generator(draw: Draw) -> Case:
    """After flaxmodels' StyleGAN2: the generator's step, judged by a critic that sees the spread in groups of the batch."""

    class Generator(nn.Module):
        layer: type = Styled

        @nn.compact
        def __call__(self, latent):
            style = latent
            for _ in range(4):
                style = nn.leaky_relu(nn.Dense(256)(style), 0.2)
            x = jnp.broadcast_to(self.param("start", nn.initializers.normal(), (4, 4, 256)), (len(latent), 4, 4, 256))
            for number, width in enumerate((256, 128, 64, 64)):
                x = self.layer(width, name=f"styled_{number}")(x, style)
            return nn.Conv(3, (1, 1))(x)

    class Critic(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.leaky_relu(nn.Conv(64, (1, 1))(x), 0.2)
            for width in (64, 128, 256):
                x = nn.leaky_relu(nn.Conv(width, (3, 3), 2)(x), 0.2)
            groups = x.reshape(4, -1, *x.shape[1:])
            spread = jnp.sqrt(groups.var(0) + 1e-8).mean((1, 2, 3))
            beside = jnp.broadcast_to(jnp.tile(spread, 4)[:, None, None, None], (*x.shape[:3], 1))
            x = nn.leaky_relu(nn.Conv(256, (3, 3))(jnp.concatenate([x, beside], -1)), 0.2)
            return nn.Dense(1)(nn.leaky_relu(nn.Dense(256)(x.reshape(len(x), -1)), 0.2))[:, 0]

    optimizer = optax.adam(2e-3, 0.0, 0.99)

    def step_of(model):
        def generator_step(params, opt, critic, latent):
            def loss(params):
                return nn.softplus(-Critic().apply(critic, model.apply(params, latent))).mean()

            value, gradient = jax.value_and_grad(loss)(params)
            change, opt = optimizer.update(gradient, opt, params)
            return optax.apply_updates(params, change), opt, value

        return generator_step

    latent = draw.array((256, 256))
    params = jax.eval_shape(Generator().init, KEY, latent)
    critic = jax.eval_shape(Critic().init, KEY, draw.array((256, 64, 64, 3)))
    state = jax.eval_shape(optimizer.init, params)
    arguments = *(draw.like(tree) for tree in (params, state, critic)), latent
    jit = {"donate_argnums": (0, 1)}
    return compared(
        Program(step_of(Generator()), arguments, jit), ("remat", "checkpoint", step_of(Generator(nn.remat(Styled))))
    )


@case("v4")
def molecule_forces(draw: Draw) -> Case:
    """After SchNet as JAX MD has it: the loss of forces, themselves a gradient through messages between atoms."""
    atoms, edges, width = 16384, 131072, 128

    def interaction(weights, x, distance, ends):
        spread = jnp.exp(-10 * (distance[:, None] - jnp.linspace(0, 5, 32)) ** 2)
        within = 0.5 * (jnp.cos(jnp.pi * jnp.minimum(distance, 5.0) / 5.0) + 1)
        filters = jax.nn.softplus(spread @ weights["first"]) @ weights["second"] * within[:, None]
        said = (x @ weights["in"])[ends[0]] * filters
        y = jax.ops.segment_sum(said, ends[1], atoms)
        return x + jax.nn.softplus(y @ weights["out"]) @ weights["back"]

    def loss(wrap, params, places, kinds, ends, forces):
        def energy(params, places, kinds, ends):
            apart = places[ends[0]] - places[ends[1]]
            distance = jnp.sqrt((apart**2).sum(-1) + 1e-12)
            x = params["embedding"][kinds]
            for weights in params["layers"]:
                x = wrap(interaction)(weights, x, distance, ends)
            return (jax.nn.softplus(x @ params["read"]) @ params["head"]).sum()

        slope = jax.grad(energy, 1)(params, places, kinds, ends)
        return jnp.mean((slope + forces) ** 2)

    shapes = {"first": (32, width), "second": (width, width), "in": (width, width), "out": (width, width)}
    layers = [draw.named(shapes | {"back": (width, width)}) for _ in range(2)]
    params = {"layers": layers, "embedding": draw.array((100, width)), "read": draw.array((width, 64))}
    params["head"] = draw.array((64, 1))
    batch = draw.array((atoms, 3)), draw.array((atoms,), jnp.int32), draw.array((2, edges), jnp.int32)
    batch = *batch, draw.array((atoms, 3))
    return recomputed(draw, loss, (lambda layer: layer, jax.checkpoint), params, batch)


@case("v6e")
def speech_layers(draw: Draw) -> Case:
    """After AlgoPerf's `librispeech_conformer`: attention and convolutions normalized over the batch, and a CTC loss."""

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x):
            def halved(x):
                return x + 0.5 * nn.Dense(256)(nn.swish(nn.Dense(1024)(nn.LayerNorm()(x))))

            x = halved(x)
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(8)(y, y)
            y = nn.glu(nn.Dense(512)(nn.LayerNorm()(x)))
            y = nn.Conv(256, (31,), feature_group_count=256)(y)
            y = nn.swish(nn.BatchNorm(use_running_average=False)(y))
            return nn.LayerNorm()(halved(x + nn.Dense(256)(y)))

    class Speech(nn.Module):
        layer: type = Layer

        @nn.compact
        def __call__(self, sound):
            x = sound[..., None]
            for _ in range(2):
                x = nn.relu(nn.Conv(64, (3, 3), 2)(x))
            x = nn.Dense(256)(x.reshape(*x.shape[:2], -1))
            for number in range(2):
                x = self.layer(name=f"layer_{number}")(x)
            return nn.Dense(1024)(x)

    def loss(model, params, sound, silent, text, ends):
        logits, _ = model.apply(params, sound, mutable=["batch_stats"])
        return jnp.mean(optax.ctc_loss(logits, silent, text, ends))

    rows = 32
    batch = draw.array((rows, 1600, 80)), draw.array((rows, 400)), draw.array((rows, 64), jnp.int32)
    batch = *batch, draw.array((rows, 64))
    params = {"params": jax.eval_shape(Speech().init, KEY, batch[0])["params"]}
    return recomputed(draw, loss, (Speech(), Speech(nn.remat(Layer))), params, batch)


@case("v5e")
def verified_draft(draw: Draw) -> Case:
    """After speculative decoding on a model of scanned layers, as MaxText scans them: five guesses are read at once."""
    rows, length, width, heads, depth, count, guesses = 16, 1024, 1024, 8, 128, 8, 5

    def attended(weights, keys, values, x, at):
        y = normalized(x)
        q, k, v = (jnp.einsum("btw,whd->bthd", y, weights[name]) for name in "qkv")
        keys, values = (lax.dynamic_update_slice(old, new, (0, at, 0, 0)) for old, new in ((keys, k), (values, v)))
        scores = jnp.einsum("bqhd,bthd->bhqt", q, keys).astype(jnp.float32) / depth**0.5
        seen = jnp.arange(length) <= at + jnp.arange(guesses)[:, None]
        found = jax.nn.softmax(jnp.where(seen, scores, -1e30)).astype(x.dtype)
        x = x + jnp.einsum("bhqt,bthd->bqhd", found, values).reshape(x.shape) @ weights["o"]
        return x + jax.nn.gelu(normalized(x) @ weights["up"]) @ weights["down"], keys, values

    def accepted(params, x, drafted):
        chosen = jnp.argmax(normalized(x) @ params["embedding"].T, -1)
        right = jnp.cumprod(chosen[:, :-1] == drafted[:, 1:], -1).sum(-1)
        return chosen, right.min()

    def verify(params, keys, values, drafted, at):
        def layer(x, given):
            x, keys, values = attended(*given, x, at)
            return x, (keys, values)

        x, (keys, values) = lax.scan(layer, params["embedding"][drafted], (params["layers"], keys, values))
        return *accepted(params, x, drafted), keys, values

    def carried(params, keys, values, drafted, at):
        def layer(carry, given):
            x, keys, values = carry
            number, weights = given
            x, key, value = attended(weights, keys[number], values[number], x, at)
            return (x, keys.at[number].set(key), values.at[number].set(value)), None

        first = params["embedding"][drafted], keys, values
        (x, keys, values), _ = lax.scan(layer, first, (jnp.arange(count), params["layers"]))
        return *accepted(params, x, drafted), keys, values

    shapes = {name: (count, width, heads, depth) for name in "qkv"} | {"o": (count, width, width)}
    shapes |= {"up": (count, width, 4 * width), "down": (count, 4 * width, width)}
    params = {"layers": draw.named(shapes, jnp.bfloat16)}
    params["embedding"] = draw.array((32000, width), jnp.bfloat16)
    cache = draw.array((count, rows, length, heads, depth), jnp.bfloat16)
    arguments = params, cache, cache, draw.array((rows, guesses), jnp.int32), draw.array((), jnp.int32)
    jit = {"donate_argnums": (1, 2)}
    return compared(Program(verify, arguments, jit), ("carried", "carry loop", carried))


@case("v5e")
def beam_step(draw: Draw) -> Case:
    """After T5X's `beam_search` and Flax's caches: beams of 12 heads of 64, gathered anew at each of 32 tokens."""
    rows, beams, length, width, heads, depth, vocabulary = 16, 4, 256, 768, 12, 64, 32128

    def search_of(split, joined):
        def attended(weights, cache, x, at):
            y = normalized(x)
            q, k, v = ((y @ weights[name]).reshape(rows, beams, heads, depth) for name in "qkv")
            keys, values = (
                lax.dynamic_update_slice(old, joined(new)[:, :, None], (0, 0, at, *[0] * (old.ndim - 3)))
                for old, new in zip(cache, (k, v), strict=True)
            )
            scores = jnp.einsum("bnhd,bnthd->bnht", q, split(keys)) / depth**0.5
            found = jax.nn.softmax(jnp.where(jnp.arange(length) <= at, scores, -1e30))
            found = jnp.einsum("bnht,bnthd->bnhd", found, split(values))
            return x + found.reshape(x.shape) @ weights["o"], (keys, values)

        def search(params, caches, tokens, scores):
            def step(state):
                at, caches, tokens, scores = state
                x, after = params["embedding"][tokens[:, :, at]], []
                for weights, cache in zip(params["layers"], caches, strict=True):
                    x, cache = attended(weights, cache, x, at)
                    x = x + jax.nn.relu(normalized(x) @ weights["up"]) @ weights["down"]
                    after.append(cache)
                chances = jax.nn.log_softmax(normalized(x) @ params["embedding"].T) + scores[..., None]
                scores, best = lax.top_k(chances.reshape(rows, -1), beams)
                origin, token = best // vocabulary, best % vocabulary
                caches, tokens = jax.tree.map(lambda leaf: jax.vmap(lambda x, i: x[i])(leaf, origin), (after, tokens))
                return at + 1, caches, tokens.at[:, :, at + 1].set(token), scores

            state = jnp.int32(0), caches, tokens, scores
            return lax.while_loop(lambda state: state[0] < 32, step, state)[2:]

        return search

    shapes = {name: (width, width) for name in "qkvo"} | {"up": (width, 2048), "down": (2048, width)}
    params = {"layers": [draw.named(shapes) for _ in range(3)]}
    params["embedding"] = draw.array((vocabulary, width))
    tokens, scores = draw.array((rows, beams, 64), jnp.int32), draw.array((rows, beams))

    def arguments(*last):
        caches = [tuple(draw.array((rows, beams, length, *last)) for _ in "kv") for _ in range(3)]
        return params, caches, tokens, scores

    merged = search_of(lambda x: x.reshape(*x.shape[:3], heads, depth), lambda x: x.reshape(*x.shape[:2], -1))
    jit = {"donate_argnums": (1,)}
    return compared(
        Program(search_of(lambda x: x, lambda x: x), arguments(heads, depth), jit),
        ("merged", "reshape argument", merged, arguments(width)),
    )
