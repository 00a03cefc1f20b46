"""Training steps after examples of Flax, Haiku, Equinox, Optax and JAX, rebuilt small, each with its source named."""

import functools

import equinox
import flax.linen as nn
import haiku
import jax
import jax.numpy as jnp
import optax
from jax import lax
from optax import contrib

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, accumulated, shaped, trained


class Bottleneck(nn.Module):
    """A block of a residual network, normalized over the batch."""

    width: int
    stride: int = 1

    @nn.compact
    def __call__(self, x):
        norm = functools.partial(nn.BatchNorm, use_running_average=False, dtype=jnp.bfloat16)
        conv = functools.partial(nn.Conv, use_bias=False, dtype=jnp.bfloat16)
        y = nn.relu(norm()(conv(self.width, (1, 1))(x)))
        y = nn.relu(norm()(conv(self.width, (3, 3), self.stride)(y)))
        y = norm()(conv(4 * self.width, (1, 1))(y))
        if x.shape != y.shape:
            x = norm(name="norm_beside")(conv(4 * self.width, (1, 1), self.stride, name="beside")(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    """Four stages of so many blocks."""

    stages: tuple = (2, 2, 2, 2)
    block: type = Bottleneck

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(64, (7, 7), 2, use_bias=False, dtype=jnp.bfloat16)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=False, dtype=jnp.bfloat16)(x))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for stage, count in enumerate(self.stages):
            for number in range(count):
                stride = 2 if stage and not number else 1
                x = self.block(64 << stage, stride, name=f"block_{stage}_{number}")(x)
        return nn.Dense(1000)(x.mean((1, 2)).astype(jnp.float32))


@case("v5e")
def flax_resnet(draw: Draw) -> Case:
    """After Flax's `examples/imagenet`: a residual network whose normalization joins the batch."""
    x, y = draw.array((256, 128, 128, 3), jnp.bfloat16), draw.array((256,), jnp.int32)
    optimizer = optax.sgd(0.1, 0.9, nesterov=True)

    def step_of(model):
        def train_step(params, opt, stats, x, y):
            def loss(params):
                logits, new = model.apply({"params": params, "batch_stats": stats}, x, mutable=["batch_stats"])
                chosen = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
                decay = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(params) if leaf.ndim > 1)
                return chosen + 5e-5 * decay, (new["batch_stats"], logits)

            (value, (new, logits)), gradient = jax.value_and_grad(loss, has_aux=True)(params)
            update, opt = optimizer.update(gradient, opt, params)
            return optax.apply_updates(params, update), opt, new, value, jnp.mean(logits.argmax(-1) == y)

        return train_step

    variables = jax.eval_shape(ResNet().init, KEY, x)
    params, stats = variables["params"], variables["batch_stats"]
    arguments = *(shaped(draw, tree) for tree in (params, jax.eval_shape(optimizer.init, params), stats)), x, y
    jit = {"donate_argnums": (0, 1, 2)}
    remat = Program(step_of(ResNet(block=nn.remat(Bottleneck))), arguments, jit)
    return Case(Program(step_of(ResNet()), arguments, jit), [Change("remat", "checkpoint", "value", remat)])


class Translator(nn.Module):
    """An encoder and a decoder of two layers each, with one embedding for both and for the logits."""

    vocabulary: int = 32000

    @nn.compact
    def __call__(self, source, target, head=True):
        width = 512
        embed = nn.Embed(self.vocabulary, width, dtype=jnp.bfloat16)
        read, written = embed(source), embed(jnp.pad(target, ((0, 0), (1, 0)))[:, :-1])
        attention = functools.partial(nn.MultiHeadDotProductAttention, num_heads=8, dtype=jnp.bfloat16)
        seen = nn.make_attention_mask(source > 0, source > 0, dtype=jnp.bfloat16)
        across = nn.make_attention_mask(target > 0, source > 0, dtype=jnp.bfloat16)
        before = nn.make_causal_mask(target, dtype=jnp.bfloat16)
        norm, dense = (functools.partial(layer, dtype=jnp.bfloat16) for layer in (nn.LayerNorm, nn.Dense))
        for _ in range(2):
            y = norm()(read)
            read = read + attention()(y, y, mask=seen)
            read = read + dense(width)(nn.relu(dense(2048)(norm()(read))))
        for _ in range(2):
            y = norm()(written)
            written = written + attention()(y, y, mask=before)
            written = written + attention()(norm()(written), read, mask=across)
            written = written + dense(width)(nn.relu(dense(2048)(norm()(written))))
        return embed.attend(norm()(written)) if head else (norm()(written), embed.embedding)


@case("v5e")
def flax_translation(draw: Draw) -> Case:
    """After Flax's `examples/wmt`: smoothed labels, the loss divided by the number of tokens that aren't padding."""
    source, target = draw.array((64, 256), jnp.int32), draw.array((64, 256), jnp.int32)
    model = Translator()

    def loss_of(logits, target):
        confidence, low = 0.9, 0.1 / (model.vocabulary - 1)
        soft = jax.nn.one_hot(target, model.vocabulary) * (confidence - low) + low
        lost = -jnp.sum(soft * nn.log_softmax(logits.astype(jnp.float32)), -1)
        weights = jnp.where(target > 0, 1.0, 0.0)
        return (lost * weights).sum(), weights.sum()

    def loss(params, source, target):
        lost, count = loss_of(model.apply(params, source, target), target)
        return lost / count

    def chunked(params, source, target):
        hidden, embedding = model.apply(params, source, target, head=False)

        @jax.checkpoint
        def part(total, rows):
            hidden, target = rows
            return total + loss_of(hidden @ embedding.T.astype(hidden.dtype), target)[0], None

        cut = jax.tree.map(lambda leaf: leaf.reshape(16, -1, *leaf.shape[1:]), (hidden, target))
        return lax.scan(part, jnp.float32(0), cut)[0] / (target > 0).sum()

    params = jax.eval_shape(model.init, KEY, source, target)
    return trained(draw, loss, params, (source, target), [("chunked", "chunk", chunked)])


@case("v6e")
def haiku_codebook(draw: Draw) -> Case:
    """After Haiku's `vqvae_example`, without residual layers: a codebook whose averages have no gradient."""
    pictures = draw.array((1024, 32, 32, 3))

    def forward(x, wrap=lambda apply: apply):
        encoder = haiku.Sequential(
            [
                *(layer for width in (64, 128) for layer in (haiku.Conv2D(width, 4, 2), jax.nn.relu)),
                haiku.Conv2D(128, 3),
                jax.nn.relu,
                haiku.Conv2D(64, 1),
            ]
        )
        decoder = haiku.Sequential(
            [
                haiku.Conv2D(128, 3),
                *(layer for width in (128, 64) for layer in (jax.nn.relu, haiku.Conv2DTranspose(width, 4, 2))),
                jax.nn.relu,
                haiku.Conv2D(3, 1),
            ]
        )
        found = haiku.nets.VectorQuantizerEMA(64, 512, 0.25, 0.99)(wrap(encoder)(x), is_training=True)
        return jnp.mean((wrap(decoder)(found["quantize"]) - x) ** 2) / 0.06 + found["loss"], found["perplexity"]

    model, optimizer = haiku.transform_with_state(forward), optax.adam(3e-4)
    params, state = jax.eval_shape(model.init, KEY, pictures)

    def step_of(apply):
        def train_step(params, state, opt, x):
            def loss(params):
                (value, perplexity), new = apply(params, state, None, x)
                return value, (perplexity, new)

            (value, (perplexity, state_after)), gradient = jax.value_and_grad(loss, has_aux=True)(params)
            update, opt = optimizer.update(gradient, opt)
            return optax.apply_updates(params, update), state_after, opt, value, perplexity

        return train_step

    arguments = *(shaped(draw, tree) for tree in (params, state, jax.eval_shape(optimizer.init, params))), pictures
    jit = {"donate_argnums": (0, 1, 2)}
    of_each = haiku.transform_with_state(functools.partial(forward, wrap=haiku.remat))
    ways = {"remat": jax.checkpoint(model.apply), "remat_each": of_each.apply}
    changes = [Change(name, "checkpoint", "value", Program(step_of(apply), arguments, jit)) for name, apply in ways.items()]
    return Case(Program(step_of(model.apply), arguments, jit), changes)


@case("v5e")
def optax_private(draw: Draw) -> Case:
    """After Optax's `examples/contrib/differentially_private_sgd`: a gradient for each sample, clipped by its norm."""

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.max_pool(nn.relu(nn.Conv(16, (8, 8), 2)(x)), (2, 2))
            x = nn.max_pool(nn.relu(nn.Conv(32, (4, 4), 2, padding="VALID")(x)), (2, 2))
            return nn.Dense(10)(nn.relu(nn.Dense(512)(x.reshape(x.shape[0], -1))))

    model = Network()
    x, y = draw.array((1024, 28, 28, 1)), draw.array((1024,), jnp.int32)
    optimizer = contrib.dpsgd(0.25, 1.5, 1.3, 1337)

    def loss(params, x, y):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(params, x), y).mean()

    def of_each(params, x, y):
        return jax.vmap(jax.grad(loss), (None, 0, 0))(params, x[:, None], y[:, None])

    def train_step(params, opt, x, y):
        update, opt = optimizer.update(of_each(params, x, y), opt, params)
        return optax.apply_updates(params, update), opt

    def in_parts(params, opt, x, y):
        def part(total, rows):
            clipped, _ = optax.per_example_global_norm_clip(of_each(params, *rows), 1.5)
            return jax.tree.map(jnp.add, total, clipped), None

        cut = jax.tree.map(lambda leaf: leaf.reshape(16, -1, *leaf.shape[1:]), (x, y))
        total = lax.scan(part, jax.tree.map(jnp.zeros_like, params), cut)[0]
        return jax.tree.map(lambda leaf, step: leaf - 0.25 * step / 1024, params, total), opt

    params = jax.eval_shape(model.init, KEY, x)
    arguments = shaped(draw, params), shaped(draw, jax.eval_shape(optimizer.init, params)), x, y
    jit = {"donate_argnums": (0, 1)}
    change = Change("in_parts", "chunk", "value", Program(in_parts, arguments, jit))
    return Case(Program(train_step, arguments, jit), [change])


@case("v4")
def jax_maml(draw: Draw) -> Case:
    """After JAX's notebook `maml`, with 16 steps in place of one: tasks that learn, a gradient through their steps."""
    tasks, shots, steps = 128, 256, 16

    def predict(params, x):
        for weight in params[:-1]:
            x = jnp.tanh(x @ weight)
        return x @ params[-1]

    def loss(params, x, y):
        return jnp.mean((predict(params, x) - y) ** 2)

    def outer(params, x, y, wrap=lambda step: step):
        def of_task(x, y):
            def step(learned, _):
                gradient = jax.grad(loss)(learned, x[:shots], y[:shots])
                return jax.tree.map(lambda weight, slope: weight - 0.1 * slope, learned, gradient), None

            return loss(lax.scan(wrap(step), params, None, steps)[0], x[shots:], y[shots:])

        return jax.vmap(of_task)(x, y).mean()

    params = [draw.array(shape) for shape in ((16, 128), (128, 128), (128, 1))]
    batch = draw.array((tasks, 2 * shots, 16)), draw.array((tasks, 2 * shots, 1))
    remat = functools.partial(outer, wrap=jax.checkpoint)
    changes = [("remat", "checkpoint", remat), ("accumulated", "chunk", accumulated(outer, 8))]
    found = trained(draw, outer, params, batch, changes)
    found.changes[0].target = "loop"
    return found


@case("v4")
def equinox_scores(draw: Draw) -> Case:
    """After Equinox's `score_based_diffusion`, without its norms: a mixer of one picture, vmapped, a key for each."""

    class Mixer(equinox.Module):
        layers: list
        read: equinox.nn.Conv2d
        write: equinox.nn.ConvTranspose2d

        def __init__(self, key):
            keys = jax.random.split(key, 10)
            self.read = equinox.nn.Conv2d(2, 64, 4, stride=4, key=keys[0])
            self.write = equinox.nn.ConvTranspose2d(64, 1, 4, stride=4, key=keys[1])
            self.layers = [
                (equinox.nn.MLP(64, 64, 512, 1, key=one), equinox.nn.MLP(64, 64, 512, 1, key=other))
                for one, other in zip(keys[2:6], keys[6:], strict=True)
            ]

        def __call__(self, t, y, wrap):
            y = self.read(jnp.concatenate([y, jnp.full_like(y, t)]))
            shape = y.shape
            y = y.reshape(shape[0], -1)
            for patches, hidden in self.layers:

                def layer(y, patches=patches, hidden=hidden):
                    y = y + jax.vmap(patches)(y)
                    return y + jax.vmap(hidden)(y.T).T

                y = wrap(layer)(y)
            return self.write(y.reshape(shape))

    shapes = equinox.filter_eval_shape(Mixer, KEY)
    params, static = equinox.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    rows = 4096

    def loss(params, pictures, key, wrap=lambda layer: layer):
        model = equinox.combine(params, static)

        def one(y, t, key):
            keep, noise = jnp.exp(-0.5 * t), jax.random.normal(key, y.shape)
            spread = jnp.sqrt(jnp.maximum(1 - keep**2, 1e-5))
            return jnp.mean((model(t, keep * y + spread * noise, wrap) + noise / spread) ** 2) * spread

        low, keys = jax.random.split(key)
        times = jax.random.uniform(low, (rows,), maxval=10 / rows) + 10 / rows * jnp.arange(rows)
        return jax.vmap(one)(pictures, times, jax.random.split(keys, rows)).mean()

    batch = draw.array((rows, 1, 32, 32)), draw.array((2,), jnp.uint32)
    remat = functools.partial(loss, wrap=jax.checkpoint)
    return trained(draw, loss, params, batch, [("remat", "checkpoint", remat)])
