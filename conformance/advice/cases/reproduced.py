"""A fourth set of training steps after public code, written before any advice on it was seen."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.scipy.ndimage import map_coordinates

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, accumulated, shaped, trained


def normalized(x):
    """Rows of mean square one."""
    return x * lax.rsqrt((x.astype(jnp.float32) ** 2).mean(-1, keepdims=True) + 1e-6).astype(x.dtype)


@case("v4")
def patched_channels(draw: Draw) -> Case:
    """After PatchTST's `TSTEncoder`: 321 channels as so many sequences, scores handed on, normalized over the batch."""
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

    def loss_of(network):
        def loss(params, x, y):
            found, _ = network.apply(params, x, mutable=["batch_stats"])
            return ((found - y) ** 2).mean()

        return loss

    batch = draw.array((rows, length, channels)), draw.array((rows, ahead, channels))
    params = {"params": jax.eval_shape(Network().init, KEY, batch[0])["params"]}
    remat = loss_of(Network(nn.remat(Layer)))
    in_parts = loss_of(Network(functools.partial(Layer, True)))
    changes = [("remat", "checkpoint", remat), ("in_parts", "chunk", in_parts)]
    return trained(draw, loss_of(Network()), params, batch, changes, optax.adam(1e-4))


class Attended(nn.Module):
    """A layer of a vision transformer."""

    heads: int

    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm(dtype=jnp.bfloat16)(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=jnp.bfloat16)(y, y)
        y = nn.gelu(nn.Dense(4 * x.shape[-1], dtype=jnp.bfloat16)(nn.LayerNorm(dtype=jnp.bfloat16)(x)))
        return x + nn.Dense(x.shape[-1], dtype=jnp.bfloat16)(y)


@case("v5p")
def distilled_crops(draw: Draw) -> Case:
    """After DINO's `DINOLoss`: ten crops of each picture against two of a teacher, over 65536 prototypes."""
    rows, width, prototypes, crops = 64, 384, 65536, 8

    class Network(nn.Module):
        layer: type = Attended

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

    def compared(head, taught, center, said, told):
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
                compare = functools.partial(compared, params["head"], teacher["head"], center)
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
    arguments = shaped(draw, params), shaped(draw, params), draw.array((prototypes,)), shaped(draw, state), large, small
    jit = {"donate_argnums": (0, 1, 2, 3)}
    remat = Program(step_of(Network(nn.remat(Attended)), at_once), arguments, jit)
    chunked = Program(step_of(Network(), in_rows), arguments, jit)
    changes = [Change("remat", "checkpoint", "value", remat), Change("chunked", "chunk", "value", chunked)]
    return Case(Program(step_of(Network(), at_once), arguments, jit), changes)


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
            x = Attended(12)(x)
            return nn.Dense(256)(x.astype(jnp.float32)), codes

    def like(x, y):
        lengths = jnp.linalg.norm(x, axis=-1) * jnp.linalg.norm(y, axis=-1)
        return (x * y).sum(-1) / jnp.maximum(lengths, 1e-8)

    def loss_of(network):
        def loss(params, sound, is_hidden, others):
            found, codes = network.apply(params, sound, is_hidden)
            negatives = jax.vmap(lambda codes, at: codes[at])(codes, others)
            aims = jnp.concatenate([codes[:, :, None], negatives], 2)
            logits = like(found[:, :, None], aims) / 0.1
            return (-jax.nn.log_softmax(logits)[..., 0] * is_hidden).mean()

        return loss

    batch = draw.array((rows, samples)), draw.array((rows, frames), jnp.bool_)
    params = jax.eval_shape(Network().init, KEY, *batch)
    batch = *batch, draw.array((rows, frames, wrong), jnp.int32)
    whole = loss_of(Network())
    changes = [
        ("remat", "checkpoint", loss_of(Network(nn.remat(Listener)))),
        ("accumulated", "chunk", accumulated(whole, 8)),
    ]
    return trained(draw, whole, params, batch, changes, optax.adamw(5e-4))


@case("v5e")
def drawn_negatives(draw: Draw) -> Case:
    """After generative-recommenders' `SampledSoftmaxLoss` on HSTU: items that were not chosen, drawn for each place."""
    rows, length, width, heads, items, wrong = 128, 211, 50, 2, 26744, 128

    def normal(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)

    def layer(weights, x):
        u, v, q, k = jnp.split(jax.nn.silu(normal(x) @ weights["uvqk"]), 4, -1)
        u, v, q, k = (part.reshape(rows, length, heads, -1) for part in (u, v, q, k))
        places = jnp.arange(length)[:, None] - jnp.arange(length)
        scores = jax.nn.silu(jnp.einsum("bqhd,bkhd->bhqk", q, k) + weights["place"][places + length - 1]) / length
        found = jnp.einsum("bhqk,bkhd->bqhd", jnp.where(places >= 0, scores, 0), v)
        return x + (u * normal(found)).reshape(x.shape) @ weights["out"]

    def unit(x):
        return x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), 1e-6)

    def lost(table, x, right, key):
        drawn = jax.random.randint(key, (length, wrong), 1, items)
        aims = jnp.concatenate([table[right][:, None], table[drawn]], 1)
        logits = jnp.einsum("td,tnd->tn", unit(x), unit(aims)) / 0.05
        is_same = jnp.pad(drawn == right[:, None], ((0, 0), (1, 0)))
        return -jax.nn.log_softmax(jnp.where(is_same, -5e4, logits))[:, 0]

    def loss_of(each):
        def loss(params, seen, right, mask, keys):
            x = params["items"][seen] * width**0.5 + params["places"]
            for weights in params["layers"]:
                x = layer(weights, x)
            found = each(functools.partial(lost, params["items"]), x, right, keys)
            return (found * mask).sum() / mask.sum()

        return loss

    def at_once(lose, *rows):
        return jax.vmap(lose)(*rows)

    def in_rows(lose, *rows):
        return lax.map(jax.checkpoint(lambda row: lose(*row)), rows)

    shapes = {"uvqk": (width, 4 * width), "out": (width, width), "place": (2 * length,)}
    layers = [{name: draw.array(shape) for name, shape in shapes.items()} for _ in range(2)]
    params = {"layers": layers, "items": draw.array((items, width)), "places": draw.array((length, width))}
    tokens = draw.array((rows, length), jnp.int32)
    batch = tokens, tokens, draw.array((rows, length)), draw.array((rows, 2), jnp.uint32)
    return trained(draw, loss_of(at_once), params, batch, [("in_rows", "chunk", loss_of(in_rows))])


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

    def loss_of(network):
        def loss(params, now, after):
            apart = jnp.sqrt(((network.apply(params, now) - after) ** 2).sum((1, 2, 3)))
            return (apart / jnp.sqrt((after**2).sum((1, 2, 3)))).mean()

        return loss

    batch = draw.array((rows, tall, wide, fields)), draw.array((rows, tall, wide, fields))
    params = jax.eval_shape(Network().init, KEY, batch[0])
    whole = loss_of(Network())
    changes = [
        ("remat", "checkpoint", loss_of(Network(nn.remat(Block)))),
        ("accumulated", "chunk", accumulated(whole, rows)),
    ]
    return trained(draw, whole, params, batch, changes)


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

    def loss_of(wrap):
        def loss(params, tokens, targets):
            x = params["embedding"].astype(jnp.bfloat16)[tokens]
            for weights in params["layers"]:
                x = wrap(layer)(weights, x)
            logits = normalized(x).astype(jnp.float32) @ params["embedding"].T
            return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

        return loss

    shapes = {"in": (width, 3 * width), "short": (3, 3 * width), "bias": (width,), "out": (width, width)}
    shapes |= {"first": (5, inner), "second": (inner, inner), "third": (inner, inner), "last": (inner, width)}
    shapes |= {"up": (width, 4 * width), "down": (4 * width, width)}
    layers = [{name: draw.array(shape) for name, shape in shapes.items()} for _ in range(2)]
    params = {"layers": layers, "embedding": draw.array((vocabulary, width))}
    batch = draw.array((rows, length), jnp.int32), draw.array((rows, length), jnp.int32)
    whole = loss_of(lambda layer: layer)
    changes = [("remat", "checkpoint", loss_of(jax.checkpoint)), ("accumulated", "chunk", accumulated(whole, rows))]
    return trained(draw, whole, params, batch, changes, optax.adamw(6e-4))


@case("v5p")
def policy_entropy(draw: Draw) -> Case:
    """After verl's `DataParallelPPOActor.update_policy`: likelihoods and entropies of answers, from the same logits."""
    rows, asked, answered, width, heads, groups, inner, vocabulary = 4, 256, 512, 896, 14, 2, 4864, 151936
    length, depth = asked + answered, width // heads

    def rotated(x):
        angles = jnp.outer(jnp.arange(length), 1e6 ** (-jnp.arange(0, depth, 2) / depth))[:, None]
        left, right = jnp.split(x.astype(jnp.float32), 2, -1)
        turned = left * jnp.cos(angles) - right * jnp.sin(angles), right * jnp.cos(angles) + left * jnp.sin(angles)
        return jnp.concatenate(turned, -1).astype(x.dtype)

    def layer(weights, x):
        y = normalized(x)
        q, k, v = ((y @ weights[name] + weights["bias_" + name]).reshape(rows, length, -1, depth) for name in "qkv")
        q = rotated(q).reshape(rows, length, groups, heads // groups, depth)
        scores = jnp.einsum("bqgnd,bkgd->bgnqk", q, rotated(k)).astype(jnp.float32) / depth**0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
        found = jnp.einsum("bgnqk,bkgd->bqgnd", jax.nn.softmax(scores).astype(x.dtype), v)
        x = x + found.reshape(x.shape) @ weights["o"]
        y = normalized(x)
        return x + (jax.nn.silu(y @ weights["gate"]) * (y @ weights["up"])) @ weights["down"]

    def read(head, x, answer):
        logits = (x @ head.T).astype(jnp.float32)
        chance = jnp.take_along_axis(jax.nn.log_softmax(logits), answer[..., None], -1)[..., 0]
        share = jax.nn.softmax(logits)
        return chance, jax.nn.logsumexp(logits, -1) - (share * logits).sum(-1)

    def loss_of(wrap, each):
        def loss(params, tokens, answer, before, reference, gains, mask):
            params = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
            x = params["embedding"][tokens]
            for weights in params["layers"]:
                x = wrap(layer)(weights, x)
            x = normalized(x)[:, asked - 1 : -1]
            chance, surprise = each(lambda x, answer: read(params["embedding"], x, answer), x, answer)
            ratio = jnp.exp(jnp.clip(chance - before, -20, 20))
            pushed = jnp.maximum(-gains * ratio, -gains * jnp.clip(ratio, 0.8, 1.28))
            apart = jnp.exp(reference - chance) - (reference - chance) - 1
            return ((pushed - 0.001 * surprise + 0.001 * apart) * mask).sum() / mask.sum()

        return loss

    def at_once(read, x, answer):
        return read(x, answer)

    def in_parts(read, *given):
        parts = jax.tree.map(lambda leaf: leaf.reshape(-1, 128, *leaf.shape[2:]), given)
        found = lax.map(jax.checkpoint(lambda part: read(*part)), parts)
        return jax.tree.map(lambda leaf: leaf.reshape(rows, answered), found)

    def same(layer):
        return layer

    shapes = {"q": (width, width), "k": (width, groups * depth), "v": (width, groups * depth), "o": (width, width)}
    shapes |= {"bias_q": (width,), "bias_k": (groups * depth,), "bias_v": (groups * depth,)}
    shapes |= {"gate": (width, inner), "up": (width, inner), "down": (inner, width)}
    layers = [{name: draw.array(shape) for name, shape in shapes.items()} for _ in range(2)]
    params = {"layers": layers, "embedding": draw.array((vocabulary, width))}
    batch = draw.array((rows, length), jnp.int32), draw.array((rows, answered), jnp.int32)
    batch = *batch, *[draw.array((rows, answered)) for _ in range(4)]
    changes = [
        ("in_parts", "chunk", loss_of(same, in_parts)),
        ("remat", "checkpoint", loss_of(jax.checkpoint, at_once)),
    ]
    return trained(draw, loss_of(same, at_once), params, batch, changes, optax.adamw(1e-6))


@case("v7x")
def refined_flow(draw: Draw) -> Case:
    """After RAFT's `RAFT.forward`: likeness of all pairs of places, looked up twelve times by a recurrent unit."""
    rows, tall, wide, steps, reach = 4, 320, 448, 12, 4

    class Residual(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x):
            y = nn.relu(nn.InstanceNorm()(nn.Conv(self.width, (3, 3), 2)(x)))
            y = nn.relu(nn.InstanceNorm()(nn.Conv(self.width, (3, 3))(y)))
            return nn.relu(nn.Conv(self.width, (1, 1), 2)(x) + y)

    class Encoder(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.InstanceNorm()(nn.Conv(64, (7, 7), 2)(x)))
            return nn.Conv(self.width, (1, 1))(Residual(128)(Residual(96)(x)))

    class Update(nn.Module):
        @nn.compact
        def __call__(self, hidden, given, near, flow):
            near = nn.relu(nn.Conv(192, (3, 3))(nn.relu(nn.Conv(256, (1, 1))(near))))
            moved = nn.relu(nn.Conv(64, (3, 3))(nn.relu(nn.Conv(128, (7, 7))(flow))))
            moved = nn.relu(nn.Conv(126, (3, 3))(jnp.concatenate([near, moved], -1)))
            x = jnp.concatenate([given, moved, flow], -1)
            for shape in ((1, 5), (5, 1)):
                both = jnp.concatenate([hidden, x], -1)
                gate, reset = (nn.sigmoid(nn.Conv(128, shape)(both)) for _ in range(2))
                fresh = nn.tanh(nn.Conv(128, shape)(jnp.concatenate([reset * hidden, x], -1)))
                hidden = (1 - gate) * hidden + gate * fresh
            mask = nn.Conv(576, (1, 1))(nn.relu(nn.Conv(256, (3, 3))(hidden)))
            return hidden, 0.25 * mask, nn.Conv(2, (3, 3))(nn.relu(nn.Conv(256, (3, 3))(hidden)))

    features, context, update = Encoder(256), Encoder(256), Update()

    def looked_up(pyramid, places):
        around = jnp.stack(jnp.meshgrid(*2 * [jnp.arange(-reach, reach + 1)], indexing="ij"), -1).reshape(-1, 2)
        found = []
        for level, alike in enumerate(pyramid):
            at = (places.reshape(-1, 1, 2) / 2**level + around).transpose(0, 2, 1)
            found.append(jax.vmap(lambda alike, at: map_coordinates(alike, list(at), 1))(alike, at))
        return jnp.concatenate(found, -1).reshape(*places.shape[:3], -1)

    def enlarged(flow, mask):
        count, small, short, _ = flow.shape
        mask = jax.nn.softmax(mask.reshape(count, small, short, 9, 8, 8), 3)
        padded = jnp.pad(8 * flow, ((0, 0), (1, 1), (1, 1), (0, 0)))
        near = jnp.stack([padded[:, i : i + small, j : j + short] for i in range(3) for j in range(3)], 3)
        found = jnp.einsum("bhwnyx,bhwnc->bhywxc", mask, near)
        return found.reshape(count, 8 * small, 8 * short, 2)

    def loss_of(wrap):
        def loss(params, first, second, aim):
            left, right = jnp.split(features.apply(params["features"], jnp.concatenate([first, second])), 2)
            alike = jnp.einsum("bhwc,byxc->bhwyx", left, right) / 256**0.5
            alike = alike.reshape(-1, *alike.shape[3:])
            pyramid = [alike]
            for _ in range(3):
                pyramid.append(nn.avg_pool(pyramid[-1][..., None], (2, 2), (2, 2))[..., 0])
            hidden, given = jnp.split(context.apply(params["context"], first), 2, -1)
            start = jnp.stack(jnp.meshgrid(jnp.arange(tall / 8), jnp.arange(wide / 8), indexing="ij"), -1)
            start = jnp.broadcast_to(start, (len(first), *start.shape))

            def step(state, weight):
                hidden, places = state
                places = lax.stop_gradient(places)
                near = looked_up(pyramid, places)
                hidden, mask, moved = update.apply(params["update"], hidden, nn.relu(given), near, places - start)
                places = places + moved
                return (hidden, places), weight * jnp.abs(enlarged(places - start, mask) - aim).mean()

            weights = 0.8 ** jnp.arange(steps - 1, -1, -1.0)
            return lax.scan(wrap(step), (nn.tanh(hidden), start), weights)[1].sum()

        return loss

    picture = draw.array((rows, tall, wide, 3))
    small = [draw.array((rows, tall // 8, wide // 8, width)) for width in (128, 128, 324, 2)]
    params = {
        "features": jax.eval_shape(features.init, KEY, picture),
        "context": jax.eval_shape(context.init, KEY, picture),
    }
    params["update"] = jax.eval_shape(update.init, KEY, *small)
    whole = loss_of(lambda step: step)
    changes = [("remat", "checkpoint", loss_of(jax.checkpoint))]
    batch = picture, picture, draw.array((rows, tall, wide, 2))
    found = trained(draw, whole, params, batch, changes, optax.adamw(4e-4))
    found.changes[0].target = "loop"
    return found
