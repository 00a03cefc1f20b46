"""Training steps as users of GPUs write them, and as they are once the advice for them is followed."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from step import Programs, Step


class Block(nn.Module):
    """A layer of a transformer."""

    heads: int = 16

    @nn.compact
    def __call__(self, x):
        h = nn.LayerNorm()(x)
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        x = x + nn.MultiHeadDotProductAttention(num_heads=self.heads, dtype=jnp.bfloat16)(h, h, mask=mask)
        h = nn.Dense(4 * x.shape[-1], dtype=jnp.bfloat16)(nn.LayerNorm()(x))
        return x + nn.Dense(x.shape[-1], dtype=jnp.bfloat16)(nn.gelu(h))


class Transformer(nn.Module):
    """A language model."""

    layer: Any = Block
    vocabulary: int = 50304
    width: int = 1024
    layers: int = 12

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(self.vocabulary, self.width)(tokens)
        x = x + self.param("position", nn.initializers.normal(0.02), (tokens.shape[1], self.width))
        for _ in range(self.layers):
            x = self.layer()(x)
        return nn.Dense(self.vocabulary, dtype=jnp.bfloat16)(nn.LayerNorm()(x))


def transformer(layer: Any = Block, layers: int = 12, texts: int = 96) -> Step:
    """A step of AdamW on texts of 1024 tokens."""
    model, optimizer = Transformer(layer, layers=layers), optax.adamw(3e-4)
    tokens = jax.ShapeDtypeStruct((texts, 1024), jnp.int32)
    params = jax.eval_shape(model.init, jax.random.key(0), tokens)

    def step(params, state, tokens):
        def loss_of(params):
            logits = model.apply(params, tokens).astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

        loss, gradients = jax.value_and_grad(loss_of)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    return Step(step, (params, jax.eval_shape(optimizer.init, params), tokens))


class Residual(nn.Module):
    """Two convolutions of a U-Net, with the time in between."""

    width: int

    @nn.compact
    def __call__(self, x, time):
        h = nn.Conv(self.width, (3, 3), dtype=jnp.bfloat16)(nn.swish(nn.GroupNorm(32)(x)))
        h = h + nn.Dense(self.width, dtype=jnp.bfloat16)(nn.swish(time))[:, None, None]
        h = nn.Conv(self.width, (3, 3), dtype=jnp.bfloat16)(nn.swish(nn.GroupNorm(32)(h)))
        if x.shape[-1] != self.width:
            x = nn.Dense(self.width, dtype=jnp.bfloat16)(x)
        return x + h


class Attention(nn.Module):
    """Attention between the pixels."""

    @nn.compact
    def __call__(self, x):
        batch, height, width, channels = x.shape
        h = nn.GroupNorm(32)(x).reshape(batch, height * width, channels)
        h = nn.MultiHeadDotProductAttention(num_heads=channels // 64, dtype=jnp.bfloat16)(h, h)
        return x + h.reshape(x.shape)


class UNet(nn.Module):
    """The network of a diffusion model."""

    residual: Any = Residual
    attention: Any = Attention
    widths: tuple[int, ...] = (128, 256, 256, 512)

    @nn.compact
    def __call__(self, x, time):
        frequencies = jnp.exp(-jnp.log(10000.0) * jnp.arange(64) / 64)
        angles = time[:, None] * frequencies
        time = nn.Dense(512)(nn.swish(nn.Dense(512)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))))
        x = nn.Conv(self.widths[0], (3, 3), dtype=jnp.bfloat16)(x)
        kept = [x]
        for level, width in enumerate(self.widths):
            for _ in range(2):
                x = self.residual(width)(x, time)
                x = self.attention()(x) if level >= 2 else x
                kept.append(x)
            if level + 1 < len(self.widths):
                x = nn.Conv(width, (3, 3), strides=2, dtype=jnp.bfloat16)(x)
                kept.append(x)
        x = self.residual(self.widths[-1])(self.attention()(self.residual(self.widths[-1])(x, time)), time)
        for level, width in reversed(list(enumerate(self.widths))):
            for _ in range(3):
                x = self.residual(width)(jnp.concatenate([x, kept.pop()], -1), time)
                x = self.attention()(x) if level >= 2 else x
            if level:
                batch, rows, columns, channels = x.shape
                x = jax.image.resize(x, (batch, 2 * rows, 2 * columns, channels), "nearest")
                x = nn.Conv(width, (3, 3), dtype=jnp.bfloat16)(x)
        return nn.Conv(3, (3, 3))(nn.swish(nn.GroupNorm(32)(x)))


def diffusion(residual: Any = Residual, attention: Any = Attention) -> Step:
    """A step of Adam on the noise of 64 pictures of 128 × 128 pixels."""
    model, optimizer = UNet(residual, attention), optax.adam(1e-4)
    pictures = jax.ShapeDtypeStruct((64, 128, 128, 3), jnp.float32)
    times = jax.ShapeDtypeStruct((64,), jnp.float32)
    params = jax.eval_shape(model.init, jax.random.key(0), pictures, times)

    def step(params, state, pictures, key):
        def loss_of(params):
            for_times, for_noise = jax.random.split(key)
            times = jax.random.uniform(for_times, (pictures.shape[0],))
            noise = jax.random.normal(for_noise, pictures.shape)
            signal = jnp.cos(times * jnp.pi / 2)[:, None, None, None]
            noised = signal * pictures + jnp.sqrt(1 - signal**2) * noise
            return jnp.mean((model.apply(params, noised, 1000 * times) - noise) ** 2)

        loss, gradients = jax.value_and_grad(loss_of)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    key = jax.eval_shape(jax.random.key, 0)
    return Step(step, (params, jax.eval_shape(optimizer.init, params), pictures, key))


PROGRAMS: Programs = {
    "Flax transformer, AdamW, 96 × 1024 tokens": [
        ("", "as written", transformer),
        ("checkpoint", "`nn.remat` around each layer", lambda: transformer(nn.remat(Block))),
    ],
    "Flax transformer, 4 layers, 64 × 1024 tokens": [
        ("", "as written", lambda: transformer(layers=4, texts=64)),
        ("checkpoint", "`nn.remat` around each layer", lambda: transformer(nn.remat(Block), layers=4, texts=64)),
    ],
    "diffusion, U-Net of Flax, 64 × 128 × 128 pixels": [
        ("", "as written", diffusion),
        ("checkpoint", "`nn.remat` around each block", lambda: diffusion(nn.remat(Residual), nn.remat(Attention))),
    ],
}
