"""The last of the sixth set, after projects of the awesome-jax list in a random order."""

import functools
import itertools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.scipy.linalg import cho_solve, solve_triangular

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, accumulated, shaped, trained


@case("v6e")
def worst_pictures(draw: Draw) -> Case:
    """After DeepMind's `adversarial_robustness` with TRADES: pictures that mislead, and a network that learns."""
    rows, classes, reach = 256, 10, 8 / 255
    norm = functools.partial(nn.BatchNorm, use_running_average=False)

    class Block(nn.Module):
        width: int
        stride: int

        @nn.compact
        def __call__(self, x):
            y = nn.swish(norm()(x))
            side = x
            if x.shape[-1] != self.width:
                side = nn.Conv(self.width, (1, 1), (self.stride,) * 2, use_bias=False)(y)
            y = nn.Conv(self.width, (3, 3), (self.stride,) * 2, use_bias=False)(y)
            return side + nn.Conv(self.width, (3, 3), use_bias=False)(nn.swish(norm()(y)))

    class Network(nn.Module):
        block: type = Block

        @nn.compact
        def __call__(self, x):
            x = nn.Conv(160, (3, 3), use_bias=False)(x)
            for number, (width, stride) in enumerate(((160, 1),)):
                x = self.block(width, stride, name=f"block_{number}")(x)
            return nn.Dense(classes)(nn.swish(norm()(x)).mean((1, 2)))

    def apart(first, second):
        first, second = jax.nn.log_softmax(first), jax.nn.log_softmax(second)
        return (jnp.exp(first) * (first - second)).sum(-1).mean()

    def loss_of(model):
        def told(params, x):
            return model.apply(params, x, mutable=["batch_stats"])[0]

        def loss(params, key, x, label):
            aim = lax.stop_gradient(told(params, x))

            def climb(_, moved):
                slope = jax.grad(lambda moved: apart(aim, told(params, moved)))(moved)
                moved = x + jnp.clip(moved + 0.007 * jnp.sign(slope) - x, -reach, reach)
                return jnp.clip(moved, 0, 1)

            start = jnp.clip(x + 0.001 * jax.random.normal(key, x.shape), 0, 1)
            worst = lax.stop_gradient(lax.fori_loop(0, 10, climb, start))
            clean = told(params, x)
            right = optax.softmax_cross_entropy_with_integer_labels(clean, label).mean()
            return right + 6.0 * apart(clean, told(params, worst))

        return loss

    optimizer = optax.chain(optax.add_decayed_weights(5e-4), optax.sgd(0.1, 0.9, nesterov=True))

    def step_of(model):
        def step(params, opt, smooth, key, x, label):
            value, gradient = jax.value_and_grad(loss_of(model))(params, key, x, label)
            update, opt = optimizer.update(gradient, opt, params)
            params = optax.apply_updates(params, update)
            return params, opt, optax.incremental_update(params, smooth, 0.005), value

        return step

    x = draw.array((rows, 32, 32, 3))
    params = shaped(draw, {"params": jax.eval_shape(Network().init, KEY, x)["params"]})
    state = shaped(draw, jax.eval_shape(optimizer.init, params))
    arguments = params, state, params, draw.array((2,), jnp.uint32), x, draw.array((rows,), jnp.int32)
    jit = {"donate_argnums": (0, 1, 2)}
    change = Change("remat", "checkpoint", "value", Program(step_of(Network(nn.remat(Block))), arguments, jit))
    return Case(Program(step_of(Network()), arguments, jit), [change])


@case("v5e")
def unbiased_particles(draw: Draw) -> Case:
    """After google-research's `persistent_es`: pairs of networks with rates of their own, a few steps at a time."""
    pairs, steps, rows, widths = 256, 10, 100, (784, 100, 100, 10)

    def inner_loss(weights, x, label):
        for number, (weight, bias) in enumerate(weights):
            x = x @ weight + bias
            x = jax.nn.relu(x) if number < 2 else x
        return optax.softmax_cross_entropy_with_integer_labels(x, label).mean()

    def unrolled(theta, state, x, label):
        def step(state, now):
            weights, momentum, count = state
            value, slope = jax.value_and_grad(inner_loss)(weights, *now)
            rate = jnp.exp(theta[0]) / (1 + count / 5000) ** jnp.exp(theta[1])
            momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, slope)
            return (jax.tree.map(lambda w, m: w - rate * m, weights, momentum), momentum, count + 1), value

        state, values = lax.scan(step, state, (x, label))
        return state, values.mean()

    optimizer = optax.adam(1e-2)

    def step(theta, opt, summed, states, key, x, label):
        noise = 0.1 * jax.random.normal(key, (pairs, 2))
        noise = jnp.stack([noise, -noise], 1)
        summed = summed + noise
        run = jax.vmap(jax.vmap(unrolled, (0, 0, None, None)), (0, 0, None, None))
        states, values = run(theta + noise, states, x, label)
        gradient = (summed * values[..., None]).mean((0, 1)) / 0.01
        update, opt = optimizer.update(gradient, opt)
        return optax.apply_updates(theta, update), opt, summed, states, values.mean()

    def weights():
        return [
            (draw.array((pairs, 2, ins, outs)), draw.array((pairs, 2, outs)))
            for ins, outs in itertools.pairwise(widths)
        ]

    theta = draw.array((2,))
    state = shaped(draw, jax.eval_shape(optimizer.init, theta))
    arguments = theta, state, draw.array((pairs, 2, 2)), (weights(), weights(), draw.array((pairs, 2)))
    arguments = *arguments, draw.array((2,), jnp.uint32), draw.array((steps, rows, 784))
    arguments = *arguments, draw.array((steps, rows), jnp.int32)
    donated = Program(step, arguments, {"donate_argnums": (2, 3)})
    return Case(Program(step, arguments), [Change("donated", "donate", "argument", donated)])


@case("v5p")
def mutated_strings(draw: Draw) -> Case:
    """After google-research's `deep_evolution_solver`: a network that guesses where to change proteins."""
    rows, changed, length, letters, width = 1000, 5, 237, 20, 300

    class Predictor(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                x = nn.relu(nn.Conv(width, (5,))(x))
            return nn.Dense(letters + 1)(x)

    class Critic(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Conv(width, (5,))(x))
            return nn.Dense(1)(x.mean(1))[:, 0]

    def gathered(where, logits):
        chosen = jax.nn.one_hot(where, length)
        return (chosen[..., None] * logits[:, None]).sum(-2)

    def loss_of(wrap):
        def loss(params, rewards, strings, places, kinds):
            x = jax.nn.one_hot(strings, letters)
            flat = x.reshape(-1, length, letters)
            gain = rewards - wrap(lambda x: Critic().apply(params["critic"], x))(flat).reshape(x.shape[:2])
            found = wrap(lambda x: Predictor().apply(params["predictor"], x))(flat)
            where, what = jax.nn.log_softmax(found[..., -1]), jax.nn.log_softmax(found[..., :-1])
            place = places.reshape(-1, 1)
            first = gathered(place, where[..., None])[:, 0, 0]
            second = jnp.take_along_axis(gathered(place, what)[:, 0], kinds.reshape(-1, 1), 1)[:, 0]
            likely = (first + second).reshape(gain.shape)
            surprise = -(jnp.exp(where) * where).mean() - (jnp.exp(what) * what).mean()
            return -(lax.stop_gradient(gain) * likely).mean() - 0.1 * surprise + (gain**2).mean()

        return loss

    def in_parts(params, rewards, strings, places, kinds):
        def turned(params, rewards, *batch):
            return plain(params, rewards, *[x.swapaxes(0, 1) for x in batch])

        batch = [x.swapaxes(0, 1) for x in (strings, places, kinds)]
        return accumulated(turned, 8)(params, rewards, *batch)

    plain = loss_of(lambda run: run)
    x = draw.array((rows, length, letters))
    params = {"critic": jax.eval_shape(Critic().init, KEY, x), "predictor": jax.eval_shape(Predictor().init, KEY, x)}
    batch = draw.array((rows,)), draw.array((changed, rows, length), jnp.int32), draw.array((changed, rows), jnp.int32)
    batch = *batch, draw.array((changed, rows), jnp.int32)
    changes = [("in_parts", "chunk", in_parts), ("remat", "checkpoint", loss_of(jax.checkpoint))]
    return trained(draw, plain, params, batch, changes, donated=False)


@case("v4")
def replayed_frames(draw: Draw) -> Case:
    """After coax's `apex_dqn` example: stacks of frames and their changes, and errors for the next draw."""
    rows, size, frames, actions, parts = 4096, 84, 3, 6, 16

    class Values(nn.Module):
        @nn.compact
        def __call__(self, seen):
            x = jnp.stack(seen, -1).astype(jnp.float32) / 255
            x = jnp.stack([x[..., -1], x[..., -1] - x[..., -2], x[..., -1] - 2 * x[..., -2] + x[..., -3]], -1)
            x = nn.relu(nn.Conv(16, (8, 8), (4, 4))(x))
            x = nn.relu(nn.Conv(32, (4, 4), (2, 2))(x))
            return nn.Dense(actions)(nn.relu(nn.Dense(256)(x.reshape(len(x), -1))))

    q, optimizer = Values(), optax.adam(3e-4)

    def loss(params, aim, worth, seen, action, reward, bootstrap, after):
        best = q.apply(aim, after).max(-1)
        target = lax.stop_gradient(reward + bootstrap * best)
        said = jnp.take_along_axis(q.apply(params, seen), action[:, None], 1)[:, 0]
        return (worth * optax.huber_loss(said, target)).mean(), target - said

    def whole(params, aim, *batch):
        (value, error), gradient = jax.value_and_grad(loss, has_aux=True)(params, aim, *batch)
        return value, error, gradient

    def in_parts(params, aim, *batch):
        def add(total, part):
            value, error, gradient = whole(params, aim, *part)
            return jax.tree.map(lambda t, x: t + x / parts, total, (value, gradient)), error

        zero = jax.tree.map(jnp.zeros_like, (jnp.float32(0), params))
        cut = jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), batch)
        (value, gradient), error = lax.scan(add, zero, cut)
        return value, error.reshape(-1), gradient

    def step_of(slope):
        def step(params, aim, opt, *batch):
            value, error, gradient = slope(params, aim, *batch)
            update, opt = optimizer.update(gradient, opt)
            params = optax.apply_updates(params, update)
            return params, optax.incremental_update(params, aim, 0.001), opt, value, error

        return step

    seen = (draw.array((rows, size, size), jnp.uint8),) * frames
    params = shaped(draw, jax.eval_shape(q.init, KEY, seen))
    state = shaped(draw, jax.eval_shape(optimizer.init, params))
    arguments = params, params, state, draw.array((rows,)), seen, draw.array((rows,), jnp.int32)
    arguments = *arguments, draw.array((rows,)), draw.array((rows,)), seen
    change = Change("in_parts", "chunk", "value", Program(step_of(in_parts), arguments))
    return Case(Program(step_of(whole), arguments), [change])


@case("v6e")
def autoregressive_blocks(draw: Draw) -> Case:
    """After flowjax's `block_neural_autoregressive_flow`: logarithms of blocks of slopes, from layer to layer."""
    rows, width, block, depth = 65536, 64, 8, 2
    shapes = [(1, block), *[(block, block)] * (depth - 1), (block, 1)]

    def masks(ins, outs):
        row, column = jnp.arange(width * outs)[:, None] // outs, jnp.arange(width * ins) // ins
        return row == column, row > column

    def log_product(x, y):
        most_x, most_y = x.max(-1, keepdims=True), y.max(-2, keepdims=True)
        return jnp.log(jnp.exp(x - most_x) @ jnp.exp(y - most_y)) + most_x + most_y

    def layered(p, x, slopes, ins, outs):
        own, before = masks(ins, outs)
        weight = jnp.where(own, jnp.exp(p["weight"]), jnp.where(before, p["weight"], 0))
        size = jnp.linalg.norm(weight, axis=1, keepdims=True)
        weight = jnp.exp(p["scale"])[:, None] * weight / size
        blocks = weight.reshape(width, outs, width, ins)[jnp.arange(width), :, jnp.arange(width)]
        blocks = jnp.log(blocks)
        return weight @ x + p["bias"], blocks if slopes is None else log_product(blocks, slopes)

    def bent(x, slopes):
        more = -2 * (x + jax.nn.softplus(-2 * x) - jnp.log(2.0))
        return jnp.tanh(x), slopes + more.reshape(width, -1)[..., None]

    def loss_of(wrap):
        def density(params, x):
            slopes = None
            for number, (p, (ins, outs)) in enumerate(zip(params, shapes, strict=True)):

                def layer(p, x, slopes, ins=ins, outs=outs, is_last=number == depth):
                    x, slopes = layered(p, x, slopes, ins, outs)
                    return (x, slopes) if is_last else bent(x, slopes)

                x, slopes = wrap(layer)(p, x, slopes)
            return jax.scipy.stats.norm.logpdf(x).sum() + slopes.sum()

        return lambda params, x: -jax.vmap(density, (None, 0))(params, x).mean()

    params = [
        {
            "weight": draw.array((width * outs, width * ins)),
            "scale": draw.array((width * outs,)),
            "bias": draw.array((width * outs,)),
        }
        for ins, outs in shapes
    ]
    plain = loss_of(lambda layer: layer)
    changes = [("accumulated", "chunk", accumulated(plain, 8)), ("remat", "checkpoint", loss_of(jax.checkpoint))]
    return trained(draw, plain, params, (draw.array((rows, width)),), changes, optax.adam(5e-4))


@case("v5e")
def periodic_process(draw: Draw) -> Case:
    """After tinygp's `GaussianProcess.log_probability`: a star at all pairs of times, and slopes for 32 chains."""
    points, chains = 768, 256

    def kernel(params, x, y):
        apart = x - y
        p = jax.tree.map(jnp.exp, params)
        slow = p["slow"] * jnp.exp(-0.5 * (apart / p["long"]) ** 2)
        turn = jnp.exp(-p["gamma"] * jnp.sin(jnp.pi * apart / p["period"]) ** 2)
        far = jnp.sqrt(3.0) * jnp.abs(apart) / p["rough"]
        return slow * turn + p["fast"] * (1 + far) * jnp.exp(-far) + p["tail"] / (1 + 0.5 * (apart / p["wide"]) ** 2)

    def covariance(params, x, y):
        return jax.vmap(lambda a: jax.vmap(lambda b: kernel(params, a, b))(y))(x)

    def loss_of(covariance):
        def loss(params, x, noise, y):
            matrix = covariance({name: value for name, value in params.items() if name != "mean"}, x, x)
            matrix = matrix + jnp.diag(noise**2 + jnp.exp(params["jitter"]))
            lower = jnp.linalg.cholesky(matrix)
            alpha = solve_triangular(lower, y - params["mean"], lower=True)
            return 0.5 * (alpha**2).sum() + jnp.log(jnp.diag(lower)).sum() + 0.5 * points * jnp.log(2 * jnp.pi)

        return loss

    def slopes(covariance):
        return jax.vmap(jax.value_and_grad(loss_of(covariance)), (0, None, None, None))

    def in_turn(params, x, noise, y):
        one = jax.value_and_grad(loss_of(covariance))
        return lax.map(lambda params: one(params, x, noise, y), params)

    names = "slow", "long", "gamma", "period", "fast", "rough", "tail", "wide", "jitter", "mean"
    params = {name: draw.array((chains,)) for name in names}
    arguments = params, draw.array((points,)), draw.array((points,)), draw.array((points,))
    changes = [
        Change("in_turn", "chunk", "value", Program(in_turn, arguments)),
        Change("remat", "checkpoint", "value", Program(slopes(jax.checkpoint(covariance)), arguments)),
    ]
    return Case(Program(slopes(covariance), arguments), changes)


@case("v7x")
def growing_snakes(draw: Draw) -> Case:
    """After Jumanji's `A2CAgent` on `Snake`: games played inside of the loss, whose network is kept for every move."""
    games, steps, high, wide, parts = 1024, 32, 12, 12, 8
    ways = jnp.array([(-1, 0), (0, 1), (1, 0), (0, -1)])

    def seen(state):
        body, _, fruit, length, _ = state
        places = jnp.stack([body > 0, body == body.max(), body == 1], -1).astype(jnp.float32)
        at = jnp.zeros((high, wide)).at[fruit[0], fruit[1]].set(1)
        return jnp.concatenate([places, at[..., None], (body / jnp.maximum(length, 1))[..., None]], -1)

    def moved(state, action, key):
        body, head, fruit, length, count = state
        head = head + ways[action]
        is_out = (head < 0).any() | (head[0] >= high) | (head[1] >= wide)
        row, column = jnp.clip(head, 0, high - 1)
        is_fed = (head == fruit).all()
        body = jnp.where(is_fed, body, jnp.maximum(body - 1, 0))
        is_done = is_out | (body[row, column] > 0) | (count >= 4000)
        body, length = body.at[row, column].set(length + is_fed), length + is_fed
        place = jax.random.categorical(key, jnp.where(body.reshape(-1) > 0, -1e9, 0.0))
        fruit = jnp.where(is_fed, jnp.stack([place // wide, place % wide]), fruit)
        start = jnp.zeros_like(body).at[6, 6].set(1), jnp.array([6, 6]), jnp.array([3, 3]), jnp.int32(1), jnp.int32(0)
        state = jax.tree.map(
            lambda new, now: jnp.where(is_done, new, now), start, (body, head, fruit, length, count + 1)
        )
        return state, is_fed.astype(jnp.float32), 1.0 - is_done

    class Network(nn.Module):
        outs: int

        @nn.compact
        def __call__(self, x):
            for width in (32, 32):
                x = nn.relu(nn.Conv(width, (2, 2), padding="VALID")(x))
            return nn.Dense(self.outs)(nn.relu(nn.Dense(64)(nn.relu(nn.Dense(64)(x.reshape(len(x), -1))))))

    actor, critic = Network(4), Network(1)

    def loss_of(wrap):
        def loss(params, states, keys):
            def step(states, keys):
                view = jax.vmap(seen)(states)
                logits = jax.nn.log_softmax(actor.apply(params["actor"], view))
                first, second = jax.vmap(jax.random.split, out_axes=1)(keys)
                action = jax.vmap(jax.random.categorical)(first, logits)
                value = critic.apply(params["critic"], view)[:, 0]
                states, reward, discount = jax.vmap(moved)(states, action, second)
                chance = jnp.take_along_axis(logits, action[:, None], 1)[:, 0]
                surprise = -(jnp.exp(logits) * logits).sum(-1)
                return states, (value, chance, surprise, reward, 0.99 * discount)

            states, (values, chances, surprise, rewards, discounts) = lax.scan(wrap(step), states, keys.swapaxes(0, 1))
            last = critic.apply(params["critic"], jax.vmap(seen)(states))[:, 0]
            after = lax.stop_gradient(jnp.concatenate([values[1:], last[None]]))

            def back(later, now):
                error, discount = now
                later = error + 0.95 * discount * later
                return later, later

            errors = rewards + discounts * after - values
            _, gains = lax.scan(back, jnp.zeros_like(last), (errors, discounts), reverse=True)
            value = -(lax.stop_gradient(gains) * chances).mean() + (gains**2).mean() - 0.01 * surprise.mean()
            return value, states

        return loss

    optimizer = optax.adam(3e-4)

    def step_of(slope):
        def step(params, opt, states, keys):
            states, gradient, value = slope(params, states, keys)
            update, opt = optimizer.update(gradient, opt)
            return optax.apply_updates(params, update), opt, states, value

        return step

    def whole(wrap):
        def slope(params, states, keys):
            (value, states), gradient = jax.value_and_grad(loss_of(wrap), has_aux=True)(params, states, keys)
            return states, gradient, value

        return slope

    def in_parts(params, states, keys):
        def add(total, part):
            states, *found = whole(lambda step: step)(params, *part)
            return jax.tree.map(lambda t, x: t + x / parts, total, found), states

        cut = jax.tree.map(lambda x: x.reshape(parts, -1, *x.shape[1:]), (states, keys))
        zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), [params, jnp.float32(0)])
        found, states = lax.scan(add, zero, cut)
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), states), *found

    view = draw.array((games, high, wide, 5))
    params = {"actor": jax.eval_shape(actor.init, KEY, view), "critic": jax.eval_shape(critic.init, KEY, view)}
    params = shaped(draw, params)
    opt = shaped(draw, jax.eval_shape(optimizer.init, params))
    states = draw.array((games, high, wide), jnp.int32), draw.array((games, 2), jnp.int32)
    states = (
        *states,
        draw.array((games, 2), jnp.int32),
        draw.array((games,), jnp.int32),
        draw.array((games,), jnp.int32),
    )
    arguments = params, opt, states, draw.array((games, steps, 2), jnp.uint32)
    changes = [
        Change("remat", "checkpoint", "loop", Program(step_of(whole(jax.checkpoint)), arguments)),
        Change("in_parts", "chunk", "value", Program(step_of(in_parts), arguments)),
    ]
    return Case(Program(step_of(whole(lambda step: step)), arguments), changes)


@case("v5p")
def hoped_improvement(draw: Draw) -> Case:
    """After bayex's `suggest_next`: many starts climb to where a process of all trials so far hopes for the most."""
    seeds, trials, width, climbs = 65536, 512, 8, 20

    def kernel(params, x, y):
        x, y = x / jnp.exp(params["length"]), y / jnp.exp(params["length"])
        square = (x**2).sum(-1)[:, None] + (y**2).sum(-1) - 2 * x @ y.T
        return jnp.exp(params["size"] - 0.5 * jnp.maximum(square, 0))

    def improvement(params, lower, alpha, tried, best, x):
        near = kernel(params, tried, x)
        mean = near.T @ alpha
        spread = jnp.exp(params["size"]) - (solve_triangular(lower, near, lower=True) ** 2).sum(0)
        spread = jnp.sqrt(jnp.maximum(spread, 1e-8))
        z = (mean - best - 0.01) / spread
        return (mean - best - 0.01) * jax.scipy.stats.norm.cdf(z) + spread * jax.scipy.stats.norm.pdf(z)

    def climbed(params, lower, alpha, tried, best, x):
        def climb(x, _):
            slope = jax.grad(lambda x: improvement(params, lower, alpha, tried, best, x).sum())(x)
            return jnp.clip(x + 0.05 * slope, 0, 1), None

        x, _ = lax.scan(climb, x, None, climbs)
        return x, improvement(params, lower, alpha, tried, best, x)

    def suggest_of(search):
        def suggest(params, key, tried, found):
            matrix = kernel(params, tried, tried) + jnp.exp(params["noise"]) * jnp.eye(trials)
            lower = jnp.linalg.cholesky(matrix)
            alpha = cho_solve((lower, True), found - found.mean())
            starts = jax.random.uniform(key, (seeds, width))
            x, hoped = search(
                functools.partial(climbed, params, lower, alpha, tried, (found - found.mean()).max()), starts
            )
            return x[jnp.argmax(hoped)]

        return suggest

    def in_parts(run, starts):
        x, hoped = lax.map(run, starts.reshape(16, -1, width))
        return x.reshape(seeds, width), hoped.reshape(seeds)

    params = {"length": draw.array((width,)), "size": draw.array(()), "noise": draw.array(())}
    arguments = params, draw.array((2,), jnp.uint32), draw.array((trials, width)), draw.array((trials,))
    change = Change("in_parts", "chunk", "value", Program(suggest_of(in_parts), arguments))
    return Case(Program(suggest_of(lambda run, starts: run(starts)), arguments), [change])
