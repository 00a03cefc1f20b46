"""More training steps, loops and caches of public libraries, written after the rules: each in a style of its own."""

import functools

import diffrax
import equinox
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import lax

from .case import Case, Draw, case
from .libraries import KEY, accumulated, recomputed, trained


@case("v6e")
def nnx_transformer(draw: Draw) -> Case:
    """Flax NNX: a scan over six layers with stacked weights."""
    width, layers = 256, 6

    class Layer(nnx.Module):
        def __init__(self, rngs):
            self.before = nnx.LayerNorm(width, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(8, width, dtype=jnp.bfloat16, decode=False, rngs=rngs)
            self.after = nnx.LayerNorm(width, rngs=rngs)
            self.up = nnx.Linear(width, 4 * width, dtype=jnp.bfloat16, rngs=rngs)
            self.down = nnx.Linear(4 * width, width, dtype=jnp.bfloat16, rngs=rngs)

        def __call__(self, x):
            x = x + self.attention(self.before(x))
            return x + self.down(nnx.gelu(self.up(self.after(x))))

    graph, one = nnx.split(nnx.eval_shape(lambda: Layer(nnx.Rngs(0))))
    stacked = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((layers, *leaf.shape), leaf.dtype), nnx.to_pure_dict(one))

    def loss(params, x, y, wrap=lambda step: step):
        def step(x, weights):
            state = nnx.split(nnx.eval_shape(lambda: Layer(nnx.Rngs(0))))[1]
            nnx.replace_by_pure_dict(state, weights)
            return nnx.merge(graph, state)(x).astype(x.dtype), None

        return jnp.mean((lax.scan(wrap(step), x, params)[0] - y).astype(jnp.float32) ** 2)

    batch = draw.array((16, 1024, width), jnp.bfloat16), draw.array((16, 1024, width), jnp.bfloat16)
    remat = functools.partial(loss, wrap=jax.checkpoint)
    return trained(draw, loss, stacked, batch, [("remat", "checkpoint loop", remat)])


@case("v5e")
def flax_gru(draw: Draw) -> Case:
    """Flax: a recurrent classifier over 400 steps, whose last state is read."""

    class Classifier(nn.Module):
        cell: type

        @nn.compact
        def __call__(self, x):
            out = nn.RNN(self.cell(256, name="cell"))(nn.Dense(256)(x))
            return nn.Dense(10)(out[:, -1])

    x, y = draw.array((128, 400, 32)), draw.array((128,), jnp.int32)

    def loss(model, params, x, y):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(params, x), y).mean()

    params = jax.eval_shape(Classifier(nn.GRUCell).init, KEY, x)
    whole, remat = (functools.partial(loss, Classifier(cell)) for cell in (nn.GRUCell, nn.remat(nn.GRUCell)))
    changes = [("remat", "checkpoint loop", remat), ("accumulated", "chunk", accumulated(whole, 8))]
    return trained(draw, whole, params, (x, y), changes)


class Convolution(nn.Module):
    """A layer of a graph's convolutional network: messages along edges, added up at their ends."""

    @nn.compact
    def __call__(self, nodes, senders, receivers, weight):
        sent = nn.Dense(128)(nodes)[senders] * weight[:, None]
        got = jax.ops.segment_sum(nn.relu(sent), receivers, nodes.shape[0])
        return nodes + nn.relu(nn.Dense(128)(got))


@case("v5e")
def segmented_graph(draw: Draw) -> Case:
    """Flax: three layers of messages along 300000 edges, added up by `segment_sum`."""
    nodes, edges = 40_000, 300_000

    class Network(nn.Module):
        layer: type

        @nn.compact
        def __call__(self, nodes, senders, receivers, weight):
            nodes = nn.Dense(128)(nodes)
            for number in range(3):
                nodes = self.layer(name=f"layer_{number}")(nodes, senders, receivers, weight)
            return nn.Dense(1)(nodes)[:, 0]

    graph = draw.array((nodes, 32)), draw.array((edges,), jnp.int32), draw.array((edges,), jnp.int32)
    graph = *graph, draw.array((edges,))

    def loss(model, params, *batch):
        *graph, y = batch
        return jnp.mean((model.apply(params, *graph) - y) ** 2)

    params = jax.eval_shape(Network(Convolution).init, KEY, *graph)
    variants = Network(Convolution), Network(nn.remat(Convolution))
    return recomputed(draw, loss, variants, params, (*graph, draw.array((nodes,))))


@case("v5e")
def diffrax_samples(draw: Draw) -> Case:
    """Diffrax: an adaptive solver vmapped over samples, whose weights' gradients are then one for each sample."""
    params = {"w": draw.array((32, 128)), "v": draw.array((128, 32))}

    def field(t, y, params):
        return jnp.tanh(y @ params["w"]) @ params["v"]

    def run(params, y):
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Tsit5(),
            0.0,
            1.0,
            0.05,
            y,
            params,
            stepsize_controller=diffrax.PIDController(1e-3, 1e-6),
            max_steps=64,
        )
        return found.ys[0]

    def loss(params, y, target):
        return jnp.mean((jax.vmap(lambda y: run(params, y))(y) - target) ** 2)

    def together(params, y, target):
        return jnp.mean((run(params, y) - target) ** 2)

    batch = draw.array((8192, 32)), draw.array((8192, 32))
    changes = [("accumulated", "chunk", accumulated(loss, 8)), ("together", "batch loop", together)]
    return trained(draw, loss, params, batch, changes)


@case("v6e")
def spline_flow(draw: Draw) -> Case:
    """Equinox: rational splines, whose knots a network chooses for each sample."""
    rows, features, knots = 32768, 8, 10

    def table(x, raw):
        widths = jax.nn.softmax(raw[..., :knots]) * 0.9 + 0.01
        at = jnp.concatenate([jnp.zeros((*widths.shape[:-1], 1)), jnp.cumsum(widths, -1)], -1)
        heights = jax.nn.softmax(raw[..., knots : 2 * knots]) * 0.9 + 0.01
        slopes = jax.nn.softplus(raw[..., 2 * knots :]) + 0.1
        return at, widths, heights, jnp.cumsum(heights, -1) - heights, slopes

    def gathered(table, k):
        return jnp.take_along_axis(table, k[..., None], -1)[..., 0]

    def compared(table, k):
        return jnp.sum(jnp.where(jnp.arange(table.shape[-1]) == k[..., None], table, 0), -1)

    def transformed(x, raw, pick):
        at, widths, heights, below, slopes = table(x, raw)
        k = jnp.clip(jnp.sum(x[..., None] >= at, -1) - 1, 0, knots - 1)
        width, height, low = pick(widths, k), pick(heights, k), pick(below, k)
        left, right, start = pick(slopes, k), pick(slopes, k + 1), pick(at, k)
        part = (x - start) / width
        mean = height / width
        under = mean + (left + right - 2 * mean) * part * (1 - part)
        y = low + height * (mean * part**2 + left * part * (1 - part)) / under
        slope = mean**2 * (right * part**2 + 2 * mean * part * (1 - part) + left * (1 - part) ** 2) / under**2
        return y, jnp.log(slope).sum(-1)

    shapes = equinox.filter_eval_shape(
        lambda: [equinox.nn.MLP(features, features * (3 * knots + 1), 64, 1, key=KEY) for _ in range(3)]
    )
    params, static = equinox.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def loss(params, x, pick=gathered):
        total = 0.0
        for network in equinox.combine(params, static):
            raw = jax.vmap(network)(x).reshape(-1, features, 3 * knots + 1)
            x, slopes = transformed(jax.nn.sigmoid(x), raw, pick)
            total = total + slopes
        return jnp.mean(x**2) - jnp.mean(total)

    compare = functools.partial(loss, pick=compared)
    return trained(
        draw,
        loss,
        params,
        (draw.array((rows, features)),),
        [("compared", "split", compare), ("accumulated", "chunk", accumulated(loss, 8))],
    )
