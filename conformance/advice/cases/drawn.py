"""A sixth set, after projects of the awesome-jax list in a random order, written before any advice on it was seen."""

import functools
import itertools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, shaped, trained


def rounded(x, axes, bits=8):
    """Whole numbers of so many bits, and what they are multiplied by; the gradient passes the rounding."""
    top = 2.0 ** (bits - 1) - 1
    scale = lax.stop_gradient(top / jnp.maximum(jnp.abs(x).max(axes, keepdims=True), 1e-6))
    x = jnp.clip(x * scale, -top, top)
    return x + lax.stop_gradient(jnp.floor(x + 0.5) - x), 1 / scale


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


class Rounded(nn.Module):
    """A dense layer whose inputs and weights are rounded to whole numbers."""

    width: int

    @nn.compact
    def __call__(self, x):
        """The product with the weights."""
        weights = self.param("weights", nn.initializers.lecun_normal(), (x.shape[-1], self.width))
        (x, x_scale), (weights, scale) = rounded(x, None), rounded(weights, 0)
        return whole_product(x, weights) * (x_scale * scale).reshape(-1)


@case("v5p")
def rounded_products(draw: Draw) -> Case:
    """After AQT's `quantized_dot` in `wmt_mlperf`: a translator whose layers multiply numbers of eight bits."""
    rows, length, width, heads, vocabulary = 64, 256, 512, 8, 8192

    class Attention(nn.Module):
        @nn.compact
        def __call__(self, x, y, mask):
            q, k, v = (Rounded(width, name=name)(z) for name, z in zip("qkv", (x, y, y), strict=True))
            q, k, v = (z.reshape(*z.shape[:2], heads, -1) for z in (q / (width // heads) ** 0.5, k, v))
            (q, q_scale), (k, k_scale) = rounded(q, None), rounded(k, None)
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (q_scale * k_scale).reshape(())
            chances, scale = rounded(nn.softmax(jnp.where(mask, scores, -1e10)), None)
            v, v_scale = rounded(v, None)
            found = jnp.einsum("bhqk,bkhd->bqhd", chances, v) * (scale * v_scale).reshape(())
            return Rounded(width, name="out")(found.reshape(x.shape))

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, mask, heard=None, there=None):
            y = nn.LayerNorm()(x)
            x = x + Attention(name="self")(y, y, mask)
            if heard is not None:
                x = x + Attention(name="cross")(nn.LayerNorm()(x), heard, there)
            y = nn.relu(Rounded(4 * width)(nn.LayerNorm()(x)))
            return x + Rounded(width)(y)

    class Translator(nn.Module):
        layer: type = Layer

        @nn.compact
        def __call__(self, source, target):
            table = self.param("table", nn.initializers.normal(), (vocabulary, width))
            there = nn.make_attention_mask(jnp.ones_like(source), source > 0)
            heard = table[source] * width**0.5
            heard = nn.LayerNorm()(self.layer(name="encoder")(heard, there))
            x = table[jnp.pad(target, ((0, 0), (1, 0)))[:, :-1]] * width**0.5
            across = nn.make_attention_mask(jnp.ones_like(target), source > 0)
            x = self.layer(name="decoder")(x, nn.make_causal_mask(target), heard, across)
            return nn.LayerNorm()(x), table

    def scored(x, table, target):
        (x, x_scale), (head, scale) = rounded(x, None), rounded(table.T / width**0.5, 0)
        logits = whole_product(x, head) * (x_scale * scale).reshape(-1)
        soft = optax.smooth_labels(jax.nn.one_hot(target, vocabulary), 0.1)
        return (optax.softmax_cross_entropy(logits, soft) * (target > 0)).sum()

    def loss_of(model, parts=1):
        def loss(params, source, target):
            x, table = model.apply(params, source, target)
            if parts == 1:
                return scored(x, table, target) / (target > 0).sum()
            cut = [z.reshape(parts, -1, *z.shape[1:]) for z in (x, target)]
            found = lax.map(jax.checkpoint(lambda part: scored(part[0], table, part[1])), tuple(cut))
            return found.sum() / (target > 0).sum()

        return loss

    tokens = draw.array((rows, length), jnp.int32)
    params = jax.eval_shape(Translator().init, KEY, tokens, tokens)
    remat = Translator(nn.remat(Layer))
    changes = [("remat", "checkpoint", loss_of(remat)), ("chunked", "chunk", loss_of(Translator(), 8))]
    return trained(draw, loss_of(Translator()), params, (tokens, tokens), changes, optax.adam(1e-3))


@case("v4")
def steered_qubits(draw: Draw) -> Case:
    """After dynamiqs' `mesolve` with its gradient: density matrices of many chips, steered by one pulse."""
    chips, size, steps, pieces = 16, 64, 200, 50

    def lowered():
        return jnp.diag(jnp.sqrt(jnp.arange(1.0, size)), 1).astype(jnp.complex64)

    def slope(rho, drive, kerr, loss):
        a = lowered()
        up = a.T
        energy = -kerr * (up @ up @ a @ a) + drive[0] * (a + up) + 1j * drive[1] * (up - a)
        out = (-1j * energy - 0.5 * loss * (up @ a)) @ rho
        return out + out.conj().T + loss * (a @ rho @ up)

    def infidelity(wrap):
        def loss(pulse, kerr, damping, target):
            span = 1.0 / steps

            def evolved(kerr, damping):
                def step(rho, number):
                    drive = pulse[number * pieces // steps]
                    first = slope(rho, drive, kerr, damping)
                    second = slope(rho + span / 2 * first, drive, kerr, damping)
                    third = slope(rho + span / 2 * second, drive, kerr, damping)
                    fourth = slope(rho + span * third, drive, kerr, damping)
                    return rho + span / 6 * (first + 2 * second + 2 * third + fourth), None

                start = jnp.zeros((size, size), jnp.complex64).at[0, 0].set(1)
                rho, _ = lax.scan(wrap(step), start, jnp.arange(steps))
                return jnp.vdot(target, rho @ target).real

            return 1 - jax.vmap(evolved)(kerr, damping).mean()

        return loss

    optimizer = optax.adam(1e-2)

    def step_of(loss, parts=1):
        def step(pulse, opt, kerr, damping, target):
            def add(total, part):
                found = jax.value_and_grad(loss)(pulse, *part, target)
                return jax.tree.map(lambda t, f: t + f / parts, total, found), None

            cut = kerr.reshape(parts, -1), damping.reshape(parts, -1)
            (value, gradient), _ = lax.scan(add, (jnp.float32(0), jnp.zeros_like(pulse)), cut)
            update, opt = optimizer.update(gradient, opt)
            return optax.apply_updates(pulse, update), opt, value

        def whole(pulse, opt, kerr, damping, target):
            value, gradient = jax.value_and_grad(loss)(pulse, kerr, damping, target)
            update, opt = optimizer.update(gradient, opt)
            return optax.apply_updates(pulse, update), opt, value

        return whole if parts == 1 else step

    pulse = draw.array((pieces, 2))
    state = shaped(draw, jax.eval_shape(optimizer.init, pulse))
    arguments = pulse, state, draw.array((chips,)), draw.array((chips,)), draw.array((size,), jnp.complex64)
    plain = infidelity(lambda step: step)
    changes = [
        Change("remat", "checkpoint", "loop", Program(step_of(infidelity(jax.checkpoint)), arguments)),
        Change("accumulated", "chunk", "value", Program(step_of(plain, 8), arguments)),
    ]
    return Case(Program(step_of(plain), arguments), changes)


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

    def loss_of(wrap):
        def loss(params, x, u, y):
            logits = network(params, jnp.concatenate([x, u.reshape(-1, *u.shape[2:])]), wrap)
            weak, strong = logits[labeled::2], logits[labeled + 1 :: 2]
            known = optax.softmax_cross_entropy(logits[:labeled], y).mean()
            guess = lax.stop_gradient(jax.nn.softmax(weak))
            sure = guess.max(1) >= 0.95
            told = optax.softmax_cross_entropy_with_integer_labels(strong, guess.argmax(1)) * sure
            decay = 0.5 * sum(
                (leaf**2).sum() for leaf in jax.tree.leaves(params) if leaf.ndim == 4 and leaf.shape[0] != 1
            )
            return known + told.mean() + 5e-4 * decay

        return loss

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

    state = shaped(draw, jax.eval_shape(optimizer.init, params))
    batch = (
        draw.array((labeled, 3, 32, 32)),
        draw.array((labeled * ratio, 2, 3, 32, 32)),
        draw.array((labeled, classes)),
    )
    arguments = params, state, params, *batch
    jit = {"donate_argnums": (0, 1, 2)}
    remat = Program(step_of(loss_of(jax.checkpoint)), arguments, jit)
    change = Change("remat", "checkpoint", "value", remat)
    return Case(Program(step_of(loss_of(lambda block: block)), arguments, jit), [change])


@case("v6e")
def leaping_chains(draw: Draw) -> Case:
    """After Oryx's `mcmc.hmc`: chains of all weights of a network at once, and every leap reads all of the data."""
    chains, rows, widths, leaps = 32, 16384, (54, 128, 128, 7), 4

    def likely(weights, x, y):
        for number, (weight, bias) in enumerate(weights):
            x = x @ weight + bias
            x = jax.nn.relu(x) if number < len(weights) - 1 else x
        return jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).sum()

    def sampled(slope_of):
        def step(weights, keys, x, y):
            def density(weights):
                prior = -0.5 * sum((leaf**2).sum() for leaf in jax.tree.leaves(weights))
                value, slope = slope_of(weights, x, y)
                return value + prior, jax.tree.map(jnp.subtract, slope, weights)

            def one(weights, key):
                first, *rest = jax.random.split(key, 1 + len(jax.tree.leaves(weights)))
                leaves, tree = jax.tree.flatten(weights)
                pace = tree.unflatten([jax.random.normal(k, leaf.shape) for k, leaf in zip(rest, leaves, strict=True)])

                def energy(value, pace):
                    return value - 0.5 * sum((leaf**2).sum() for leaf in jax.tree.leaves(pace))

                def leap(state, _):
                    at, pace, _, slope = state
                    pace = jax.tree.map(lambda p, s: p + 5e-4 * s, pace, slope)
                    at = jax.tree.map(lambda a, p: a + 1e-3 * p, at, pace)
                    value, slope = density(at)
                    return (at, jax.tree.map(lambda p, s: p + 5e-4 * s, pace, slope), value, slope), None

                value, slope = density(weights)
                (at, after, end, _), _ = lax.scan(leap, (weights, pace, value, slope), None, leaps)
                taken = jnp.log(jax.random.uniform(first)) < energy(end, after) - energy(value, pace)
                return jax.tree.map(lambda new, old: jnp.where(taken, new, old), at, weights)

            return jax.vmap(one)(weights, keys)

        return step

    def by_rows(weights, x, y, parts=16):
        def add(total, part):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(likely)(weights, *part)), None

        zero = jax.tree.map(jnp.zeros_like, (jnp.float32(0), weights))
        return lax.scan(add, zero, (x.reshape(parts, -1, x.shape[1]), y.reshape(parts, -1)))[0]

    def in_turn(weights, keys, x, y):
        whole = sampled(jax.value_and_grad(likely))

        def chain(now):
            found = whole(*jax.tree.map(lambda leaf: leaf[None], now), x, y)
            return jax.tree.map(lambda leaf: leaf[0], found)

        return lax.map(chain, (weights, keys))

    weights = [
        (draw.array((chains, ins, outs)), draw.array((chains, outs))) for ins, outs in itertools.pairwise(widths)
    ]
    arguments = weights, draw.array((chains, 2), jnp.uint32), draw.array((rows, widths[0]))
    arguments = *arguments, draw.array((rows,), jnp.int32)
    changes = [
        Change("by_rows", "chunk", "value", Program(sampled(by_rows), arguments)),
        Change("in_turn", "chunk", "value", Program(in_turn, arguments)),
    ]
    return Case(Program(sampled(jax.value_and_grad(likely)), arguments), changes)


@case("v5p")
def alternating_squares(draw: Draw) -> Case:
    """After ALX's `project`: a matrix of 128 by 128 for each user, summed over rows of what he saw, and solved."""
    items, people, rows, seen, users, width, parts = 600_000, 1_000_000, 16384, 16, 8192, 128, 16

    def sums(table, history, which):
        found = table[history].astype(jnp.float32)
        squares = jnp.einsum("bij,bik->bjk", found, found)
        return tuple(jax.ops.segment_sum(each, which, users) for each in (squares, found.sum(1)))

    def in_parts(table, history, which):
        def add(total, part):
            return jax.tree.map(jnp.add, total, sums(table, *part)), None

        zero = jnp.zeros((users, width, width)), jnp.zeros((users, width))
        return lax.scan(add, zero, (history.reshape(parts, -1, seen), which.reshape(parts, -1)))[0]

    def project_of(sums):
        def project(table, people, gram, history, lengths, chosen, which):
            squares, right = sums(table, history, which)
            worth = 1e-3 * (lengths + 0.05 * items)
            left = squares + 0.05 * gram + jnp.eye(width) * worth[:, None, None]
            found = jax.vmap(lambda a, b: jax.scipy.sparse.linalg.cg(lambda x: a @ x, b, maxiter=16)[0])(left, right)
            return people.at[chosen].add(found.astype(people.dtype) - people[chosen])

        return project

    arguments = draw.array((items, width), jnp.bfloat16), draw.array((people, width), jnp.bfloat16)
    arguments = *arguments, draw.array((width, width)), draw.array((rows, seen), jnp.int32), draw.array((users,))
    arguments = *arguments, draw.array((users,), jnp.int32), draw.array((rows,), jnp.int32)
    changes = [
        Change("in_parts", "chunk", "value", Program(project_of(in_parts), arguments)),
        Change("donated", "donate", "argument", Program(project_of(sums), arguments, {"donate_argnums": (1,)})),
    ]
    return Case(Program(project_of(sums), arguments), changes)


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
    found = shaped(draw, jax.eval_shape(Network().init, KEY, x))
    state = shaped(draw, jax.eval_shape(optimizer.init, found["params"]))
    arguments = found["params"], found["batch_stats"], state, x, draw.array((rows,), jnp.int32)
    jit = {"donate_argnums": (0, 1, 2)}
    change = Change("remat", "checkpoint", "value", Program(step_of(Network(nn.remat(Bottleneck))), arguments, jit))
    return Case(Program(step_of(Network()), arguments, jit), [change])


@case("v4")
def thin_films(draw: Draw) -> Case:
    """After tmmax's `tmm`: light of each color and angle through 40 films, two by two numbers for every face."""
    colors, angles, layers, materials, known = 1000, 1000, 42, 5, 256

    def bent(index, angle):
        return jnp.arcsin(index[0] * jnp.sin(angle) / index)

    def faced(index, angles):
        """What a face reflects and what it lets through."""
        first, second = index[:-1] * jnp.cos(angles[:-1]), index[1:] * jnp.cos(angles[1:])
        return (first - second) / (first + second), 2 * first / (first + second)

    def coefficients(matrix, index, angles):
        reflected, through = matrix[1, 0] / matrix[0, 0], 1 / matrix[0, 0]
        share = (index[-1] * jnp.cos(angles[-1])).real / (index[0] * jnp.cos(angles[0])).real
        return jnp.abs(reflected) ** 2, jnp.abs(through) ** 2 * share

    def passed(matrix, now):
        phase, reflected, through = now
        turn, zero = jnp.exp(1j * phase), jnp.zeros_like(phase)
        turned = jnp.array([[1 / turn, zero], [zero, turn]])
        face = jnp.array([[1, reflected], [reflected, 1]]) / through
        return matrix @ (turned @ face), None

    def one(tables, kinds, thickness, color, angle):
        at = jax.vmap(lambda n, k: jnp.interp(color, tables[0], n) + 1j * jnp.interp(color, tables[0], k))
        index = at(tables[1], tables[2])[kinds]
        inside = bent(index, angle)
        phases = 2 * jnp.pi * index * jnp.cos(inside) / color * jnp.pad(thickness, 1)
        reflected, through = faced(index, inside)
        begun = jnp.array([[1, reflected[0]], [reflected[0], 1]]) / through[0]
        matrix, _ = lax.scan(passed, begun, (phases[1:-1], reflected[1:], through[1:]))
        return coefficients(matrix, index, inside)

    over_colors = jax.vmap(one, (None, None, None, 0, None))

    def tmm(tables, kinds, thickness, color, angle):
        return jax.vmap(over_colors, (None, None, None, None, 0))(tables, kinds, thickness, color, angle)

    def by_angles(tables, kinds, thickness, color, angle):
        return lax.map(lambda now: over_colors(tables, kinds, thickness, color, now), angle, batch_size=20)

    tables = draw.array((known,)), draw.array((materials, known)), draw.array((materials, known))
    arguments = tables, draw.array((layers,), jnp.int32), draw.array((layers - 2,)), draw.array((colors,))
    arguments = *arguments, draw.array((angles,))
    return Case(Program(tmm, arguments), [Change("by_angles", "chunk", "value", Program(by_angles, arguments))])


@case("v7x")
def shallow_water(draw: Draw) -> Case:
    """After mpi4jax's `shallow_water`, on one chip: heights and speeds of a turning sea, a hundred steps a call."""
    high, wide, strip, length, gravity, friction, lapse = 8192, 8192, 128, 5e3, 9.81, 5.0, 20.0

    def bounded(x, kind="h"):
        x = x.at[:, 0].set(x[:, -2]).at[:, -1].set(x[:, 1])
        return x.at[-2].set(0) if kind == "v" else x

    def inner(old, new):
        return old.at[1:-1, 1:-1].set(new)

    def turned(row):
        return 2e-4 + (row - 1) * length * 2e-11

    def slopes(h, u, v, old):
        at, east, north = (slice(1, -1),) * 2, (slice(1, -1), slice(2, None)), (slice(2, None), slice(1, -1))
        west, south = (slice(1, -1), slice(None, -2)), (slice(None, -2), slice(1, -1))
        ne, se, nw = (slice(2, None),) * 2, (slice(None, -2), slice(2, None)), (slice(2, None), slice(None, -2))
        zero = jnp.zeros_like(u)
        hc = bounded(jnp.pad(h[1:-1, 1:-1], 1, "edge"))
        fe = bounded(inner(zero, 0.5 * (hc[at] + hc[east]) * u[at]), "u")
        fn = bounded(inner(zero, 0.5 * (hc[at] + hc[north]) * v[at]), "v")
        dh = inner(old[0], -(fe[at] - fe[west] + fn[at] - fn[south]) / length)
        spin = turned(jnp.arange(high)[1:-1, None]) + (v[east] - v[at] - u[north] + u[at]) / length
        q = bounded(inner(zero, spin / (0.25 * (hc[at] + hc[east] + hc[north] + hc[ne]))))
        push = 0.25 * (q[at] * (fn[at] + fn[east]) + q[south] * (fn[south] + fn[se]))
        pull = 0.25 * (q[at] * (fe[at] + fe[north]) + q[west] * (fe[west] + fe[nw]))
        energy = bounded(inner(zero, 0.25 * (u[at] ** 2 + u[west] ** 2 + v[at] ** 2 + v[south] ** 2)))
        du = inner(old[1], push - (gravity * (h[east] - h[at]) + energy[east] - energy[at]) / length)
        dv = inner(old[2], -pull - (gravity * (h[north] - h[at]) + energy[north] - energy[at]) / length)
        return dh, du, dv

    def slopes_in_strips(h, u, v, old):
        def east(x):
            return jnp.roll(x, -1, 1)

        def north(x):
            return jnp.roll(x, -1, 0)

        def west(x):
            return jnp.roll(x, 1, 1)

        def south(x):
            return jnp.roll(x, 1, 0)

        def fill(number, found):
            row = number * strip + jnp.arange(-2, strip + 2)
            hh, uu, vv = (x[jnp.clip(row, 0, high - 1)] for x in (h, u, v))
            hc = h[jnp.clip(row, 1, high - 2)]
            row = row[:, None]
            is_inner = (row > 0) & (row < high - 1)
            fe = jnp.where(is_inner, 0.5 * (hc + east(hc)) * uu, 0)
            fn = jnp.where(is_inner & (row != high - 2), 0.5 * (hc + north(hc)) * vv, 0)
            dh = -(fe - west(fe) + fn - south(fn)) / length
            spin = turned(row) + (east(vv) - vv - north(uu) + uu) / length
            q = jnp.where(is_inner, spin / (0.25 * (hc + east(hc) + north(hc) + east(north(hc)))), 0)
            push = 0.25 * (q * (fn + east(fn)) + south(q * (fn + east(fn))))
            pull = 0.25 * (q * (fe + north(fe)) + west(q * (fe + north(fe))))
            energy = jnp.where(is_inner, 0.25 * (uu**2 + west(uu) ** 2 + vv**2 + south(vv) ** 2), 0)
            du = push - (gravity * (east(hh) - hh) + east(energy) - energy) / length
            dv = -pull - (gravity * (north(hh) - hh) + north(energy) - energy) / length
            is_kept = is_inner & (jnp.arange(wide) > 0) & (jnp.arange(wide) < wide - 1)

            def put(all_rows, new):
                now = lax.dynamic_slice_in_dim(all_rows, number * strip, strip)
                now = jnp.where(is_kept[2:-2], new[2:-2], now)
                return lax.dynamic_update_slice_in_dim(all_rows, now, number * strip, 0)

            return tuple(put(x, new) for x, new in zip(found, (dh, du, dv), strict=True))

        return lax.fori_loop(0, high // strip, fill, old)

    def multistep_of(slopes):
        def step(_, state):
            h, u, v, *old = state
            new = slopes(h, u, v, tuple(old))
            pairs = zip((h, u, v), new, old, "huv", strict=True)
            h, u, v = (
                bounded(x.at[1:-1, 1:-1].add(lapse * (1.6 * n - 0.6 * o)[1:-1, 1:-1]), kind) for x, n, o, kind in pairs
            )

            def rubbed(x):
                fe = bounded(inner(jnp.zeros_like(x), friction * (x[1:-1, 2:] - x[1:-1, 1:-1]) / length), "u")
                fn = bounded(inner(jnp.zeros_like(x), friction * (x[2:, 1:-1] - x[1:-1, 1:-1]) / length), "v")
                across, along = fe[1:-1, 1:-1] - fe[1:-1, :-2], fn[1:-1, 1:-1] - fn[:-2, 1:-1]
                return x.at[1:-1, 1:-1].add(lapse * (across + along) / length)

            return h, rubbed(u), rubbed(v), *new

        return lambda state: lax.fori_loop(0, 100, step, state)

    arguments = ((draw.array((high, wide)),) * 6,)
    changes = [
        Change("donated", "donate", "argument", Program(multistep_of(slopes), arguments, {"donate_argnums": (0,)})),
        Change("in_strips", "chunk", "value", Program(multistep_of(slopes_in_strips), arguments)),
    ]
    return Case(Program(multistep_of(slopes), arguments), changes)
