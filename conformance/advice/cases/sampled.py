"""A sixth set, after projects of the awesome-jax list in a random order, written before any advice on it was seen."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax
from numpyro import distributions

from .case import Case, Draw, Program, case, compared
from .libraries import KEY, accumulated, recomputed, trained


@jax.custom_vjp
def whole_product(x, y):
    """The product of whole numbers, of [..., n] and [n, m]."""
    found = lax.dot_general(
        x.astype(jnp.int8), y.astype(jnp.int8), (((x.ndim - 1,), (0,)), ((), ())), preferred_element_type=jnp.int32
    )
    return found.astype(jnp.float32)


whole_product.defvjp(
    lambda x, y: (whole_product(x, y), (x, y)),
    lambda kept, by: (by @ kept[1].T, jnp.tensordot(kept[0], by, (tuple(range(by.ndim - 1)),) * 2)),
)


@case("v5e")
def confident_guesses(draw: Draw) -> Case:
    """After Objax's `examples/fixmatch`: channels first, and guesses on weak copies that label strong ones."""
    labeled, ratio, classes = 64, 7, 10
    conv = functools.partial(lax.conv_general_dilated, dimension_numbers=("NCHW", "HWIO", "NCHW"), padding="SAME")

    def normal(x, scale, shift):
        mean, spread = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        return jax.nn.leaky_relu((x - mean) * lax.rsqrt(spread + 1e-5) * scale + shift, 0.1)

    def block(p, x, stride):
        y = normal(x, p["scale_1"], p["shift_1"])
        x = conv(y, p["side"], (stride, stride)) if "side" in p else x
        y = conv(y, p["conv_1"], (stride, stride))
        return x + conv(normal(y, p["scale_2"], p["shift_2"]), p["conv_2"], (1, 1))

    plan = [(32, 64, 1), (64, 128, 2)]

    def network(params, x, wrap):
        x = conv(x, params["stem"], (1, 1))
        for p, (_, _, stride) in zip(params["blocks"], plan, strict=True):
            x = wrap(functools.partial(block, stride=stride))(p, x)
        return normal(x, params["scale"], params["shift"]).mean((2, 3)) @ params["head"] + params["bias"]

    def loss(wrap, params, x, u, y):
        logits = network(params, jnp.concatenate([x, u.reshape(-1, *u.shape[2:])]), wrap)
        weak, strong = logits[labeled::2], logits[labeled + 1 :: 2]
        known = optax.softmax_cross_entropy(logits[:labeled], y).mean()
        guess = lax.stop_gradient(jax.nn.softmax(weak))
        sure = guess.max(1) >= 0.95
        told = optax.softmax_cross_entropy_with_integer_labels(strong, guess.argmax(1)) * sure
        decay = 0.5 * sum((leaf**2).sum() for leaf in jax.tree.leaves(params) if leaf.ndim == 4 and leaf.shape[0] != 1)
        return known + told.mean() + 5e-4 * decay

    def ranges(name, width):
        return {f"scale{name}": draw.array((1, width, 1, 1)), f"shift{name}": draw.array((1, width, 1, 1))}

    blocks = []
    for ins, outs, _ in plan:
        p = ranges("_1", ins) | ranges("_2", outs)
        p |= {"conv_1": draw.array((3, 3, ins, outs)), "conv_2": draw.array((3, 3, outs, outs))}
        blocks.append(p | ({"side": draw.array((1, 1, ins, outs))} if ins != outs else {}))
    params = {"stem": draw.array((3, 3, 3, 32)), "blocks": blocks, "head": draw.array((128, classes))}
    params |= {"bias": draw.array((classes,))} | ranges("", 128)
    optimizer = optax.sgd(0.03, 0.9, nesterov=True)

    def step_of(loss):
        def step(params, opt, smooth, x, u, y):
            value, gradient = jax.value_and_grad(loss)(params, x, u, y)
            update, opt = optimizer.update(gradient, opt)
            params = optax.apply_updates(params, update)
            return params, opt, optax.incremental_update(params, smooth, 0.001), value

        return step

    state = draw.like(jax.eval_shape(optimizer.init, params))
    batch = (
        draw.array((labeled, 3, 32, 32)),
        draw.array((labeled * ratio, 2, 3, 32, 32)),
        draw.array((labeled, classes)),
    )
    arguments = params, state, params, *batch
    jit = {"donate_argnums": (0, 1, 2)}
    return compared(
        Program(step_of(functools.partial(loss, lambda block: block)), arguments, jit),
        ("remat", "checkpoint", step_of(functools.partial(loss, jax.checkpoint))),
    )


@case("v6e")
def split_channels(draw: Draw) -> Case:
    """After jax-resnet's `SplAtConv2d`: convolutions in two groups of channels, which attention weighs and adds up."""
    rows, size, classes = 64, 224, 1000
    norm = functools.partial(nn.BatchNorm, use_running_average=False, momentum=0.9)

    class Mixed(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x):
            inner = max(x.shape[-1] // 2, 32)
            x = nn.Conv(2 * self.width, (3, 3), feature_group_count=2, use_bias=False)(x)
            halves = jnp.split(nn.relu(norm()(x)), 2, -1)
            gap = nn.Conv(inner, (1, 1))(sum(halves).mean((1, 2), keepdims=True))
            share = nn.Conv(2 * self.width, (1, 1))(nn.relu(norm()(gap)))
            share = nn.softmax(share.reshape(len(x), 2, self.width), 1)
            return sum(half * share[:, number, None, None] for number, half in enumerate(halves))

    class Bottleneck(nn.Module):
        width: int
        stride: int

        @nn.compact
        def __call__(self, x):
            y = nn.relu(norm()(nn.Conv(self.width, (1, 1), use_bias=False)(x)))
            y = Mixed(self.width)(y)
            if self.stride > 1:
                y, x = (nn.avg_pool(z, (2, 2), (2, 2)) for z in (y, x))
            y = norm(scale_init=nn.initializers.zeros)(nn.Conv(4 * self.width, (1, 1), use_bias=False)(y))
            if x.shape[-1] != y.shape[-1]:
                x = norm()(nn.Conv(4 * self.width, (1, 1), use_bias=False)(x))
            return nn.relu(x + y)

    class Network(nn.Module):
        block: type = Bottleneck

        @nn.compact
        def __call__(self, x):
            for width, stride in ((32, 2), (64, 1)):
                x = nn.relu(norm()(nn.Conv(width, (3, 3), (stride, stride), use_bias=False)(x)))
            x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
            x = self.block(64, 1, name="block")(x)
            return nn.Dense(classes)(x.mean((1, 2)))

    optimizer = optax.sgd(0.1, 0.9, nesterov=True)

    def step_of(model):
        def loss(params, stats, x, y):
            logits, after = model.apply({"params": params, "batch_stats": stats}, x, mutable=["batch_stats"])
            soft = optax.smooth_labels(jax.nn.one_hot(y, classes), 0.1)
            return optax.softmax_cross_entropy(logits, soft).mean(), after["batch_stats"]

        def step(params, stats, opt, x, y):
            (value, stats), gradient = jax.value_and_grad(loss, has_aux=True)(params, stats, x, y)
            update, opt = optimizer.update(gradient, opt, params)
            return optax.apply_updates(params, update), stats, opt, value

        return step

    x = draw.array((rows, size, size, 3))
    found = draw.like(jax.eval_shape(Network().init, KEY, x))
    state = draw.like(jax.eval_shape(optimizer.init, found["params"]))
    arguments = found["params"], found["batch_stats"], state, x, draw.array((rows,), jnp.int32)
    jit = {"donate_argnums": (0, 1, 2)}
    return compared(
        Program(step_of(Network()), arguments, jit), ("remat", "checkpoint", step_of(Network(nn.remat(Bottleneck))))
    )


@case("v5e")
def noisy_controls(draw: Draw) -> Case:
    """After lqg's `conditional_moments`: what somebody saw and wanted, by a filter along each trial."""
    trials, steps, states, seen = 2048, 500, 4, 2

    def gains(params, moved, pushed):
        noise, cost = jnp.exp(params["noise"]), jnp.exp(params["cost"])
        see = jnp.eye(seen, states)

        def back(value, _):
            right = cost * jnp.eye(1) + pushed.T @ value @ pushed
            gain = -jnp.linalg.solve(right, pushed.T @ value @ moved)
            wanted = jnp.zeros((states, states)).at[0, 0].set(1).at[0, 1].set(-1).at[1, 0].set(-1).at[1, 1].set(1)
            return wanted + moved.T @ value @ (moved + pushed @ gain), gain

        def forth(spread, _):
            spread = moved @ spread @ moved.T + jnp.eye(states)
            gain = jnp.linalg.solve(see @ spread @ see.T + noise * jnp.eye(seen), see @ spread).T
            return spread - gain @ see @ spread, gain

        _, controls = lax.scan(back, jnp.eye(states), None, steps, reverse=True)
        _, filters = lax.scan(forth, jnp.eye(states), None, steps)
        return controls, filters

    def loss(wrap, params, moved, pushed, x):
        controls, filters = gains(params, moved, pushed)
        see, jolt = jnp.eye(seen, states), jnp.diag(jnp.exp(params["jolt"]))
        noise = jnp.exp(0.5 * params["noise"]) * jnp.eye(seen)

        def joint(control, gain):
            own = moved + pushed @ control - gain @ see @ moved
            flow = jnp.block([[moved, pushed @ control], [gain @ see @ moved, own]])
            return flow, jnp.block([[jolt, jnp.zeros((states, seen))], [gain @ see @ jolt, gain @ noise]])

        flow, shock = jax.vmap(joint)(controls, filters)

        def moments(x):
            def step(carry, now):
                mean, spread = carry
                flow, shock, x = now
                cut, across = spread[:seen, :seen], (flow @ spread)[:, :seen]
                mean = flow @ mean + across @ jnp.linalg.solve(cut, x - mean[:seen])
                less = across @ jnp.linalg.solve(cut, (spread @ flow.T)[:seen])
                spread = flow @ spread @ flow.T + shock @ shock.T - less
                return (mean, spread), (mean, spread)

            start = jnp.concatenate([x[0], jnp.zeros(2 * states - seen)]), shock[0] @ shock[0].T + 1e-6 * jnp.eye(8)
            return lax.scan(wrap(step), start, (flow, shock, x[:-1]))[1]

        mean, spread = jax.vmap(moments)(x)
        likely = distributions.MultivariateNormal(mean[:, :, :seen], spread[:, :, :seen, :seen])
        return -likely.to_event(1).log_prob(x[:, 1:]).mean()

    def in_trials(params, moved, pushed, x):
        return accumulated(lambda params, x: plain(params, moved, pushed, x), 16)(params, x)

    plain = functools.partial(loss, lambda step: step)
    params = {"noise": draw.array(()), "cost": draw.array(()), "jolt": draw.array((states,))}
    batch = draw.array((states, states)), draw.array((states, 1)), draw.array((trials, steps + 1, seen))
    remat = functools.partial(loss, jax.checkpoint)
    changes = [("in_trials", "chunk", in_trials), ("remat", "checkpoint loop", remat)]
    return trained(draw, plain, params, batch, changes, optax.adam(1e-2))


@case("v5e")
def narrated_videos(draw: Draw) -> Case:
    """After MMV's `TSMResNetV2` and its text: channels shifted in time, and clips known by what is said."""
    rows, frames, size, width, near, said, vocabulary = 32, 16, 64, 512, 5, 16, 66250
    norm = functools.partial(nn.BatchNorm, use_running_average=False)

    def shifted(x):
        clip = x.reshape(-1, frames, *x.shape[1:])
        part = x.shape[-1] // 8
        before = jnp.pad(clip[:, 1:, ..., :part], ((0, 0), (0, 1), (0, 0), (0, 0), (0, 0)))
        after = jnp.pad(clip[:, :-1, ..., part : 2 * part], ((0, 0), (1, 0), (0, 0), (0, 0), (0, 0)))
        return jnp.concatenate([before, after, clip[..., 2 * part :]], -1).reshape(x.shape)

    class Block(nn.Module):
        width: int
        stride: int

        @nn.compact
        def __call__(self, x):
            y = nn.relu(norm()(x))
            side = nn.Conv(4 * self.width, (1, 1), (self.stride,) * 2)(y) if x.shape[-1] != 4 * self.width else x
            y = nn.Conv(self.width, (1, 1), use_bias=False)(shifted(y))
            y = nn.Conv(self.width, (3, 3), (self.stride,) * 2, use_bias=False)(nn.relu(norm()(y)))
            return side + nn.Conv(4 * self.width, (1, 1), use_bias=False)(nn.relu(norm()(y)))

    class Network(nn.Module):
        block: type = Block

        @nn.compact
        def __call__(self, video, words):
            x = nn.Conv(64, (7, 7), (2, 2))(video.reshape(-1, size, size, 3).astype(jnp.float32) / 255)
            x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
            x = self.block(64, 1, name="seen")(x)
            x = nn.relu(norm()(x)).mean((1, 2)).reshape(rows, frames, -1).mean(1)
            y = nn.relu(nn.Dense(2048)(words)).max(-2)
            both = [nn.Dense(width)(nn.relu(nn.Dense(width)(z))) for z in (x, y.reshape(-1, 2048))]
            return [z / jnp.linalg.norm(z, axis=-1, keepdims=True) for z in both]

    def loss(model, params, table, video, words):
        (x, y), _ = model.apply(params, video, table[words], mutable=["batch_stats"])
        scores = (x @ y.T / 0.07).reshape(rows, rows, near)
        own = jax.nn.logsumexp(scores[jnp.arange(rows), jnp.arange(rows)], -1)
        every = jnp.concatenate([scores, scores.swapaxes(0, 1)], 1)
        return (jax.nn.logsumexp(every, (1, 2)) - own).mean()

    table, video = draw.array((vocabulary, 300)), draw.array((rows, frames, size, size, 3), jnp.uint8)
    words = draw.array((rows, near, said), jnp.int32)
    told = draw.array((*words.shape, 300))
    params = {"params": jax.eval_shape(Network().init, KEY, video, told)["params"]}
    batch = table, video, words
    return recomputed(draw, loss, (Network(), Network(nn.remat(Block))), params, batch, optax.adam(1e-3))


@case("v4")
def dense_features(draw: Draw) -> Case:
    """After Eqxvision's `DenseNet`: each layer reads all before it, channels first, pictures one by one in vmap."""
    rows, size, growth, start, depths, classes = 64, 224, 32, 64, (3,), 1000

    def conv(x, weight, stride=1):
        edge = weight.shape[-1] // 2
        return lax.conv_general_dilated(x[None], weight, (stride, stride), ((edge, edge),) * 2)[0]

    def normal(x, p):
        mean = lax.pmean(x.mean((1, 2)), "batch")
        spread = lax.pmean(((x - mean[:, None, None]) ** 2).mean((1, 2)), "batch")
        x = (x - mean[:, None, None]) * lax.rsqrt(spread + 1e-5)[:, None, None]
        return jax.nn.relu(x * p["scale"][:, None, None] + p["shift"][:, None, None])

    def pooled(x, size, reduce, zero):
        return lax.reduce_window(x, zero, reduce, (1, size, size), (1, 2, 2), "SAME")

    def squeezed(p, *features):
        return conv(normal(jnp.concatenate(features), p["norm_1"]), p["narrow"])

    def network(params, x, wrap):
        x = normal(conv(x.astype(jnp.float32), params["stem"], 2), params["norm"])
        x = pooled(x, 3, lax.max, -jnp.inf)
        for block in params["blocks"]:
            features = [x]
            for p in block["layers"]:
                features.append(conv(normal(wrap(squeezed)(p, *features), p["norm_2"]), p["wide"]))
            x = normal(jnp.concatenate(features), block["norm"])
            x = pooled(conv(x, block["narrow"]), 2, lax.add, 0.0) / 4
        return x.mean((1, 2)) @ params["head"]

    def loss(wrap, params, x, label):
        logits = jax.vmap(lambda x: network(params, x, wrap), axis_name="batch")(x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, label).mean()

    def ranges(width):
        return {"scale": draw.array((width,)), "shift": draw.array((width,))}

    blocks, width = [], start
    for depth in depths:
        layers = []
        for _ in range(depth):
            p = {"norm_1": ranges(width), "norm_2": ranges(4 * growth), "narrow": draw.array((4 * growth, width, 1, 1))}
            layers.append(p | {"wide": draw.array((growth, 4 * growth, 3, 3))})
            width += growth
        blocks.append({"layers": layers, "norm": ranges(width), "narrow": draw.array((width // 2, width, 1, 1))})
        width //= 2
    params = {"stem": draw.array((start, 3, 7, 7)), "norm": ranges(start), "blocks": blocks}
    params["head"] = draw.array((width, classes))
    batch = draw.array((rows, 3, size, size)), draw.array((rows,), jnp.int32)
    variants = (lambda squeeze: squeeze), jax.checkpoint
    return recomputed(draw, loss, variants, params, batch, optax.sgd(0.1, 0.9), donated=False)
