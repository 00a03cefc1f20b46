"""More of the sixth set, after projects of the awesome-jax list in a random order."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax
from numpyro import distributions

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, accumulated, shaped, trained


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

    def loss_of(wrap):
        def loss(params, moved, pushed, x):
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

        return loss

    def in_trials(params, moved, pushed, x):
        return accumulated(lambda params, x: plain(params, moved, pushed, x), 16)(params, x)

    plain = loss_of(lambda step: step)
    params = {"noise": draw.array(()), "cost": draw.array(()), "jolt": draw.array((states,))}
    batch = draw.array((states, states)), draw.array((states, 1)), draw.array((trials, steps + 1, seen))
    changes = [("in_trials", "chunk", in_trials), ("remat", "checkpoint", loss_of(jax.checkpoint))]
    found = trained(draw, plain, params, batch, changes, optax.adam(1e-2))
    found.changes[1].target = "loop"
    return found


@case("v5p")
def noised_flowers(draw: Draw) -> Case:
    """After FlaxDiff's `Unet`: pictures of flowers with noise, which a network told by words takes away again."""
    rows, size, narrow, wide = 64, 64, 64, 128
    norm = functools.partial(nn.GroupNorm, 8)

    class Residual(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x, time):
            y = nn.Conv(self.width, (3, 3))(nn.swish(norm()(x)))
            y = y + nn.Dense(self.width)(nn.swish(time))[:, None, None]
            y = nn.Conv(self.width, (3, 3))(nn.swish(norm()(y)))
            return y + (x if x.shape[-1] == self.width else nn.Conv(self.width, (1, 1))(x))

    class Attention(nn.Module):
        @nn.compact
        def __call__(self, x, words):
            y = nn.RMSNorm()(x).reshape(len(x), -1, x.shape[-1])
            y = y + nn.MultiHeadDotProductAttention(8)(y, y)
            y = y + nn.MultiHeadDotProductAttention(8)(y, words)
            return x + y.reshape(x.shape)

    class Unet(nn.Module):
        residual: type = Residual

        @nn.compact
        def __call__(self, x, level, words):
            angle = level[:, None] * jnp.exp(jnp.linspace(0, 5, 128))
            time = nn.Dense(256)(nn.swish(nn.Dense(256)(jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1))))
            x = nn.Conv(narrow, (3, 3))(x)
            kept = x = self.residual(narrow, name="down")(x, time)
            x = nn.Conv(wide, (3, 3), (2, 2))(x)
            x = self.residual(wide, name="middle")(Attention()(x, words), time)
            x = jax.image.resize(x, (*kept.shape[:3], wide), "nearest")
            x = jnp.concatenate([nn.Conv(narrow, (3, 3))(x), kept], -1)
            x = self.residual(narrow, name="up")(x, time)
            return nn.Conv(3, (3, 3))(nn.swish(norm()(x)))

    def loss_of(model):
        def loss(params, pictures, noise, level, words):
            spread = level[:, None, None, None]
            root = jnp.sqrt(spread**2 + 0.25)
            found = model.apply(params, (pictures + spread * noise) / root, jnp.log(level) / 4, words)
            found = 0.25 / root**2 * (pictures + spread * noise) + 0.5 * spread / root * found
            return ((found - pictures) ** 2 * (root / (0.5 * spread)) ** 2).mean()

        return loss

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(2e-4))

    def step_of(loss):
        def step(params, opt, smooth, key, pictures, words):
            first, second = jax.random.split(key)
            level = jnp.exp(1.2 * jax.random.normal(first, (rows,)) - 1.2)
            noise = jax.random.normal(second, pictures.shape)
            pictures = (pictures.astype(jnp.float32) - 127.5) / 127.5
            value, gradient = jax.value_and_grad(loss)(params, pictures, noise, level, words)
            update, opt = optimizer.update(gradient, opt, params)
            params = optax.apply_updates(params, update)
            return params, opt, optax.incremental_update(params, smooth, 0.001), value

        return step

    pictures, words = draw.array((rows, size, size, 3), jnp.uint8), draw.array((rows, 77, 768))
    params = shaped(draw, jax.eval_shape(Unet().init, KEY, draw.array(pictures.shape), draw.array((rows,)), words))
    state = shaped(draw, jax.eval_shape(optimizer.init, params))
    arguments = params, state, params, draw.array((2,), jnp.uint32), pictures, words
    jit = {"donate_argnums": (0, 1, 2)}
    changes = [
        Change(name, kind, "value", Program(step_of(loss), arguments, jit))
        for name, kind, loss in (
            ("accumulated", "chunk", accumulated(loss_of(Unet()), 8)),
            ("remat", "checkpoint", loss_of(Unet(nn.remat(Residual)))),
        )
    ]
    return Case(Program(step_of(loss_of(Unet())), arguments, jit), changes)


@case("v4")
def nested_spans(draw: Draw) -> Case:
    """After Combiner's `_SelfAttLogn`: each letter attends to spans before it, each twice as long."""
    rows, length, width, heads, vocabulary, levels = 16, 2048, 512, 8, 256, 11
    depth = width // heads

    class Attention(nn.Module):
        @nn.compact
        def __call__(self, x):
            q, k, v = (
                nn.DenseGeneral((heads, depth), use_bias=False, dtype=jnp.bfloat16, name=name)(x) for name in "qkv"
            )
            q = q / depth**0.5
            logits, values = [(q * k).sum(-1, keepdims=True)], []
            for level in range(levels):
                span = 2**level

                def cut(z, span=span):
                    return z.reshape(-1, span, heads, depth)

                if level:
                    most = cut(q).max(1, keepdims=True)
                    share = nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", most, cut(k)))
                    value, key = jnp.einsum("bhqk,bkhd->bqhd", share, cut(v)), cut(k).max(1, keepdims=True)
                else:
                    value, key = cut(v), cut(k)
                odd = jnp.arange(length - span) // span % 2
                odd = jnp.concatenate([odd, jnp.ones(span, jnp.int32)])[None, :, None, None]
                found = jnp.einsum("nqhd,nkhd->nqhk", cut(jnp.roll(q, -span, 1)), key).reshape(-1, length, heads, 1)
                logits.append(jnp.roll(found + odd.astype(found.dtype) * -1e9, span, 1))
                values.append(value)
            share = nn.softmax(jnp.concatenate(logits, -1).astype(jnp.float32)).astype(jnp.bfloat16)
            shares = jnp.split(share, levels + 1, -1)
            out = shares[0] * v
            for level, value in enumerate(values):
                rolled = jnp.roll(shares[level + 1], -(2**level), 1).reshape(-1, 2**level, heads, 1)
                out = out + jnp.roll((rolled * value).reshape(v.shape), 2**level, 1)
            return nn.DenseGeneral(width, (-2, -1), use_bias=False, dtype=jnp.bfloat16)(out)

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x + Attention()(nn.LayerNorm(dtype=jnp.bfloat16)(x))
            y = nn.gelu(nn.Dense(4 * width, dtype=jnp.bfloat16)(nn.LayerNorm(dtype=jnp.bfloat16)(x)))
            return x + nn.Dense(width, dtype=jnp.bfloat16)(y)

    class Model(nn.Module):
        layer: type = Layer

        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(vocabulary, width, dtype=jnp.bfloat16)(jnp.pad(tokens, ((0, 0), (1, 0)))[:, :-1])
            x = x + self.param("place", nn.initializers.normal(), (length, width)).astype(jnp.bfloat16)
            return nn.Dense(vocabulary)(nn.LayerNorm()(self.layer(name="layer")(x)))

    def loss_of(model):
        def loss(params, tokens):
            return optax.softmax_cross_entropy_with_integer_labels(model.apply(params, tokens), tokens).mean()

        return loss

    tokens = draw.array((rows, length), jnp.int32)
    params = jax.eval_shape(Model().init, KEY, tokens)
    whole = loss_of(Model())
    changes = [
        ("accumulated", "chunk", accumulated(whole, 8)),
        ("remat", "checkpoint", loss_of(Model(nn.remat(Layer)))),
    ]
    return trained(draw, whole, params, (tokens,), changes, optax.adamw(1e-3))


@case("v6e")
def averaged_clients(draw: Draw) -> Case:
    """After FedJAX's `fed_avg` on `stackoverflow`: phones that each train a model, and the mean of what moved."""
    clients, steps, rows, length, vocabulary, embedded, width = 32, 8, 16, 20, 10004, 96, 670

    def loss(params, tokens):
        def cell(state, x):
            h, c = state
            i, g, f, o = jnp.split(x @ params["in"] + h @ params["again"] + params["bias"], 4, -1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        x = params["table"][tokens[:, :-1]].swapaxes(0, 1)
        _, found = lax.scan(cell, (jnp.zeros((rows, width)),) * 2, x)
        logits = found @ params["narrow"] @ params["out"] + params["out_bias"]
        said = tokens[:, 1:].T
        each = optax.softmax_cross_entropy_with_integer_labels(logits, said) * (said > 0)
        return each.sum() / jnp.maximum((said > 0).sum(), 1)

    def moved(params, batches):
        def step(own, tokens):
            gradient = jax.grad(loss)(own, tokens)
            return jax.tree.map(lambda p, g: p - 0.3 * g, own, gradient), None

        own, _ = lax.scan(step, params, batches)
        return jax.tree.map(jnp.subtract, params, own)

    server = optax.adam(1e-2, eps=1e-5)

    def applied(params, opt, mean):
        update, opt = server.update(mean, opt)
        return optax.apply_updates(params, update), opt

    def together(params, opt, batches, examples):
        deltas = jax.vmap(moved, (None, 0))(params, batches)
        share = examples / examples.sum()
        return applied(params, opt, jax.tree.map(lambda leaf: jnp.tensordot(share, leaf, 1), deltas))

    def in_turn(params, opt, batches, examples):
        def add(total, client):
            share, batches = client
            return jax.tree.map(lambda t, d: t + share * d, total, moved(params, batches)), None

        zero = jax.tree.map(jnp.zeros_like, params)
        mean, _ = lax.scan(add, zero, (examples / examples.sum(), batches))
        return applied(params, opt, mean)

    shapes = {"table": (vocabulary, embedded), "in": (embedded, 4 * width), "again": (width, 4 * width)}
    shapes |= {
        "bias": (4 * width,),
        "narrow": (width, embedded),
        "out": (embedded, vocabulary),
        "out_bias": (vocabulary,),
    }
    params = {name: draw.array(shape) for name, shape in shapes.items()}
    state = shaped(draw, jax.eval_shape(server.init, params))
    arguments = params, state, draw.array((clients, steps, rows, length + 1), jnp.int32), draw.array((clients,))
    return Case(Program(together, arguments), [Change("in_turn", "chunk", "value", Program(in_turn, arguments))])


@case("v7x")
def spiking_neurons(draw: Draw) -> Case:
    """After brainstate's `for_loop` over spiking networks: leaky cells that fire at a threshold, and learn in time."""
    rows, steps, inputs, hidden, classes = 512, 250, 700, 512, 20

    @jax.custom_jvp
    def fired(x):
        return (x > 0).astype(x.dtype)

    @fired.defjvp
    def slope(primals, tangents):
        (x,), (by,) = primals, tangents
        return fired(x), by * 0.3 * jnp.maximum(1 - jnp.abs(x), 0)

    def loss_of(run):
        def loss(params, spikes, label):
            def step(state, seen):
                current, again, voltage, spike, read = state
                current = 0.8 * current + seen.astype(jnp.float32) @ params["in"]
                again = 0.8 * again + spike @ params["again"]
                voltage = 0.95 * voltage * (1 - lax.stop_gradient(spike)) + 0.05 * (current + again)
                spike = fired(voltage - 1.0)
                read = 0.9 * read + spike @ params["out"]
                return (current, again, voltage, spike, read), (read, spike.mean(-1))

            start = tuple(jnp.zeros((len(label), width)) for width in (hidden, hidden, hidden, hidden, classes))
            _, (reads, rates) = run(step, start, spikes.swapaxes(0, 1))
            right = optax.softmax_cross_entropy_with_integer_labels(reads.mean(0), label).mean()
            return right + 1e-3 * (rates**2).mean()

        return loss

    params = {"in": draw.array((inputs, hidden)), "again": draw.array((hidden, hidden))}
    params |= {"out": draw.array((hidden, classes))}
    batch = draw.array((rows, steps, inputs), jnp.bool_), draw.array((rows,), jnp.int32)

    def in_spans(step, start, spikes):
        run = jax.checkpoint(lambda state, span: lax.scan(step, state, span))
        state, found = lax.scan(run, start, spikes.reshape(10, -1, *spikes.shape[1:]))
        return state, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), found)

    plain = loss_of(lax.scan)
    changes = [("in_spans", "checkpoint", loss_of(in_spans)), ("accumulated", "chunk", accumulated(plain, 8))]
    found = trained(draw, plain, params, batch, changes)
    found.changes[0].target = "loop"
    return found


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

    def loss_of(model):
        def loss(params, table, video, words):
            (x, y), _ = model.apply(params, video, table[words], mutable=["batch_stats"])
            scores = (x @ y.T / 0.07).reshape(rows, rows, near)
            own = jax.nn.logsumexp(scores[jnp.arange(rows), jnp.arange(rows)], -1)
            every = jnp.concatenate([scores, scores.swapaxes(0, 1)], 1)
            return (jax.nn.logsumexp(every, (1, 2)) - own).mean()

        return loss

    table, video = draw.array((vocabulary, 300)), draw.array((rows, frames, size, size, 3), jnp.uint8)
    words = draw.array((rows, near, said), jnp.int32)
    told = draw.array((*words.shape, 300))
    params = {"params": jax.eval_shape(Network().init, KEY, video, told)["params"]}
    batch = table, video, words
    changes = [("remat", "checkpoint", loss_of(Network(nn.remat(Block))))]
    return trained(draw, loss_of(Network()), params, batch, changes, optax.adam(1e-3))


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

    def loss_of(wrap):
        def loss(params, x, label):
            logits = jax.vmap(lambda x: network(params, x, wrap), axis_name="batch")(x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, label).mean()

        return loss

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
    changes = [("remat", "checkpoint", loss_of(jax.checkpoint))]
    return trained(draw, loss_of(lambda squeeze: squeeze), params, batch, changes, optax.sgd(0.1, 0.9), donated=False)


@case("v5p")
def scaled_residuals(draw: Draw) -> Case:
    """After NFNets' `NFNet`: weights of mean zero in place of normalized activations, and gradients clipped by unit."""
    rows, size, classes = 128, 192, 1000

    class Standard(nn.Module):
        width: int
        shape: int = 1
        stride: int = 1
        groups: int = 1

        @nn.compact
        def __call__(self, x):
            shape = self.shape, self.shape, x.shape[-1] // self.groups, self.width
            weight = self.param("weight", nn.initializers.lecun_normal(), shape)
            gain, bias = (
                self.param("gain", nn.initializers.ones, shape[-1:]),
                self.param("bias", nn.initializers.zeros, shape[-1:]),
            )
            mean, spread = weight.mean((0, 1, 2)), weight.var((0, 1, 2))
            fan = shape[0] * shape[1] * shape[2]
            weight = (weight - mean) * lax.rsqrt(jnp.maximum(spread * fan, 1e-4)) * gain
            found = lax.conv_general_dilated(
                x, weight.astype(x.dtype), (self.stride,) * 2, "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=self.groups,
            )  # fmt: skip
            return found + bias.astype(x.dtype)

    def gelu(x):
        return nn.gelu(x) * 1.7015043497085571

    class Block(nn.Module):
        width: int
        stride: int
        scale: float

        @nn.compact
        def __call__(self, x):
            y, side = gelu(x) * self.scale, x
            if self.stride > 1 or x.shape[-1] != self.width:
                side = nn.avg_pool(y, (2, 2), (2, 2), "SAME") if self.stride > 1 else y
                side = Standard(self.width)(side)
            half = self.width // 2
            y = gelu(Standard(half)(y))
            y = gelu(Standard(half, 3, self.stride, half // 128)(y))
            y = Standard(self.width)(gelu(Standard(half, 3, 1, half // 128)(y)))
            share = nn.Dense(self.width, dtype=y.dtype)(nn.relu(nn.Dense(half, dtype=y.dtype)(y.mean((1, 2)))))
            y = 2 * nn.sigmoid(share)[:, None, None] * y
            return side + 0.2 * self.param("gain", nn.initializers.zeros, ()).astype(y.dtype) * y

    class Network(nn.Module):
        block: type = Block

        @nn.compact
        def __call__(self, x):
            x = x.astype(jnp.bfloat16)
            for width, stride in ((32, 2), (128, 2)):
                x = Standard(width, 3, stride)(gelu(x) if width > 32 else x)
            x = self.block(256, 1, 1.0, name="block")(x)
            return nn.Dense(classes)(gelu(x).mean((1, 2)).astype(jnp.float32))

    def loss_of(model):
        def loss(params, x, label):
            soft = optax.smooth_labels(jax.nn.one_hot(label, classes), 0.1)
            return optax.softmax_cross_entropy(model.apply(params, x), soft).mean()

        return loss

    batch = draw.array((rows, size, size, 3)), draw.array((rows,), jnp.int32)
    params = jax.eval_shape(Network().init, KEY, batch[0])
    whole = loss_of(Network())
    changes = [
        ("remat", "checkpoint", loss_of(Network(nn.remat(Block)))),
        ("accumulated", "chunk", accumulated(whole, 8)),
    ]
    optimizer = optax.chain(optax.adaptive_grad_clip(0.01), optax.sgd(0.1, 0.9, nesterov=True))
    return trained(draw, whole, params, batch, changes, optimizer)
