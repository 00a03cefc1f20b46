"""A fourth set of programs that serve, sample, simulate or search, written before any advice on it was seen."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .case import Case, Change, Draw, Program, case


def normalized(x):
    """Rows of mean square one."""
    return x * lax.rsqrt((x.astype(jnp.float32) ** 2).mean(-1, keepdims=True) + 1e-6).astype(x.dtype)


@case("v5e")
def priced_paths(draw: Draw) -> Case:
    """After tf-quant-finance's `HestonModel.sample_paths`: normal draws of all steps first, then prices and variances."""
    paths, steps, years = 524288, 252, 1.0
    lapse = years / steps

    def payoff(params, key):
        draws = jax.random.normal(key, (steps, 2))

        def step(state, draw):
            price, variance, total, lowest = state
            first, second = draw
            second = params["rho"] * first + jnp.sqrt(1 - params["rho"] ** 2) * second
            positive = jnp.maximum(variance, 0)
            price = price + (params["rate"] - positive / 2) * lapse + jnp.sqrt(positive * lapse) * first
            drift = params["speed"] * (params["level"] - positive) * lapse
            variance = variance + drift + params["spread"] * jnp.sqrt(positive * lapse) * second
            return (price, variance, total + jnp.exp(price), jnp.minimum(lowest, price)), None

        start = params["price"], params["variance"], jnp.float32(0), params["price"]
        _, _, total, lowest = lax.scan(step, start, draws)[0]
        alive = lowest > params["barrier"]
        return jnp.where(alive, jnp.maximum(total / steps - params["strike"], 0), 0)

    def priced(each):
        def price(params, keys):
            found = jnp.exp(-params["rate"] * years) * each(lambda key: payoff(params, key), keys)
            return found.mean(), found.std() / paths**0.5

        return price

    names = "rho", "rate", "speed", "level", "spread", "price", "variance", "barrier", "strike"
    arguments = {name: draw.array(()) for name in names}, draw.array((paths, 2), jnp.uint32)
    in_parts = Program(priced(lambda one, keys: lax.map(one, keys, batch_size=16384)), arguments)
    program = Program(priced(lambda one, keys: jax.vmap(one)(keys)), arguments)
    return Case(program, [Change("in_parts", "chunk", "value", in_parts)])


@case("v6e")
def embedded_neighbours(draw: Draw) -> Case:
    """After scikit-learn's exact `_kl_divergence` of t-SNE: all pairs of points, step after step, with gains and momentum."""
    points, steps, part = 12288, 250, 512

    def moved(slope_of):
        def run(chances, y, speed, gains):
            def step(state, _):
                y, speed, gains = state
                slope, apart = slope_of(chances, y)
                gains = jnp.where(speed * slope < 0, gains + 0.2, gains * 0.8)
                gains = jnp.maximum(gains, 0.01)
                speed = 0.8 * speed - 200 * gains * slope
                return (y + speed, speed, gains), apart

            return lax.scan(step, (y, speed, gains), None, steps)

        return run

    def squared(x, y):
        return ((x[:, None] - y[None]) ** 2).sum(-1)

    def whole(chances, y):
        near = 1 / (1 + squared(y, y))
        near = near * (1 - jnp.eye(points))
        found = jnp.maximum(near / near.sum(), 1e-12)
        apart = (chances * jnp.log(jnp.maximum(chances, 1e-12) / found)).sum()
        pull = (chances - found) * near
        return 4 * (pull.sum(1)[:, None] * y - pull @ y), apart

    def in_rows(chances, y):
        def near_of(at):
            rows = at + jnp.arange(part)
            return (1 / (1 + squared(y[rows], y))) * (rows[:, None] != jnp.arange(points))

        starts = jnp.arange(0, points, part)
        total = lax.map(lambda at: near_of(at).sum(), starts).sum()

        def row(at):
            near, rows = near_of(at), lax.dynamic_slice_in_dim(chances, at, part)
            found = jnp.maximum(near / total, 1e-12)
            apart = (rows * jnp.log(jnp.maximum(rows, 1e-12) / found)).sum()
            pull = (rows - found) * near
            return 4 * (pull.sum(1)[:, None] * lax.dynamic_slice_in_dim(y, at, part) - pull @ y), apart

        slope, apart = lax.map(row, starts)
        return slope.reshape(points, 2), apart.sum()

    arguments = draw.array((points, points)), *[draw.array((points, 2)) for _ in range(3)]
    change = Change("in_rows", "chunk", "value", Program(moved(in_rows), arguments))
    return Case(Program(moved(whole), arguments), [change])


@case("v6e")
def sampled_controls(draw: Draw) -> Case:
    """After pytorch_mppi's `MPPI.command`: a learnt model rolls noisy controls out, and the cheap ones count for the next."""
    samples, horizon, states, controls, width = 65536, 64, 12, 4, 256

    def rolled(params, state, actions):
        """Costs, states and controls of rollouts with samples first."""
        state = jnp.broadcast_to(state, (len(actions), states))

        def step(state, action):
            x = jnp.concatenate([state, action], -1)
            for weight in params["hidden"]:
                x = jnp.tanh(x @ weight)
            state = state + x @ params["out"]
            return state, ((state**2).sum(-1) + 0.1 * (action**2).sum(-1), state)

        _, (costs, visited) = lax.scan(step, state, actions.swapaxes(0, 1))
        visited = visited.swapaxes(0, 1)
        wall = jnp.linalg.norm(visited[:, :, None, :3] - params["walls"], axis=-1)
        return costs.sum(0) + 1e3 * (wall < 0.5).any(-1).sum(-1) + 10 * (visited[:, -1] ** 2).sum(-1)

    def command_of(each):
        def command(params, state, plan, key):
            plan = jnp.roll(plan, -1, 0).at[-1].set(0)
            noise = jax.random.normal(key, (samples, horizon, controls)) @ params["cholesky"]
            actions = jnp.clip(plan + noise, -1, 1)
            noise = actions - plan
            inverse = jnp.linalg.inv(params["cholesky"] @ params["cholesky"].T)
            costs = each(lambda part: rolled(params, state, part), actions)
            costs = costs + (plan * (0.1 * noise @ inverse)).sum((1, 2))
            share = jnp.exp(-(costs - costs.min()) / 0.1)
            plan = plan + jnp.einsum("k,ktu->tu", share / share.sum(), noise)
            return plan[0], plan

        return command

    def in_parts(roll, actions):
        return lax.map(roll, actions.reshape(32, -1, horizon, controls)).reshape(-1)

    params = {"hidden": [draw.array((states + controls, width)), draw.array((width, width))]}
    params |= {"out": draw.array((width, states)), "walls": draw.array((64, 3)), "cholesky": draw.array((controls, controls))}
    arguments = params, draw.array((states,)), draw.array((horizon, controls)), draw.array((2,), jnp.uint32)
    change = Change("in_parts", "chunk", "value", Program(command_of(in_parts), arguments))
    return Case(Program(command_of(lambda roll, actions: roll(actions)), arguments), [change])


@case("v5p")
def expanded_latents(draw: Draw) -> Case:
    """After DeepSeek-V3's `MLA`: a cache of 512 numbers a token, from which each step makes keys and values of 128 heads."""
    rows, length, width, heads, rank, plain, turning = 8, 4096, 2048, 128, 512, 128, 64

    def rotated(x, at):
        angles = at * 10000.0 ** (-jnp.arange(0, turning, 2) / turning)
        even, odd = x[..., ::2].astype(jnp.float32), x[..., 1::2].astype(jnp.float32)
        turned = even * jnp.cos(angles) - odd * jnp.sin(angles), even * jnp.sin(angles) + odd * jnp.cos(angles)
        return jnp.stack(turned, -1).reshape(x.shape).astype(x.dtype)

    def attended(weights, latents, places, seen, q):
        """Of the heads that the queries and the weights have."""
        keys = jnp.einsum("btr,rhd->bthd", latents, weights["up_k"])
        values = jnp.einsum("btr,rhd->bthd", latents, weights["up_v"])
        places = jnp.broadcast_to(places[:, :, None], (*keys.shape[:3], turning))
        scores = jnp.einsum("bhd,bthd->bht", q, jnp.concatenate([keys, places], -1)).astype(jnp.float32)
        scores = jnp.where(seen, scores / (plain + turning) ** 0.5, -1e30)
        return jnp.einsum("bht,bthd->bhd", jax.nn.softmax(scores).astype(q.dtype), values)

    def layer(each, weights, cache, x, at):
        y = normalized(x)
        q = jnp.einsum("br,rhd->bhd", normalized(y @ weights["down_q"]), weights["up_q"])
        q = jnp.concatenate([q[..., :plain], rotated(q[..., plain:], at)], -1)
        latent, place = jnp.split(y @ weights["down_kv"], [rank], -1)
        latents = lax.dynamic_update_slice(cache["latents"], normalized(latent)[:, None], (0, at, 0))
        places = lax.dynamic_update_slice(cache["places"], rotated(place, at)[:, None], (0, at, 0))
        seen = jnp.arange(length) <= at
        ups = {name: weights[name] for name in ("up_k", "up_v")}
        found = each(lambda ups, q: attended(ups, latents, places, seen, q), ups, q)
        x = x + jnp.einsum("bhd,hdw->bw", found, weights["o"])
        y = normalized(x)
        x = x + (jax.nn.silu(y @ weights["gate"]) * (y @ weights["up"])) @ weights["down"]
        return x, {"latents": latents, "places": places}

    def decoder(each):
        def decode(params, caches, token, at):
            x, after = params["embedding"][token], []
            for weights, cache in zip(params["layers"], caches, strict=True):
                x, cache = layer(each, weights, cache, x, at)
                after.append(cache)
            return jnp.argmax(normalized(x) @ params["embedding"].T, -1), after, at + 1

        return decode

    def at_once(attend, ups, q):
        return attend(ups, q)

    def by_heads(attend, ups, q):
        parts = jax.tree.map(lambda leaf: leaf.reshape(rank, 16, -1, plain).swapaxes(0, 1), ups)
        q = q.reshape(rows, 16, -1, plain + turning).swapaxes(0, 1)
        return lax.map(lambda part: attend(*part), (parts, q)).swapaxes(0, 1).reshape(rows, heads, plain)

    shapes = {"down_q": (width, 768), "up_q": (768, heads, plain + turning), "down_kv": (width, rank + turning)}
    shapes |= {"up_k": (rank, heads, plain), "up_v": (rank, heads, plain), "o": (heads, plain, width)}
    shapes |= {"gate": (width, 8192), "up": (width, 8192), "down": (8192, width)}
    layers = [{name: draw.array(shape, jnp.bfloat16) for name, shape in shapes.items()} for _ in range(2)]
    params = {"layers": layers, "embedding": draw.array((32000, width), jnp.bfloat16)}
    caches = [
        {"latents": draw.array((rows, length, rank), jnp.bfloat16), "places": draw.array((rows, length, turning), jnp.bfloat16)}
        for _ in range(2)
    ]
    arguments = params, caches, draw.array((rows,), jnp.int32), draw.array((), jnp.int32)
    in_parts = Program(decoder(by_heads), arguments)
    donated = Program(decoder(at_once), arguments, {"donate_argnums": (1,)})
    changes = [Change("by_heads", "chunk", "value", in_parts), Change("donated", "donate", "argument", donated)]
    return Case(Program(decoder(at_once), arguments), changes)


@case("v7x")
def gathered_experts(draw: Draw) -> Case:
    """After gpt-oss's `MLPBlock`: each token of a prompt takes copies of the weights of its four experts."""
    tokens, width, inner, experts, chosen = 16, 2880, 2880, 32, 4

    def mixed(weights, x):
        y = normalized(x) * weights["norm"]
        logits, which = lax.top_k(y @ weights["router"] + weights["router_bias"], chosen)
        share = jax.nn.softmax(logits.astype(jnp.float32)).astype(x.dtype)
        y = jnp.einsum("beck,bk->bec", weights["up"][which], y) + weights["up_bias"][which]
        gate, wide = jnp.minimum(y[..., ::2], 7), jnp.clip(y[..., 1::2], -7, 7)
        y = gate * jax.nn.sigmoid(1.702 * gate) * (wide + 1)
        y = jnp.einsum("beck,bek->bec", weights["down"][which], y) + weights["down_bias"][which]
        return x + jnp.einsum("bec,be->bc", y, share)

    def by_token(weights, x):
        return lax.map(lambda row: mixed(weights, row[None])[0], x)

    shapes = {"norm": (width,), "router": (width, experts), "router_bias": (experts,), "up": (experts, 2 * inner, width)}
    shapes |= {"up_bias": (experts, 2 * inner), "down": (experts, width, inner), "down_bias": (experts, width)}
    weights = {name: draw.array(shape, jnp.bfloat16) for name, shape in shapes.items()}
    arguments = weights, draw.array((tokens, width), jnp.bfloat16)
    change = Change("by_token", "chunk", "value", Program(by_token, arguments))
    return Case(Program(mixed, arguments), [change])


@case("v4")
def colliding_fluids(draw: Draw) -> Case:
    """After XLB's `IncompressibleNavierStokesStepper`: 19 populations a cell collide, bounce back and stream by rolls."""
    size = 224
    ways = np.array([(i, j, k) for i in (0, 1, -1) for j in (0, 1, -1) for k in (0, 1, -1) if abs(i) + abs(j) + abs(k) < 3])
    weights = np.array([(1 / 3, 1 / 18, 1 / 36)[abs(way).sum()] for way in ways], np.float32)
    opposite = np.array([next(n for n, other in enumerate(ways) if (other == -way).all()) for way in ways])

    def collided(populations, is_wall, omega):
        density = populations.sum(0)
        speed = jnp.tensordot(jnp.asarray(ways.T, jnp.float32), populations, 1) / density
        along = jnp.tensordot(jnp.asarray(ways, jnp.float32), speed, 1)
        square = 1.5 * (speed**2).sum(0)
        settled = density * weights[:, None, None, None] * (1 + along * (3 + 4.5 * along) - square)
        after = populations - omega * (populations - settled)
        return jnp.where(is_wall, populations[opposite], after)

    def step_of(collide):
        def step(populations, is_wall, omega):
            after = collide(populations, is_wall, omega)
            return jnp.stack([jnp.roll(after[number], way, (0, 1, 2)) for number, way in enumerate(ways)])

        return step

    def in_slabs(populations, is_wall, omega):
        def slab(number, after):
            cut = lax.dynamic_slice_in_dim(populations, number * 16, 16, 1)
            wall = lax.dynamic_slice_in_dim(is_wall, number * 16, 16)
            return lax.dynamic_update_slice_in_dim(after, collided(cut, wall, omega), number * 16, 1)

        return lax.fori_loop(0, size // 16, slab, jnp.zeros_like(populations))

    arguments = draw.array((19, size, size, size)), draw.array((size, size, size), jnp.bool_), draw.array(())
    donated = Program(step_of(collided), arguments, {"donate_argnums": (0,)})
    changes = [
        Change("donated", "donate", "argument", donated),
        Change("in_slabs", "chunk", "value", Program(step_of(in_slabs), arguments)),
    ]
    return Case(Program(step_of(collided), arguments), changes)


@case("v6e")
def filtered_states(draw: Draw) -> Case:
    """After dynamax's parallel `hmm_filter`: matrices of all pairs of states, multiplied along time by an associative scan."""
    rows, length, states = 16, 4096, 48

    def conditioned(matrix, logs):
        most = logs.max(-1)
        matrix = matrix * jnp.exp(logs - most[..., None])
        total = matrix.sum(-1)
        return matrix / total[..., None], jnp.log(total) + most

    def joined(first, second):
        matrix, logs = first
        inner, more = conditioned(matrix, second[1])
        return jnp.einsum("...ij,...jk->...ik", inner, second[0]), logs + more

    def filtered(start, transition, logs):
        first = conditioned(jnp.broadcast_to(start, (states, states)), logs[0])
        rest = jax.vmap(lambda logs: conditioned(transition, logs))(logs[1:])
        elements = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, rest)
        matrices, likely = lax.associative_scan(jax.vmap(joined), elements)
        return likely[-1, 0], matrices[:, 0]

    def chances(means, spread, emissions):
        apart = (emissions[:, :, None] - means) / spread
        return -0.5 * (apart**2).sum(-1) - jnp.log(spread).sum(-1)

    def smoother(each):
        def smooth(start, transition, means, spread, emissions):
            logs = chances(means, spread, emissions)
            return each(lambda row: filtered(start, transition, row), logs)

        return smooth

    arguments = draw.array((states,)), draw.array((states, states)), draw.array((states, 8)), draw.array((states, 8))
    arguments = *arguments, draw.array((rows, length, 8))
    in_rows = Program(smoother(lambda one, logs: lax.map(one, logs)), arguments)
    program = Program(smoother(lambda one, logs: jax.vmap(one)(logs)), arguments)
    return Case(program, [Change("in_rows", "chunk", "value", in_rows)])


@case("v7x")
def matched_pictures(draw: Draw) -> Case:
    """After LoFTR's `CoarseMatching`: linear attention within and between pictures, then a softmax over rows and columns."""
    pairs, tall, wide, width, heads = 8, 60, 80, 256, 8

    def normal(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def layer(weights, x, seen):
        q, k, v = (
            (given @ weights[name]).reshape(-1, heads, width // heads)
            for name, given in zip("qkv", (x, seen, seen), strict=True)
        )
        q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
        kept = jnp.einsum("shd,shv->hdv", k, v)
        share = 1 / (jnp.einsum("lhd,hd->lh", q, k.sum(0)) + 1e-6)
        found = jnp.einsum("lhd,hdv,lh->lhv", q, kept, share).reshape(x.shape)
        y = jnp.concatenate([x, normal(found @ weights["o"])], -1)
        return x + normal(jax.nn.relu(y @ weights["up"]) @ weights["down"])

    def matched(params, left, right):
        for own, cross in zip(params["own"], params["cross"], strict=True):
            left, right = layer(own, left, left), layer(own, right, right)
            left, right = layer(cross, left, right), layer(cross, right, left)
        alike = jnp.einsum("lc,sc->ls", left, right) / width / 0.1
        sure = jax.nn.softmax(alike, 0) * jax.nn.softmax(alike, 1)
        mask = (sure > 0.2).reshape(tall, wide, tall, wide)
        for axis, length in enumerate(mask.shape):
            at = jnp.arange(length)
            inside = (at >= 2) & (at < length - 2)
            mask = mask & inside.reshape([-1 if other == axis else 1 for other in range(4)])
        mask = mask.reshape(sure.shape)
        mask = mask & (sure == sure.max(1, keepdims=True)) & (sure == sure.max(0, keepdims=True))
        best = mask.argmax(1)
        return mask.any(1), best, jnp.take_along_axis(sure, best[:, None], 1)[:, 0]

    def at_once(params, left, right):
        return jax.vmap(lambda *pair: matched(params, *pair))(left, right)

    def by_pair(params, left, right):
        return lax.map(lambda pair: matched(params, *pair), (left, right))

    shapes = dict.fromkeys("qkvo", (width, width)) | {"up": (2 * width, 2 * width), "down": (2 * width, width)}
    params = {way: [{name: draw.array(shape) for name, shape in shapes.items()} for _ in range(2)] for way in ("own", "cross")}
    arguments = params, draw.array((pairs, tall * wide, width)), draw.array((pairs, tall * wide, width))
    return Case(Program(at_once, arguments), [Change("by_pair", "chunk", "value", Program(by_pair, arguments))])


@case("v5p")
def repeated_layers(draw: Draw) -> Case:
    """After Praxis's `StackedTransformerRepeated`: tokens in a loop, layers in a loop in it, which stacks their caches anew."""
    rows, length, count, width, heads, depth, fresh = 64, 2048, 6, 1024, 16, 128, 8

    def attended(weights, keys, values, x, at):
        """With one key and value for all heads, and scores that fall with the distance."""
        y = normalized(x)
        q = jnp.einsum("bw,whd->bhd", y, weights["q"])
        keys, values = (
            lax.dynamic_update_slice(old, (y @ weights[name])[:, None], (0, at, 0))
            for name, old in (("k", keys), ("v", values))
        )
        apart = at - jnp.arange(length)
        slope = 2.0 ** (-8 * (1 + jnp.arange(heads)) / heads)
        scores = jnp.einsum("bhd,btd->bht", q, keys).astype(jnp.float32) / depth**0.5 - slope[:, None] * apart
        found = jax.nn.softmax(jnp.where(apart >= 0, scores, -1e30)).astype(x.dtype)
        x = x + jnp.einsum("bht,btd->bhd", found, values).reshape(rows, -1) @ weights["o"]
        return x + jax.nn.gelu(normalized(x) @ weights["up"]) @ weights["down"], keys, values

    def stacked(params, caches, x, at):
        def layer(x, given):
            x, *cache = attended(*given, x, at)
            return x, cache

        return lax.scan(layer, x, (params["layers"], *caches))

    def carried(params, caches, x, at):
        def layer(carry, given):
            x, *caches = carry
            number, weights = given
            x, *cache = attended(weights, *[whole[number] for whole in caches], x, at)
            return (x, *[whole.at[number].set(part) for whole, part in zip(caches, cache, strict=True)]), None

        (x, *caches), _ = lax.scan(layer, (x, *caches), (jnp.arange(count), params["layers"]))
        return x, caches

    def generator(step_of):
        def generate(params, caches, token, at):
            def step(state, _):
                caches, token, at = state
                x, caches = step_of(params, caches, params["embedding"][token], at)
                token = jnp.argmax(normalized(x) @ params["embedding"].T, -1)
                return (caches, token, at + 1), token

            (caches, _, _), found = lax.scan(step, (caches, token, at), None, fresh)
            return caches, found.T

        return generate

    shapes = {"q": (count, width, heads, depth), "k": (count, width, depth), "v": (count, width, depth)}
    shapes |= {"o": (count, heads * depth, width), "up": (count, width, 4 * width), "down": (count, 4 * width, width)}
    params = {"layers": {name: draw.array(shape, jnp.bfloat16) for name, shape in shapes.items()}}
    params["embedding"] = draw.array((32000, width), jnp.bfloat16)
    caches = [draw.array((count, rows, length, depth), jnp.bfloat16) for _ in "kv"]
    arguments = params, caches, draw.array((rows,), jnp.int32), draw.array((), jnp.int32)
    jit = {"donate_argnums": (1,)}
    program = Program(generator(stacked), arguments, jit)
    return Case(program, [Change("carried", "carry", "loop", Program(generator(carried), arguments, jit))])


@case("v5e")
def smoothed_particles(draw: Draw) -> Case:
    """After jax-sph's `WCSPH.forward`: kernels and pressures along pairs of near particles, whose edges are gathered."""
    particles, near, reach, sound = 64000, 40, 0.06, 10.0

    def kernel(distance):
        q = distance / reach
        sigma = 3 / 359 / jnp.pi / reach**3
        return sigma * sum(weight * jnp.maximum(at - 3 * q, 0) ** 5 for at, weight in ((3, 1), (2, -6), (1, 15)))

    def slope(distance):
        q = distance / reach
        sigma = 3 / 359 / jnp.pi / reach**4
        return -15 * sigma * sum(weight * jnp.maximum(at - 3 * q, 0) ** 4 for at, weight in ((3, 1), (2, -6), (1, 15)))

    def advanced(place, speed, mass, into, onto, edges):
        """With edges' geometry as `edges` has it, and sums at the ends of edges."""
        ways, distance = edges(place)

        def total(x):
            return jax.ops.segment_sum(x, into, particles)

        dense = mass * total(kernel(distance))
        pressure = sound**2 * (dense - 1000)
        volume = (mass / dense) ** 2
        share = (volume[into] + volume[onto]) / mass[into] * slope(distance) / (distance + 1e-8)
        mixed = (dense[onto] * pressure[into] + dense[into] * pressure[onto]) / (dense[into] + dense[onto])
        moved, _ = edges(speed)
        found = [total(share * (0.01 * fast - mixed * way)) for way, fast in zip(ways, moved, strict=True)]
        force = jnp.stack(found, -1)
        speed = speed + 1e-4 * (force + jnp.array([0, 0, -9.81]))
        return (place + 1e-4 * speed) % 1, speed, dense

    def rows_of(into, onto):
        def edges(x):
            way = x[into] - x[onto]
            way = way - jnp.round(way)
            return [way[:, axis] for axis in range(3)], jnp.sqrt((way**2).sum(-1))

        return edges

    def columns_of(into, onto):
        def edges(x):
            ways = [x[:, axis][into] - x[:, axis][onto] for axis in range(3)]
            ways = [way - jnp.round(way) for way in ways]
            return ways, jnp.sqrt(sum(way**2 for way in ways))

        return edges

    def step_of(edges_of):
        def step(place, speed, mass, into, onto):
            return advanced(place, speed, mass, into, onto, edges_of(into, onto))

        return step

    pairs = [draw.array((particles * near,), jnp.int32) for _ in range(2)]
    arguments = draw.array((particles, 3)), draw.array((particles, 3)), draw.array((particles,)), *pairs
    change = Change("columns", "split", "upstream", Program(step_of(columns_of), arguments))
    return Case(Program(step_of(rows_of), arguments), [change])
