"""Fits three public models: a convolutional network, a masked language model on four chips, a decoding loop.

`python examples/fit_models.py resnet bert gpt2` searches and prints a table for each; a full compilation takes minutes.
It needs `pip install 'transformers<5' flax optax 'tilewise[tpu]'`. Nothing is downloaded: arrays are abstract.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from transformers import (
    BertConfig,
    FlaxBertForMaskedLM,
    FlaxGPT2LMHeadModel,
    FlaxResNetForImageClassification,
    GPT2Config,
    ResNetConfig,
)

import tilewise as tw

S = jax.ShapeDtypeStruct


def abstract(model: Any) -> Any:
    """Its weights, without values."""
    return jax.eval_shape(lambda key: model.init_weights(key, model.input_shape), S((2,), jnp.uint32))


def only_convolutions(primitive: Any, *_: Any, **__: Any) -> bool:
    """Checkpoint policy: keeps the values of convolutions."""
    return primitive.name == "conv_general_dilated"


def resnet(batch: int, remat: str = "none") -> Any:
    """A training step of a ResNet; `remat="convolutions"` keeps only their results for the gradient."""
    config = ResNetConfig(depths=[2, 2], hidden_sizes=[64, 128], layer_type="basic", num_labels=1000)
    model = FlaxResNetForImageClassification(config, _do_init=False, dtype=jnp.bfloat16)

    def logits(weights: Any, images: Any) -> Any:
        return model(images, params=weights, train=False).logits.astype(jnp.float32)

    forward = jax.checkpoint(logits, policy=only_convolutions) if remat == "convolutions" else logits

    def step(weights: Any, images: Any, labels: Any) -> Any:
        def loss(weights: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(forward(weights, images), labels).mean()

        return jax.tree.map(lambda weight, slope: weight - 0.1 * slope, weights, jax.grad(loss)(weights))

    return step, (abstract(model), S((batch, 3, 224, 224), jnp.float32), S((batch,), jnp.int32)), {"donate_argnums": 0}


def bert(batch: int, remat: str = "none") -> Any:
    """A training step of BERT-Mini with Adam, its batch divided over 2x2 chips; `batch` is that of each."""
    config = BertConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, hidden_dropout_prob=0.0
    )
    model = FlaxBertForMaskedLM(config, _do_init=False, dtype=jnp.bfloat16, gradient_checkpointing=remat == "full")
    weights, adam = abstract(model), optax.adam(1e-4)

    def step(weights: Any, state: Any, tokens: Any, labels: Any) -> Any:
        def loss(weights: Any) -> Any:
            logits = model(tokens, params=weights).logits.astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        updates, state = adam.update(jax.grad(loss)(weights), state, weights)
        return optax.apply_updates(weights, updates), state

    divided = NamedSharding(AbstractMesh((2, 2), ("x", "y")), PartitionSpec(("x", "y")))
    tokens = S((4 * batch, 512), jnp.int32, sharding=divided)
    return step, (weights, jax.eval_shape(adam.init, weights), tokens, tokens), {"donate_argnums": (0, 1)}


def gpt2(batch: int) -> Any:
    """16 tokens of GPT-2 (4 of its layers), decoded in a loop that carries the cache of 1024."""
    model = FlaxGPT2LMHeadModel(GPT2Config(n_layer=4), _do_init=False, dtype=jnp.bfloat16)
    cache = jax.eval_shape(lambda: model.init_cache(batch, 1024))

    def generate(weights: Any, cache: Any, token: Any) -> Any:
        def one(carry: Any, position: Any) -> Any:
            cache, token = carry
            out = model(
                token,
                params=weights,
                past_key_values=cache,
                attention_mask=jnp.ones((batch, 1024), jnp.int32),
                position_ids=jnp.full((batch, 1), position),
            )
            return (out.past_key_values, out.logits[:, -1:].argmax(-1).astype(jnp.int32)), token

        return jax.lax.scan(one, (cache, token), jnp.arange(16))

    return generate, (abstract(model), cache, S((batch, 1), jnp.int32))


SEARCHES: dict[str, tuple[Any, range, dict[str, list[Any]]]] = {
    "resnet": (resnet, range(256, 4097, 256), {"remat": ["none", "convolutions"]}),
    "bert": (bert, range(32, 513, 32), {"remat": ["none", "full"]}),
    # Decoding has no gradient that anything could be computed again for.
    "gpt2": (gpt2, range(32, 1025, 32), {"donate": [True, False]}),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or SEARCHES:
        make, sizes, grid = SEARCHES[name]
        begun = time.monotonic()
        fit = tw.fit(make, tpu="v5e", largest={"batch": sizes}, grid=grid, cache=None)
        print(f"{name}: {time.monotonic() - begun:.0f} s\n{fit}\n{fit.largest} {fit.gaps}\n", flush=True)
