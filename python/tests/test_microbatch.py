"""`microbatch`: parts of a batch compute what the whole batch does, or nothing."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw

jax = pytest.importorskip("jax")
jnp = jax.numpy

KEYS = jax.random.split(jax.random.key(0), 8)
NORMAL = jax.random.normal
ROWS, PARTS = 32, 4
X = NORMAL(KEYS[0], (ROWS, 8))
LABELS = jax.random.randint(KEYS[1], (ROWS,), 0, 5)
# Parts have unequal numbers of samples that count.
MASK = jnp.arange(ROWS) < 11
PARAMS = {"w": NORMAL(KEYS[2], (8, 16)), "v": NORMAL(KEYS[3], (16, 5))}
STACK = NORMAL(KEYS[4], (3, 8, 8))
# The first half of the rows has eight tokens, the other two.
TOKENS = jax.random.randint(KEYS[5], (ROWS, 8), 1, 11) * ((jnp.arange(ROWS) < 16)[:, None] | (jnp.arange(8) < 2))


def network(params, x):
    return jnp.tanh(x @ params["w"]) @ params["v"]


def entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)[..., 0]


def adam(params, state, x, labels, mask):
    """A training step: a masked mean, Adam, and the norm of the gradient."""

    def loss(params):
        return (entropy(network(params, x), labels) * mask).sum() / mask.sum()

    value, slope = jax.value_and_grad(loss)(params)
    means = jax.tree.map(lambda mean, slope: 0.9 * mean + 0.1 * slope, state[0], slope)
    squares = jax.tree.map(lambda square, slope: 0.99 * square + 0.01 * slope**2, state[1], slope)
    params = jax.tree.map(lambda p, m, s: p - 0.1 * m / (jnp.sqrt(s) + 1e-3), params, means, squares)
    return params, (means, squares), value, jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(slope)))


def layers_in_a_loop(stack, x, mask):
    """A checkpointed scan over layers."""

    def loss(stack):
        @jax.checkpoint
        def layer(x, weight):
            return jnp.tanh(x @ weight), None

        return (jnp.sum(jax.lax.scan(layer, x, stack)[0] ** 2, 1) * mask).sum() / mask.sum()

    return jax.value_and_grad(loss)(stack)


def steps_of_time(weight, x):
    """A recurrent network, whose loop carries the batch and stacks it up."""

    def loss(weight):
        def step(state, now):
            state = jnp.tanh(state @ weight + now)
            return state, state

        end, states = jax.lax.scan(step, jnp.zeros((x.shape[0], 8)), x.swapaxes(0, 1))
        return (states**2).mean() + end.sum() / x.shape[0]

    return jax.value_and_grad(loss)(weight)


def gates_of_one_product(weight, x):
    """Gates whose weights are joined in each step of a loop, so that their gradients are taken apart there."""

    def loss(weight):
        def step(state, now):
            joined = jnp.concatenate([weight, weight[::-1]], 1)
            update, gate = jnp.split(jnp.stack([state, now], 1).sum(1) @ joined, 2, -1)
            state = jax.nn.sigmoid(gate) * jnp.tanh(update)
            return state, sum(jnp.unstack(state, axis=1))

        _, sums = jax.lax.scan(step, jnp.zeros((x.shape[0], 8)), x.swapaxes(0, 1))
        return (sums**2).mean()

    return jax.value_and_grad(loss)(weight)


def weights_made_in_each_step(weight, x):
    """Weights that a loop's step takes out of a stack, masks, adds up and multiplies; their gradients go back so."""

    def loss(weight):
        def step(state, now):
            at, now = now
            low, high = weight[at % 2], weight[jnp.array([1, 0])][at % 2]
            masked = jnp.where(jnp.tri(8, dtype=bool), low[0] @ high[1], 0) + jnp.cumsum(low[1], 0)
            changed = weight.at[1].multiply(0.5).at[:, 0].set(high).sum((0, 1))
            return jnp.tanh(state @ masked + now @ changed), None

        end, _ = jax.lax.scan(step, jnp.zeros((x.shape[0], 8)), (jnp.arange(x.shape[1]), x.swapaxes(0, 1)))
        return (end**2).mean()

    return jax.value_and_grad(loss)(weight)


def rounded_in_a_loop(weight, x):
    """Weights in bfloat16, whose gradient each step rounds, behind a checkpoint."""

    def loss(weight):
        @jax.checkpoint
        def step(state, now):
            return jnp.tanh(state + now * weight.astype(jnp.float32)), None

        state, _ = jax.lax.scan(step, jnp.zeros((x.shape[0], 8)), x.swapaxes(0, 1))
        return (state**2).mean()

    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), jax.value_and_grad(loss)(weight))


def spectra(weight, x):
    """Rows in the frequency domain, where each sample stays its own."""

    def loss(weight):
        return (jnp.abs(jnp.fft.rfft(x * weight)) ** 2).mean()

    return jax.value_and_grad(loss)(weight)


def language_model(params, tokens):
    """Attention with an embedding that is the head, too; the loss is divided by the tokens that count."""

    def loss(params):
        hidden = params["embedding"][tokens]
        scores = jnp.einsum("btd,bsd->bts", hidden @ params["queries"], hidden) / 3
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -1e9)
        hidden = hidden + jax.nn.softmax(scores) @ hidden
        weights = tokens[:, 1:] > 0
        lost = entropy((hidden @ params["embedding"].T)[:, :-1], tokens[:, 1:])
        return (lost * weights).sum() / weights.sum()

    return jax.value_and_grad(loss)(params)


def convolutions(kernel, pictures, labels, key):
    """Convolutions, pooling and dropout, whose random numbers are those of the whole batch."""

    def loss(kernel):
        x = jax.lax.conv_general_dilated(pictures, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = x * jax.random.bernoulli(key, 0.5, x.shape)
        return entropy(x.mean((1, 2)), labels).mean()

    return jax.value_and_grad(loss)(kernel)


def groups_of_features(kernel, pictures, labels):
    """A convolution of each feature by itself, whose gradient has groups where the batch would be."""

    def loss(kernel):
        spec = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "feature_group_count": 3}
        x = jax.lax.conv_general_dilated(pictures, kernel, (1, 1), "SAME", **spec)
        return entropy(jnp.tanh(x).mean((1, 2)), labels).mean()

    return jax.value_and_grad(loss)(kernel)


def sharpness(params, x, labels):
    """A gradient where the weights went up by the batch's own gradient."""

    def loss(params):
        return entropy(network(params, x), labels).mean()

    slope = jax.grad(loss)(params)
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(slope)))
    return jax.grad(loss)(jax.tree.map(lambda weight, up: weight + 0.05 * up / norm, params, slope))


def gradients_of_samples(params, x, labels):
    """Each sample's gradient, clipped by its norm."""

    def loss(params, x, label):
        return entropy(network(params, x), label)

    slopes = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, labels)
    norms = jnp.sqrt(sum(jnp.sum(leaf.reshape(len(x), -1) ** 2, 1) for leaf in jax.tree.leaves(slopes)))
    return jax.tree.map(lambda leaf: (leaf / jnp.maximum(1, norms)[:, None, None]).sum(0) / len(x), slopes)


def inference(params, x):
    """Rows of each sample come back in their order, beside what is of all."""
    logits = network(params, x)
    return jax.nn.softmax(logits), {"best": logits.argmax(-1), "mean": logits.mean(), "width": jnp.ones(3)}


def until(weight, x):
    """A loop of as many steps as the weights say."""
    return jax.lax.while_loop(
        lambda at: at[0] < weight[0, 0] * 0 + 3, lambda at: (at[0] + 1, jnp.tanh(at[1] @ weight)), (0, x)
    )


def branches(weight, x):
    return jax.lax.cond(weight[0, 0] > 0, lambda x: jnp.sin(x @ weight), lambda x: x, x).sum(0)


def equations(weight, x):
    """Each sample's linear system, factors and singular values, and a gradient through them."""

    def one(weight, x):
        matrix = jnp.outer(x, x) @ weight + 9 * jnp.eye(8)
        widest = jax.lax.stop_gradient(jnp.linalg.svd(matrix, compute_uv=False)[0])
        # A matrix that all samples share has its right-hand sides beside one another.
        other = jnp.linalg.solve(weight @ weight.T + jnp.eye(8), x).sum()
        return other + jnp.linalg.solve(matrix, x).sum() / widest + jnp.abs(jnp.linalg.qr(matrix)[1]).sum()

    return jax.value_and_grad(lambda weight: jax.vmap(one, (None, 0))(weight, x).mean())(weight)


def places_by_number(weight, x, labels):
    """Each sample's row is looked up by the sample's own number, in a gradient too, and written there."""
    at = jnp.arange(ROWS)

    def loss(weight):
        return (jnp.tanh(x @ weight)[at, labels] ** 2).sum()

    found = jnp.tanh(x @ weight)
    return jax.value_and_grad(loss)(weight), found.at[at, labels].set(3.0), found[at, -1]


def ranked(weight, x):
    """Few numbers of each sample are put in order, and returned as they are."""
    found = jnp.tanh(x @ weight).sum((1, 2))
    return jax.lax.top_k(found, 3), jnp.argsort(found), found.max(), found


def halves(params, x):
    found = network(params, x).sum(-1)
    return jax.nn.log_sigmoid(found[: ROWS // 2] - found[ROWS // 2 :]).mean()


ZEROS = jax.tree.map(jnp.zeros_like, PARAMS)
STEPS = [
    (adam, (2, 3, 4), (PARAMS, (ZEROS, ZEROS), X, LABELS, MASK.astype(jnp.float32))),
    (layers_in_a_loop, (1, 2), (STACK, X, MASK)),
    (steps_of_time, 1, (STACK[0], NORMAL(KEYS[6], (ROWS, 6, 8)))),
    (gates_of_one_product, 1, (STACK[0], NORMAL(KEYS[6], (ROWS, 6, 8)))),
    (weights_made_in_each_step, 1, (NORMAL(KEYS[6], (2, 2, 8, 8)), NORMAL(KEYS[7], (ROWS, 6, 8)))),
    (spectra, 1, (STACK[0][0], X)),
    (language_model, 1, ({"embedding": NORMAL(KEYS[6], (11, 8)), "queries": STACK[0]}, TOKENS)),
    (convolutions, (1, 2), (NORMAL(KEYS[6], (3, 3, 3, 5)), NORMAL(KEYS[7], (ROWS, 8, 8, 3)), LABELS, KEYS[0])),
    (groups_of_features, (1, 2), (NORMAL(KEYS[6], (3, 3, 1, 6)), NORMAL(KEYS[7], (ROWS, 8, 8, 3)), LABELS)),
    (sharpness, (1, 2), (PARAMS, X, LABELS)),
    (gradients_of_samples, (1, 2), (PARAMS, X, LABELS)),
    (inference, 1, (PARAMS, X)),
    (until, 1, (STACK[0], X)),
    (branches, 1, (STACK[0], X)),
    (equations, 1, (STACK[0], X)),
    (places_by_number, (1, 2), (STACK[0], X, LABELS)),
    (ranked, 1, (STACK[0], NORMAL(KEYS[6], (ROWS, 6, 8)))),
    (halves, 1, (PARAMS, X)),
]


@pytest.mark.parametrize(("step", "numbers", "arguments"), STEPS, ids=lambda given: getattr(given, "__name__", ""))
def test_parts_return_what_the_whole_batch_does(step, numbers, arguments):
    expected = jax.jit(step)(*arguments)
    for parts in (PARTS, ROWS):
        found = jax.jit(tw.microbatch(step, parts, numbers))(*arguments)
        assert jax.tree.structure(found) == jax.tree.structure(expected)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_the_batch_may_be_another_dimension():
    def step(weight, x):
        return steps_of_time(weight, x.swapaxes(0, 1))

    x = NORMAL(KEYS[6], (6, ROWS, 8))
    found = tw.microbatch(step, PARTS, 1, axis=1)(STACK[0], x)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(step(STACK[0], x)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_the_batch_may_lie_within_a_merged_dimension():
    """[time, batch] as one, with the numbers of its rows."""

    def step(weight, x):
        rows = jnp.tanh(x.reshape(-1, 8) @ weight) * jnp.arange(6 * ROWS)[:, None]
        return (rows.reshape(6, ROWS, 8) ** 2).mean(), rows

    x = NORMAL(KEYS[6], (6, ROWS, 8))
    found = tw.microbatch(step, PARTS, batch_argnames="x", axis=1)(STACK[0], x)
    for one, other in zip(found, step(STACK[0], x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_a_batch_of_several_arguments_is_named_once():
    """`*batch` stands for all arguments from its own on."""

    def step(weights, *batch):
        x, mask = batch
        return jax.grad(lambda weights: ((x @ weights) ** 2 * mask).sum() / mask.sum())(weights), x.shape[0]

    in_parts = tw.microbatch(step, PARTS, batch_argnames="batch")
    found, rows = in_parts(jnp.ones(8), X, MASK)
    np.testing.assert_allclose(found, step(jnp.ones(8), X, MASK)[0], rtol=1e-3, atol=1e-5)
    assert rows == ROWS
    with pytest.raises(tw.Error, match="all arrays of the batch need one size"):
        in_parts(jnp.ones(8), X, MASK[:4])


def test_single_arrays_have_the_names_that_reports_have():
    """Of `*rest` the number, of trees the path; others are the same for all parts, be they as long."""

    def step(weights, batch, *rest, **more):
        def loss(weights):
            rows = (batch["x"] @ weights) * batch["bias"].sum() + rest[1].T.sum(-1)
            return (rows**2 * more["mask"]).sum()

        return jax.grad(loss)(weights)

    batch = {"x": X, "bias": jnp.arange(float(ROWS))}
    given = jnp.ones(8), batch, jnp.ones(3), X.T
    expected = step(*given, mask=MASK)
    by_name = {"batch['x']": 0, "rest[1]": 1, "more['mask']": 0}
    by_number = {"args[1]['x']": 0, "args[3]": 1, "kwargs['mask']": 0}
    for names in by_name, by_number:
        np.testing.assert_allclose(
            tw.microbatch(step, PARTS, batch_argnames=names)(*given, mask=MASK), expected, rtol=1e-3, atol=1e-5
        )
    with pytest.raises(tw.Error, match=r"no argument is `rest\[7\]`, `bat`"):
        tw.microbatch(step, PARTS, batch_argnames=("batch['x']", "rest[7]", "bat"))(*given, mask=MASK)


def test_numbers_in_order_are_made_for_each_part():
    """The places of what is ranked: those of all samples take as much as their scores."""

    def ranked(params, x):
        return jnp.argsort(network(params, x), axis=1)[:, -2:]

    in_parts = tw.microbatch(ranked, PARTS, 1)
    np.testing.assert_array_equal(in_parts(PARAMS, X), ranked(PARAMS, X))
    traced = str(jax.make_jaxpr(in_parts)(PARAMS, X))
    assert f"i32[{ROWS // PARTS},5]" in traced
    assert f"i32[{ROWS},5]" not in traced


def test_short_rows_are_stacked_up_along_the_lanes():
    """Four numbers of each sample in a row would be padded to 128 in each part's results."""
    points = NORMAL(KEYS[6], (1024, 4, 4))

    def moved(params, points):
        return jnp.tanh(points @ params["w"][:4, :4])

    in_parts = tw.microbatch(moved, PARTS, 1)
    np.testing.assert_allclose(in_parts(PARAMS, points), moved(PARAMS, points), rtol=1e-5, atol=1e-6)
    traced = str(jax.make_jaxpr(in_parts)(PARAMS, points))
    assert f"f32[{PARTS},4,4,256]" in traced


def test_weights_out_of_their_quantized_form_are_made_for_each_part():
    """Beside all parts they would take twice what they are made of; what takes no more is made once."""

    def step(quantized, scale, wide, x):
        return x @ (quantized.astype(jnp.bfloat16) * scale) + x @ wide.astype(jnp.bfloat16)

    keys = jax.random.split(KEYS[7], 3)
    quantized = jax.random.randint(keys[0], (64, 32), -127, 127, jnp.int8)
    scale, wide = NORMAL(keys[1], (32,), jnp.bfloat16), NORMAL(keys[2], (64, 32))
    x = NORMAL(KEYS[6], (ROWS, 64), jnp.bfloat16)
    in_parts = tw.microbatch(step, PARTS, 3)
    np.testing.assert_array_equal(in_parts(quantized, scale, wide, x), step(quantized, scale, wide, x))
    (loop,) = (eqn for eqn in jax.make_jaxpr(in_parts)(quantized, scale, wide, x).eqns if eqn.primitive.name == "scan")
    given = [var.aval.str_short(short_dtypes=True) for var in loop.invars]
    assert "i8[64,32]" in given
    assert given.count("bf16[64,32]") == 1


def test_two_byte_gradients_are_added_up_in_float32():
    """Parts come as near to the gradient in float32 as the whole batch does."""

    def step(weight, x):
        return jax.grad(lambda weight: (x @ weight).sum().astype(jnp.float32))(weight)

    x = NORMAL(KEYS[6], (4096, 8), jnp.bfloat16)
    weight = STACK[0].astype(jnp.bfloat16)
    exact = step(weight.astype(jnp.float32), x.astype(jnp.float32))
    found = tw.microbatch(step, 64, 1)(weight, x)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(found.astype(jnp.float32), exact, rtol=0.02, atol=0.5)


def test_a_loop_in_two_bytes_rounds_each_parts_share():
    """As far from the gradient in float32 as that of the whole batch."""
    weight = STACK[0][0].astype(jnp.bfloat16)
    x = NORMAL(KEYS[6], (64, 6, 8))
    exact = rounded_in_a_loop(weight.astype(jnp.float32), x)
    found = jax.jit(tw.microbatch(rounded_in_a_loop, 8, 1))(weight, x)
    np.testing.assert_allclose(found[1], exact[1], rtol=0.05, atol=0.01)


def contrastive(params, x):
    def loss(params):
        found = network(params, x)
        return jax.nn.logsumexp(found @ found.T, -1).mean()

    return jax.grad(loss)(params)


def normalized(params, x):
    def loss(params):
        hidden = x @ params["w"]
        return (((hidden - hidden.mean(0)) / hidden.std(0)) @ params["v"]).mean()

    return jax.grad(loss)(params)


REFUSED = [
    (contrastive, "one number for each two samples"),
    (normalized, "what follows from all of the batch"),
    (lambda params, x: x[: ROWS // 2] - x[ROWS // 2 :], "a part of the batch is taken"),
    (lambda params, x: x[jnp.arange(ROWS)[::-1], LABELS], "samples are looked up in one another"),
    (lambda params, x: x[jnp.broadcast_to(jnp.arange(1), (ROWS,)), LABELS], "samples are looked up in one another"),
    (lambda params, x: jnp.sort(x, 0), "`sort` goes along the batch"),
    (lambda params, x: x.max(0), "`reduce_max` goes over the batch"),
    (lambda params, x: jnp.cumsum(x, 0), "`cumsum` goes along the batch"),
    (lambda params, x: jax.lax.map(lambda row: row @ params["w"], x), "a loop goes over the batch"),
    (lambda params, x: jnp.fft.fft(x.T).T, "`fft` works on all of the batch"),
    (lambda params, x: jnp.linalg.eig(x[:, :, None] * x[:, None])[0], "`eig` isn't known to keep samples apart"),
    (lambda params, x: x[::-1], "goes along the batch"),
    (lambda params, x: x.reshape(8, 4, 8).sum(1), "a reshape takes the batch apart"),
]


@pytest.mark.parametrize(("step", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_parts_compute_otherwise_is_refused(step, why):
    with pytest.raises(tw.Error, match="can't be computed in parts of its batch") as raised:
        tw.microbatch(step, PARTS, 1)(PARAMS, X)
    assert why in raised.value.message


def test_unequal_parts_are_refused():
    with pytest.raises(tw.Error, match="32 samples aren't 5 equal parts"):
        tw.microbatch(inference, 5, 1)(PARAMS, X)
    with pytest.raises(tw.Error, match=r"need one size; they are .* along dimension 0, "):
        tw.microbatch(lambda x, y: x, 4, (0, 1))(X, X[:8])


def test_the_compiler_holds_less():
    """The part's activations are all that is alive."""
    wide = jax.ShapeDtypeStruct((8192, 256), jnp.float32)
    weights = [jax.ShapeDtypeStruct((256, 256), jnp.float32)] * 4

    def step(weights, x):
        def loss(weights):
            hidden = x
            for weight in weights:
                hidden = jnp.tanh(hidden @ weight)
            return (hidden**2).mean()

        return jax.grad(loss)(weights)

    whole, parts = (
        jax.jit(one).lower(weights, wide).compile().memory_analysis().temp_size_in_bytes
        for one in (step, tw.microbatch(step, 16, 1))
    )
    assert parts < whole / 4


def contrastive(params, x, y):
    """A loss of all pairs of samples, whose gradient goes back to each."""

    def loss(params):
        one, other = (jnp.tanh(jnp.tanh(each @ params["w"]) @ params["v"]) for each in (x, y))
        logits = one @ other.T
        return -jnp.diagonal(jax.nn.log_softmax(logits)).mean() - jnp.diagonal(jax.nn.log_softmax(logits, 0)).mean()

    return jax.value_and_grad(loss)(params)


def test_samples_of_all_pairs_are_computed_again():
    x, y = NORMAL(KEYS[0], (64, 8)), NORMAL(KEYS[1], (64, 8))
    wide = {"w": NORMAL(KEYS[2], (8, 2048)), "v": NORMAL(KEYS[3], (2048, 5)) / 50}
    with pytest.raises(tw.Error, match="what follows from all of the batch"):
        tw.microbatch(contrastive, 4, batch_argnums=(1, 2))(wide, x, y)
    in_parts = tw.microbatch(contrastive, 4, batch_argnums=(1, 2), recompute=True)
    for one, other in zip(jax.tree.leaves(contrastive(wide, x, y)), jax.tree.leaves(in_parts(wide, x, y)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def clusters(centers, x):
    """Centers of k-means: each turn goes through all rows."""

    def turn(centers, _):
        distances = ((x[:, None] - centers) ** 2).sum(-1)
        own = jax.nn.one_hot(distances.argmin(1), len(centers))
        return own.T @ x / jnp.maximum(own.sum(0), 1)[:, None], distances.min(1).mean()

    return jax.lax.scan(turn, centers, None, length=4)


def mixture(means, x):
    """Means of a mixture, until they stay."""

    def turn(state):
        means, _, count = state
        weights = jax.nn.softmax(-((x[:, None] - means) ** 2).sum(-1), 1)
        new = weights.T @ x / weights.sum(0)[:, None]
        return new, jnp.abs(new - means).max(), count + 1

    return jax.lax.while_loop(lambda state: (state[1] > 1e-3) & (state[2] < 9), turn, (means, jnp.inf, 0))


def labelled(centers, x):
    """Labels of rows, which the loop carries."""

    def turn(state, _):
        centers, labels = state
        labels = ((x[:, None] - centers) ** 2).sum(-1).argmin(1)
        return (jax.ops.segment_sum(x, labels, len(centers)), labels), None

    return jax.lax.scan(turn, (centers, jnp.zeros(len(x), int)), None, length=3)[0]


def descent(weights, x):
    """Steps of gradient descent, all on one batch."""

    def loss(weights):
        return (jnp.tanh(x @ weights.T) ** 2).mean()

    return jax.lax.scan(lambda w, _: (w - 0.1 * jax.grad(loss)(w), loss(w)), weights, None, length=3)


@pytest.mark.parametrize("step", [clusters, mixture, labelled, descent])
def test_samples_that_meet_in_each_turn_of_a_loop(step):
    x = NORMAL(KEYS[0], (64, 8))
    in_parts, whole = jax.jit(tw.microbatch(step, 8, 1)), jax.jit(step)
    found, exact = jax.tree.leaves(in_parts(x[:4], x)), jax.tree.leaves(whole(x[:4], x))
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5)


def test_each_turn_of_a_loop_holds_a_part():
    def largest(step):
        centers, x = NORMAL(KEYS[1], (256, 8)), NORMAL(KEYS[0], (4096, 8))
        memory = jax.jit(step).lower(centers, x).compile().memory_analysis()
        return memory.temp_size_in_bytes

    assert largest(tw.microbatch(clusters, 16, 1)) < largest(clusters) / 4


def test_rows_that_a_loop_reads_are_arguments_or_small():
    def step(centers, x):
        return clusters(centers, x / x.std(0))

    with pytest.raises(tw.Error, match="used for each sample within a loop"):
        tw.microbatch(step, 4, 1)(X[:2], X)
    many = jnp.tile(X, (8, 1))
    np.testing.assert_allclose(tw.microbatch(step, 4, 1)(many, X)[0], step(many, X)[0], rtol=2e-5, atol=1e-5)


def normed_in_turns(weights, x):
    """The gradient of a loop in whose turns samples are normalized together."""

    def loss(weights):
        def turn(weights, _):
            hidden = jnp.tanh(x @ weights)
            return weights + 0.1 * hidden.T @ (hidden - hidden.mean(0)) / len(x), None

        return (jax.lax.scan(turn, weights, None, length=3)[0] ** 2).sum()

    return jax.grad(loss)(weights)


def returned(weights, x):
    """Rows that are returned, and read again by what follows from all of them."""
    hidden = jnp.tanh(x @ weights)
    return hidden, hidden - hidden.mean(0)


@pytest.mark.parametrize("step", [normed_in_turns, returned])
def test_samples_that_are_computed_again(step):
    x = NORMAL(KEYS[0], (64, 8))
    found = jax.tree.leaves(jax.jit(tw.microbatch(step, 4, 1, recompute=True))(jnp.eye(8), x))
    for one, other in zip(found, jax.tree.leaves(step(jnp.eye(8), x)), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("layer", [lambda layer: layer, jax.checkpoint])
def test_weights_of_two_towers_get_the_gradients_of_both(layer):
    """A loop hands its weights on, as Flax NNX does, so that its gradient starts from a later loop's."""
    keys = NORMAL(KEYS[1], (12, 8))

    def step(layers, x):
        @layer
        def one(h, w):
            return jnp.tanh(h @ w), w

        def loss(layers):
            queries, layers = jax.lax.scan(one, x, layers)
            found, _ = jax.lax.scan(one, keys, layers)
            return jax.nn.logsumexp(queries @ found.T, -1).mean()

        return jax.value_and_grad(loss)(layers)

    found = jax.tree.leaves(jax.jit(tw.microbatch(step, PARTS, 1))(STACK, X))
    for one, other in zip(found, jax.tree.leaves(step(STACK, X)), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)
