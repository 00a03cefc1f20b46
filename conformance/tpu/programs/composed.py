"""Random compositions of operations, loops and branches."""

import jax
import jax.numpy as jnp
from jax import lax

from .draw import Draw, Program, program

UNARY = [jnp.exp, jnp.tanh, jnp.sin, jax.nn.gelu, jnp.abs, jnp.square, jax.nn.sigmoid, jnp.cumsum]


def column_index(x):
    return jnp.clip(jnp.abs(x[:, 0]).astype(jnp.int32), 0, x.shape[0] - 1)


class Composition:
    """A list of random steps, made once and applied when the program is traced.

    Every value is an array of two dimensions: a step takes one or two earlier values and makes another.
    """

    def __init__(self, draw: Draw, depth: int, count: int):
        self.steps = [self.step(draw, depth) for _ in range(count)]
        self.results = draw.between(1, 3)

    def step(self, draw: Draw, depth: int):
        kinds = ["unary", "binary", "matmul", "transpose", "reduce", "slice", "pad", "gather", "scatter", "sort"]
        kinds += ["concatenate", "reshape", "convert", "update", "where", "roll"]
        kinds += ["scan", "while", "cond", "remat", "map"] if depth else []
        kind = draw.one(*kinds)
        numbers = [draw.random.random() for _ in range(4)]
        inner = Composition(draw, depth - 1, draw.between(1, 4)) if kind in ("scan", "while", "cond", "remat") else None
        return kind, numbers, inner

    def __call__(self, values: list) -> list:
        values = list(values)
        for kind, numbers, inner in self.steps:
            # Later values are taken more often, so that chains become long.
            x, y = (values[int(len(values) * number**0.5)] for number in numbers[:2])
            values.append(getattr(self, f"do_{kind}")(x, y, numbers, inner))
        return values[-self.results :]

    def do_unary(self, x, y, numbers, inner):
        operation = UNARY[int(numbers[2] * len(UNARY))]
        return operation(x, axis=int(numbers[3] * 2)) if operation is jnp.cumsum else operation(x)

    def fit(self, y, shape):
        """`y` in that shape: cut, or repeated."""
        for axis, size in enumerate(shape):
            y = lax.slice_in_dim(y, 0, min(size, y.shape[axis]), axis=axis)
            if y.shape[axis] < size:
                repeats = [1, 1]
                repeats[axis] = -(-size // y.shape[axis])
                y = lax.slice_in_dim(jnp.tile(y, repeats), 0, size, axis=axis)
        return y

    def do_binary(self, x, y, numbers, inner):
        operation = [jnp.add, jnp.multiply, jnp.maximum, jnp.subtract][int(numbers[2] * 4)]
        return operation(x, self.fit(y, x.shape).astype(x.dtype))

    def do_matmul(self, x, y, numbers, inner):
        return x @ self.fit(y, (x.shape[1], y.shape[1])).astype(x.dtype)

    def do_transpose(self, x, y, numbers, inner):
        return x.T

    def do_reduce(self, x, y, numbers, inner):
        axis = int(numbers[2] * 2)
        reduction = [jnp.max, jnp.sum, jnp.mean][int(numbers[3] * 3)]
        return x - reduction(x, axis=axis, keepdims=True)

    def do_slice(self, x, y, numbers, inner):
        rows, columns = (
            max(1, int(size * (0.3 + 0.7 * number))) for size, number in zip(x.shape, numbers[2:], strict=True)
        )
        return x[-rows:, :columns]

    def do_pad(self, x, y, numbers, inner):
        return jnp.pad(x, ((int(numbers[2] * 9), 0), (0, int(numbers[3] * 130))))

    def do_gather(self, x, y, numbers, inner):
        return x[column_index(x)]

    def do_scatter(self, x, y, numbers, inner):
        return x.at[column_index(x)].add(self.fit(y, x.shape).astype(x.dtype))

    def do_sort(self, x, y, numbers, inner):
        return jnp.sort(x, axis=int(numbers[2] * 2))

    def do_concatenate(self, x, y, numbers, inner):
        axis = int(numbers[2] * 2)
        shape = [x.shape[axis] if dim == axis else x.shape[dim] for dim in range(2)]
        shape[axis] = min(y.shape[axis], 500)
        return jnp.concatenate([x, self.fit(y, shape).astype(x.dtype)], axis=axis)[:3000, :3000]

    def do_reshape(self, x, y, numbers, inner):
        divisors = [size for size in (2, 3, 4, 5, 8) if x.shape[1] % size == 0] or [1]
        divisor = divisors[int(numbers[2] * len(divisors))]
        return x.reshape(x.shape[0] * divisor, x.shape[1] // divisor)

    def do_convert(self, x, y, numbers, inner):
        types = [jnp.float32, jnp.bfloat16, jnp.int8, jnp.int32]
        return x.astype(types[int(numbers[2] * 4)]).astype(x.dtype)

    def do_update(self, x, y, numbers, inner):
        part = self.fit(y, [max(1, size // 3) for size in x.shape]).astype(x.dtype)
        start = jnp.abs(x[0, 0]).astype(jnp.int32)
        return lax.dynamic_update_slice(x, part, (start, int(numbers[2] * 9)))

    def do_where(self, x, y, numbers, inner):
        return jnp.where(x > 0, x, self.fit(y, x.shape).astype(x.dtype))

    def do_roll(self, x, y, numbers, inner):
        return jnp.roll(x, int(numbers[2] * 200), axis=int(numbers[3] * 2))

    def do_map(self, x, y, numbers, inner):
        return lax.map(lambda row: jnp.tanh(row) * row.sum(), x)

    def do_remat(self, x, y, numbers, inner):
        return jax.checkpoint(lambda x, y: self.inside(inner, x, y))(x, y)

    def inside(self, inner, x, y):
        """A result of the inner composition, in the shape and type of `x`."""
        return self.fit(inner([y, x])[-1], x.shape).astype(x.dtype)

    def do_scan(self, x, y, numbers, inner):
        def body(carry, _):
            carry = self.inside(inner, carry, y)
            return carry, carry.sum(axis=0)

        carry, sums = lax.scan(body, x, None, length=2 + int(numbers[2] * 6))
        return carry if numbers[3] < 0.7 else sums

    def do_while(self, x, y, numbers, inner):
        start = (0, x)
        limit = jnp.abs(y[0, 0]).astype(jnp.int32) if numbers[2] < 0.5 else 7
        return lax.while_loop(lambda s: s[0] < limit, lambda s: (s[0] + 1, self.inside(inner, s[1], y)), start)[1]

    def do_cond(self, x, y, numbers, inner):
        return lax.cond(x[0, 0] > 0, lambda x, y: self.inside(inner, x, y), lambda x, y: x, x, y)


@program()
def composed(draw: Draw) -> Program:
    dtype = draw.real()
    arguments = [draw.array((draw.size(2, 1500), draw.size(2, 1500)), dtype) for _ in range(draw.between(1, 4))]
    steps = Composition(draw, 2, draw.between(4, 16))
    gradient = draw.one(False, False, True)
    donated = draw.one((), (0,))

    def function(*values):
        return steps(list(values))

    def loss(*values):
        return sum(jnp.sum(jnp.square(value.astype(jnp.float32))) for value in function(*values))

    def step(*values):
        value, gradients = jax.value_and_grad(loss, argnums=tuple(range(len(values))))(*values)
        return value, [x - g for x, g in zip(values, gradients, strict=True)]

    # Loops of unknown length have no gradient.
    unknown = any(kind == "while" for kind in kinds(steps))
    return Program(step if gradient and not unknown else function, tuple(arguments), {"donate_argnums": donated})


def kinds(composition: Composition):
    """The kinds of all steps, inner ones included."""
    pending = [composition]
    while pending:
        for kind, _, inner in pending.pop().steps:
            yield kind
            if inner is not None:
                pending.append(inner)
