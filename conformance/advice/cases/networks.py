"""A second set of training steps after public code, written after the rules of 23 November, each with its source named."""

import functools

import flax.linen as nn
import haiku
import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, accumulated, shaped, trained


class Encoder(nn.Module):
    """A layer of a transformer, normalized before each half."""

    heads: int = 6

    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads)(y, y)
        return x + nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x))))


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

    def loss_of(model):
        def loss(params, patches, noise):
            found, hidden = model.apply(params, patches, noise)
            mean, spread = patches.mean(-1, keepdims=True), patches.var(-1, keepdims=True)
            lost = jnp.mean((found - (patches - mean) / jnp.sqrt(spread + 1e-6)) ** 2, -1)
            return jnp.sum(lost * hidden) / jnp.sum(hidden)

        return loss

    batch = draw.array((256, 196, 768)), draw.array((256, 196))
    params = jax.eval_shape(Masked().init, KEY, *batch)
    remat = loss_of(Masked(nn.remat(Encoder)))
    return trained(draw, loss_of(Masked()), params, batch, [("remat", "checkpoint", remat)])


@case("v5e")
def patch_diffusion(draw: Draw) -> Case:
    """After kvfrans' `jax-diffusion-transformer`: layers shifted and scaled by time and class, an average of the weights."""

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, given):
            width = x.shape[-1]
            parts = jnp.split(nn.Dense(6 * width)(nn.silu(given))[:, None], 6, -1)
            norm = functools.partial(nn.LayerNorm, use_bias=False, use_scale=False)
            y = norm()(x) * (1 + parts[1]) + parts[0]
            x = x + parts[2] * nn.MultiHeadDotProductAttention(6)(y, y)
            y = norm()(x) * (1 + parts[4]) + parts[3]
            return x + parts[5] * nn.Dense(width)(nn.gelu(nn.Dense(4 * width)(y)))

    class Model(nn.Module):
        layer: type = Layer

        @nn.compact
        def __call__(self, x, time, label):
            rows, width = len(x), 384
            x = nn.Conv(width, (2, 2), (2, 2), padding="VALID")(x).reshape(rows, 256, width)
            angles = time[:, None] * jnp.exp(-jnp.log(1e4) * jnp.arange(128) / 128)
            given = nn.Dense(width)(nn.silu(nn.Dense(width)(jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1))))
            given = given + nn.Embed(1001, width)(label)
            for number in range(3):
                x = self.layer(name=f"layer_{number}")(x, given)
            x = nn.Dense(16)(nn.LayerNorm()(x))
            return x.reshape(rows, 16, 16, 2, 2, 4).transpose(0, 1, 3, 2, 4, 5).reshape(rows, 32, 32, 4)

    optimizer = optax.adam(1e-4)

    def update_of(model):
        def update(params, average, opt, key, x, label):
            first, second, third = jax.random.split(key, 3)

            def loss(params):
                time = jax.random.uniform(first, (len(x),))
                noise = jax.random.normal(second, x.shape)
                dropped = jnp.where(jax.random.bernoulli(third, 0.1, label.shape), 1000, label)
                at = time[:, None, None, None]
                found = model.apply(params, (1 - at) * noise + at * x, 1000 * time, dropped)
                return jnp.mean((found - (x - noise)) ** 2)

            value, gradient = jax.value_and_grad(loss)(params)
            change, opt = optimizer.update(gradient, opt, params)
            params = optax.apply_updates(params, change)
            average = jax.tree.map(lambda old, new: 0.999 * old + 0.001 * new, average, params)
            return params, average, opt, value

        return update

    x, label = draw.array((96, 32, 32, 4)), draw.array((96,), jnp.int32)
    params = jax.eval_shape(Model().init, KEY, x, draw.array((96,)), label)
    state = jax.eval_shape(optimizer.init, params)
    arguments = shaped(draw, params), shaped(draw, params), shaped(draw, state), draw.array((2,), jnp.uint32), x, label
    jit = {"donate_argnums": (0, 1, 2)}
    remat = Program(update_of(Model(nn.remat(Layer))), arguments, jit)
    return Case(Program(update_of(Model()), arguments, jit), [Change("remat", "checkpoint", "value", remat)])


@case("v4")
def complex_states(draw: Draw) -> Case:
    """After S5's `apply_ssm`: a diagonal recurrence of complex states in each layer, vmapped over sequences."""
    rows, length, width, states = 64, 1024, 128, 64

    def layer(weights, x):
        mean, spread = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        u = (x - mean) * lax.rsqrt(spread + 1e-6)
        poles = -jnp.exp(weights["real"]) + 1j * weights["imaginary"]
        step = jnp.exp(weights["step"])
        decay = jnp.exp(poles * step)
        into = ((decay - 1) / poles)[:, None] * (weights["in"][0] + 1j * weights["in"][1])
        driven = jax.vmap(lambda now: into @ now)(u)

        def joined(left, right):
            return left[0] * right[0], right[0] * left[1] + right[1]

        _, found = lax.associative_scan(joined, (decay * jnp.ones((len(u), states)), driven))
        out = weights["out"][0] + 1j * weights["out"][1]
        y = jax.vmap(lambda now: 2 * (out @ now).real)(found) + weights["through"] * u
        y = jax.nn.gelu(y)
        return x + y * jax.nn.sigmoid(y @ weights["gate"])

    def loss(params, x, y, wrap=lambda layer: layer):
        def one(x):
            x = x @ params["read"]
            for weights in params["layers"]:
                x = wrap(layer)(weights, x)
            return x.mean(0) @ params["head"]

        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(one)(x), y).mean()

    shapes = {"real": (states,), "imaginary": (states,), "step": (states,), "in": (2, states, width)}
    shapes |= {"out": (2, width, states), "through": (width,), "gate": (width, width)}
    layers = [{name: draw.array(shape) for name, shape in shapes.items()} for _ in range(2)]
    params = {"layers": layers, "read": draw.array((8, width)), "head": draw.array((width, 10))}
    batch = draw.array((rows, length, 8)), draw.array((rows,), jnp.int32)
    remat = functools.partial(loss, wrap=jax.checkpoint)
    return trained(draw, loss, params, batch, [("remat", "checkpoint", remat)])


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


@case("v5e")
def simulated_policy(draw: Draw) -> Case:
    """After Brax's analytic policy gradients: the gradient of an episode's reward through all steps of a simulation."""
    rows, links, steps = 2048, 16, 64

    class Policy(nn.Module):
        @nn.compact
        def __call__(self, seen):
            for width in (256, 256):
                seen = nn.swish(nn.Dense(width)(seen))
            return nn.tanh(nn.Dense(links)(seen))

    def simulated(state, action):
        def substep(state, _):
            angle, speed = state
            bent = jnp.diff(angle, axis=-1, prepend=0.0, append=0.0)
            force = 8.0 * jnp.diff(jnp.sin(bent), axis=-1) - 0.1 * speed + action
            speed = speed + 0.005 * force
            return (angle + 0.005 * speed, speed), None

        return lax.scan(substep, state, None, 4)[0]

    def loss_of(wrap):
        def loss(params, angle, speed):
            def env_step(state, _):
                seen = jnp.concatenate([jnp.sin(state[0]), jnp.cos(state[0]), state[1]], -1)
                action = Policy().apply(params, seen)
                state = simulated(state, action)
                reward = jnp.cos(state[0]).sum(-1) - 0.01 * (action**2).sum(-1)
                return state, reward

            return -lax.scan(wrap(env_step), (angle, speed), None, steps)[1].mean()

        return loss

    params = jax.eval_shape(Policy().init, KEY, draw.array((rows, 3 * links)))
    batch = draw.array((rows, links)), draw.array((rows, links))
    optimizer = optax.chain(optax.clip(1.0), optax.adam(1e-4))
    changes = [("remat", "checkpoint", loss_of(jax.checkpoint))]
    found = trained(draw, loss_of(lambda step: step), params, batch, changes, optimizer)
    found.changes[0].target = "loop"
    return found


class Styled(nn.Module):
    """A convolution whose channels a style scales, and each sample's filters normalized."""

    width: int

    @nn.compact
    def __call__(self, x, style):
        channels = x.shape[-1]
        weight = self.param("weight", nn.initializers.normal(), (3, 3, channels, self.width))
        scale = nn.Dense(channels, bias_init=nn.initializers.ones)(style)
        x = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2) * scale[:, None, None]
        x = lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
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
    arguments = *(shaped(draw, tree) for tree in (params, state, critic)), latent
    jit = {"donate_argnums": (0, 1)}
    remat = Program(step_of(Generator(nn.remat(Styled))), arguments, jit)
    return Case(Program(step_of(Generator()), arguments, jit), [Change("remat", "checkpoint", "value", remat)])


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

    def loss_of(wrap):
        def energy(params, places, kinds, ends):
            apart = places[ends[0]] - places[ends[1]]
            distance = jnp.sqrt((apart**2).sum(-1) + 1e-12)
            x = params["embedding"][kinds]
            for weights in params["layers"]:
                x = wrap(interaction)(weights, x, distance, ends)
            return (jax.nn.softplus(x @ params["read"]) @ params["head"]).sum()

        def loss(params, places, kinds, ends, forces):
            slope = jax.grad(energy, 1)(params, places, kinds, ends)
            return jnp.mean((slope + forces) ** 2)

        return loss

    shapes = {"first": (32, width), "second": (width, width), "in": (width, width), "out": (width, width)}
    layers = [
        {name: draw.array(shape) for name, shape in (shapes | {"back": (width, width)}).items()} for _ in range(2)
    ]
    params = {"layers": layers, "embedding": draw.array((100, width)), "read": draw.array((width, 64))}
    params["head"] = draw.array((64, 1))
    batch = draw.array((atoms, 3)), draw.array((atoms,), jnp.int32), draw.array((2, edges), jnp.int32)
    batch = *batch, draw.array((atoms, 3))
    remat = loss_of(jax.checkpoint)
    return trained(draw, loss_of(lambda layer: layer), params, batch, [("remat", "checkpoint", remat)])


@case("v5e")
def latent_reader(draw: Draw) -> Case:
    """After DeepMind's Perceiver in Haiku: latents that read a long input once, then each other."""

    def attend(queries, seen, heads, width):
        split = [haiku.Linear(width)(x).reshape(*x.shape[:2], heads, -1) for x in (queries, seen, seen)]
        scores = jnp.einsum("bqhd,bkhd->bhqk", *split[:2]) / (width // heads) ** 0.5
        found = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), split[2])
        return haiku.Linear(queries.shape[-1])(found.reshape(*queries.shape[:2], width))

    def norm(x):
        return haiku.LayerNorm(-1, True, True)(x)

    def mixed(x):
        return x + haiku.Linear(x.shape[-1])(jax.nn.gelu(haiku.Linear(4 * x.shape[-1])(norm(x))))

    def across(x, seen):
        return mixed(x + attend(norm(x), norm(seen), 1, 256))

    def among(x):
        y = norm(x)
        return mixed(x + attend(y, y, 8, 512))

    def forward(pictures, labels, wrap=lambda layer: layer):
        seen = pictures.reshape(len(pictures), -1, pictures.shape[-1])
        place = haiku.get_parameter("place", (seen.shape[1], 64), init=haiku.initializers.TruncatedNormal())
        seen = jnp.concatenate([seen, jnp.broadcast_to(place, (len(seen), *place.shape))], -1)
        latent = haiku.get_parameter("latent", (256, 512), init=haiku.initializers.TruncatedNormal())
        x = wrap(across)(jnp.broadcast_to(latent, (len(seen), *latent.shape)), seen)
        for _ in range(3):
            x = wrap(among)(x)
        logits = haiku.Linear(1000)(x.mean(1))
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def loss_of(wrap):
        model = haiku.without_apply_rng(haiku.transform(functools.partial(forward, wrap=wrap)))
        return model

    batch = draw.array((32, 96, 96, 3)), draw.array((32,), jnp.int32)
    plain = loss_of(lambda layer: layer)
    params = jax.eval_shape(plain.init, KEY, *batch)
    changes = [("remat", "checkpoint", loss_of(haiku.remat).apply)]
    return trained(draw, plain.apply, params, batch, changes, optax.lamb(1e-3))


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

    def loss_of(model):
        def loss(params, sound, silent, text, ends):
            logits, _ = model.apply(params, sound, mutable=["batch_stats"])
            return jnp.mean(optax.ctc_loss(logits, silent, text, ends))

        return loss

    rows = 32
    batch = draw.array((rows, 1600, 80)), draw.array((rows, 400)), draw.array((rows, 64), jnp.int32)
    batch = *batch, draw.array((rows, 64))
    params = {"params": jax.eval_shape(Speech().init, KEY, batch[0])["params"]}
    remat = loss_of(Speech(nn.remat(Layer)))
    return trained(draw, loss_of(Speech()), params, batch, [("remat", "checkpoint", remat)])


@case("v5e")
def scanned_tokens(draw: Draw) -> Case:
    """After Levanter's `LmHeadModel`: layers in a loop that recomputes them already, a loss a token that isn't padding."""
    rows, length, width, vocabulary = 16, 1024, 512, 50304

    def layer(x, weights):
        y = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        q, k, v = (jnp.einsum("btw,whd->bthd", y, weights[name].astype(y.dtype)) for name in "qkv")
        found = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + found.reshape(x.shape) @ weights["o"].astype(x.dtype)
        return x + jax.nn.silu(x @ weights["up"].astype(x.dtype)) @ weights["down"].astype(x.dtype), None

    def hidden(params, tokens):
        x = params["embedding"].astype(jnp.bfloat16)[tokens]
        return lax.scan(jax.checkpoint(layer), x, params["layers"])[0]

    def lost(x, head, targets, mask):
        logits = (x @ head.astype(x.dtype)).astype(jnp.float32)
        return (optax.softmax_cross_entropy_with_integer_labels(logits, targets) * mask).sum()

    def loss(params, tokens, targets, mask):
        return lost(hidden(params, tokens), params["head"], targets, mask) / jnp.maximum(mask.sum(), 1)

    def chunked(params, tokens, targets, mask):
        cut = jax.tree.map(lambda leaf: leaf.reshape(16, -1, *leaf.shape[2:]), (hidden(params, tokens), targets, mask))

        @jax.checkpoint
        def part(total, rows):
            return total + lost(rows[0], params["head"], *rows[1:]), None

        return lax.scan(part, jnp.float32(0), cut)[0] / jnp.maximum(mask.sum(), 1)

    shapes = {name: (2, width, 8, 64) for name in "qkv"} | {"o": (2, width, width)}
    shapes |= {"up": (2, width, 4 * width), "down": (2, 4 * width, width)}
    params = {"layers": {name: draw.array(shape) for name, shape in shapes.items()}}
    params |= {"embedding": draw.array((vocabulary, width)), "head": draw.array((width, vocabulary))}
    tokens = draw.array((rows, length), jnp.int32)
    batch = tokens, tokens, draw.array((rows, length))
    return trained(draw, loss, params, batch, [("chunked", "chunk", chunked)], optax.adamw(1e-3))


@case("v5p")
def transducer_joint(draw: Draw) -> Case:
    """After Lingvo's and LAST's transducers: logits for each pair of a frame and a letter, summed over all alignments."""
    rows, frames, letters, width, vocabulary = 16, 200, 48, 320, 1024

    def joined(params, heard, said, text):
        both = jnp.tanh(heard[:, None] + said[None])
        chances = jax.nn.log_softmax(both @ params["head"])
        blank = chances[..., 0]
        return blank, jnp.take_along_axis(chances[:, :-1], text[None, :, None], -1)[..., 0]

    def aligned(blank, emitted):
        def step(alpha, now):
            blank, emitted = now
            stayed = alpha + blank
            before = jnp.concatenate([jnp.zeros(1), jnp.cumsum(emitted)])
            return before + lax.cumlogsumexp(stayed - before), None

        start = jnp.concatenate([jnp.zeros(1), jnp.cumsum(emitted[0])])
        alpha, _ = lax.scan(step, start, (blank[:-1], emitted[1:]))
        return -(alpha[-1] + blank[-1, -1])

    def loss_of(each):
        def loss(params, sound, text):
            heard = jax.nn.relu(sound @ params["listen"]) @ params["frame"]
            before = jnp.pad(text, ((0, 0), (1, 0)))
            said = jax.nn.relu(params["letters"][before] @ params["speak"])

            def one(row):
                return joined(params, *row)

            return jax.vmap(aligned)(*each(one, (heard, said, text))).mean()

        return loss

    shapes = {"listen": (80, 512), "frame": (512, width), "letters": (vocabulary, 256), "speak": (256, width)}
    params = {name: draw.array(shape) for name, shape in (shapes | {"head": (width, vocabulary)}).items()}
    batch = draw.array((rows, frames, 80)), draw.array((rows, letters), jnp.int32)
    chunked = loss_of(lambda one, rows: lax.map(jax.checkpoint(one), rows))
    return trained(draw, loss_of(lambda one, rows: jax.vmap(one)(rows)), params, batch, [("chunked", "chunk", chunked)])
