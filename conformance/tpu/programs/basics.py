"""Single operations and short chains of them, on one device."""

from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import lax

from .draw import Draw, Program, convolved, program


@program()
def elementwise(draw: Draw) -> Program:
    rank = draw.between(1, 3)
    shape = tuple(draw.size(1, (9000, 2500, 200)[rank - 1]) for _ in range(rank))
    operations = draw.some([jnp.exp, jnp.tanh, jnp.cos, jax.nn.gelu, lax.rsqrt, jnp.log1p, jnp.sign], 4)

    def function(x, y):
        for operation in operations:
            x = operation(x) * y + x
        return x, x > y

    return Program(function, (draw.array(shape, draw.real()), draw.array(shape, draw.real())))


@program()
def reduction(draw: Draw) -> Program:
    rank = draw.between(2, 4)
    shape = tuple(draw.size(1, 2000 if axis == 0 else 90) for axis in range(rank))
    axes = [tuple(draw.some(list(range(rank)), draw.between(1, rank))) for _ in range(3)]
    reductions = draw.some([jnp.sum, jnp.max, jnp.mean, jnp.argmin, jnp.std, jax.nn.logsumexp], 3)

    def function(x):
        return [
            reduction(x, axis=axis[0] if reduction is jnp.argmin else axis)
            for reduction, axis in zip(reductions, axes, strict=True)
        ]

    return Program(function, (draw.array(shape, draw.real()),))


@program()
def matmul(draw: Draw) -> Program:
    sizes = [draw.size(1, 3000) for _ in range(draw.between(3, 6))]
    dtype = draw.real()

    def function(*matrices):
        product = matrices[0]
        for matrix in matrices[1:]:
            product = jax.nn.relu(product @ matrix)
        return product

    return Program(function, tuple(draw.array(pair, dtype) for pair in pairwise(sizes)))


@program()
def einsum(draw: Draw) -> Program:
    b, h, i, j, k = (draw.size(2, 200) for _ in range(5))
    dtype, other = draw.real(), draw.one("bjkh,bhik->ijb", "bhik,bjkh->hbij", "bhik,bjkh->bihj")

    def function(x, y):
        first, second = (x, y) if other.startswith("bhik") else (y, x)
        return jnp.einsum(other, first, second), jnp.einsum("bhik->kb", x)

    b, h = min(b, 16), min(h, 16)
    return Program(function, (draw.array((b, h, i, k), dtype), draw.array((b, j, k, h), dtype)))


@program()
def convolution(draw: Draw) -> Program:
    batch, size, channels = draw.between(1, 9), draw.size(8, 128), draw.one(1, 3, 16, 60, 128)
    window, features, stride = draw.between(1, 7), draw.size(4, 200), draw.between(1, 3)
    padding, dtype = draw.one("SAME", "VALID"), draw.real()

    def function(image, kernel, second):
        x = convolved(image, kernel, stride, padding)
        x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        return convolved(x, second, feature_group_count=features)

    kernels = draw.array((window, window, channels, features), dtype), draw.array((3, 3, 1, features), dtype)
    return Program(function, (draw.array((batch, size, size, channels), dtype), *kernels))


@program()
def convolution_3d(draw: Draw) -> Program:
    size, features, dtype = draw.between(6, 20), draw.size(2, 64), draw.real()

    def loss(kernel, volume):
        return jnp.square(convolved(volume, kernel, numbers=("NDHWC", "DHWIO", "NDHWC"))).mean()

    arguments = draw.array((3, 3, 3, 4, features), dtype), draw.array((2, size, size, size, 4), dtype)
    return Program(jax.value_and_grad(loss), arguments)


@program()
def fft(draw: Draw) -> Program:
    batch, n = draw.between(1, 40), draw.one(64, 100, 256, 384, 1000)

    def function(x, mask):
        spectrum = jnp.fft.rfft(x, axis=-1)
        return jnp.fft.irfft(spectrum * mask, axis=-1), jnp.abs(jnp.fft.fft2(x)).max()

    return Program(function, (draw.array((batch, 8, n)), draw.array((n // 2 + 1,))))


@program()
def sort(draw: Draw) -> Program:
    shape, axis = (draw.size(2, 1500), draw.size(2, 1500)), draw.between(0, 1)

    def function(keys, values):
        order = jnp.argsort(keys, axis=axis)
        together = lax.sort((keys, values), dimension=axis, num_keys=1)
        return order, together, jnp.median(keys)

    return Program(function, (draw.array(shape), draw.array(shape, draw.one(jnp.int32, jnp.bfloat16))))


@program()
def top_k(draw: Draw) -> Program:
    batch, words, k = draw.size(1, 64), draw.size(200, 40000), draw.between(1, 64)

    def function(logits, key):
        best, where = lax.top_k(logits, k)
        chosen = jax.random.categorical(key, best.astype(jnp.float32))
        return jnp.take_along_axis(where, chosen[:, None], axis=1), lax.approx_max_k(logits, k)

    return Program(function, (draw.array((batch, words), draw.real()), draw.array((2,), jnp.uint32)))


@program()
def gather(draw: Draw) -> Program:
    rows, width, count = draw.size(10, 20000), draw.size(1, 300), draw.size(1, 5000)

    def function(table, where, pairs):
        return table[where].sum(axis=0), table[pairs[:, 0], pairs[:, 1] % width]

    indices = draw.array((count,), jnp.int32), draw.array((count, 2), jnp.int32)
    return Program(function, (draw.array((rows, width), draw.real()), *indices))


@program()
def scatter(draw: Draw) -> Program:
    rows, width, count = draw.size(10, 20000), draw.size(1, 300), draw.size(1, 5000)
    donated = draw.one((), (0,))

    def function(table, where, values):
        added = table.at[where].add(values)
        return added, jnp.zeros(rows, jnp.int32).at[where].max(where), table.at[where[:3]].set(0)

    dtype = draw.real()
    arguments = draw.array((rows, width), dtype), draw.array((count,), jnp.int32), draw.array((count, width), dtype)
    return Program(function, arguments, {"donate_argnums": donated})


@program()
def segment_sum(draw: Draw) -> Program:
    """A graph network's step: along edges, and back into nodes."""
    nodes, edges, features = draw.size(20, 8000), draw.size(20, 30000), draw.size(1, 130)

    def loss(weights, nodes_in, ends):
        messages = jnp.tanh(nodes_in[ends[:, 0]] @ weights)
        sums = jax.ops.segment_sum(messages, ends[:, 1], num_segments=nodes)
        return jnp.square(sums).sum()

    arguments = draw.array((features, features)), draw.array((nodes, features)), draw.array((edges, 2), jnp.int32)
    return Program(jax.grad(loss, argnums=(0, 1)), arguments)


@program()
def cumulative(draw: Draw) -> Program:
    shape = tuple(draw.size(2, high) for high in draw.one((3000,), (800, 800), (90, 90, 200)))

    def function(x):
        axis = x.ndim - 1
        return jnp.cumsum(x, axis=0), lax.cummax(x, axis=axis), jnp.cumsum(x, axis=axis)[::-1]

    return Program(function, (draw.array(shape, draw.real()),))


@program()
def associative_scan(draw: Draw) -> Program:
    time, batch, width = draw.size(2, 700), draw.size(1, 16), draw.size(1, 300)
    dtype = draw.real()

    def combine(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    def loss(decay, x):
        _, states = lax.associative_scan(combine, (jax.nn.sigmoid(decay), x), axis=0)
        return states[-1].astype(jnp.float32).sum(), states

    function = draw.one(loss, lambda *arguments: jax.grad(loss, has_aux=True)(*arguments))
    return Program(function, (draw.array((time, batch, width), dtype), draw.array((time, batch, width), dtype)))


@program()
def dynamic_slices(draw: Draw) -> Program:
    rows, columns, part = draw.size(20, 2000), draw.size(20, 900), draw.between(1, 20)

    def function(x, start, other):
        piece = lax.dynamic_slice(x, (start[0], start[1]), (part, part))
        x = lax.dynamic_update_slice(x, piece @ other, (start[1], 0))
        return x, lax.dynamic_index_in_dim(x, start[0], keepdims=False)

    dtype = draw.real()
    arguments = draw.array((rows, columns), dtype), draw.array((2,), jnp.int32), draw.array((part, part), dtype)
    return Program(function, arguments, {"donate_argnums": draw.one((), (0,))})


@program()
def rearrange(draw: Draw) -> Program:
    a, b, c = draw.size(1, 60), draw.size(1, 200), draw.size(1, 100)

    def function(x):
        turned = x.transpose(2, 0, 1)
        flat = turned.reshape(c * a, b)
        padded = jnp.pad(flat, ((1, 3), (0, 7)), constant_values=1)
        return jnp.concatenate([padded, padded[::-1]], axis=1), jnp.tile(flat, (2, 1)), jnp.flip(x, 1), x[::2, ::3]

    return Program(function, (draw.array((a, b, c), draw.one(jnp.float32, jnp.bfloat16, jnp.int8, jnp.bool_)),))


@program()
def random_bits(draw: Draw) -> Program:
    shape = (draw.size(1, 900), draw.size(1, 900))
    implementation = draw.one("threefry2x32", "rbg")

    def function(seed, x):
        keys = jax.random.split(jax.random.key(seed, impl=implementation), 3)
        mask = jax.random.bernoulli(keys[0], 0.9, shape)
        return jnp.where(mask, x, 0) + jax.random.normal(keys[1], shape), jax.random.permutation(keys[2], shape[0])

    return Program(function, (draw.array((), jnp.uint32), draw.array(shape)))


@program()
def linear_algebra(draw: Draw) -> Program:
    batch, n = draw.between(1, 12), draw.between(2, 40)

    def function(x, y):
        square = x @ x.swapaxes(-1, -2) + jnp.eye(n)
        factor = jnp.linalg.cholesky(square)
        return jax.scipy.linalg.solve_triangular(factor, y, lower=True), jnp.linalg.qr(x)[0], jnp.linalg.det(square)

    return Program(function, (draw.array((batch, n, n)), draw.array((batch, n, 3))))


@program()
def vmapped_lookup(draw: Draw) -> Program:
    batch, rows, width, count = draw.between(1, 64), draw.size(2, 900), draw.size(1, 64), draw.size(1, 64)

    def lookup(table, where, start):
        return table[where], lax.dynamic_slice_in_dim(table, start, 2)

    indices = draw.array((batch, count), jnp.int32), draw.array((batch,), jnp.int32)
    return Program(jax.vmap(lookup), (draw.array((batch, rows, width), draw.real()), *indices))


@program()
def interpolation(draw: Draw) -> Program:
    size, target, method = draw.between(8, 100), draw.between(8, 100), draw.one("linear", "cubic")

    def function(images, positions):
        resized = jax.image.resize(images, (images.shape[0], target, target, 3), method)
        return resized, jnp.interp(positions, jnp.linspace(0, 1, size), images[0, :, 0, 0])

    return Program(function, (draw.array((draw.between(1, 8), size, size, 3)), draw.array((draw.size(1, 3000),))))


@program()
def many_results(draw: Draw) -> Program:
    """Hundreds of small arguments and results, some of them the same, some constant, some empty."""
    count = draw.between(20, 300)
    shapes = [draw.one((), (draw.size(1, 300),), (draw.size(1, 40), draw.size(1, 40)), (0, 7)) for _ in range(count)]

    def function(values):
        results = {str(number): value * 2 + 1 for number, value in enumerate(values)}
        return results, values[0], jnp.arange(1000), jnp.zeros((3, 5)), (values[1], (), (results["2"],))

    dtypes = [draw.one(jnp.float32, jnp.bfloat16, jnp.int32) for _ in shapes]
    values = [draw.array(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    return Program(function, (values,), {"donate_argnums": draw.one((), (0,))})


@program()
def high_rank(draw: Draw) -> Program:
    shape = tuple(draw.between(1, 7) for _ in range(draw.between(5, 8)))
    order = draw.some(list(range(len(shape))), len(shape))

    def function(x):
        turned = x.transpose(order)
        return turned, turned.sum(axis=(0, -1)), jnp.sort(x, axis=2)

    return Program(function, (draw.array(shape, draw.one(jnp.float32, jnp.bfloat16, jnp.int8, jnp.float16)),))


@program()
def no_arguments(draw: Draw) -> Program:
    shape = draw.size(1, 200), draw.size(1, 200)

    def function():
        grid = jnp.arange(shape[0])[:, None] * jnp.linspace(0, 1, shape[1])
        return grid, jnp.sin(grid) @ jnp.ones((shape[1], 5)), jnp.eye(*shape)

    # Only the place of its results says what it is compiled for.
    return Program(function, (), {"out_shardings": draw.sharding})


@program()
def scalars(draw: Draw) -> Program:
    """Arrays of one element, which may never reach memory."""
    shape, dtype = draw.one((), (), (1,), (1, 1), (1, 1, 1)), draw.one(jnp.float32, jnp.bfloat16, jnp.int32, jnp.int8)
    unary = [jnp.exp, jnp.log, jnp.sqrt, jnp.tanh, jnp.abs, jnp.negative, jnp.isnan, jnp.square, jnp.sign, jnp.floor]
    binary = [jnp.add, jnp.multiply, jnp.maximum, jnp.minimum, jnp.divide, jnp.greater, jnp.logical_and, jnp.remainder]
    steps = draw.some(unary, draw.between(0, 4)) + draw.some(binary, draw.between(0, 4))
    turns, branch, kept = draw.between(0, 2), draw.between(0, 2), draw.between(1, 4)
    draw.random.shuffle(steps)

    def chain(x, y):
        values = [x, y]
        for step in steps:
            taken = values[-1:] if step in unary else values[-2:]
            values.append(step(*taken).astype(dtype))
        return values

    def function(x, y):
        values = chain(x, y)
        if branch:
            values.append(lax.cond(x.sum() > 0, lambda: values[-1] + 1, lambda: values[0]))
        if turns:
            going = lambda state: state[0] < (3 if turns == 1 else x.sum())
            values.append(lax.while_loop(going, lambda state: (state[0] + 1, state[1] * y), (0, values[-1]))[1])
        return values[-kept:]

    return Program(function, (draw.array(shape, dtype), draw.array(shape, dtype)))
