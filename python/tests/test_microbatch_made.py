"""`microbatch` of a batch that the step makes itself: parts compute what the whole does, and hold a part of it."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import tilewise as tw

jax = pytest.importorskip("jax")
jnp = jax.numpy

ROWS, PARTS = 64, 4
# Few rows take as much as their pairs, in tiles.
MANY = 512
KEYS = jax.random.split(jax.random.key(0), 4)
POINTS = jax.random.normal(KEYS[0], (ROWS, 3))
VALUES = jax.random.normal(KEYS[1], (ROWS, 2))
WEIGHTS = jax.random.normal(KEYS[2], (32, 256)) / 8


def similar(one, other):
    distances = jnp.sum(one * one, -1)[:, None] + jnp.sum(other * other, -1)[None] - 2 * one @ other.T  # made here
    return jnp.exp(-distances)


def products(points, values):
    """A matrix of pairs: a product with it, a sum and a maximum of each row."""
    matrix = similar(points, points)
    return matrix @ values, (matrix**2).sum(), matrix.max(1)


def fitted(points, values):
    """Its gradient."""
    return jax.value_and_grad(lambda points: jnp.mean((similar(points, points) @ values) ** 2))(points)


def solved(points, values):
    """A loop that reads it in each turn."""
    matrix = similar(points, points) + jnp.eye(ROWS)

    def turn(state):
        number, x, _ = state
        left = values - matrix @ x
        return number + 1, x + 0.01 * left, jnp.linalg.norm(left)

    return jax.lax.while_loop(lambda state: state[0] < 5, turn, (0, matrix @ values, jnp.array(1.0)))


def swept(points, values):
    """A loop that makes it anew in each turn."""

    def turn(points, scale):
        matrix = similar(points * scale, points)
        return points + 1e-3 * (matrix / matrix.sum(1, keepdims=True)) @ points, matrix.sum(1)

    return jax.lax.scan(turn, points, jnp.linspace(0.5, 1.0, 3))[1] @ values


def checkpointed(points, values):
    """Its gradient behind a checkpoint in a loop, which makes it again."""

    def loss(points):
        @jax.checkpoint
        def turn(points, scale):
            matrix = similar(points * scale, points)
            return points + 1e-3 * (matrix / matrix.sum(1, keepdims=True)) @ points, matrix.sum(1)

        return (jax.lax.scan(turn, points, jnp.linspace(0.5, 1.0, 3))[1] @ values).sum()

    return jax.value_and_grad(loss)(points)


def evolved(weights, key):
    """A strategy that draws weights for each of its samples, runs them in a loop, ranks them, and adds the draws up."""
    noise = jax.vmap(lambda key: jax.random.normal(key, weights.shape))(jax.random.split(key, ROWS))
    population = jnp.concatenate([weights + 0.1 * noise, weights - 0.1 * noise])  # made here

    def fitness(weights):
        state, _ = jax.lax.scan(lambda state, _: (jnp.tanh(state @ weights)[:32], None), jnp.ones(32), None, length=3)
        return state.sum()

    ranks = jnp.argsort(jnp.argsort(jax.vmap(fitness)(population))) / ROWS
    return weights + jnp.tensordot(ranks[:ROWS] - ranks[ROWS:], noise, 1), ranks.max()


def planes(sky, scales, places):
    """The gradient through pictures of each plane, their frequencies and look-ups in them."""

    def plane(scale, places):
        grid = jnp.fft.fft2(sky * jnp.exp(2j * scale))
        patch = grid[places[:, None, 0] + jnp.arange(8)[:, None], places[:, None, 1] + jnp.arange(8)]  # made here
        return jnp.abs(patch).sum(1)

    def energy(sky_scale):
        seen = jax.vmap(plane)(scales * sky_scale, places)
        return jnp.sum(jnp.tanh(seen)) + jnp.sum(sky_scale**2), seen.max()

    return jax.value_and_grad(energy, has_aux=True)(jnp.float32(0.5))


def forces(weights, points):
    """A loss on a gradient: its own gradient goes through the samples twice."""

    def total(points):
        apart = points[:, None] - points[None, :16]
        features = jnp.tanh(jnp.exp(-jnp.sum(apart**2, -1))[..., None] * weights[0])  # made here
        return jnp.sum(features @ weights[1])

    return jax.grad(lambda weights: jnp.mean(jax.grad(lambda points: total(points))(points) ** 2) + weights.sum())(
        weights
    )


def regressed(points, omega):
    """Weights of wide features, by a solver of JAX's whose loop reads them."""
    features = jnp.cos(points @ omega)  # made here
    weights, _ = jax.scipy.sparse.linalg.cg(
        lambda w: features.T @ (features @ w) + ROWS * w, features.T @ points[:, 0], maxiter=5
    )
    return weights, jnp.mean((features @ weights - points[:, 0]) ** 2)


PLACES = jax.random.randint(KEYS[3], (ROWS, 8, 2), 0, 24)
STEPS = {
    products: (POINTS, VALUES),
    fitted: (POINTS, VALUES),
    solved: (POINTS, VALUES),
    swept: (POINTS, VALUES),
    checkpointed: (jax.random.normal(KEYS[2], (MANY, 3)), jax.random.normal(KEYS[3], (MANY, 2))),
    evolved: (WEIGHTS, KEYS[0]),
    planes: (jnp.ones((32, 32)), jnp.linspace(0.1, 1.0, ROWS), PLACES),
    forces: (WEIGHTS, POINTS),
    regressed: (POINTS, jax.random.normal(KEYS[2], (3, 1024))),
}


def line_of(step):
    """The line that makes the samples, of the step or of the function that it calls."""
    for function in (step, similar):
        lines, first = inspect.getsourcelines(function)
        found = [first + at for at, line in enumerate(lines) if line.rstrip().endswith("# made here")]
        if found:
            return f"test_microbatch_made.py:{found[0]}"
    raise AssertionError(step)


def largest(step, arguments):
    """The elements of the largest array that a step makes."""
    pending, found = [jax.make_jaxpr(step)(*arguments).jaxpr], 0
    while pending:
        for equation in pending.pop().eqns:
            inner = [getattr(value, "jaxpr", value) for value in jax.tree.leaves(list(equation.params.values()))]
            pending += [value for value in inner if hasattr(value, "eqns")]
            found = max(found, *(math.prod(each.aval.shape) for each in equation.outvars), 0)
    return found


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_parts_of_a_made_batch_compute_what_the_whole_does(step):
    arguments = STEPS[step]
    size = MANY if step is checkpointed else ROWS
    in_parts = tw.microbatch(step, PARTS, made_at=line_of(step), size=size)
    wanted, found = step(*arguments), jax.jit(in_parts)(*arguments)
    assert jax.tree.structure(wanted) == jax.tree.structure(found)
    for one, other in zip(jax.tree.leaves(wanted), jax.tree.leaves(found), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4 * float(jnp.abs(one).max()))
    assert largest(in_parts, arguments) * 2 <= largest(step, arguments)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_dimension_is_chosen_by_its_number(axis):
    in_parts = tw.microbatch(products, PARTS, made_at=line_of(products), size=ROWS, axis=axis)
    if axis == 1:
        with pytest.raises(tw.Error, match="`reduce_max` goes over the batch"):
            in_parts(POINTS, VALUES)
    else:
        in_parts(POINTS, VALUES)


def drawn_at_once(key):
    noise = jax.random.normal(key, (ROWS, 512))  # made here
    return (noise**2).sum()


@pytest.mark.parametrize(
    ("step", "arguments", "options", "reason"),
    [
        (drawn_at_once, (KEYS[0],), {"size": ROWS}, "one key draws for all samples"),
        (products, (POINTS, VALUES), {"size": 40}, "no array made at .*, or near it, has a dimension of 40"),
        (products, (POINTS, VALUES), {}, "`size`"),
    ],
)
def test_parts_that_cannot_be_made_say_why(step, arguments, options, reason):
    with pytest.raises(tw.Error, match=reason):
        tw.microbatch(step, PARTS, made_at=line_of(step), **options)(*arguments)


def test_a_line_that_makes_nothing_is_named():
    with pytest.raises(tw.Error, match=r"no array made at nowhere\.py:1, or near it, has"):
        tw.microbatch(products, PARTS, made_at="nowhere.py:1", size=ROWS)(POINTS, VALUES)


def test_a_line_that_moved_is_found():
    name, _, line = line_of(products).rpartition(":")
    in_parts = tw.microbatch(products, PARTS, made_at=f"{name}:{int(line) - 1}", size=ROWS)
    for one, other in zip(products(POINTS, VALUES), in_parts(POINTS, VALUES), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)
