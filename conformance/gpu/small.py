"""Programs that compile in a second, and what they are once the advice for them is followed: for this machine's CPU."""

import jax
import jax.numpy as jnp
from jax import lax
from step import Programs, Step


def scan(checkpoint=lambda layer: layer) -> Step:
    """A step of SGD through sixteen layers in a loop."""

    def loss(weights, x):
        def layer(x, w):
            return jnp.tanh(jax.nn.gelu(x @ w["up"]) @ w["down"]), None

        return jnp.square(lax.scan(checkpoint(layer), x, weights)[0]).mean()

    def step(weights, x):
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights, x))

    weights = {
        "up": jax.ShapeDtypeStruct((16, 256, 1024), jnp.float32),
        "down": jax.ShapeDtypeStruct((16, 1024, 256), jnp.float32),
    }
    return Step(step, (weights, jax.ShapeDtypeStruct((4096, 256), jnp.float32)), (0,))


def unrolled(checkpoint=lambda layer: layer) -> Step:
    """A step of SGD through eight layers, each written out."""

    def layer(w, x):
        return x + jax.nn.gelu(jnp.tanh(x) @ w["up"]) @ w["down"]

    def loss(weights, x):
        for w in weights:
            x = checkpoint(layer)(w, x)
        return jnp.square(x).mean()

    def step(weights, x):
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights, x))

    weights = [
        {"up": jax.ShapeDtypeStruct((256, 1024), jnp.float32), "down": jax.ShapeDtypeStruct((1024, 256), jnp.float32)}
    ] * 8
    return Step(step, (weights, jax.ShapeDtypeStruct((4096, 256), jnp.float32)), (0,))


def vocabulary(chunks=1) -> Step:
    """The gradient of a cross entropy over 32,000 words."""

    def cross_entropy(head, hidden, labels):
        logits = hidden @ head
        picked = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
        return jnp.sum(jax.nn.logsumexp(logits, axis=-1) - picked)

    def loss(head, hidden, labels):
        if chunks == 1:
            return cross_entropy(head, hidden, labels)
        parts = [value.reshape(chunks, -1, *value.shape[1:]) for value in (hidden, labels)]
        add = jax.checkpoint(lambda total, part: (total + cross_entropy(head, *part), None))
        return lax.scan(add, 0.0, parts)[0]

    arguments = (
        jax.ShapeDtypeStruct((256, 32_000), jnp.float32),
        jax.ShapeDtypeStruct((4096, 256), jnp.float32),
        jax.ShapeDtypeStruct((4096,), jnp.int32),
    )
    return Step(jax.value_and_grad(loss, argnums=(0, 1)), arguments, ())


PROGRAMS: Programs = {
    "sixteen layers in a loop": [
        ("", "as written", scan),
        ("checkpoint", "`jax.checkpoint` around the step", lambda: scan(jax.checkpoint)),
    ],
    # XLA for CPUs drops the barriers around what is to be computed again: nothing is promised.
    "eight layers": [
        ("", "as written", unrolled),
        ("none", "`jax.checkpoint` around each", lambda: unrolled(jax.checkpoint)),
    ],
    "loss over 32,000 words": [("", "as written", vocabulary), ("chunk", "in 16 chunks", lambda: vocabulary(16))],
}
