"""Programs on two devices."""

import jax
import jax.numpy as jnp
from jax import lax

from .case import Case, Draw, Program, case, compared, pinned


@case("v5e")
def sharded_loss(draw: Draw) -> Case:
    """A loss over a vocabulary, whose tokens are divided."""
    mesh = draw.mesh(data=2)
    tokens, width, vocabulary = 8192, 256, 32000

    def loss(head, hidden, labels):
        logits = jnp.dot(hidden, head, preferred_element_type=jnp.float32)
        picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
        return jnp.sum(jax.nn.logsumexp(logits, axis=-1) - picked) / tokens

    def chunked(head, hidden, labels):
        # The chunks divide each device's own tokens.
        chunks = [v.reshape(2, 16, -1, *v.shape[1:]).swapaxes(0, 1) for v in (hidden, labels)]
        step = jax.checkpoint(lambda total, chunk: (total + loss(head, *chunk), None))
        return lax.scan(step, 0.0, chunks)[0]

    arguments = (
        draw.sharded(mesh, (width, vocabulary), dtype=jnp.bfloat16),
        draw.sharded(mesh, (tokens, width), "data", dtype=jnp.bfloat16),
        draw.sharded(mesh, (tokens,), "data", dtype=jnp.int32),
    )
    return compared(Program(jax.value_and_grad(loss), arguments), ("chunked", "chunk", jax.value_and_grad(chunked)))


@case("v4")
def sharded_adam(draw: Draw) -> Case:
    """An optimizer's step of divided state, nothing of which is donated."""
    mesh = draw.mesh(model=2)

    def step(w, m, v, g):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

    arguments = (draw.sharded(mesh, (8192, 4096), "model"),) * 4
    return compared(
        Program(step, arguments), ("donated", "donate argument", step, arguments, {"donate_argnums": (0, 1, 2)})
    )


@case("v6e")
def sharded_pinned_ids(draw: Draw) -> Case:
    """Identifiers [N, 8], row-major on each device."""
    mesh = draw.mesh(data=2)
    ids, weight = draw.sharded(mesh, (1_000_000, 8), "data", dtype=jnp.int32), draw.sharded(mesh, (8,))

    def hashed(ids, weight):
        mixed = (ids * 0x9E37 + 17) % 8191
        return jnp.sum(mixed * weight, axis=-1), jnp.max(mixed, axis=0)

    return compared(Program(hashed, (pinned(ids), weight)), ("unpinned", "order argument", hashed, (ids, weight)))


@case("v5p")
def sharded_features(draw: Draw) -> Case:
    """Points divided over devices, moved and returned."""
    mesh = draw.mesh(data=2)
    n = 4_000_000

    def moved(x, velocity):
        x = x + 0.1 * velocity
        return x, jnp.sum(velocity * velocity, axis=-1)

    def planes(x, velocity):
        return [a + 0.1 * b for a, b in zip(x, velocity, strict=True)], sum(b * b for b in velocity)

    rows, column = draw.sharded(mesh, (n, 3), "data"), draw.sharded(mesh, (n,), "data")
    return compared(
        Program(moved, (rows, rows)),
        ("donated", "donate argument", moved, (rows, rows), {"donate_argnums": 0}),
        ("planes", "split argument", planes, ([column] * 3, [column] * 3)),
    )
