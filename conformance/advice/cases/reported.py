"""A fifth set of programs after public code of many fields, written before anybody saw what is advised for them."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Draw, Program, case, compared
from .libraries import KEY, normalized, recomputed


def parted(function, size, *batch):
    """The results of a function of a batch, of which it takes `size` samples at a time."""
    cut = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), batch)
    found = lax.map(lambda part: function(*part), cut)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), found)


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
            content, place = (
                self.param(name, nn.initializers.normal(), (heads, depth)) for name in ("content", "place")
            )
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

    def loss(model, params, x, seen):
        said = model.apply(params, x)
        return (said - seen * jnp.log(jnp.maximum(said, 1e-20))).mean()

    batch = draw.array((rows, length, width)), draw.array((rows, kept, tracks))
    params = jax.eval_shape(Trunk().init, KEY, batch[0])
    return recomputed(draw, loss, (Trunk(), Trunk(nn.remat(Layer))), params, batch, optax.adam(1e-4), parts=4)


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
        return parted(sampled, 32, *given)

    arguments = draw.array((rows, vocabulary), jnp.bfloat16), draw.array((rows,)), draw.array((rows,), jnp.int32)
    arguments = *arguments, draw.array((rows,)), draw.array((rows, 2), jnp.uint32)
    return compared(Program(sampled, arguments), ("in_parts", "chunk", in_parts))


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
        return parted(functools.partial(skinned, model), 256, *bodies)

    model = {"mean": draw.array((points, 3)), "shapes": draw.array((points, 3, shapes))}
    model |= {"joints": draw.array((joints, points)), "poses": draw.array((9 * (joints - 1), 3 * points))}
    arguments = (
        model | {"weights": draw.array((points, joints))},
        draw.array((rows, shapes)),
        draw.array((rows, 3 * joints)),
    )
    return compared(Program(skinned, arguments), ("in_parts", "chunk", in_parts))


@case("v5e")
def stacked_caches(draw: Draw) -> Case:
    """After llama-2-jax's `forward_decoder`: a scan reads each layer's cache and stacks it anew, token after token."""
    rows, length, width, depth, groups, heads, inner, layers, vocabulary = 8, 2048, 2048, 64, 32, 1, 5504, 4, 32000

    def rotated(x, at):
        angles = at * 10000.0 ** (-jnp.arange(0, depth, 2) / depth)
        first, second = jnp.split(x.astype(jnp.float32), 2, -1)
        turned = first * jnp.cos(angles) - second * jnp.sin(angles), first * jnp.sin(angles) + second * jnp.cos(angles)
        return jnp.concatenate(turned, -1).astype(x.dtype)

    def layer(weights, x, at, kept):
        """One layer on one token; `kept` puts keys and values into the caches."""
        y = normalized(x, 1e-5)
        q = rotated(jnp.einsum("bm,mrhd->brhd", y, weights["q"]), at)
        k, v = (jnp.einsum("bm,mhd->bhd", y, weights[name]) for name in "kv")
        keys, values, state = kept(rotated(k, at), v)
        scores = jnp.einsum("brhd,bhtd->brht", q, keys).astype(jnp.float32) / depth**0.5
        share = jax.nn.softmax(jnp.where(jnp.arange(length) <= at, scores, -jnp.inf)).astype(x.dtype)
        x = x + jnp.einsum("brht,bhtd,rhdm->bm", share, values, weights["o"])
        y = normalized(x, 1e-5)
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
                token = (normalized(x, 1e-5) @ params["head"]).argmax(-1)
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
    return compared(Program(decoder(stacked), arguments, jit), ("carried", "carry loop", decoder(carried)))
