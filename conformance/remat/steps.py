"""Training steps of libraries' models, each with its users' choices of kept values.

A step is made by ``make(NAME, CHOICE)``: the function, abstract arguments and options of ``jax.jit``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import optax

S = jax.ShapeDtypeStruct
POLICIES = {
    "full": None,
    "dots": jax.checkpoint_policies.dots_saveable,
    "dots_no_batch": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
}
Step = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean over all tokens."""
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels).mean()


def descent(loss: Callable[..., Any], params: Any, *batch: Any) -> Step:
    """Momentum, with both trees donated."""

    def step(params: Any, momentum: Any, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return jax.tree.map(lambda p, m: p - 1e-3 * m, params, momentum), momentum, value

    return step, (params, params, *batch), {"donate_argnums": (0, 1)}


# Flax NNX


def tunix(family: str, choice: str, batch: int, length: int, **settings: Any) -> Step:
    """A language model of Tunix. ``block`` is its own: attention and MLP each."""
    import importlib

    from flax import nnx

    module = importlib.import_module(f"tunix.models.{family}.model")
    kind = {"none": "NONE", "block": "BLOCK"}.get(choice, "DECODER")
    base = {"llama3": "llama3p2_1b", "qwen3": "qwen3_0p6b"}[family]
    config = getattr(module.ModelConfig, base)()
    config = dataclasses.replace(config, remat_config=getattr(module.RematConfig, kind), **settings)
    model = nnx.eval_shape(lambda: getattr(module, family.capitalize())(config, rngs=nnx.Rngs(0)))

    @functools.partial(nnx.jit, donate_argnums=0)
    def step(model: Any, tokens: Any) -> Any:
        inputs, labels = tokens[:, :-1], tokens[:, 1:]
        places = jnp.broadcast_to(jnp.arange(length), inputs.shape)
        mask = jnp.broadcast_to(jnp.tril(jnp.ones((length, length), bool)), (batch, length, length))

        def loss(model: Any) -> Any:
            return cross_entropy(model(inputs, places, None, mask)[0], labels)

        # The model calls it by this name.
        with mock.patch.object(nnx, "remat", functools.partial(nnx.remat, policy=POLICIES.get(choice))):
            value, grads = nnx.value_and_grad(loss)(model)
        params = nnx.state(model, nnx.Param)
        nnx.update(model, jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads))
        return value

    return step, (model, S((batch, length + 1), jnp.int32)), {}


def nnx_lstm(choice: str, batch: int = 128, length: int = 512, width: int = 1024, layers: int = 2) -> Step:
    """``nnx.RNN`` of ``nnx.OptimizedLSTMCell``, with the cell under ``jax.checkpoint``."""
    from flax import nnx

    class Cell(nnx.OptimizedLSTMCell):
        """The library's cell, under ``nnx.remat``."""

        if choice != "none":
            __call__ = nnx.remat(nnx.OptimizedLSTMCell.__call__, policy=POLICIES[choice], prevent_cse=False)

    class Stack(nnx.Module):
        def __init__(self) -> None:
            rngs = nnx.Rngs(0)
            cells = [Cell(width, width, dtype=jnp.bfloat16, rngs=rngs) for _ in range(layers)]
            self.layers = nnx.List([nnx.RNN(cell) for cell in cells])
            self.head = nnx.Linear(width, 256, dtype=jnp.bfloat16, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    model = nnx.eval_shape(Stack)

    @functools.partial(nnx.jit, donate_argnums=0)
    def step(model: Any, x: Any, labels: Any) -> Any:
        value, grads = nnx.value_and_grad(lambda model: cross_entropy(model(x), labels))(model)
        nnx.update(model, jax.tree.map(lambda p, g: p - 1e-3 * g, nnx.state(model, nnx.Param), grads))
        return value

    return step, (model, S((batch, length, width), jnp.bfloat16), S((batch, length), jnp.int32)), {}


# Flax Linen


def linen_resnet(choice: str, batch: int = 256) -> Step:
    """ResNet-50 of flaxmodels, with its blocks under ``nn.remat``."""
    import flax.linen as nn
    from flaxmodels.resnet import resnet

    own = resnet.Bottleneck
    block = own if choice == "none" else nn.remat(own, policy=POLICIES[choice], static_argnums=(2, 3))
    # The library knows its blocks by their names.
    block.__name__ = own.__name__
    with mock.patch.object(resnet, "Bottleneck", block):
        model = resnet.ResNet50(output="logits", pretrained=None, normalize=False, num_classes=1000, dtype="bfloat16")
        image = S((batch, 224, 224, 3), jnp.bfloat16)
        variables = jax.eval_shape(lambda image: model.init(jax.random.key(0), image), image)

    def loss(params: Any, state: Any, image: Any, labels: Any) -> Any:
        with mock.patch.object(resnet, "Bottleneck", block):
            logits, _ = model.apply({"params": params, **state}, image, train=True, mutable=["batch_stats"])
        return cross_entropy(logits, labels)

    state = {name: held for name, held in variables.items() if name != "params"}
    return descent(loss, variables["params"], state, image, S((batch,), jnp.int32))


def linen_gemma(
    choice: str, batch: int = 4, length: int = 1024, layers: int = 3, devices: int = 1, **settings: Any
) -> Step:
    """Gemma 3 of DeepMind's library, with its blocks under ``nn.remat``, on one device or sharded over several."""
    import flax.linen as nn
    from gemma import gm
    from gemma.gm.nn import _modules

    own = _modules.Block
    block = own if choice == "none" else nn.remat(own, policy=POLICIES[choice])
    whole = gm.nn.Gemma3_1B()
    kinds = whole.config.attention_types[:layers]
    config = dataclasses.replace(whole.config, attention_types=kinds, **settings)
    model = dataclasses.replace(whole, config=config) if dataclasses.is_dataclass(whole) else whole
    tokens = S((batch, length + 1), jnp.int32)
    with mock.patch.object(_modules, "Block", block):
        params = jax.eval_shape(lambda t: model.init(jax.random.key(0), t[:, :-1]), tokens)["params"]

    def loss(params: Any, tokens: Any) -> Any:
        with mock.patch.object(_modules, "Block", block):
            return cross_entropy(model.apply({"params": params}, tokens[:, :-1]).logits, tokens[:, 1:])

    if devices == 1:
        return descent(loss, params, tokens)
    mesh = jax.sharding.AbstractMesh((devices,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    def sharded(leaf: Any, axis: int | None) -> Any:
        names: list[str | None] = [None] * len(leaf.shape)
        if axis is not None:
            names[axis] = "data"
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*names))
        return S(leaf.shape, leaf.dtype, sharding=sharding)

    def widest(leaf: Any) -> int | None:
        free = [at for at, size in enumerate(leaf.shape) if size % devices == 0]
        return max(free, key=lambda at: leaf.shape[at], default=None)

    params = jax.tree.map(lambda leaf: sharded(leaf, widest(leaf)), params)
    return descent(loss, params, sharded(tokens, 0))


# Haiku


def haiku_resnet(choice: str, batch: int = 256) -> Step:
    """ResNet-18 of Haiku, with its blocks under ``hk.remat``."""
    import haiku as hk
    from haiku._src.nets import resnet

    kind = "BottleneckBlock" if hasattr(resnet, "BottleneckBlock") else "BlockV1"
    own = getattr(resnet, kind)

    class Block(own):  # type: ignore[misc, valid-type]
        def __call__(self, *args: Any) -> Any:
            if choice == "none":
                return super().__call__(*args)
            inputs, *flags = args
            body = super().__call__
            return hk.remat(lambda inputs: body(inputs, *flags), policy=POLICIES[choice])(inputs)

    def forward(image: Any) -> Any:
        with mock.patch.object(resnet, kind, Block):
            return hk.nets.ResNet18(1000)(image, is_training=True)

    model = hk.transform_with_state(forward)
    image = S((batch, 224, 224, 3), jnp.bfloat16)
    params, state = jax.eval_shape(model.init, jax.eval_shape(lambda: jax.random.key(0)), image)

    def loss(params: Any, state: Any, image: Any, labels: Any) -> Any:
        half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
        return cross_entropy(model.apply(half, state, None, image)[0], labels)

    return descent(loss, params, state, image, S((batch,), jnp.int32))


# Equinox


def equimo_vit(choice: str, batch: int = 128, image: int = 224, layers: int = 6) -> Step:
    """ViT-B/16 of Equimo, of half its depth, with stochastic depth, its blocks under ``eqx.filter_checkpoint``."""
    import equinox as eqx
    from equimo.core.layers.attention import AttentionBlock
    from equimo.vision.models import vit_base_patch16_224

    class Block(AttentionBlock):  # type: ignore[misc]
        """The library's block."""

        if choice != "none":
            __call__ = eqx.filter_checkpoint(AttentionBlock.__call__, policy=POLICIES[choice])

    make = functools.partial(vit_base_patch16_224, block=Block, drop_path_rate=0.1, img_size=image, depths=[layers])
    model = eqx.filter_eval_shape(lambda key: make(key=key), jax.random.key(0))
    arrays, static = eqx.partition(model, lambda leaf: isinstance(leaf, S))

    def loss(arrays: Any, images: Any, labels: Any, key: Any) -> Any:
        half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), arrays)
        keys = jax.random.split(key, batch)
        logits = jax.vmap(lambda x, key: eqx.combine(half, static)(x, key=key))(images, keys)
        return cross_entropy(logits, labels)

    images = S((batch, 3, image, image), jnp.bfloat16)
    return descent(loss, arrays, images, S((batch,), jnp.int32), jax.eval_shape(lambda: jax.random.key(0)))


# MaxText


def maxtext_decoder(choice: str, batch: int = 4, length: int = 1024, layers: int = 8, width: int = 1024) -> Step:
    """MaxText's own training step with Adam, of its default decoder, with one of its ``remat_policy``."""
    from importlib.resources import files

    from flax.linen import partitioning
    from maxtext.configs import pyconfig
    from maxtext.trainers.pre_train import train, train_compile
    from maxtext.utils import maxtext_utils, sharding

    settings = {
        "run_name": "step",
        "enable_checkpointing": "false",
        "hardware": "cpu",
        "skip_jax_distributed_system": "true",
        "dataset_type": "synthetic",
        "attention": "dot_product",
        "per_device_batch_size": batch,
        "max_target_length": length,
        "base_num_decoder_layers": layers,
        "base_emb_dim": width,
        "base_mlp_dim": 4 * width,
        "base_num_query_heads": width // 128,
        "base_num_kv_heads": width // 128,
        "remat_policy": choice,
    }
    base = files("maxtext") / "configs" / "base.yml"
    config = pyconfig.initialize(["", str(base), *(f"{name}={value}" for name, value in settings.items())])
    mesh = jax.sharding.Mesh(maxtext_utils.create_device_mesh(config, jax.devices()[:1]), config.mesh_axes)
    args, _, state, _, model = train_compile.get_shaped_inputs(mesh, config)
    params, state = sharding.maybe_update_params_sharding_with_opt(config, state)
    batches = sharding.get_input_data_sharding(config, mesh)
    own, *_ = maxtext_utils.get_functional_train_with_signature(train.train_step, batches, state, model, config, params)

    def step(state: Any, batch: Any) -> Any:
        with jax.sharding.use_abstract_mesh(mesh.abstract_mesh), partitioning.axis_rules(config.logical_axis_rules):
            return own(state, batch)

    # One device, whichever it is.
    args = jax.tree.map(lambda leaf: S(leaf.shape, leaf.dtype), args)
    return step, args, {"donate_argnums": 0}


# Plain JAX with a kernel


def flash_decoder(
    choice: str, batch: int = 4, length: int = 4096, layers: int = 3, width: int = 2048, vocabulary: int = 32768
) -> Step:
    """Layers around the flash attention of JAX's own Pallas kernels, in a loop."""
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    heads = width // 128

    def layer(x: Any, w: Any) -> Any:
        norm = x * jax.lax.rsqrt((x.astype(jnp.float32) ** 2).mean(-1, keepdims=True) + 1e-6).astype(x.dtype)
        q, k, v = jnp.einsum("btd,dchk->cbhtk", norm, w["qkv"].astype(x.dtype))
        mixed = flash_attention(q, k, v, causal=True, sm_scale=128**-0.5)
        x = x + jnp.einsum("bhtk,hkd->btd", mixed, w["out"].astype(x.dtype))
        up, gate = jnp.split(x @ w["up"].astype(x.dtype), 2, -1)
        return x + (jax.nn.silu(gate) * up) @ w["down"].astype(x.dtype)

    if choice != "none":
        layer = jax.checkpoint(layer, policy=POLICIES[choice])

    def loss(params: Any, tokens: Any) -> Any:
        x = params["embedding"].astype(jnp.bfloat16)[tokens[:, :-1]]
        for w in params["layers"]:
            x = layer(x, w)
        return cross_entropy(x @ params["embedding"].astype(x.dtype).T, tokens[:, 1:])

    sizes = {"qkv": (width, 3, heads, 128), "out": (heads, 128, width), "up": (width, 6 * width)}
    one = {name: S(size, jnp.float32) for name, size in {**sizes, "down": (3 * width, width)}.items()}
    params = {"embedding": S((vocabulary, width), jnp.float32), "layers": [one] * layers}
    return descent(loss, params, S((batch, length + 1), jnp.int32))


STEPS: dict[str, tuple[Callable[..., Step], tuple[str, ...], str | None]] = {
    "tunix_llama3": (
        functools.partial(tunix, "llama3", batch=8, length=1024, num_layers=4),
        ("block", "full", "dots_no_batch"),
        None,
    ),
    "tunix_qwen3": (
        functools.partial(tunix, "qwen3", batch=8, length=1024, num_layers=4),
        ("block", "full", "dots_no_batch"),
        None,
    ),
    "flash_decoder": (flash_decoder, ("full", "dots_no_batch"), None),
    "linen_gemma3": (linen_gemma, ("full", "dots_no_batch"), None),
    "linen_gemma3_sharded": (functools.partial(linen_gemma, batch=16, devices=4), ("full", "dots_no_batch"), "2x2"),
    "linen_resnet50": (linen_resnet, ("full", "dots"), None),
    "haiku_resnet18": (haiku_resnet, ("full", "dots"), None),
    "nnx_lstm": (nnx_lstm, ("full", "dots"), None),
    "equimo_vit": (equimo_vit, ("full", "dots_no_batch"), None),
    "maxtext_decoder": (maxtext_decoder, ("full", "minimal", "save_qkv_proj"), None),
}
"""By name: the function that makes a step, its users' choices, and the slice."""


SMALL: dict[str, dict[str, Any]] = {
    "tunix": {"batch": 2, "length": 32, "num_layers": 2, "vocab_size": 256, "embed_dim": 128, "hidden_dim": 256},
    "linen_gemma3": {"batch": 2, "length": 16, "layers": 2, "num_embed": 256},
    "linen_resnet50": {"batch": 2},
    "haiku_resnet18": {"batch": 2},
    "nnx_lstm": {"batch": 4, "length": 16, "width": 64},
    "equimo_vit": {"batch": 2, "image": 32, "layers": 2},
    "maxtext_decoder": {"batch": 2, "length": 32, "layers": 2, "width": 256},
    "flash_decoder": {"batch": 1, "length": 128, "layers": 2, "width": 128, "vocabulary": 256},
}
"""Sizes for this machine's CPU, by how names begin."""


def make(name: str, choice: str = "none", small: bool = False) -> Step:
    """A step with a choice of kept values."""
    sizes = next((sizes for begin, sizes in SMALL.items() if name.startswith(begin)), {}) if small else {}
    return STEPS[name][0](choice=choice, **sizes)
