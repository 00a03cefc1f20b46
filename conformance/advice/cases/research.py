"""The first set of programs after public code: libraries' examples, and code of research groups."""

import functools

import equinox
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Draw, Program, case, compared
from .libraries import KEY, accumulated, trained


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


class Encoder(nn.Module):
    """A layer of a transformer, normalized before each half, in the precision of its input."""

    heads: int = 6

    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads)(y, y)
        return x + nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x))))


class Vision(nn.Module):
    """A vision transformer with a pooled head."""

    layer: type = Encoder

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(384, (16, 16), (16, 16), padding="VALID")(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        x = x + self.param("position", nn.initializers.normal(), (1, *x.shape[1:]))
        for number in range(6):
            x = self.layer(6, name=f"block_{number}")(x)
        return nn.Dense(1000)(nn.LayerNorm()(x).mean(1))


@case("v5e")
def vision_sharpness(draw: Draw) -> Case:
    """After big_vision's `trainers/proj/gsam` with `alpha=0`: a gradient where the weights went up by another."""
    x, y = draw.array((128, 224, 224, 3)), draw.array((128, 1000))
    optimizer = optax.adam(1e-3)

    def step_of_model(model):
        def loss(params, x, y):
            return optax.sigmoid_binary_cross_entropy(model.apply(params, x), y).sum(-1).mean()

        def update_fn(params, opt, x, y):
            value, slope = jax.value_and_grad(loss)(params, x, y)
            norm = optax.global_norm(slope)
            above = jax.tree.map(lambda weight, up: weight + 0.05 * up / (norm + 1e-12), params, slope)
            update, opt = optimizer.update(jax.grad(loss)(above, x, y), opt, params)
            return optax.apply_updates(params, update), opt, value

        return update_fn

    params = jax.eval_shape(Vision().init, KEY, x)
    arguments = draw.like(params), draw.like(jax.eval_shape(optimizer.init, params)), x, y
    jit = {"donate_argnums": (0, 1)}
    return compared(
        Program(step_of_model(Vision()), arguments, jit),
        ("remat", "checkpoint", step_of_model(Vision(nn.remat(Encoder)))),
    )


@case("v6e")
def contrastive_views(draw: Draw) -> Case:
    """After google-research's `simclr`: two views of each picture, told from all the others of the batch."""

    class Tower(nn.Module):
        @nn.compact
        def __call__(self, x):
            for width in (64, 128, 256):
                x = nn.relu(nn.Conv(width, (3, 3), 2, dtype=jnp.bfloat16)(x))
                x = nn.relu(nn.Conv(width, (3, 3), dtype=jnp.bfloat16)(x))
            return nn.Dense(128)(nn.relu(nn.Dense(512)(x.mean((1, 2)))))

    model = Tower()
    one, other = (draw.array((2048, 32, 32, 3)) for _ in range(2))

    def loss(params, one, other, wrap=lambda apply: apply):
        first, second = (wrap(model.apply)(params, view) for view in (one, other))
        both = jnp.concatenate([first, second])
        both = both / jnp.linalg.norm(both, axis=-1, keepdims=True)
        rows = both.shape[0]
        logits = jnp.where(jnp.eye(rows, dtype=bool), -1e9, both @ both.T / 0.1)
        labels = jnp.roll(jnp.arange(rows), rows // 2)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    params = jax.eval_shape(model.init, KEY, one)
    remat = functools.partial(loss, wrap=jax.checkpoint)
    return trained(draw, loss, params, (one, other), [("remat", "checkpoint", remat)])


@case("v5e")
def radiance_field(draw: Draw) -> Case:
    """After google-research's `jaxnerf`: rays of a volume, each through a network at many points."""

    class Field(nn.Module):
        @nn.compact
        def __call__(self, points, direction):
            x = points
            for layer in range(8):
                x = nn.relu(nn.Dense(256)(x))
                x = jnp.concatenate([x, points], -1) if layer == 4 else x
            density = nn.relu(nn.Dense(1)(x))[..., 0]
            along = jnp.broadcast_to(direction[:, None], (*points.shape[:2], 27))
            x = nn.relu(nn.Dense(128)(jnp.concatenate([nn.Dense(256)(x), along], -1)))
            return nn.sigmoid(nn.Dense(3)(x)), density

    def encoded(x, low, high):
        angles = (x[..., None, :] * 2.0 ** jnp.arange(low, high)[:, None]).reshape(*x.shape[:-1], -1)
        return jnp.concatenate([x, jnp.sin(angles), jnp.cos(angles)], -1)

    model, rays, samples = Field(), 4096, 128

    def loss(params, origin, direction, colour, wrap=lambda apply: apply):
        depth = jnp.linspace(2.0, 6.0, samples)
        points = origin[:, None] + depth[:, None] * direction[:, None]
        seen, density = wrap(model.apply)(params, encoded(points, 0, 10), encoded(direction, 0, 4))
        alpha = 1 - jnp.exp(-density * (4.0 / samples))
        through = jnp.cumprod(jnp.concatenate([jnp.ones((alpha.shape[0], 1)), 1 - alpha[:, :-1] + 1e-10], 1), 1)
        return jnp.mean((((alpha * through)[..., None] * seen).sum(1) - colour) ** 2)

    params = jax.eval_shape(model.init, KEY, draw.array((rays, samples, 63)), draw.array((rays, 27)))
    batch = tuple(draw.array((rays, 3)) for _ in range(3))
    remat = functools.partial(loss, wrap=jax.checkpoint)
    changes = [("remat", "checkpoint", remat), ("accumulated", "chunk", accumulated(loss, 8))]
    return trained(draw, loss, params, batch, changes)


@case("v6e")
def prefill_scores(draw: Draw) -> Case:
    """After MaxText's `dot_product` attention: a prompt's scores, with a soft cap, and the cache that it fills."""
    layers, heads, groups, depth, length, width = 2, 16, 4, 128, 4096, 2048

    def attend(queries, keys, values, places):
        scores = jnp.einsum("tkgd,skd->kgts", queries, keys).astype(jnp.float32) / depth**0.5
        scores = 50.0 * jnp.tanh(scores / 50.0)
        scores = jnp.where(places[:, None] >= jnp.arange(length), scores, -1e30)
        return jnp.einsum("kgts,skd->tkgd", nn.softmax(scores).astype(jnp.bfloat16), values)

    def in_parts(queries, keys, values, places):
        return lax.map(
            lambda row: attend(row[0][None], keys, values, row[1][None])[0], (queries, places), batch_size=256
        )

    def prefill_of(attend):
        def prefill(params, x):
            cache = []
            for weights in params:
                queries = (x @ weights["q"]).reshape(length, groups, heads // groups, depth)
                keys, values = ((x @ weights[name]).reshape(length, groups, depth) for name in ("k", "v"))
                found = attend(queries, keys, values, jnp.arange(length)).reshape(length, -1)
                x = x + found @ weights["o"]
                x = x + jax.nn.gelu(x @ weights["up"]) @ weights["down"]
                cache.append((keys, values))
            return x[-1], cache

        return prefill

    shapes = {"q": (width, heads * depth), "k": (width, groups * depth), "v": (width, groups * depth)}
    shapes |= {"o": (heads * depth, width), "up": (width, 4 * width), "down": (4 * width, width)}
    params = [draw.named(shapes, jnp.bfloat16) for _ in range(layers)]
    arguments = params, draw.array((length, width), jnp.bfloat16)
    return compared(Program(prefill_of(attend), arguments), ("in_parts", "chunk", prefill_of(in_parts)))


@case("v4")
def volume_overlap(draw: Draw) -> Case:
    """After MONAI's `DiceLoss(batch=True)`: volumes whose overlap with the truth is a ratio of the batch's sums."""

    class Volumes(nn.Module):
        wrapped: bool = False

        @nn.compact
        def __call__(self, x):
            block = nn.remat(Twice) if self.wrapped else Twice
            one = block(32, name="one")(x)
            two = block(64, name="two")(nn.max_pool(one, (2, 2, 2), (2, 2, 2)))
            up = jax.image.resize(two, (*one.shape[:-1], 64), "nearest")
            return nn.Conv(4, (1, 1, 1))(block(32, name="three")(jnp.concatenate([one, up], -1)))

    class Twice(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                x = nn.relu(nn.GroupNorm(8)(nn.Conv(self.width, (3, 3, 3))(x)))
            return x

    def loss(model, each, params, x, y):
        def sums(x, y):
            chance, truth = nn.softmax(model.apply(params, x)), jax.nn.one_hot(y, 4)
            return (chance * truth).sum((0, 1, 2, 3)), (chance + truth).sum((0, 1, 2, 3))

        both, all_of = each(sums, x, y)
        return 1 - ((2 * both + 1e-5) / (all_of + 1e-5)).mean()

    def at_once(sums, x, y):
        return sums(x, y)

    def in_turn(sums, x, y):
        added = lax.map(jax.checkpoint(lambda one: sums(one[0][None], one[1][None])), (x, y))
        return jax.tree.map(lambda one: one.sum(0), added)

    batch = draw.array((8, 48, 48, 48, 1)), draw.array((8, 48, 48, 48), jnp.int32)
    params = jax.eval_shape(Volumes().init, KEY, batch[0])
    changes = [
        ("remat", "checkpoint", functools.partial(loss, Volumes(True), at_once)),
        ("in_turn", "chunk", functools.partial(loss, Volumes(), in_turn)),
    ]
    return trained(draw, functools.partial(loss, Volumes(), at_once), params, batch, changes)
