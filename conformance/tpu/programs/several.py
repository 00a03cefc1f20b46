"""Programs for several devices: collectives by hand, and programs that the compiler divides."""

from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .draw import Draw, Program, convolved, program
from .training import perceptron, transformer_layer, transformer_weights


def mapped(function, mesh, inputs, outputs):
    return jax.shard_map(function, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)


@program()
def all_reduce(draw: Draw) -> Program:
    mesh, rows, columns = draw.mesh(x=4), 4 * draw.size(1, 500), draw.size(1, 900)

    def function(x, y):
        return lax.psum(x, "x"), lax.pmax(y, "x"), lax.pmean(x @ y.T, "x")

    arguments = (draw.sharded(mesh, (rows, columns), "x", dtype=draw.real()) for _ in range(2))
    return Program(mapped(function, mesh, (P("x"), P("x")), P()), tuple(arguments))


@program()
def all_gather(draw: Draw) -> Program:
    mesh, rows, columns = draw.mesh(x=4), 4 * draw.size(1, 500), 4 * draw.size(1, 300)

    def function(x, w):
        gathered = lax.all_gather(w, "x", tiled=True)
        product = jnp.tanh(x @ gathered)
        return lax.psum_scatter(product, "x", scatter_dimension=1, tiled=True), lax.all_to_all(x, "x", 1, 0, tiled=True)

    dtype = draw.real()
    arguments = (
        draw.sharded(mesh, (rows, columns), "x", dtype=dtype),
        draw.sharded(mesh, (columns, 80), "x", dtype=dtype),
    )
    return Program(mapped(function, mesh, (P("x"), P("x")), (P("x"), P("x"))), arguments)


@program()
def ring(draw: Draw) -> Program:
    """Attention with keys and values that go around a ring."""
    mesh, time, heads, width = draw.mesh(x=4), 4 * draw.even(8, 256, 8), draw.between(1, 8), draw.one(64, 128)
    dtype = draw.real()

    def function(q, k, v):
        def step(state, _):
            k, v, total, weight = state
            scores = jnp.exp(jnp.einsum("qhd,khd->hqk", q, k) / width)
            total = total + jnp.einsum("hqk,khd->qhd", scores, v)
            turn = [(device, (device + 1) % 4) for device in range(4)]
            return (lax.ppermute(k, "x", turn), lax.ppermute(v, "x", turn), total, weight + scores.sum(-1)), None

        start = k, v, jnp.zeros_like(q), jnp.zeros((heads, time // 4), q.dtype)
        total, weight = lax.scan(step, start, None, length=4)[0][2:]
        return total / weight.T[:, :, None]

    arguments = (draw.sharded(mesh, (time, heads, width), "x", dtype=dtype) for _ in range(3))
    return Program(mapped(function, mesh, (P("x"),) * 3, P("x")), tuple(arguments))


@program()
def pipeline(draw: Draw) -> Program:
    """Stages on four devices, with small batches that pass from one to the next."""
    mesh, parts, batch, width = draw.mesh(stage=4), draw.between(2, 9), draw.size(4, 256), draw.size(8, 512)

    def function(weight, x):
        def step(state, part):
            here = jnp.where(lax.axis_index("stage") == 0, part, state)
            done = jnp.tanh(here @ weight[0])
            return lax.ppermute(done, "stage", [(0, 1), (1, 2), (2, 3)]), done

        return lax.scan(step, jnp.zeros_like(x[0]), x)[1]

    dtype = draw.real()
    weight = draw.sharded(mesh, (4, width, width), "stage", dtype=dtype)
    arguments = weight, draw.sharded(mesh, (parts, batch, width), dtype=dtype)
    return Program(mapped(function, mesh, (P("stage"), P()), P(None, "stage")), arguments)


@program()
def ragged_exchange(draw: Draw) -> Program:
    mesh, rows, width = draw.mesh(x=4), draw.even(8, 512, 8), draw.even(128, 512, 128)

    def function(x, sizes):
        starts = jnp.cumsum(sizes) - sizes
        there = jnp.zeros_like(starts)
        received = lax.all_to_all(sizes.reshape(4, 1), "x", 0, 0).reshape(4)
        return lax.ragged_all_to_all(x, jnp.zeros_like(x), starts, sizes, there, received, axis_name="x")

    arguments = draw.sharded(mesh, (4 * rows, width), "x"), draw.sharded(mesh, (16,), "x", dtype=jnp.int32)
    return Program(mapped(function, mesh, (P("x"), P("x")), P("x")), arguments)


@program()
def tensor_parallel(draw: Draw) -> Program:
    mesh, batch, width, hidden = (
        draw.mesh(data=2, model=2),
        2 * draw.size(1, 512),
        draw.size(8, 900),
        2 * draw.size(8, 900),
    )
    dtype = draw.real()

    def step(up, down, x):
        loss = lambda up, down: jnp.square(jax.nn.gelu(x @ up) @ down).astype(jnp.float32).mean()
        return jax.value_and_grad(loss, argnums=(0, 1))(up, down)

    weights = (
        draw.sharded(mesh, (width, hidden), None, "model", dtype=dtype),
        draw.sharded(mesh, (hidden, width), "model", None, dtype=dtype),
    )
    return Program(step, (*weights, draw.sharded(mesh, (batch, width), "data", dtype=dtype)))


@program()
def data_parallel_step(draw: Draw) -> Program:
    mesh, batch, sizes = (
        draw.mesh(data=4),
        4 * draw.size(1, 512),
        [draw.size(8, 900) for _ in range(draw.between(3, 5))],
    )
    dtype = draw.real()

    def step(weights, x):
        loss = lambda weights: jnp.square(perceptron(weights, x)).astype(jnp.float32).mean()
        value, gradients = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value

    weights = [
        (draw.sharded(mesh, pair, dtype=dtype), draw.sharded(mesh, pair[1:], dtype=dtype)) for pair in pairwise(sizes)
    ]
    arguments = weights, draw.sharded(mesh, (batch, sizes[0]), "data", dtype=dtype)
    return Program(step, arguments, {"donate_argnums": draw.one((), (0,))})


@program()
def sharded_transformer_step(draw: Draw) -> Program:
    """Every weight divided over all devices, gathered layer by layer in a scan."""
    mesh, layers, batch, time = draw.mesh(fsdp=4), draw.between(2, 8), 4 * draw.between(1, 4), draw.even(32, 256, 32)
    heads, dtype = draw.between(1, 8), draw.real()
    width = heads * draw.one(32, 64, 128)
    remat = draw.one(lambda f: f, jax.checkpoint)

    def step(weights, x):
        def loss(weights):
            layer = remat(lambda x, weights: (transformer_layer(x, weights, heads), None))
            return jnp.square(lax.scan(layer, x, weights)[0]).astype(jnp.float32).mean()

        value, gradients = jax.value_and_grad(loss)(weights)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value

    weights = transformer_weights(lambda s: draw.sharded(mesh, s, None, "fsdp", dtype=dtype), layers, width)
    arguments = weights, draw.sharded(mesh, (batch, time, width), "fsdp", dtype=dtype)
    return Program(step, arguments, {"donate_argnums": draw.one((), (0,))})


@program()
def sharded_embedding(draw: Draw) -> Program:
    mesh, rows, width, batch = draw.mesh(x=4), 4 * draw.size(10, 9000), draw.size(4, 256), 4 * draw.size(1, 512)

    def step(table, where):
        loss = lambda table: jnp.square(table[where]).sum()
        return table - jax.grad(loss)(table)

    arguments = draw.sharded(mesh, (rows, width), "x"), draw.sharded(mesh, (batch,), "x", dtype=jnp.int32)
    return Program(step, arguments, {"donate_argnums": draw.one((), (0,))})


@program()
def divided_convolution(draw: Draw) -> Program:
    """An image divided in space, whose parts exchange their edges."""
    mesh, size, features = draw.mesh(x=2, y=2), draw.even(16, 128, 16), draw.size(4, 128)

    def function(image, kernel):
        x = convolved(image, kernel)
        return jnp.cumsum(x, axis=1), x.max(axis=(1, 2))

    image = draw.sharded(mesh, (2, size, size, 8), None, "x", "y")
    return Program(function, (image, draw.sharded(mesh, (3, 3, 8, features))))


@program()
def resharding(draw: Draw) -> Program:
    mesh, rows, columns = draw.mesh(x=2, y=2), 4 * draw.size(1, 700), 4 * draw.size(1, 700)

    def function(x):
        turned = lax.with_sharding_constraint(x.T, jax.NamedSharding(mesh, P("x", "y")))
        whole = lax.with_sharding_constraint(jnp.sort(turned, axis=0), jax.NamedSharding(mesh, P()))
        return turned, lax.with_sharding_constraint(whole * 2, jax.NamedSharding(mesh, P(None, ("x", "y"))))

    return Program(function, (draw.sharded(mesh, (rows, columns), "x", "y", dtype=draw.real()),))
