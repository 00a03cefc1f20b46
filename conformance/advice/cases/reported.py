"""A fifth set of programs after public code of many fields, written before anybody saw what is advised for them."""

import functools
import itertools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, accumulated, trained


def same(x):
    """What is given, for what is wrapped by nothing."""
    return x


@case("v5p")
def regulated_genes(draw: Draw) -> Case:
    """After enformer-pytorch's `Attention`: 1536 bins of a genome, biased by learnt products with functions of distance."""
    rows, length, width, heads, depth, kept, tracks = 4, 1536, 1536, 8, 64, 896, 5313
    features = width // heads

    def bases():
        """Three kinds of functions of the distance, and the same with its sign."""
        apart = jnp.arange(1 - length, length)
        far, count = jnp.abs(apart).astype(jnp.float32)[:, None], features // 6
        halves = 2 ** jnp.linspace(3.0, jnp.log2(length), count)
        middle = far < 2.0 ** jnp.arange(1, count + 1) - 1
        mean, spread = jnp.linspace(length / count, length, count), length / (2 * count)
        shape, rate = (mean / spread) ** 2, mean / spread**2
        log = jax.scipy.special.xlogy(shape - 1, far) - rate * far
        gamma = jnp.exp(log - jax.scipy.special.gammaln(shape) + shape * jnp.log(rate)) + 1e-8
        found = jnp.concatenate([jnp.exp2(-far / halves), middle, gamma / gamma.max()], -1)
        return jnp.concatenate([found, jnp.sign(apart)[:, None] * found], -1)

    def shifted(x):
        """Row i of [..., time, 2 * time - 1] from its column time - 1 - i on."""
        x = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (1, 0)))
        x = x.reshape(*x.shape[:2], 2 * length, length)[:, :, 1:]
        return x.reshape(*x.shape[:2], length, 2 * length - 1)[..., :length]

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x):
            y = nn.LayerNorm()(x)
            q, k = (nn.DenseGeneral((heads, depth), use_bias=False, name=name)(y) for name in "qk")
            v = nn.DenseGeneral((heads, width // heads), use_bias=False, name="v")(y)
            there = nn.DenseGeneral((heads, depth), use_bias=False, name="there")(bases())
            content, place = (self.param(name, nn.initializers.normal(), (heads, depth)) for name in ("content", "place"))
            q = q * depth**-0.5
            scores = jnp.einsum("bqhd,bkhd->bhqk", q + content, k)
            scores = scores + shifted(jnp.einsum("bqhd,jhd->bhqj", q + place, there))
            found = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v)
            x = x + nn.Dense(width)(found.reshape(x.shape))
            return x + nn.Dense(width)(nn.relu(nn.Dense(2 * width)(nn.LayerNorm()(x))))

    class Trunk(nn.Module):
        layer: type = Layer

        @nn.compact
        def __call__(self, x):
            for number in range(2):
                x = self.layer(name=f"layer_{number}")(x)
            cut = (length - kept) // 2
            x = nn.gelu(nn.Dense(2 * width)(nn.gelu(nn.LayerNorm()(x[:, cut : cut + kept]))))
            return nn.softplus(nn.Dense(tracks)(x))

    def loss_of(model):
        def loss(params, x, seen):
            said = model.apply(params, x)
            return (said - seen * jnp.log(jnp.maximum(said, 1e-20))).mean()

        return loss

    batch = draw.array((rows, length, width)), draw.array((rows, kept, tracks))
    params = jax.eval_shape(Trunk().init, KEY, batch[0])
    whole = loss_of(Trunk())
    changes = [("remat", "checkpoint", loss_of(Trunk(nn.remat(Layer)))), ("accumulated", "chunk", accumulated(whole, 4))]
    return trained(draw, whole, params, batch, changes, optax.adam(1e-4))


@case("v5p")
def guessed_ratings(draw: Draw) -> Case:
    """After RecBole's `MultiVAE.calculate_loss`: a row of all items for each user, filled from what he chose, and guessed."""
    rows, chosen, items, hidden, latent = 2048, 200, 100_000, 600, 128

    def loss(params, ids, values, keys):
        users = jnp.arange(len(ids))[:, None]
        ratings = jnp.zeros((len(ids), items)).at[users, ids].add(values)
        x = ratings / jnp.maximum(jnp.linalg.norm(ratings, axis=1, keepdims=True), 1e-12)
        kept = jax.vmap(lambda key: jax.random.bernoulli(key, 0.5, (items,)))(keys)
        x = jnp.where(kept, x / 0.5, 0)
        x = jnp.tanh(x @ params["in"] + params["in_bias"]) @ params["code"] + params["code_bias"]
        mean, log = jnp.split(x, 2, -1)
        noise = jax.vmap(lambda key: jax.random.normal(key, (latent,)))(keys)
        z = mean + noise * jnp.exp(0.5 * log)
        z = jnp.tanh(z @ params["back"] + params["back_bias"]) @ params["out"] + params["out_bias"]
        apart = -0.5 * (1 + log - mean**2 - jnp.exp(log)).sum(1).mean() * 0.2
        return apart - (jax.nn.log_softmax(z, 1) * ratings).sum(1).mean()

    shapes = {"in": (items, hidden), "code": (hidden, 2 * latent), "back": (latent, hidden), "out": (hidden, items)}
    shapes |= {name + "_bias": shape[1:] for name, shape in shapes.items()}
    params = {name: draw.array(shape) for name, shape in shapes.items()}
    batch = draw.array((rows, chosen), jnp.int32), draw.array((rows, chosen)), draw.array((rows, 2), jnp.uint32)
    return trained(draw, loss, params, batch, [("accumulated", "chunk", accumulated(loss, 8))])


@case("v7x")
def burgers_equation(draw: Draw) -> Case:
    """After DeepXDE's `PDE.losses`: a network's derivatives of two orders at each of 131072 points, all in one batch."""
    points, edge, width, depth = 131072, 4096, 128, 4

    def network(params, x):
        for weight, bias in params[:-1]:
            x = jnp.tanh(x @ weight + bias)
        return (x @ params[-1][0] + params[-1][1])[0]

    def residual(params, at):
        def value(x, t):
            return network(params, jnp.stack([x, t]))

        x, t = at
        slope = jax.grad(value)
        return jax.grad(value, 1)(x, t) + value(x, t) * slope(x, t) - 0.01 / jnp.pi * jax.grad(slope)(x, t)

    def loss(params, inside, edges, starts):
        errors = jax.vmap(lambda at: residual(params, at))(inside)
        at_edge, at_start = (jax.vmap(lambda at: network(params, at))(part) for part in (edges, starts))
        return (errors**2).mean() + (at_edge**2).mean() + ((at_start + jnp.sin(jnp.pi * starts[:, 0])) ** 2).mean()

    widths = [2, *[width] * depth, 1]
    params = [(draw.array((given, wide)), draw.array((wide,))) for given, wide in itertools.pairwise(widths)]
    batch = draw.array((points, 2)), draw.array((edge, 2)), draw.array((edge, 2))
    return trained(draw, loss, params, batch, [("accumulated", "chunk", accumulated(loss, 16))])


@case("v6e")
def induced_process(draw: Draw) -> Case:
    """After GPJax's `collapsed_elbo`: covariances of 262144 rows with 512 points that stand for them, and their gradient."""
    rows, points, width = 262144, 512, 8

    def kernel(params, x, y):
        def pair(x, y):
            return params["scale"] ** 2 * jnp.exp(-0.5 * (((x - y) / params["length"]) ** 2).sum())

        return jax.vmap(lambda x: jax.vmap(lambda y: pair(x, y))(y))(x)

    def products_of(params, root, x, apart):
        """A matrix of the points and the rows times its transpose, and times what the mean leaves."""
        found = jax.scipy.linalg.solve_triangular(root, kernel(params, params["points"], x), lower=True) / params["noise"]
        return found @ found.T, found @ apart

    def loss_of(each):
        def loss(params, x, y):
            apart, noise = y - params["mean"], params["noise"]
            inner = kernel(params, params["points"], params["points"]) + 1e-6 * jnp.eye(points)
            root = jnp.linalg.cholesky(inner)
            square, along = each(functools.partial(products_of, params, root), x, apart)
            second = jnp.linalg.cholesky(jnp.eye(points) + square)
            solved = jax.scipy.linalg.solve_triangular(second, along, lower=True)
            quadratic = ((apart**2).sum() - (solved**2).sum()) / noise**2
            chance = -rows * jnp.log(2 * jnp.pi * noise**2) - 2 * jnp.log(jnp.diag(second)).sum() - quadratic
            trace = rows * params["scale"] ** 2 / noise**2 - jnp.trace(square)
            return -(chance - trace) / 2

        return loss

    def at_once(products, x, apart):
        return products(x, apart)

    def in_parts(products, x, apart):
        def add(total, part):
            return jax.tree.map(jnp.add, total, products(*part)), None

        cut = x.reshape(32, -1, width), apart.reshape(32, -1)
        return lax.scan(jax.checkpoint(add), (jnp.zeros((points, points)), jnp.zeros(points)), cut)[0]

    params = {name: draw.array(()) for name in ("scale", "noise", "mean")}
    params |= {"length": draw.array((width,)), "points": draw.array((points, width))}
    batch = draw.array((rows, width)), draw.array((rows,))
    changes = [("in_parts", "chunk", loss_of(in_parts))]
    return trained(draw, loss_of(at_once), params, batch, changes, optax.adam(1e-2))


@case("v6e")
def parted_scenes(draw: Draw) -> Case:
    """After SegFormer's `SegFormerHead`: four sizes of features joined, and 150 classes enlarged to each pixel of 512 by 512."""
    rows, size, width, classes = 8, 512, 256, 150
    widths = 64, 128, 320, 512

    class Head(nn.Module):
        @nn.compact
        def __call__(self, features):
            found, shape = [], features[0].shape[:3]
            for x in reversed(features):
                found.append(jax.image.resize(nn.Dense(width)(x), (*shape, width), "bilinear"))
            x = nn.Conv(width, (1, 1), use_bias=False)(jnp.concatenate(found, -1))
            x = nn.relu(nn.BatchNorm(use_running_average=False)(x))
            return nn.Conv(classes, (1, 1))(x)

    def judged(logits, label):
        """The sum over the pixels that have a class, and how many are right."""
        logits = jax.image.resize(logits, (len(logits), size, size, classes), "bilinear")
        there = label != 255
        each = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.where(there, label, 0))
        return (each * there).sum(), ((logits.argmax(-1) == label) & there).sum()

    def loss_of(judge):
        def loss(params, features, label):
            logits, _ = Head().apply(params, features, mutable=["batch_stats"])
            return judge(logits, label)[0] / jnp.maximum((label != 255).sum(), 1)

        return loss

    def by_picture(logits, label):
        found = lax.map(jax.checkpoint(lambda one: judged(one[0][None], one[1][None])), (logits, label))
        return jax.tree.map(jnp.sum, found)

    features = [draw.array((rows, size // 2**n, size // 2**n, wide)) for n, wide in zip((2, 3, 4, 5), widths, strict=True)]
    params = {"params": jax.eval_shape(Head().init, KEY, features)["params"]}
    batch = features, draw.array((rows, size, size), jnp.int32)
    changes = [("by_picture", "chunk", loss_of(by_picture))]
    return trained(draw, loss_of(judged), params, batch, changes, optax.adamw(6e-5))


@case("v5e")
def catchments(draw: Draw) -> Case:
    """After NeuralHydrology's `EALSTM`: a year of weather, day after day, through gates that a river's land has opened."""
    rows, days, hidden, weather, land = 1024, 365, 256, 5, 27

    def loss_of(wrap):
        def loss(params, driven, attributes, flow, spread):
            gate = jax.nn.sigmoid(attributes @ params["land"] + params["land_bias"])

            def day(state, now):
                output, cell = state
                forget, out, new = jnp.split(output @ params["hidden"] + params["bias"] + now @ params["weather"], 3, -1)
                cell = jax.nn.sigmoid(forget) * cell + gate * jnp.tanh(new)
                output = jax.nn.sigmoid(out) * jnp.tanh(cell)
                return (output, cell), output

            start = 2 * (jnp.zeros((len(driven), hidden)),)
            outputs = lax.scan(wrap(day), start, driven.swapaxes(0, 1))[1].swapaxes(0, 1)
            said = (outputs @ params["head"] + params["head_bias"])[:, -1, 0]
            return ((said - flow) ** 2 / (spread + 0.1) ** 2).mean()

        return loss

    shapes = {"land": (land, hidden), "land_bias": (hidden,), "weather": (weather, 3 * hidden), "bias": (3 * hidden,)}
    shapes |= {"hidden": (hidden, 3 * hidden), "head": (hidden, 1), "head_bias": (1,)}
    params = {name: draw.array(shape) for name, shape in shapes.items()}
    batch = draw.array((rows, days, weather)), draw.array((rows, land)), draw.array((rows,)), draw.array((rows,))
    whole = loss_of(same)
    changes = [("remat", "checkpoint", loss_of(jax.checkpoint)), ("accumulated", "chunk", accumulated(whole, 8))]
    found = trained(draw, whole, params, batch, changes)
    found.changes[0].target = "loop"
    return found


@case("v6e")
def likely_tokens(draw: Draw) -> Case:
    """After vLLM's `apply_top_k_top_p` for TPUs: all words of 151936 in order, twice, to know which to leave out."""
    rows, vocabulary = 512, 151936

    def sampled(logits, heat, count, share, noise):
        logits = logits.astype(jnp.float32) / heat[:, None]
        chances = jax.nn.softmax(logits)
        ordered = jnp.sort(chances)
        least = jnp.take_along_axis(ordered, (vocabulary - count)[:, None], -1)
        chances = jnp.where((count == vocabulary)[:, None] | (chances >= least), chances, 0)
        logits = jnp.where(chances > 0, logits, -jnp.inf)
        ordered = jnp.sort(jax.nn.softmax(logits))
        left = jnp.cumsum(ordered, -1) <= 1 - share[:, None]
        left = left.at[:, -1].set(False)
        least = jnp.take_along_axis(ordered, left.sum(-1, keepdims=True), -1)
        logits = jnp.where(jax.nn.softmax(logits) < least, -jnp.inf, logits)
        chances = jax.nn.softmax(logits)
        waits = jax.vmap(lambda key: jax.random.exponential(key, (vocabulary,)))(noise)
        chosen = jnp.argmax(chances / waits, -1)
        spoken = jax.nn.log_softmax(logits)
        best, which = lax.top_k(spoken, 20)
        return chosen, jnp.take_along_axis(spoken, chosen[:, None], -1), best, which

    def in_parts(*given):
        cut = jax.tree.map(lambda leaf: leaf.reshape(-1, 32, *leaf.shape[1:]), given)
        found = lax.map(lambda part: sampled(*part), cut)
        return jax.tree.map(lambda leaf: leaf.reshape(rows, *leaf.shape[2:]), found)

    arguments = draw.array((rows, vocabulary), jnp.bfloat16), draw.array((rows,)), draw.array((rows,), jnp.int32)
    arguments = *arguments, draw.array((rows,)), draw.array((rows, 2), jnp.uint32)
    return Case(Program(sampled, arguments), [Change("in_parts", "chunk", "value", Program(in_parts, arguments))])


@case("v5e")
def stacked_caches(draw: Draw) -> Case:
    """After llama-2-jax's `forward_decoder`: a scan reads each layer's cache and stacks it anew, token after token."""
    rows, length, width, depth, groups, heads, inner, layers, vocabulary = 8, 2048, 2048, 64, 32, 1, 5504, 4, 32000

    def normalized(x):
        return x * lax.rsqrt((x.astype(jnp.float32) ** 2).mean(-1, keepdims=True) + 1e-5).astype(x.dtype)

    def rotated(x, at):
        angles = at * 10000.0 ** (-jnp.arange(0, depth, 2) / depth)
        first, second = jnp.split(x.astype(jnp.float32), 2, -1)
        turned = first * jnp.cos(angles) - second * jnp.sin(angles), first * jnp.sin(angles) + second * jnp.cos(angles)
        return jnp.concatenate(turned, -1).astype(x.dtype)

    def layer(weights, x, at, kept):
        """What a layer makes of a token, with a function that puts keys and values into the caches."""
        y = normalized(x)
        q = rotated(jnp.einsum("bm,mrhd->brhd", y, weights["q"]), at)
        k, v = (jnp.einsum("bm,mhd->bhd", y, weights[name]) for name in "kv")
        keys, values, state = kept(rotated(k, at), v)
        scores = jnp.einsum("brhd,bhtd->brht", q, keys).astype(jnp.float32) / depth**0.5
        share = jax.nn.softmax(jnp.where(jnp.arange(length) <= at, scores, -jnp.inf)).astype(x.dtype)
        x = x + jnp.einsum("brht,bhtd,rhdm->bm", share, values, weights["o"])
        y = normalized(x)
        return x + (jax.nn.silu(y @ weights["gate"]) * (y @ weights["up"])) @ weights["down"], state

    def stacked(params, x, caches, at):
        def step(x, now):
            weights, cache = now

            def kept(*fresh):
                after = [old.at[:, :, at].set(new) for old, new in zip(cache, fresh, strict=True)]
                return *after, tuple(after)

            return layer(weights, x, at, kept)

        return lax.scan(step, x, (params["layers"], caches))

    def carried(params, x, caches, at):
        def step(state, now):
            weights, number = now
            x, caches = state

            def kept(*fresh):
                after = tuple(old.at[number, :, :, at].set(new) for old, new in zip(caches, fresh, strict=True))
                return *[lax.dynamic_index_in_dim(cache, number, keepdims=False) for cache in after], after

            return layer(weights, x, at, kept), None

        return lax.scan(step, (x, caches), (params["layers"], jnp.arange(layers)))[0]

    def decoder(read):
        def decode(params, caches, token, start):
            def step(state, at):
                token, caches = state
                x, caches = read(params, params["embedding"][token], caches, at)
                token = (normalized(x) @ params["head"]).argmax(-1)
                return (token, caches), token

            (_, caches), said = lax.scan(step, (token, caches), start + jnp.arange(32))
            return said, caches

        return decode

    shapes = {"q": (width, heads, groups, depth), "k": (width, groups, depth), "v": (width, groups, depth)}
    shapes |= {"o": (heads, groups, depth, width), "gate": (width, inner), "up": (width, inner), "down": (inner, width)}
    params = {"layers": {name: draw.array((layers, *shape), jnp.bfloat16) for name, shape in shapes.items()}}
    params |= {
        "embedding": draw.array((vocabulary, width), jnp.bfloat16),
        "head": draw.array((width, vocabulary), jnp.bfloat16),
    }
    caches = 2 * (draw.array((layers, rows, groups, length, depth), jnp.bfloat16),)
    arguments = params, caches, draw.array((rows,), jnp.int32), draw.array((), jnp.int32)
    jit = {"donate_argnums": (1,)}
    carry = Change("carried", "carry", "loop", Program(decoder(carried), arguments, jit))
    return Case(Program(decoder(stacked), arguments, jit), [carry])


@case("v5p")
def weather_edges(draw: Draw) -> Case:
    """After GraphCast's `_run_grid2mesh_gnn`: places of half a degree that tell the nodes of a mesh what they see."""
    places, nodes, edges, width, channels, parts = 259200, 40962, 409600, 512, 186, 16

    def perceptron(weights, *inputs):
        y = jax.nn.silu(jnp.concatenate(inputs, -1) @ weights["first"] + weights["bias"])
        y = (y @ weights["second"] + weights["last"]).astype(jnp.float32)
        y = (y - y.mean(-1, keepdims=True)) * lax.rsqrt(y.var(-1, keepdims=True) + 1e-5)
        return (y * weights["scale"] + weights["offset"]).astype(jnp.bfloat16)

    def told(params, grid, mesh, features, senders, receivers):
        """What the mesh's nodes hear along those edges."""
        edge = perceptron(params["edge"], features)
        edge = perceptron(params["message"], edge, grid[senders], mesh[receivers])
        return jax.ops.segment_sum(edge.astype(jnp.float32), receivers, nodes)

    def encoder(each):
        def encode(params, weather, where, mesh, features, senders, receivers):
            params = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
            grid = perceptron(params["grid"], jnp.concatenate([weather, where], -1).astype(jnp.bfloat16))
            mesh = perceptron(params["mesh"], mesh.astype(jnp.bfloat16))
            features = features.astype(jnp.bfloat16)
            heard = each(functools.partial(told, params, grid, mesh), features, senders, receivers)
            after = mesh + perceptron(params["mesh_node"], mesh, heard.astype(jnp.bfloat16))
            return after, grid + perceptron(params["grid_node"], grid)

        return encode

    def at_once(tell, *along):
        return tell(*along)

    def in_parts(tell, *along):
        def add(total, part):
            return total + tell(*part), None

        cut = jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), along)
        return lax.scan(add, jnp.zeros((nodes, width)), cut)[0]

    params, wide = {}, {"grid": channels + 3, "mesh": 3, "edge": 4, "message": 3 * width, "mesh_node": 2 * width}
    for name, given in {**wide, "grid_node": width}.items():
        params[name] = {"first": draw.array((given, width)), "second": draw.array((width, width))}
        params[name] |= {leaf: draw.array((width,)) for leaf in ("bias", "last", "scale", "offset")}
    arguments = params, draw.array((places, channels)), draw.array((places, 3)), draw.array((nodes, 3))
    arguments = *arguments, draw.array((edges, 4)), *2 * (draw.array((edges,), jnp.int32),)
    change = Change("in_parts", "chunk", "value", Program(encoder(in_parts), arguments))
    return Case(Program(encoder(at_once), arguments), [change])


@case("v4")
def fused_depths(draw: Draw) -> Case:
    """After tsdf-fusion-python's `TSDFVolume.integrate`: a picture with depths changes distances and colors of all cells."""
    size, slab, tall, wide = 384, 16, 480, 640

    def fused(volumes, start, picture, depth, lens, pose, origin, cell):
        """Of cells [slab, size, size], the first of which are at `start`."""
        distance, weight, color = volumes
        at = [x.astype(jnp.float32) for x in jnp.meshgrid(*map(jnp.arange, distance.shape), indexing="ij")]
        world = [origin[n] + cell * (x + (start if n == 0 else 0)) for n, x in enumerate(at)]
        turn = jnp.linalg.inv(pose)
        x, y, z = (sum(turn[n, m] * world[m] for m in range(3)) + turn[n, 3] for n in range(3))
        column = jnp.round(lens[0, 0] * x / z + lens[0, 2]).astype(jnp.int32)
        row = jnp.round(lens[1, 1] * y / z + lens[1, 2]).astype(jnp.int32)
        seen = (column >= 0) & (column < wide) & (row >= 0) & (row < tall) & (z > 0)
        pixel = jnp.clip(row, 0, tall - 1) * wide + jnp.clip(column, 0, wide - 1)
        far = jnp.where(seen, depth.reshape(-1)[pixel], 0)
        margin = 5 * cell
        there = (far > 0) & (far - z >= -margin)
        after = weight + 1
        moved = (distance * weight + jnp.minimum(1, (far - z) / margin)) / after

        def parted(x):
            blue = jnp.floor(x / 65536)
            green = jnp.floor((x - blue * 65536) / 256)
            return blue, green, x - blue * 65536 - green * 256

        mixed = [
            jnp.minimum(jnp.round((old * weight + new) / after), 255)
            for old, new in zip(parted(color), parted(picture.reshape(-1)[pixel]), strict=True)
        ]
        painted = mixed[0] * 65536 + mixed[1] * 256 + mixed[2]
        pairs = zip((moved, after, painted), volumes, strict=True)
        return tuple(jnp.where(there, new, old) for new, old in pairs)

    def at_once(volumes, *given):
        return fused(volumes, 0, *given)

    def in_slabs(volumes, *given):
        def one(number, volumes):
            start = number * slab
            cut = [lax.dynamic_slice_in_dim(volume, start, slab) for volume in volumes]
            after = zip(volumes, fused(cut, start, *given), strict=True)
            return tuple(lax.dynamic_update_slice_in_dim(old, new, start, 0) for old, new in after)

        return lax.fori_loop(0, size // slab, one, volumes)

    volumes = 3 * (draw.array((size, size, size)),)
    arguments = volumes, draw.array((tall, wide)), draw.array((tall, wide)), draw.array((3, 3)), draw.array((4, 4))
    arguments = *arguments, draw.array((3,)), draw.array(())
    donated = Program(at_once, arguments, {"donate_argnums": (0,)})
    changes = [
        Change("in_slabs", "chunk", "value", Program(in_slabs, arguments)),
        Change("donated", "donate", "argument", donated),
    ]
    return Case(Program(at_once, arguments), changes)


@case("v7x")
def posed_bodies(draw: Draw) -> Case:
    """After smplx's `lbs`: 24 joints move 6890 points of each body, a matrix of four by four for every point."""
    rows, points, joints, shapes = 4096, 6890, 24, 10
    parents = [-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21]

    def turned(axis):
        """Matrices of rotations about axes as long as their angles."""
        angle = jnp.linalg.norm(axis + 1e-8, axis=-1, keepdims=True)
        x, y, z = jnp.moveaxis(axis / angle, -1, 0)
        zero = jnp.zeros_like(x)
        cross = jnp.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*axis.shape[:-1], 3, 3)
        angle = angle[..., None]
        return jnp.eye(3) + jnp.sin(angle) * cross + (1 - jnp.cos(angle)) * cross @ cross

    def moved(turns, places):
        """How each joint moves what hangs on it, down the tree of joints."""
        steps = jnp.concatenate([places[:, :1], places[:, 1:] - places[:, jnp.array(parents[1:])]], 1)
        local = jnp.concatenate([turns, steps[..., None]], -1)
        foot = jnp.broadcast_to(jnp.array([0.0, 0, 0, 1]), (*local.shape[:2], 1, 4))
        local = jnp.concatenate([local, foot], 2)
        chain = [local[:, 0]]
        for number in range(1, joints):
            chain.append(chain[parents[number]] @ local[:, number])
        chain = jnp.stack(chain, 1)
        rest = jnp.concatenate([places, jnp.zeros_like(places[..., :1])], -1)
        back = jnp.einsum("bjxy,bjy->bjx", chain, rest)
        return chain[..., :3, 3], chain - jnp.pad(back[..., None], ((0, 0), (0, 0), (0, 0), (3, 0)))

    def skinned(model, shape, pose):
        body = model["mean"] + jnp.einsum("bl,mkl->bmk", shape, model["shapes"])
        places = jnp.einsum("bik,ji->bjk", body, model["joints"])
        turns = turned(pose.reshape(-1, joints, 3))
        bent = (turns[:, 1:] - jnp.eye(3)).reshape(len(pose), -1)
        body = body + (bent @ model["poses"]).reshape(len(pose), points, 3)
        places, moves = moved(turns, places)
        weights = jnp.broadcast_to(model["weights"], (len(pose), points, joints))
        matrices = (weights @ moves.reshape(len(pose), joints, 16)).reshape(len(pose), points, 4, 4)
        longer = jnp.concatenate([body, jnp.ones_like(body[..., :1])], -1)
        return (matrices @ longer[..., None])[:, :, :3, 0], places

    def in_parts(model, *bodies):
        cut = jax.tree.map(lambda leaf: leaf.reshape(-1, 256, *leaf.shape[1:]), bodies)
        found = lax.map(lambda part: skinned(model, *part), cut)
        return jax.tree.map(lambda leaf: leaf.reshape(rows, *leaf.shape[2:]), found)

    model = {"mean": draw.array((points, 3)), "shapes": draw.array((points, 3, shapes))}
    model |= {"joints": draw.array((joints, points)), "poses": draw.array((9 * (joints - 1), 3 * points))}
    arguments = model | {"weights": draw.array((points, joints))}, draw.array((rows, shapes)), draw.array((rows, 3 * joints))
    return Case(Program(skinned, arguments), [Change("in_parts", "chunk", "value", Program(in_parts, arguments))])


@case("v5e")
def crossing_averages(draw: Draw) -> Case:
    """After vectorbt's `MA.run_combs` and `Portfolio.from_signals`: each pair of 100 windows, bought and sold all day."""
    minutes, windows, part = 16384, 100, 99

    def averaged(price):
        """The mean of the last minutes, a column for each window."""
        total = jnp.pad(jnp.cumsum(price), (windows + 1, 0))

        def mean(window):
            before = lax.dynamic_slice_in_dim(total, windows + 1 - window, minutes)
            return jnp.where(jnp.arange(minutes) >= window - 1, (total[windows + 1 :] - before) / window, jnp.nan)

        return lax.map(mean, jnp.arange(2, 2 + windows)).T

    def traded(price, means, short, long):
        quick, slow = means[:, short], means[:, long]
        above = quick > slow
        before = jnp.concatenate([above[:1], above[:-1]])

        def minute(state, now):
            cash, shares = state
            price, is_bought, is_sold = now
            fresh = jnp.where(is_bought & (shares == 0), cash / (price * 1.001), shares)
            fresh = jnp.where(is_sold, 0, fresh)
            cash = cash - (fresh - shares) * price - 0.001 * jnp.abs(fresh - shares) * price
            return (cash, fresh), cash + fresh * price

        start = jnp.full(short.shape, 100.0), jnp.zeros(short.shape)
        wealth = lax.scan(minute, start, (price, above & ~before, ~above & before))[1]
        gain = wealth / jnp.concatenate([wealth[:1], wealth[:-1]]) - 1
        sharpe = gain.mean(0) / (gain.std(0) + 1e-9) * 525600**0.5

        def fallen(most, now):
            most = jnp.maximum(most, now)
            return most, now / most - 1

        fall = lax.scan(fallen, wealth[0], wealth)[1].min(0)
        return wealth[-1] / 100 - 1, sharpe, fall, (wealth[1:] != wealth[:-1]).mean(0)

    def at_once(price, *pairs):
        return traded(price, averaged(price), *pairs)

    def in_parts(price, *pairs):
        means = averaged(price)
        found = lax.map(lambda pair: traded(price, means, *pair), tuple(pair.reshape(-1, part) for pair in pairs))
        return jax.tree.map(lambda leaf: leaf.reshape(-1), found)

    count = windows * (windows - 1) // 2
    arguments = draw.array((minutes,)), draw.array((count,), jnp.int32), draw.array((count,), jnp.int32)
    return Case(Program(at_once, arguments), [Change("in_parts", "chunk", "value", Program(in_parts, arguments))])
