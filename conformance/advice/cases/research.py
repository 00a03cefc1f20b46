"""Training steps and inference after code of research groups, rebuilt small in JAX, each with its source named."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, Block, accumulated, shaped, step_of, trained


class Encoder(nn.Module):
    """A layer of a vision transformer."""

    heads: int

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
    arguments = shaped(draw, params), shaped(draw, jax.eval_shape(optimizer.init, params)), x, y
    jit = {"donate_argnums": (0, 1)}
    remat = Program(step_of_model(Vision(nn.remat(Encoder))), arguments, jit)
    return Case(Program(step_of_model(Vision()), arguments, jit), [Change("remat", "checkpoint", "value", remat)])


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


class Language(nn.Module):
    """A language model of two layers."""

    vocabulary: int

    @nn.compact
    def __call__(self, tokens, head=True):
        x = nn.Embed(self.vocabulary, 512, dtype=jnp.bfloat16)(tokens)
        for number in range(2):
            x = Block(name=f"layer_{number}")(x)
        logits = nn.Dense(self.vocabulary, use_bias=False, dtype=jnp.bfloat16)
        return logits(x).astype(jnp.float32) if head else x


@case("v6e")
def direct_preference(draw: Draw) -> Case:
    """After TRL's DPO trainer: chosen and rejected answers in one batch, beside a reference model's likelihoods."""
    model = Language(32000)
    pairs, length = 16, 512
    tokens, answer = draw.array((2 * pairs, length), jnp.int32), draw.array((2 * pairs, length))
    before = draw.array((2 * pairs,))

    def preferred(likelihood, before):
        gain = likelihood - before
        return -jax.nn.log_sigmoid(0.1 * (gain[:pairs] - gain[pairs:])).mean()

    def loss(params, tokens, answer, before):
        chances = nn.log_softmax(model.apply(params, tokens)[:, :-1])
        found = jnp.take_along_axis(chances, tokens[:, 1:, None], -1)[..., 0]
        return preferred((found * answer[:, 1:]).sum(-1), before)

    def chunked(params, tokens, answer, before):
        hidden = model.apply(params, tokens, head=False)
        head = params["params"]["Dense_0"]["kernel"].astype(jnp.bfloat16)

        @jax.checkpoint
        def of_row(row):
            hidden, tokens, answer = row
            chances = nn.log_softmax((hidden[:-1] @ head).astype(jnp.float32))
            return (jnp.take_along_axis(chances, tokens[1:, None], -1)[:, 0] * answer[1:]).sum()

        return preferred(lax.map(of_row, (hidden, tokens, answer)), before)

    params = jax.eval_shape(model.init, KEY, tokens)
    return trained(draw, loss, params, (tokens, answer, before), [("chunked", "chunk", chunked)])


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


@case("v4")
def world_model(draw: Draw) -> Case:
    """After DreamerV3's state space model, without sampling: steps of time in a loop, with the pictures it predicts."""
    batch, length, width = 64, 64, 512

    class Cell(nn.Module):
        @nn.compact
        def __call__(self, carry, now):
            deter, stoch = carry
            seen, action = now
            x = nn.silu(nn.Dense(width)(jnp.concatenate([stoch, action], -1)))
            deter, _ = nn.GRUCell(width)(deter, x)
            prior = nn.Dense(1024)(nn.silu(nn.Dense(width)(deter)))
            logits = nn.Dense(1024)(nn.silu(nn.Dense(width)(jnp.concatenate([deter, seen], -1))))
            stoch = nn.softmax(logits.reshape(-1, 32, 32)).reshape(-1, 1024)
            return (deter, stoch), (deter, stoch, prior, logits)

    class World(nn.Module):
        cell: type = Cell

        @nn.compact
        def __call__(self, pictures, actions):
            x = pictures.reshape(-1, 32, 32, 3)
            for channels in (32, 64, 128):
                x = nn.silu(nn.Conv(channels, (4, 4), 2)(x))
            seen = x.reshape(length, batch, -1)
            run = nn.scan(self.cell, variable_broadcast="params", split_rngs={"params": False})
            zero = jnp.zeros((batch, width)), jnp.zeros((batch, 1024))
            _, (deter, stoch, prior, logits) = run(name="cell")(zero, (seen, actions))
            x = nn.Dense(4 * 4 * 128)(jnp.concatenate([deter, stoch], -1)).reshape(-1, 4, 4, 128)
            for channels in (64, 32):
                x = nn.silu(nn.ConvTranspose(channels, (4, 4), (2, 2))(x))
            return nn.ConvTranspose(3, (4, 4), (2, 2))(x), prior, logits

    def loss_of(model):
        def loss(params, pictures, actions):
            found, prior, logits = model.apply(params, pictures, actions)
            prior, logits = (nn.log_softmax(x.reshape(length, batch, 32, 32)) for x in (prior, logits))
            apart = (jnp.exp(logits) * (logits - prior)).sum((-1, -2))
            lost = ((found.reshape(pictures.shape) - pictures) ** 2).sum((-1, -2, -3))
            return (lost + jnp.maximum(apart, 1.0)).mean()

        return loss

    pictures, actions = draw.array((length, batch, 32, 32, 3)), draw.array((length, batch, 6))
    params = jax.eval_shape(World().init, KEY, pictures, actions)
    remat = loss_of(World(nn.remat(Cell)))
    found = trained(draw, loss_of(World()), params, (pictures, actions), [("remat", "checkpoint", remat)])
    found.changes[0].target = "loop"
    return found


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
    params = [{name: draw.array(shape, jnp.bfloat16) for name, shape in shapes.items()} for _ in range(layers)]
    arguments = params, draw.array((length, width), jnp.bfloat16)
    change = Change("in_parts", "chunk", "value", Program(prefill_of(in_parts), arguments))
    return Case(Program(prefill_of(attend), arguments), [change])


@case("v5p")
def selective_states(draw: Draw) -> Case:
    """After Mamba's selective scan: a state for each channel, by an associative scan along the sequence."""
    rows, length, width, states = 8, 1024, 512, 16

    def layer(weights, x):
        inner, gate = jnp.split(x @ weights["in"], 2, -1)
        step = jax.nn.softplus(inner @ weights["step"])
        into, out = inner @ weights["into"], inner @ weights["out_of"]
        decay = jnp.exp(step[..., None] * -jnp.exp(weights["a"]))
        driven = (step * inner)[..., None] * into[..., None, :]

        def joined(left, right):
            return left[0] * right[0], right[0] * left[1] + right[1]

        _, state = lax.associative_scan(joined, (decay, driven), axis=1)
        found = jnp.einsum("bldn,bln->bld", state, out) * jax.nn.silu(gate)
        return x + found @ weights["back"]

    def loss(params, x, y, wrap=lambda layer: layer):
        for weights in params:
            x = wrap(layer)(weights, x)
        return jnp.mean((x - y) ** 2)

    shapes = {"in": (width, 2 * width), "step": (width, width), "into": (width, states), "out_of": (width, states)}
    shapes |= {"a": (width, states), "back": (width, width)}
    params = [{name: draw.array(shape) for name, shape in shapes.items()} for _ in range(2)]
    batch = draw.array((rows, length, width)), draw.array((rows, length, width))
    remat = functools.partial(loss, wrap=jax.checkpoint)
    return trained(
        draw, loss, params, batch, [("remat", "checkpoint", remat), ("accumulated", "chunk", accumulated(loss, 8))]
    )


@case("v5e")
def mesh_network(draw: Draw) -> Case:
    """After DeepMind's `meshgraphnets`: messages along the edges of one mesh, five times."""
    nodes, edges, width = 40000, 240000, 128

    class Steps(nn.Module):
        @nn.compact
        def __call__(self, node, edge, sender, receiver):
            def network(x):
                return nn.LayerNorm()(nn.Dense(width)(nn.relu(nn.Dense(width)(x))))

            message = edge + network(jnp.concatenate([node[sender], node[receiver], edge], -1))
            arrived = jax.ops.segment_sum(message, receiver, nodes)
            return node + network(jnp.concatenate([node, arrived], -1)), message

    class Network(nn.Module):
        step: type = Steps

        @nn.compact
        def __call__(self, node, edge, sender, receiver):
            node, edge = nn.Dense(width)(node), nn.Dense(width)(edge)
            for number in range(5):
                node, edge = self.step(name=f"step_{number}")(node, edge, sender, receiver)
            return nn.Dense(3)(node)

    def loss_of(model):
        def loss(params, node, edge, sender, receiver, after):
            return jnp.mean((model.apply(params, node, edge, sender, receiver) - after) ** 2)

        return loss

    batch = draw.array((nodes, 12)), draw.array((edges, 7)), *[draw.array((edges,), jnp.int32)] * 2
    params = jax.eval_shape(Network().init, KEY, *batch)
    remat = loss_of(Network(nn.remat(Steps)))
    arguments = *batch, draw.array((nodes, 3))
    return trained(draw, loss_of(Network()), params, arguments, [("remat", "checkpoint", remat)])


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

    def loss_of(model, each):
        def loss(params, x, y):
            def sums(x, y):
                chance, truth = nn.softmax(model.apply(params, x)), jax.nn.one_hot(y, 4)
                return (chance * truth).sum((0, 1, 2, 3)), (chance + truth).sum((0, 1, 2, 3))

            both, all_of = each(sums, x, y)
            return 1 - ((2 * both + 1e-5) / (all_of + 1e-5)).mean()

        return loss

    def at_once(sums, x, y):
        return sums(x, y)

    def in_turn(sums, x, y):
        added = lax.map(jax.checkpoint(lambda one: sums(one[0][None], one[1][None])), (x, y))
        return jax.tree.map(lambda one: one.sum(0), added)

    batch = draw.array((8, 48, 48, 48, 1)), draw.array((8, 48, 48, 48), jnp.int32)
    params = jax.eval_shape(Volumes().init, KEY, batch[0])
    changes = [("remat", "checkpoint", loss_of(Volumes(True), at_once)), ("in_turn", "chunk", loss_of(Volumes(), in_turn))]
    return trained(draw, loss_of(Volumes(), at_once), params, batch, changes)


@case("v6e")
def adversarial_critic(draw: Draw) -> Case:
    """After WGAN-GP's penalty on a critic of convolutions: a gradient of a gradient."""

    def critic(params, x):
        for weight in params["layers"]:
            x = jax.nn.leaky_relu(
                lax.conv_general_dilated(x, weight, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            )
        return x.reshape(x.shape[0], -1) @ params["out"]

    def loss(params, real, fake, mix):
        between = mix[:, None, None, None] * real + (1 - mix[:, None, None, None]) * fake
        slope = jax.grad(lambda x: critic(params, x).sum())(between)
        norm = jnp.sqrt((slope**2).sum((1, 2, 3)) + 1e-12)
        return critic(params, fake).mean() - critic(params, real).mean() + 10 * jnp.mean((norm - 1) ** 2)

    sizes = [(3, 64), (64, 128), (128, 256)]
    params = {"layers": [draw.array((4, 4, *size)) for size in sizes], "out": draw.array((8 * 8 * 256, 1))}
    batch = draw.array((512, 64, 64, 3)), draw.array((512, 64, 64, 3)), draw.array((512,))
    optimizer = optax.adam(1e-4)
    state = jax.eval_shape(optimizer.init, params)
    arguments = params, shaped(draw, state), *batch
    in_parts = step_of(accumulated(loss, 8), optimizer)
    jit = {"donate_argnums": (0, 1)}
    changes = [Change("accumulated", "chunk", "value", Program(in_parts, arguments, jit))]
    return Case(Program(step_of(loss, optimizer), arguments, jit), changes)
