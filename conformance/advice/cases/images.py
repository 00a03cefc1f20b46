"""Batches of images whose channels come last, masks and histograms."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.layout import Format, Layout

from .case import Case, Draw, Program, case, compared, convolved, pinned


@case("v5e", "v6e")
def pinned_images(draw: Draw) -> Case:
    """The caller insists on row-major images of three channels."""
    images, mean = draw.array((32, 224, 224, 3), jnp.float32), draw.array((3,))

    def normalised(images, mean):
        x = (images - mean) * 0.017
        return x.astype(jnp.bfloat16), jnp.mean(x, axis=(1, 2))

    def flat(images, mean):
        x = (images - jnp.tile(mean, 224)) * 0.017
        return x.astype(jnp.bfloat16), jnp.stack([jnp.mean(x[..., c::3], axis=(1, 2)) for c in range(3)], axis=1)

    return compared(
        Program(normalised, (pinned(images), mean)),
        ("unpinned", "order argument", normalised, (images, mean)),
        ("flat", "reshape argument", flat, (draw.array((32, 224, 672)), mean)),
    )


@case("v4", "v5p")
def convolution_stem(draw: Draw) -> Case:
    """The first layers of a network, with their gradient."""
    batch = 64

    def loss(weights, images, labels, stem=None):
        x = (images.astype(jnp.bfloat16) - 127) * 0.01
        x = jax.nn.relu(convolved(x, weights[0], 2))
        x = jax.nn.relu(convolved(x, weights[1]))
        logits = jnp.mean(x, axis=(1, 2)).astype(jnp.float32) @ weights[2]
        return jnp.sum(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]) / batch

    def chunked(weights, images, labels):
        step = jax.checkpoint(lambda total, chunk: (total + loss(weights, *chunk), None))
        return lax.scan(step, 0.0, (images.reshape(8, -1, 224, 224, 3), labels.reshape(8, -1)))[0]

    weights = [
        draw.array((7, 7, 3, 32), jnp.bfloat16),
        draw.array((3, 3, 32, 32), jnp.bfloat16),
        draw.array((32, 1000)),
    ]
    arguments = weights, draw.array((batch, 224, 224, 3), jnp.uint8), draw.array((batch,), jnp.int32)
    return compared(Program(jax.value_and_grad(loss), arguments), ("chunked", "chunk", jax.value_and_grad(chunked)))


@case("v5e", "v7x")
def mask_column(draw: Draw) -> Case:
    """Masks and ages come as pinned columns [N, 1]."""
    n = 400_000
    x, column = draw.array((n, 100)), draw.array((n, 1))

    def scored(x, mask, age):
        return jnp.sum(x * mask, axis=-1) + age[:, 0], jnp.sum(mask * age)

    def flat(x, mask, age):
        return jnp.sum(x * mask[:, None], axis=-1) + age, jnp.sum(mask * age)

    return compared(
        Program(scored, (x, pinned(column), pinned(column))),
        ("unpinned", "order argument", scored, (x, column, column)),
        ("flat", "reshape argument", flat, (x, *[draw.array((n,))] * 2)),
    )


@case("v6e")
def pinned_grey(draw: Draw) -> Case:
    """A single channel that is kept as a dimension of a pinned result."""
    images = draw.array((24, 3, 512, 512), jnp.bfloat16)

    def grey(images):
        return jnp.einsum("nchw,c->nhw", images, jnp.array([0.3, 0.6, 0.1], jnp.bfloat16))[..., None]

    def flat(images):
        return grey(images)[..., 0]

    return compared(
        Program(grey, (images,), {"out_shardings": Format(Layout((0, 1, 2, 3)), draw.sharding)}),
        ("unpinned", "order result", grey, (images,), {}),
        ("flat", "reshape result", flat, (images,), {}),
    )


@case("v5e")
def sorted_responses(draw: Draw) -> Case:
    """Quantiles of 32 responses a pixel, image by image."""
    batch, pixels, features = 64, 16384, 32

    def quantiles(images, w, bias):
        response = jnp.tanh(images[..., None] * w + bias)
        return jnp.sort(response, axis=1)[:, :: pixels // 16]

    def chunked(images, w, bias):
        return lax.map(lambda image: quantiles(image[None], w, bias)[0], images, batch_size=4)

    arguments = draw.array((batch, pixels)), draw.array((features,)), draw.array((features,))
    return compared(Program(quantiles, arguments), ("chunked", "chunk", chunked))


@case("v5p")
def image_patches(draw: Draw) -> Case:
    """Patches of 16 x 16 x 3, embedded: the compiler sees the images in pieces."""
    images = draw.array((128, 224, 224, 3), jnp.bfloat16)
    w = draw.array((768, 768), jnp.bfloat16)

    def embedded(images, w):
        x = images.reshape(-1, 14, 16, 14, 16, 3).swapaxes(2, 3)
        return x.reshape(-1, 196, 768) @ w

    def loaded(patches, w):
        return patches @ w

    def chunked(images, w):
        return lax.map(lambda x: embedded(x, w), images.reshape(16, -1, 224, 224, 3)).reshape(-1, 196, 768)

    return compared(
        Program(embedded, (images, w)),
        ("loaded", "reshape argument", loaded, (draw.array((128, 196, 768), jnp.bfloat16), w)),
        ("chunked", "chunk", chunked),
    )
