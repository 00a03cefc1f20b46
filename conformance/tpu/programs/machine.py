"""Parts of the machine that a program names itself: host memory, layouts, kernels, SparseCores."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import pallas as pl
from jax.experimental.compute_on import compute_on
from jax.experimental.layout import Format, Layout
from jax.experimental.pallas import tpu as pltpu

from .draw import Draw, Program, program


@program()
def host_arguments(draw: Draw) -> Program:
    """Weights in host memory, brought over one by one, and results left there."""
    layers, batch, width, dtype = draw.between(1, 6), draw.size(8, 900), draw.even(128, 1024, 128), draw.real()
    host = draw.sharding.with_memory_kind("pinned_host")

    def function(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ jax.device_put(weight, draw.sharding))
        return x, jax.device_put(x * 2, host)

    weights = [draw.array((width, width), dtype, host)] * layers
    return Program(function, (weights, draw.array((batch, width), dtype)), {"out_shardings": (draw.sharding, host)})


@program()
def host_weights_in_loop(draw: Draw) -> Program:
    layers, batch, width, dtype = draw.between(2, 12), draw.size(8, 900), draw.even(128, 1024, 128), draw.real()
    host = draw.sharding.with_memory_kind("pinned_host")

    def function(weights, x):
        body = lambda x, weight: (jnp.tanh(x @ jax.device_put(weight, draw.sharding)), None)
        return lax.scan(body, x, weights)[0]

    return Program(function, (draw.array((layers, width, width), dtype, host), draw.array((batch, width), dtype)))


@program()
def offloaded_activations(draw: Draw) -> Program:
    layers, batch, width = draw.between(2, 8), draw.even(128, 1024, 128), draw.even(128, 1024, 128)
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["kept"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def loss(weights, x):
        @functools.partial(jax.checkpoint, policy=policy)
        def layer(x, weight):
            return checkpoint_name(jnp.sin(x @ weight), "kept"), None

        return jnp.square(lax.scan(layer, x, weights)[0]).mean()

    return Program(jax.grad(loss), (draw.array((layers, width, width)), draw.array((batch, width))))


@program()
def host_computation(draw: Draw) -> Program:
    rows, columns = draw.size(8, 900), draw.even(128, 1024, 128)

    def function(x):
        with compute_on("device_host"):
            y = x * 3 + 1
        return y @ x.T

    return Program(function, (draw.array((rows, columns)),))


@program()
def chosen_layouts(draw: Draw) -> Program:
    """Arguments and results in orders of dimensions that the program fixes, or leaves to the compiler."""
    shape, dtype = (draw.size(1, 64), draw.size(1, 200), draw.size(1, 300)), draw.real()
    orders = [tuple(draw.some([0, 1, 2], 3)) for _ in range(2)]
    fixed = [Format(Layout(major_to_minor=order), draw.sharding) for order in orders]
    fixed = draw.one(fixed, [Format(Layout.AUTO), fixed[1]], [fixed[0], Format(Layout.AUTO)])

    def function(x, w):
        return jnp.einsum("abc,cd->abd", x, w)

    jit = {"in_shardings": (fixed[0], None), "out_shardings": fixed[1]}
    arguments = jax.ShapeDtypeStruct(shape, dtype), jax.ShapeDtypeStruct((shape[2], shape[2]), dtype)
    if fixed[0].layout is not Layout.AUTO:
        arguments = draw.like(jax.tree.map(lambda a: draw.array(a.shape, a.dtype), arguments))
    return Program(function, arguments, jit)


@program("v5p", "v6e", "v7x")
def sparse_core(draw: Draw) -> Program:
    """A table so large that its lookups and updates go to the SparseCores."""
    rows, width, batch, bag = draw.even(300_000, 700_000, 1000), 128, draw.one(1024, 2048), draw.between(4, 24)

    def step(table, where, wanted):
        found = table[where].sum(axis=1)
        gradient = jax.grad(lambda table: jnp.square(table[where].sum(axis=1) - wanted).mean())(table)
        return found, table - gradient

    arguments = draw.array((rows, width)), draw.array((batch, bag), jnp.int32), draw.array((batch, width))
    return Program(step, arguments, {"donate_argnums": (0,)})


@program("v4", "v5e", "v5p", "v6e", "v7x")
def pallas_elementwise(draw: Draw) -> Program:
    rows, columns, dtype = draw.even(64, 2048, 64), draw.even(128, 1024, 128), draw.real()
    aliases = draw.one({}, {0: 0})

    def kernel(x, y, out):
        out[...] = jnp.tanh(x[...]) * y[...]

    def function(x, y):
        block = pl.BlockSpec((32, columns), lambda i: (i, 0))
        call = pl.pallas_call(
            kernel,
            grid=rows // 32,
            in_specs=[block, block],
            out_specs=block,
            out_shape=jax.ShapeDtypeStruct((rows, columns), dtype),
            input_output_aliases=aliases,
        )
        return call(x, y) @ y.T

    arguments = draw.array((rows, columns), dtype), draw.array((rows, columns), dtype)
    return Program(function, arguments, {"donate_argnums": draw.one((), (0,))})


@program("v4", "v5e", "v5p", "v6e", "v7x")
def pallas_matmul(draw: Draw) -> Program:
    m, k, n = (draw.even(256, 2048, 256) for _ in range(3))
    dtype, length = draw.real(), draw.one(1, 5)

    def kernel(x, y, out, sum):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sum[...] = jnp.zeros_like(sum)

        sum[...] += jnp.dot(x[...], y[...], preferred_element_type=jnp.float32)
        out[...] = sum[...].astype(out.dtype)

    def function(x, y):
        call = pl.pallas_call(
            kernel,
            grid=(m // 256, n // 256, k // 256),
            in_specs=[
                pl.BlockSpec((256, 256), lambda i, j, k: (i, k)),
                pl.BlockSpec((256, 256), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((256, 256), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((256, 256), jnp.float32)],
            out_shape=jax.ShapeDtypeStruct((m, n), dtype),
        )
        step = lambda x, _: (jnp.tanh(call(x, y) @ y.T), None)
        return lax.scan(step, x, None, length=length)[0]

    return Program(function, (draw.array((m, k), dtype), draw.array((k, n), dtype)))


@program("v5e", "v5p", "v6e", "v7x")
def pallas_attention(draw: Draw) -> Program:
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    batch, heads, time, width = draw.between(1, 4), draw.between(1, 8), draw.even(512, 2048, 512), 128
    dtype = draw.real()

    def loss(q, k, v):
        return jnp.square(flash_attention(q, k, v, causal=True)).astype(jnp.float32).mean()

    function = draw.one(loss, jax.grad(loss, argnums=(0, 1, 2)))
    return Program(function, tuple(draw.array((batch, heads, time, width), dtype) for _ in range(3)))
