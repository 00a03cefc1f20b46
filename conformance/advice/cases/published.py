"""A third set of training steps after public code, written before anybody saw what is advised for them."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, accumulated, shaped, trained


def normalized(x):
    """Rows of mean square one."""
    return x * lax.rsqrt((x.astype(jnp.float32) ** 2).mean(-1, keepdims=True) + 1e-6).astype(x.dtype)


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
    layers = [{name: draw.array(shape) for name, shape in shapes.items()} for _ in range(2)]
    params = {"layers": layers, "embedding": draw.array((vocabulary, width)), "head": draw.array((width, vocabulary))}
    state = shaped(draw, jax.eval_shape(optimizer.init, params))
    arguments = params, state, draw.array((rows, length), jnp.int32), draw.array((rows, length))
    jit = {"donate_argnums": (0, 1)}
    change = Change("chunked", "chunk", "value", Program(step_of(chunked), arguments, jit))
    return Case(Program(step_of(whole), arguments, jit), [change])


class Speaker(nn.Module):
    """A layer of a decoder of text that listens to an encoder of sound."""

    heads: int = 20

    @nn.compact
    def __call__(self, x, heard, mask):
        attention = functools.partial(nn.MultiHeadDotProductAttention, self.heads, dtype=jnp.bfloat16)
        norm = functools.partial(nn.LayerNorm, dtype=jnp.bfloat16)
        y = norm()(x)
        x = x + attention()(y, y, mask=mask)
        x = x + attention()(norm()(x), heard)
        y = nn.gelu(nn.Dense(4 * x.shape[-1], dtype=jnp.bfloat16)(norm()(x)))
        return x + nn.Dense(x.shape[-1], dtype=jnp.bfloat16)(y)


@case("v6e")
def distilled_speech(draw: Draw) -> Case:
    """After distil-whisper's `run_distillation`: two decoders on one frozen encoding, a divergence of all their logits."""
    rows, length, width, vocabulary, heat = 16, 448, 1280, 51866, 2.0

    class Text(nn.Module):
        depth: int

        @nn.compact
        def __call__(self, tokens, heard):
            table = self.param("table", nn.initializers.normal(), (vocabulary, width))
            place = self.param("place", nn.initializers.normal(), (length, width))
            x = table.astype(jnp.bfloat16)[tokens] + place.astype(jnp.bfloat16)
            for number in range(self.depth):
                x = Speaker(name=f"layer_{number}")(x, heard, nn.make_causal_mask(tokens))
            return nn.LayerNorm(dtype=jnp.bfloat16)(x)

    student, teacher = Text(1), Text(2)

    def compared(params, fixed, said, told, labels):
        tables = params["params"]["table"], fixed["params"]["table"]
        logits, aims = (x @ table.astype(x.dtype).T for x, table in zip((said, told), tables, strict=True))
        soft = optax.smooth_labels(jax.nn.one_hot(labels, vocabulary), 0.1)
        crossed = optax.softmax_cross_entropy(logits.astype(jnp.float32), soft)
        aim = jax.nn.softmax(aims.astype(jnp.float32) / heat)
        guess = jax.nn.log_softmax(logits.astype(jnp.float32) / heat)
        apart = (-aim * (guess - jnp.log(aim + 1e-20))).sum(-1) * heat**2
        return ((0.8 * crossed + apart) * (labels >= 0)).sum()

    def loss_of(each):
        def loss(params, fixed, heard, tokens, labels):
            told = lax.stop_gradient(teacher.apply(fixed, tokens, heard))
            found = each(functools.partial(compared, params, fixed), student.apply(params, tokens, heard), told, labels)
            return found / jnp.maximum((labels >= 0).sum(), 1)

        return loss

    def by_rows(compare, *rows):
        return lax.map(jax.checkpoint(lambda now: compare(*now)), rows).sum()

    tokens = draw.array((rows, length), jnp.int32)
    heard = draw.array((rows, 1500, width), jnp.bfloat16)
    params = jax.eval_shape(student.init, KEY, tokens, heard)
    fixed = jax.eval_shape(teacher.init, KEY, tokens, heard)
    fixed = jax.tree.map(lambda leaf: draw.array(leaf.shape, jnp.bfloat16), fixed)
    whole, chunked = (loss_of(each) for each in (lambda compare, *rows: compare(*rows), by_rows))
    return trained(
        draw, whole, params, (fixed, heard, tokens, tokens), [("chunked", "chunk", chunked)], optax.adamw(1e-4)
    )


@case("v5e")
def actor_learner(draw: Draw) -> Case:
    """After Acme's `IMPALALearner`: unrolls of pictures in bytes through a deep torso and an LSTM, corrected by V-trace."""
    rows, steps, actions = 64, 20, 18

    class Residual(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                y = nn.Conv(x.shape[-1], (3, 3))(nn.relu(x))
                x = x + nn.Conv(x.shape[-1], (3, 3))(nn.relu(y))
            return x

    class Agent(nn.Module):
        block: type = Residual

        @nn.compact
        def __call__(self, seen):
            x = seen.reshape(-1, *seen.shape[2:]).astype(jnp.float32) / 255
            for number, width in enumerate((16, 32, 32)):
                x = nn.max_pool(nn.Conv(width, (3, 3))(x), (3, 3), (2, 2), "SAME")
                x = self.block(name=f"block_{number}")(x)
            x = nn.relu(nn.Dense(256)(nn.relu(x.reshape(len(x), -1))))
            x = nn.RNN(nn.OptimizedLSTMCell(256))(x.reshape(*seen.shape[:2], -1))
            return nn.Dense(actions)(x), nn.Dense(1)(x)[..., 0]

    def corrected(values, after, rewards, discounts, ratios):
        clipped = jnp.minimum(ratios, 1)
        errors = clipped * (rewards + discounts * after - values)

        def back(later, now):
            error, discount, ratio = now
            later = error + discount * ratio * later
            return later, later

        _, found = lax.scan(back, jnp.zeros(len(values)), [x.T for x in (errors, discounts, clipped)], reverse=True)
        targets = values + found.T
        later = jnp.concatenate([targets[:, 1:], after[:, -1:]], 1)
        return targets, clipped * (rewards + discounts * later - values)

    def loss_of(model):
        def loss(params, seen, taken, behaved, rewards, discounts):
            logits, values = model.apply(params, seen)
            chances, chosen = jax.nn.log_softmax(logits), taken[:, :-1, None]
            said = jnp.take_along_axis(chances[:, :-1], chosen, -1)[..., 0]
            before = jnp.take_along_axis(jax.nn.log_softmax(behaved[:, :-1]), chosen, -1)[..., 0]
            clipped = jnp.clip(rewards[:, :-1], -1, 1)
            targets, gains = lax.stop_gradient(
                corrected(values[:, :-1], values[:, 1:], clipped, 0.99 * discounts[:, :-1], jnp.exp(said - before))
            )
            surprise = -(jnp.exp(chances) * chances).sum(-1)[:, :-1]
            return (-gains * said + 0.25 * (targets - values[:, :-1]) ** 2 - 0.01 * surprise).mean()

        return loss

    seen = draw.array((rows, steps, 84, 84, 4), jnp.uint8)
    batch = seen, draw.array((rows, steps), jnp.int32), draw.array((rows, steps, actions))
    batch = *batch, draw.array((rows, steps)), draw.array((rows, steps))
    params = jax.eval_shape(Agent().init, KEY, seen)
    whole, remat = loss_of(Agent()), loss_of(Agent(nn.remat(Residual)))
    changes = [("accumulated", "chunk", accumulated(whole, 8)), ("remat", "checkpoint", remat)]
    return trained(draw, whole, params, batch, changes, optax.rmsprop(6e-4))


@case("v4")
def harmonic_voices(draw: Draw) -> Case:
    """After DDSP's `harmonic_synthesis`: a hundred oscillators at each of 64000 samples, judged by spectra of four sizes."""
    rows, frames, hop, harmonics = 8, 1000, 64, 100

    class Decoder(nn.Module):
        @nn.compact
        def __call__(self, pitch, loudness):
            x = [nn.relu(nn.LayerNorm()(nn.Dense(512)(part[..., None]))) for part in (pitch, loudness)]
            x = nn.RNN(nn.GRUCell(512))(jnp.concatenate(x, -1))
            x = 2 * nn.sigmoid(nn.Dense(1 + harmonics)(x)) ** 2.3 + 1e-7
            return x[..., :1], x[..., 1:] / x[..., 1:].sum(-1, keepdims=True)

    def resampled(x):
        after = jnp.concatenate([x[:, 1:], x[:, -1:]], 1)[:, :, None]
        share = (jnp.arange(hop) / hop)[:, None]
        return (x[:, :, None] * (1 - share) + after * share).reshape(len(x), -1, x.shape[-1])

    def synthesized(pitch, loud, spread):
        hertz = resampled(pitch[..., None] * jnp.arange(1, 1 + harmonics))
        loud = resampled(loud * spread) * (hertz < 8000)
        return (loud * jnp.sin(jnp.cumsum(hertz * (2 * jnp.pi / 16000), 1))).sum(-1)

    def spectrum(sound, size):
        starts = jnp.arange(0, sound.shape[-1] - size + 1, size // 4)
        pieces = sound[:, starts[:, None] + jnp.arange(size)] * jnp.hanning(size)
        return jnp.abs(jnp.fft.rfft(pieces))

    def loss_of(synthesize):
        def loss(params, pitch, loudness, sound):
            made, total = synthesize(pitch, *Decoder().apply(params, pitch, loudness)), 0
            for size in (2048, 1024, 512, 256):
                aim, found = spectrum(sound, size), spectrum(made, size)
                total += jnp.abs(aim - found).mean() + jnp.abs(jnp.log(aim + 1e-5) - jnp.log(found + 1e-5)).mean()
            return total

        return loss

    def by_voice(*voices):
        return lax.map(jax.checkpoint(lambda voice: synthesized(*[x[None] for x in voice])[0]), voices)

    batch = draw.array((rows, frames)), draw.array((rows, frames)), draw.array((rows, frames * hop))
    params = jax.eval_shape(Decoder().init, KEY, *batch[:2])
    return trained(draw, loss_of(synthesized), params, batch, [("by_voice", "chunk", loss_of(by_voice))])


@case("v5e")
def edge_convolutions(draw: Draw) -> Case:
    """After DGCNN's `DGCNN_cls`: points [B, N, 3] whose neighbours each layer finds anew, normalized over the batch."""
    rows, points, near = 32, 1024, 20

    class EdgeConvolution(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x):
            square = (x**2).sum(-1)
            apart = 2 * jnp.einsum("bnc,bmc->bnm", x, x) - square[:, :, None] - square[:, None]
            found = jax.vmap(lambda row, chosen: row[chosen])(x, lax.top_k(apart, near)[1])
            own = jnp.broadcast_to(x[:, :, None], found.shape)
            y = nn.Dense(self.width, use_bias=False)(jnp.concatenate([found - own, own], -1))
            return nn.leaky_relu(nn.BatchNorm(use_running_average=False)(y), 0.2).max(2)

    class Classifier(nn.Module):
        layer: type = EdgeConvolution

        @nn.compact
        def __call__(self, x):
            kept = []
            for number, width in enumerate((64, 64, 128, 256)):
                x = self.layer(width, name=f"edges_{number}")(x)
                kept.append(x)
            x = nn.Dense(1024, use_bias=False)(jnp.concatenate(kept, -1))
            x = nn.leaky_relu(nn.BatchNorm(use_running_average=False)(x), 0.2)
            x = jnp.concatenate([x.max(1), x.mean(1)], -1)
            for width in (512, 256):
                x = nn.leaky_relu(nn.BatchNorm(use_running_average=False)(nn.Dense(width)(x)), 0.2)
            return nn.Dense(40)(x)

    def loss_of(model):
        def loss(params, x, label):
            logits, _ = model.apply(params, x, mutable=["batch_stats"])
            soft = optax.smooth_labels(jax.nn.one_hot(label, 40), 0.2)
            return optax.softmax_cross_entropy(logits, soft).mean()

        return loss

    batch = draw.array((rows, points, 3)), draw.array((rows,), jnp.int32)
    params = {"params": jax.eval_shape(Classifier().init, KEY, batch[0])["params"]}
    remat = loss_of(Classifier(nn.remat(EdgeConvolution)))
    return trained(draw, loss_of(Classifier()), params, batch, [("remat", "checkpoint", remat)], optax.sgd(0.1, 0.9))


@case("v5p")
def learned_turbulence(draw: Draw) -> Case:
    """After JAX-CFD's spectral `NavierStokes2D`: vorticity in Fourier space, and a network that corrects each step."""
    rows, size, steps, width, lapse = 2, 512, 16, 16, 1e-3

    class Correction(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                x = nn.gelu(nn.Conv(width, (3, 3), padding="CIRCULAR")(x))
            return nn.Conv(1, (3, 3), padding="CIRCULAR")(x)

    kx, ky = jnp.fft.fftfreq(size, 1 / size)[:, None], jnp.fft.rfftfreq(size, 1 / size)[None]
    slow = -4 * jnp.pi**2 * (kx**2 + ky**2)
    linear = 1e-3 * slow - 0.1
    kept = (jnp.abs(kx) < size / 3) & (ky < size / 3)

    def advected(hat):
        stream = -hat / jnp.where(slow == 0, 1, slow)
        spectra = 2j * jnp.pi * ky * stream, -2j * jnp.pi * kx * stream, 2j * jnp.pi * kx * hat, 2j * jnp.pi * ky * hat
        vx, vy, slope_x, slope_y = (jnp.fft.irfft2(spectrum) for spectrum in spectra)
        return kept * jnp.fft.rfft2(-(vx * slope_x + vy * slope_y))

    def stepped(hat):
        first = advected(hat)
        middle = (hat + lapse * first + 0.5 * lapse * linear * hat) / (1 - 0.5 * lapse * linear)
        second = 0.5 * (first + advected(middle))
        return (hat + lapse * second + 0.5 * lapse * linear * hat) / (1 - 0.5 * lapse * linear)

    def loss_of(wrap):
        def loss(params, start, truth):
            def advance(hat, aim):
                hat = stepped(hat)
                flow = jnp.fft.irfft2(hat)
                flow = flow + lapse * Correction().apply(params, flow[..., None])[..., 0]
                return jnp.fft.rfft2(flow), ((flow - aim) ** 2).mean()

            return lax.scan(wrap(advance), jnp.fft.rfft2(start), truth)[1].mean()

        return loss

    batch = draw.array((rows, size, size)), draw.array((steps, rows, size, size))
    params = jax.eval_shape(Correction().init, KEY, draw.array((rows, size, size, 1)))
    changes = [("remat", "checkpoint", loss_of(jax.checkpoint))]
    found = trained(draw, loss_of(lambda step: step), params, batch, changes)
    found.changes[0].target = "loop"
    return found


@case("v5e")
def adapted_weights(draw: Draw) -> Case:
    """After lorax's `lora` on weights that jax-gptq keeps in int8: narrow matrices learn beside layers that don't."""
    rows, length, width, heads, groups, rank, vocabulary = 4, 1024, 2048, 32, 4, 16, 32000
    depth = width // heads

    def product(x, frozen, tuned):
        fixed = frozen["weight"].astype(x.dtype) * frozen["scale"].astype(x.dtype)
        return x @ fixed + (x @ tuned["a"].astype(x.dtype)) @ tuned["b"].astype(x.dtype)

    def layer(frozen, tuned, x):
        def linear(name, x):
            return product(x, frozen[name], tuned[name])

        y = normalized(x)
        q = rotated(linear("q", y).reshape(rows, -1, heads, depth)).reshape(rows, -1, groups, heads // groups, depth)
        k, v = (linear(name, y).reshape(rows, -1, groups, depth) for name in "kv")
        scores = jnp.einsum("bqgnd,bkgd->bgnqk", q, rotated(k)).astype(jnp.float32) / depth**0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
        found = jnp.einsum("bgnqk,bkgd->bqgnd", jax.nn.softmax(scores).astype(x.dtype), v)
        x = x + linear("o", found.reshape(x.shape))
        y = normalized(x)
        return x + linear("down", jax.nn.silu(linear("gate", y)) * linear("up", y))

    def lost(x, head, tokens, mask):
        logits = (x @ head).astype(jnp.float32)
        return (optax.softmax_cross_entropy_with_integer_labels(logits, tokens) * mask).sum()

    def loss_of(wrap, each):
        def loss(tuned, frozen, tokens, targets, mask):
            x = frozen["embedding"][tokens]
            for fixed, learnt in zip(frozen["layers"], tuned, strict=True):
                x = wrap(layer)(fixed, learnt, x)
            total = each(lambda x, *row: lost(x, frozen["head"], *row), normalized(x), targets, mask)
            return total / jnp.maximum(mask.sum(), 1)

        return loss

    def by_rows(lose, *rows):
        return lax.map(jax.checkpoint(lambda row: lose(*row)), rows).sum()

    def at_once(lose, *rows):
        return lose(*rows)

    shapes = {"q": (width, width), "k": (width, groups * depth), "v": (width, groups * depth), "o": (width, width)}
    shapes |= {"gate": (width, 5632), "up": (width, 5632), "down": (5632, width)}

    def fixed(ins, outs):
        return {"weight": draw.array((ins, outs), jnp.int8), "scale": draw.array((outs,))}

    layers = [{name: fixed(*shape) for name, shape in shapes.items()} for _ in range(3)]
    frozen = {"layers": layers, "embedding": draw.array((vocabulary, width), jnp.bfloat16)}
    frozen["head"] = draw.array((width, vocabulary), jnp.bfloat16)
    tuned = [
        {name: {"a": draw.array((ins, rank)), "b": draw.array((rank, outs))} for name, (ins, outs) in shapes.items()}
        for _ in range(3)
    ]
    tokens = draw.array((rows, length), jnp.int32)
    batch = frozen, tokens, tokens, draw.array((rows, length))

    def same(layer):
        return layer

    remat = ("remat", "checkpoint", loss_of(jax.checkpoint, at_once))
    return trained(draw, loss_of(same, at_once), tuned, batch, [remat], optax.adamw(1e-4))


@case("v4")
def splatted_scene(draw: Draw) -> Case:
    """After torch-splatting's `GaussRenderer.render`: all balls of a scene over all pixels of its tiles, near ones first."""
    balls, size, tile = 2048, 256, 64

    def painted(params, corner):
        across = corner[0] + jnp.arange(tile) + 0.5, corner[1] + jnp.arange(tile) + 0.5
        pixels = jnp.stack(jnp.meshgrid(*across, indexing="ij"), -1).reshape(-1, 2)
        dx, dy = (pixels[:, None, axis] - params["mean"][:, axis] for axis in range(2))
        a, b, c = params["conic"].T
        weight = jnp.exp(-0.5 * (a * dx**2 + c * dy**2 + 2 * b * dx * dy))
        alpha = jnp.minimum(weight * jax.nn.sigmoid(params["opacity"]), 0.99)
        through = jnp.cumprod(1 - alpha, 1)
        share = alpha * jnp.concatenate([jnp.ones_like(alpha[:, :1]), through[:, :-1]], 1)
        return share @ jax.nn.sigmoid(params["color"]) + (1 - share.sum(1, keepdims=True))

    def loss_of(each):
        def loss(params, picture):
            near = jnp.argsort(params["depth"])
            params = jax.tree.map(lambda leaf: leaf[near], params)
            places = jnp.stack(jnp.meshgrid(*2 * [jnp.arange(0, size, tile)], indexing="ij"), -1).reshape(-1, 2)
            found = each(functools.partial(painted, params), places).reshape(size // tile, size // tile, tile, tile, 3)
            found = found.transpose(0, 2, 1, 3, 4).reshape(size, size, 3)
            return jnp.abs(found - picture).mean()

        return loss

    shapes = {"mean": (balls, 2), "conic": (balls, 3), "opacity": (balls,), "color": (balls, 3), "depth": (balls,)}
    params = {name: draw.array(shape) for name, shape in shapes.items()}
    whole = loss_of(lambda paint, at: jax.vmap(paint)(at))
    tiled = loss_of(lambda paint, at: lax.map(jax.checkpoint(paint), at))
    return trained(draw, whole, params, (draw.array((size, size, 3)),), [("tiled", "chunk", tiled)])


@case("v6e")
def graph_attention_bias(draw: Draw) -> Case:
    """After Graphormer's `GraphAttnBias`: a learnt bias for each pair of atoms, from the bonds on the way between them."""
    graphs, nodes, hops, heads, width = 64, 64, 5, 32, 768

    class Bias(nn.Module):
        @nn.compact
        def __call__(self, way, bonds):
            near = nn.Embed(512, heads)(way)
            found = nn.Embed(1537, heads)(bonds).mean(-2)
            mixing = self.param("mixing", nn.initializers.normal(), (hops, heads, heads))
            found = jnp.einsum("gijdh,dhk->gijk", found, mixing)
            return near + found / jnp.clip(way - 1, 1, hops)[..., None]

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, bias):
            y = nn.LayerNorm()(x)
            q, k, v = (nn.DenseGeneral((heads, width // heads))(y) for _ in "qkv")
            scores = jnp.einsum("gihd,gjhd->ghij", q, k) / (width // heads) ** 0.5 + bias.transpose(0, 3, 1, 2)
            found = jnp.einsum("ghij,gjhd->gihd", jax.nn.softmax(scores), v)
            x = x + nn.Dense(width)(found.reshape(x.shape))
            return x + nn.Dense(width)(nn.gelu(nn.Dense(width)(nn.LayerNorm()(x))))

    class Graphormer(nn.Module):
        bias: type = Bias

        @nn.compact
        def __call__(self, atoms, degree, way, bonds):
            x = nn.Embed(4609, width)(atoms).sum(-2) + nn.Embed(512, width)(degree)
            bias = self.bias(name="bias")(way, bonds)
            for _ in range(2):
                x = Layer()(x, bias)
            return nn.Dense(1)(nn.LayerNorm()(x).mean(1))[:, 0]

    def loss_of(model):
        def loss(params, atoms, degree, way, bonds, gap):
            return jnp.abs(model.apply(params, atoms, degree, way, bonds) - gap).mean()

        return loss

    shapes = (graphs, nodes, 9), (graphs, nodes), (graphs, nodes, nodes), (graphs, nodes, nodes, hops, 3)
    batch = tuple(draw.array(shape, jnp.int32) for shape in shapes)
    params = jax.eval_shape(Graphormer().init, KEY, *batch)
    whole = loss_of(Graphormer())
    changes = [("accumulated", "chunk", accumulated(whole, 8))]
    return trained(draw, whole, params, (*batch, draw.array((graphs,))), changes, optax.adamw(2e-4))


@case("v7x")
def copied_words(draw: Draw) -> Case:
    """After RWKV-LM's `GPT` of version 4: channels that fade with time, and a head that also copies words of the text."""
    rows, length, width, vocabulary, copying = 8, 1024, 768, 50277, 256

    def shifted(x, mix):
        return x * mix + jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1] * (1 - mix)

    def faded(decay, first, k, v):
        def step(state, now):
            above, below, most = state
            k, v = now
            top = jnp.maximum(most, k + first)
            old, new = jnp.exp(most - top), jnp.exp(k + first - top)
            found = (old * above + new * v) / (old * below + new)
            top = jnp.maximum(most + decay, k)
            old, new = jnp.exp(most + decay - top), jnp.exp(k - top)
            return (old * above + new * v, old * below + new, top), found

        start = jnp.zeros((rows, width)), jnp.zeros((rows, width)), jnp.full((rows, width), -1e38)
        return lax.scan(step, start, (k.swapaxes(0, 1), v.swapaxes(0, 1)))[1].swapaxes(0, 1)

    def layer(weights, x):
        y = normalized(x)
        k, v, r = (shifted(y, weights[f"mix_{name}"]) @ weights[name] for name in ("key", "value", "gate"))
        found = faded(-jnp.exp(weights["decay"]), weights["first"], k.astype(jnp.float32), v.astype(jnp.float32))
        x = x + (jax.nn.sigmoid(r) * found.astype(x.dtype)) @ weights["out"]
        y = normalized(x)
        wide = jax.nn.relu(shifted(y, weights["mix_up"]) @ weights["up"]) ** 2
        return x + jax.nn.sigmoid(shifted(y, weights["mix_pass"]) @ weights["pass"]) * (wide @ weights["down"])

    def lost(params, x, tokens, targets):
        q, k = x @ params["head_q"], x @ params["head_k"]
        scores = jnp.tril(jnp.einsum("bqd,bkd->bqk", q, k)) / copying
        copied = jnp.einsum("bqk,bkw->bqw", scores, jax.nn.one_hot(tokens, vocabulary, dtype=x.dtype))
        logits = (x @ params["head"] + copied).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

    def loss_of(each):
        def loss(params, tokens, targets):
            params = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
            x = params["embedding"][tokens]
            for weights in params["layers"]:
                x = layer(weights, x)
            return each(functools.partial(lost, params), normalized(x), tokens, targets)

        return loss

    def by_rows(lose, *rows):
        return lax.map(jax.checkpoint(lambda row: lose(*[leaf[None] for leaf in row])), rows).mean()

    shapes = dict.fromkeys(("key", "value", "gate", "out", "pass"), (width, width))
    shapes |= {"up": (width, 4 * width), "down": (4 * width, width), "decay": (width,), "first": (width,)}
    shapes |= {f"mix_{name}": (width,) for name in ("key", "value", "gate", "up", "pass")}
    layers = [{name: draw.array(shape) for name, shape in shapes.items()} for _ in range(3)]
    params = {"layers": layers, "embedding": draw.array((vocabulary, width)), "head": draw.array((width, vocabulary))}
    params |= {"head_q": draw.array((width, copying)), "head_k": draw.array((width, copying))}
    tokens = draw.array((rows, length), jnp.int32)
    whole, chunked = loss_of(lambda lose, *rows: lose(*rows)), loss_of(by_rows)
    return trained(draw, whole, params, (tokens, tokens), [("chunked", "chunk", chunked)])
