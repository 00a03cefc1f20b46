"""Programs whose times others published, rebuilt: `PROGRAMS[name]()` returns a function, its abstract arguments and options.

`published.csv` says where each figure is from. Shapes and types are those of the source; of training steps also the optimizer.
Transformers on one chip are in `transformers.py`.
"""

import functools
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import transformers
from jax.sharding import PartitionSpec
from transformers import BF16, F32, S32, array


@dataclass
class Program:
    """A function to compile."""

    function: object
    arguments: tuple
    donated: tuple = ()
    compiler: dict = field(default_factory=dict)
    both_cores: bool = False
    mesh: dict = field(default_factory=dict)
    """Of several devices: their number by axis; all have the same arguments."""


def product(size, of=BF16, compiler=None, **options):
    """A square matrix multiplication."""
    square = array(size, size, of=of)
    return Program(functools.partial(jnp.matmul, **options), (square, square), compiler=compiler or {})


def product_then_relu():
    """One with what is fused to it."""
    square = array(8192, 8192, of=F32)
    return Program(lambda a, b: jax.nn.relu(a @ b), (square, square))


def up_projection():
    """The one whose trace the Scaling Book shows."""
    return Program(lambda x, w: jnp.einsum("bsd,df->bsf", x, w), (array(8, 1024, 8192), array(8192, 16384)))


def copied(elements):
    """A copy of a vector."""
    return Program(lambda a: a.copy(), (array(elements),))


def added():
    """An elementwise operation of the profile in xprof's tests."""
    return Program(lambda x: x + 1.0, (array(5, 1024, 1024, 256, of=F32),))


def summed_in_pairs():
    """Its collective."""
    summed = jax.shard_map(
        lambda x: jax.lax.psum(x, "pair"), in_specs=PartitionSpec(), out_specs=PartitionSpec(), check_vma=False
    )
    return Program(summed, (array(5, 1024, 1024, 256, of=F32),), mesh={"pair": 2, "rest": 2})


def broadcast():
    """Another operation of that profile."""
    return Program(lambda x: jnp.broadcast_to(x, (5, 1024, 1024, 256)), (array(of=F32),))


def gathered():
    """Rows of a table, by the TensorCore."""
    return Program(lambda x, i: jnp.take(x, i, axis=0), (array(4096, 128, of=S32), array(4194304, of=S32)))


HEADS = {
    "1.2b": (32, 64),
    "12.6b": (40, 128),
    "29.6b": (56, 128),
    "65.2b": (72, 128),
    "134b": (88, 128),
    "261.7b": (110, 128),
    "539.5b": (140, 128),
}
"""Heads and their width in models of these sizes, as axlearn's benchmark has them."""


def attention(size, is_gradient):
    """Attention without a kernel, causal and with a bias."""
    heads, width = HEADS[size]

    def attend(q, k, v, bias):
        logits = jnp.einsum("btnh,bsnh->bnts", q * width**-0.5, k) + bias.astype(q.dtype)
        shape = (q.shape[1], k.shape[1])
        rows, columns = (jax.lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (0, 1))
        logits = jnp.where((columns <= rows)[None, None], logits, -1e15)
        probabilities = jax.nn.softmax(logits.astype(F32), axis=-1).astype(logits.dtype)
        return jnp.einsum("bnts,bsnh->btnh", probabilities, v).astype(v.dtype)

    def gradient(q, k, v, bias):
        return jax.grad(lambda *qkv: attend(*qkv, bias).mean().astype(F32), argnums=(0, 1, 2))(q, k, v)

    each = array(2, 2048, heads, width)
    arguments = (each, each, each, array(2, heads, 2048, 2048))
    return Program(gradient if is_gradient else attend, arguments, both_cores=True)


def normalized(x, scale, bias):
    """A layer norm."""
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + bias


def patches(images, weights, bias, patch):
    """Patches of images as tokens."""
    layout = ("NHWC", "HWIO", "NHWC")
    found = jax.lax.conv_general_dilated(images, weights, (patch, patch), "VALID", dimension_numbers=layout)
    return found.reshape(found.shape[0], -1, found.shape[-1]) + bias


def cross_entropy(logits, labels):
    """The loss."""
    return -(jax.nn.log_softmax(logits) * labels).sum(-1).mean()


def trained(forward, parameters, batch, image=224, classes=1000):
    """A step of AdamW in float32."""
    import optax  # noqa: PLC0415, as only training needs it

    optimizer = optax.adamw(1e-3, weight_decay=1e-4)

    def step(parameters, state, images, labels):
        def loss(parameters):
            return cross_entropy(forward(parameters, images), labels)

        found, gradient = jax.value_and_grad(loss)(parameters)
        update, state = optimizer.update(gradient, state, parameters)
        return optax.apply_updates(parameters, update), state, found

    state = jax.eval_shape(optimizer.init, parameters)
    data = (array(batch, image, image, 3, of=F32), array(batch, classes, of=F32))
    return Program(step, (parameters, state, *data), donated=(0, 1))


def weights(**shapes):
    """Parameters by name."""
    return {name: array(*shape, of=F32) for name, shape in shapes.items()}


def vision_transformer(batch=128, width=384, layers=12, heads=6, hidden=1536, patch=16):
    """A step of ViT-S/16."""
    tokens = (224 // patch) ** 2
    block = weights(
        g1=(width,), b1=(width,), q=(width, width), qb=(width,), k=(width, width), kb=(width,), v=(width, width),
        vb=(width,), o=(width, width), ob=(width,), g2=(width,), b2=(width,), up=(width, hidden), ub=(hidden,),
        down=(hidden, width), db=(width,),
    )  # fmt: skip
    stacked = {name: array(layers, *one.shape, of=F32) for name, one in block.items()}
    rest = weights(
        patch=(patch, patch, 3, width), patch_bias=(width,), position=(tokens, width), g=(width,), b=(width,),
        pre=(width, width), pre_bias=(width,), head=(width, 1000), head_bias=(1000,),
    )  # fmt: skip

    def layer(x, p):
        split = (batch, tokens, heads, width // heads)
        y = normalized(x, p["g1"], p["b1"])
        q, k, v = (((y @ p[name]) + p[f"{name}b"]).reshape(split) for name in "qkv")
        scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q / np.sqrt(width // heads), k), -1)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(batch, tokens, width)
        x = x + mixed @ p["o"] + p["ob"]
        y = normalized(x, p["g2"], p["b2"])
        return x + jax.nn.gelu(y @ p["up"] + p["ub"]) @ p["down"] + p["db"]

    def forward(p, images):
        x = patches(images, p["patch"], p["patch_bias"], patch) + p["position"]
        for number in range(layers):
            x = layer(x, {name: one[number] for name, one in p["blocks"].items()})
        x = normalized(x, p["g"], p["b"]).mean(1)
        return jnp.tanh(x @ p["pre"] + p["pre_bias"]) @ p["head"] + p["head_bias"]

    return trained(forward, {**rest, "blocks": stacked}, batch)


def mixer(batch=32, width=768, layers=12, tokens_hidden=384, hidden=3072, patch=16):
    """A step of Mixer-B/16."""
    tokens = (224 // patch) ** 2
    blocks = [
        weights(
            g1=(width,), c1=(width,), t1=(tokens, tokens_hidden), tb1=(tokens_hidden,), t2=(tokens_hidden, tokens),
            tb2=(tokens,), g2=(width,), c2=(width,), w1=(width, hidden), b1=(hidden,), w2=(hidden, width), b2=(width,),
        )
        for _ in range(layers)
    ]  # fmt: skip
    rest = weights(
        patch=(patch, patch, 3, width),
        patch_bias=(width,),
        g=(width,),
        b=(width,),
        head=(width, 1000),
        head_bias=(1000,),
    )

    def forward(p, images):
        x = patches(images, p["patch"], p["patch_bias"], patch)
        for q in p["blocks"]:
            y = jnp.swapaxes(normalized(x, q["g1"], q["c1"]), 1, 2)
            x = x + jnp.swapaxes(jax.nn.gelu(y @ q["t1"] + q["tb1"]) @ q["t2"] + q["tb2"], 1, 2)
            y = normalized(x, q["g2"], q["c2"])
            x = x + jax.nn.gelu(y @ q["w1"] + q["b1"]) @ q["w2"] + q["b2"]
        return normalized(x, p["g"], p["b"]).mean(1) @ p["head"] + p["head_bias"]

    return trained(forward, {**rest, "blocks": blocks}, batch)


def residual_network(batch=32):
    """A step of BiT-ResNet-50 with group norm, standardised weights and momentum."""
    stages = list(zip((3, 4, 6, 3), (64, 128, 256, 512), strict=True))
    parameters, width = weights(root=(7, 7, 3, 64)), 64
    for stage, (blocks, inner) in enumerate(stages):
        for block in range(blocks):
            one = weights(
                g1=(width,), b1=(width,), c1=(1, 1, width, inner), g2=(inner,), b2=(inner,),
                c2=(3, 3, inner, inner), g3=(inner,), b3=(inner,), c3=(1, 1, inner, 4 * inner),
            )  # fmt: skip
            if block == 0:
                one |= weights(projection=(1, 1, width, 4 * inner))
            parameters[f"s{stage}b{block}"], width = one, 4 * inner
    parameters |= weights(g=(2048,), b=(2048,), head=(2048, 1000), head_bias=(1000,))

    def convolved(x, w, stride=1):
        mean = w.mean((0, 1, 2), keepdims=True)
        w = (w - mean) / jnp.sqrt(((w - mean) ** 2).mean((0, 1, 2), keepdims=True) + 1e-10)
        pad = [(w.shape[0] // 2,) * 2] * 2
        return jax.lax.conv_general_dilated(x, w, (stride,) * 2, pad, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def grouped(x, scale, bias, groups=32):
        split = x.reshape(*x.shape[:3], groups, -1)
        mean = split.mean((1, 2, 4), keepdims=True)
        variance = ((split - mean) ** 2).mean((1, 2, 4), keepdims=True)
        return ((split - mean) * jax.lax.rsqrt(variance + 1e-5)).reshape(x.shape) * scale + bias

    def forward(p, x):
        x = jnp.pad(convolved(x, p["root"], 2), ((0, 0), (1, 1), (1, 1), (0, 0)))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "VALID")
        for stage, (blocks, _) in enumerate(stages):
            for block in range(blocks):
                q, stride = p[f"s{stage}b{block}"], 2 if block == 0 and stage > 0 else 1
                y = jax.nn.relu(grouped(x, q["g1"], q["b1"]))
                skipped = convolved(y, q["projection"], stride) if "projection" in q else x
                y = jax.nn.relu(grouped(convolved(y, q["c1"]), q["g2"], q["b2"]))
                y = jax.nn.relu(grouped(convolved(y, q["c2"], stride), q["g3"], q["b3"]))
                x = skipped + convolved(y, q["c3"])
        return jax.nn.relu(grouped(x, p["g"], p["b"])).mean((1, 2)) @ p["head"] + p["head_bias"]

    def step(parameters, momentum, images, labels):
        found, gradient = jax.value_and_grad(lambda p: cross_entropy(forward(p, images), labels))(parameters)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
        moved = jax.tree.map(lambda p, m: p - 0.1 * m - 1e-5 * p, parameters, momentum)
        return moved, momentum, found

    data = (array(batch, 224, 224, 3, of=F32), array(batch, 1000, of=F32))
    return Program(step, (parameters, parameters, *data), donated=(0, 1))


def batch_normalized_network(batch):
    """A step of Flax's ResNet-50 (v1.5), computed in bfloat16 from float32 weights, with momentum."""
    import optax  # noqa: PLC0415, as only training needs it

    stages = list(zip((3, 4, 6, 3), (64, 128, 256, 512), strict=True))
    parameters, width = {"root": array(7, 7, 3, 64, of=F32), "root_norm": weights(scale=(64,), bias=(64,))}, 64
    for stage, (blocks, inner) in enumerate(stages):
        for block in range(blocks):
            kernels = {"1": (1, 1, width, inner), "2": (3, 3, inner, inner), "3": (1, 1, inner, 4 * inner)}
            if block == 0:
                kernels["skip"] = (1, 1, width, 4 * inner)
            one = weights(**{f"kernel{name}": shape for name, shape in kernels.items()})
            one |= {f"norm{name}": weights(scale=shape[-1:], bias=shape[-1:]) for name, shape in kernels.items()}
            parameters[f"s{stage}b{block}"], width = one, 4 * inner
    parameters |= weights(head=(2048, 1000), head_bias=(1000,))

    def convolved(x, w, stride=1, padding="SAME"):
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w.astype(BF16), (stride,) * 2, padding, dimension_numbers=layout)

    def forward(p, images):
        statistics = []

        def centred(x, norm):
            wide = x.astype(F32)
            mean = wide.mean((0, 1, 2))
            variance = (wide * wide).mean((0, 1, 2)) - mean * mean
            statistics.append((mean, variance))
            return ((wide - mean) * (jax.lax.rsqrt(variance + 1e-5) * norm["scale"]) + norm["bias"]).astype(BF16)

        x = jax.nn.relu(centred(convolved(images, p["root"], 2, [(3, 3)] * 2), p["root_norm"]))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for stage, (blocks, _) in enumerate(stages):
            for block in range(blocks):
                q, stride = p[f"s{stage}b{block}"], 2 if block == 0 and stage > 0 else 1
                y = jax.nn.relu(centred(convolved(x, q["kernel1"]), q["norm1"]))
                y = jax.nn.relu(centred(convolved(y, q["kernel2"], stride), q["norm2"]))
                y = centred(convolved(y, q["kernel3"]), q["norm3"])
                skipped = centred(convolved(x, q["kernelskip"], stride), q["normskip"]) if "kernelskip" in q else x
                x = jax.nn.relu(skipped + y)
        return x.mean((1, 2)) @ p["head"].astype(BF16) + p["head_bias"].astype(BF16), statistics

    optimizer = optax.sgd(0.1, momentum=0.9, nesterov=True)

    def step(p, state, running, images, labels):
        def loss(p):
            logits, statistics = forward(p, images)
            decay = sum((one**2).sum() for one in jax.tree.leaves(p) if one.ndim > 1)
            return cross_entropy(logits, jax.nn.one_hot(labels, 1000)) + 5e-5 * decay, statistics

        (found, statistics), gradient = jax.value_and_grad(loss, has_aux=True)(p)
        update, state = optimizer.update(gradient, state, p)
        running = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, running, statistics)
        return optax.apply_updates(p, update), state, running, found

    data = (array(batch, 224, 224, 3), array(batch, of=S32))
    running = jax.eval_shape(lambda p, images: forward(p, images)[1], parameters, data[0])
    return Program(step, (parameters, jax.eval_shape(optimizer.init, parameters), running, *data), donated=(0, 1, 2))


def transformer(made):
    """One of `transformers.py`."""
    function, arguments = made
    return Program(function, arguments)


MIB = 1 << 20

PROGRAMS = {
    **{f"mm{size}_bf16": functools.partial(product, size) for size in (128, 256, 512, 1024, 2048, 4096, 8192, 16384)},
    "mm8192_bf16_vmem64": functools.partial(product, 8192, compiler={"xla_tpu_scoped_vmem_limit_kib": "65536"}),
    "mm8192_relu_f32": product_then_relu,
    "mm4096_f32_highest": functools.partial(product, 4096, F32, precision="highest"),
    "sb_up": up_projection,
    "copy16777216_bf16": functools.partial(copied, 16777216),
    **{f"copy{size}MiB_bf16": functools.partial(copied, size * MIB // 2) for size in (2, 8, 32, 128, 1024, 8192)},
    "xprof_add": added,
    "xprof_bcast2": broadcast,
    "xprof_allreduce2": summed_in_pairs,
    "sc_gather_tc": gathered,
    **{
        f"mega_axl_ref_{which}_{size}": functools.partial(attention, size, which == "bwd")
        for size in HEADS
        for which in ("fwd", "bwd")
    },
    "vit_s16_b128": vision_transformer,
    "mixer_b16_b32": mixer,
    "bit_r50_b32": residual_network,
    "flax_r50_b128": functools.partial(batch_normalized_network, 128),
    **{f"tpuchat_train_b{batch}": lambda batch=batch: transformer(transformers.train(batch)) for batch in (2, 4)},
    "tpuchat_ablations": lambda: transformer(transformers.ablations()),
    "tpuchat_mlp": lambda: transformer(transformers.part(transformers.feed_forward)),
    "tpuchat_attention": lambda: transformer(transformers.part(transformers.attention)),
    "tpuchat_loss": lambda: transformer(transformers.loss_alone()),
}
