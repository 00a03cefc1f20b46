"""Kernels of public libraries, each with arguments of sizes that are used: those of JAX, and of tpu-inference where its checkout
is on the path (`PYTHONPATH=tpu-inference`).

Nothing of them is kept here: only how each is called. Packages that tpu-inference imports to serve, and no kernel needs, are stood in for.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import stand_ins  # noqa: F401 - finds packages that aren't installed

bf16, f32, i32, i8 = jnp.bfloat16, jnp.float32, jnp.int32, jnp.int8

JAX = "jax.experimental.pallas.ops.tpu"
INFERENCE = "tpu_inference.kernels"


@dataclass(frozen=True)
class Public:
    """A kernel of a library.

    Attributes:
        library: whose it is.
        make: the function and its arguments without data, for options by name.
    """

    library: str
    make: Callable[..., tuple[Callable[..., Any], tuple[Any, ...]]]


PUBLIC: dict[str, Public] = {}
"""Kernels by their names."""


def public(kernel: str, *, jax: str | None = None, inference: str | None = None) -> Callable:
    """Adds what the decorated function makes of each library's kernel, which is `module:function`."""

    def add(make):
        for library, short, path in (("jax", "jax", jax), ("tpu-inference", "inference", inference)):
            if path is None:
                continue
            module, _, name = path.partition(":")

            def made(module=module, name=name, **options):
                return make(getattr(import_module(module), name), import_module(module), **options)

            PUBLIC[f"{short}_{kernel}"] = Public(library, made)
        return make

    return add


def array(*shape, dtype=bf16):
    return jax.ShapeDtypeStruct(shape, dtype)


def ints(*shape):
    return array(*shape, dtype=i32)


@public(
    "flash",
    jax=f"{JAX}.flash_attention:flash_attention",
    inference=f"{INFERENCE}.flash_attention.kernel:flash_attention",
)
def flash(attention, module, q=512, k=512, length=2048):
    """Attention whose scores are never stored."""
    sizes = module.BlockSizes(block_q=q, block_k_major=k, block_k=k, block_b=1)
    x = array(1, 8, length, 128)
    return functools.partial(attention, block_sizes=sizes), (x, x, x)


@public("flash_gradient", jax=f"{JAX}.flash_attention:flash_attention")
def flash_gradient(attention, _):
    """Its gradient."""
    x = array(1, 8, 2048, 128)
    return jax.grad(lambda q, k, v: attention(q, k, v).astype(f32).sum(), argnums=(0, 1, 2)), (x, x, x)


@public("grouped_product", jax=f"{JAX}.megablox.gmm:gmm", inference=f"{INFERENCE}.megablox.gmm:gmm")
def grouped_product(gmm, _, tiles=(512, 512, 512), k=2048, n=1024):
    """Rows times their group's matrix."""
    call = functools.partial(gmm, preferred_element_type=bf16, tiling=tiles)
    return call, (array(4096, k), array(8, k, n), ints(8))


@public("grouped_product_transposed", jax=f"{JAX}.megablox.gmm:tgmm")
def grouped_product_transposed(tgmm, _):
    """The gradient of the matrices."""
    call = functools.partial(tgmm, preferred_element_type=bf16, tiling=(512, 512, 512))
    return call, (array(2048, 4096), array(4096, 1024), ints(8))


@public("grouped_product_2", inference=f"{INFERENCE}.megablox.gmm_v2:gmm_v2")
def grouped_product_2(gmm, _):
    """A product for each group, with tiles by the kernel's own estimate of VMEM."""
    return gmm, (array(2048, 2048), array(8, 2048, 1024), ints(8))


@public("quantized_matmul", inference=f"{INFERENCE}.quantized_matmul.kernel:quantized_matmul_kernel")
def quantized_matmul(kernel, _):
    """Activations times weights of eight bits."""
    return functools.partial(kernel, x_q_dtype=None), (
        array(512, 4096),
        array(4096, 4096, dtype=i8),
        array(4096, dtype=f32),
    )


@public("matmul", jax=f"{JAX}.matmul:matmul")
def matmul(kernel, _):
    """A product."""
    return functools.partial(kernel, block_shape=(512, 512), block_k=512), (array(2048, 2048), array(2048, 2048))


@public("splash", jax=f"{JAX}.splash_attention.splash_attention_kernel:make_splash_mha")
def splash(make, module, q=None, kv=None):
    """Attention with a mask that leaves blocks out."""
    mask = module.mask_lib.MultiHeadMask([module.mask_lib.CausalMask((2048, 2048))] * 8)
    sizes = {"block_sizes": module.BlockSizes(block_q=q, block_kv=kv, block_kv_compute=kv)} if q else {}
    kernel = make(mask, q_seq_shards=1, head_shards=1, **sizes)
    x = array(8, 2048, 128)
    return (lambda q, k, v: kernel(q, k, v)), (x, x, x)


@public("paged_attention", jax=f"{JAX}.paged_attention:paged_attention")
def paged_attention(attention, _, pages=16):
    """Attention of one token over pages of keys and values."""
    keys = array(8, 512, 16, 128)
    call = functools.partial(attention, pages_per_compute_block=pages)
    return call, (array(16, 32, 128), keys, keys, ints(16), ints(16, 64))


@public(
    "ragged_paged_attention",
    jax=f"{JAX}.ragged_paged_attention:ragged_paged_attention",
    inference=f"{INFERENCE}.ragged_paged_attention.v2.kernel:ragged_paged_attention",
)
def ragged_paged_attention(attention, _, pages=8, queries=32):
    """Attention of sequences of different lengths, over pages."""
    call = functools.partial(attention, num_kv_pages_per_block=pages, num_queries_per_block=queries)
    return call, (array(256, 32, 128), array(300, 16, 16, 128), ints(24), ints(24, 64), ints(25), ints(1))


@public("ragged_paged_attention_3", inference=f"{INFERENCE}.ragged_paged_attention.v3.kernel:ragged_paged_attention")
def ragged_paged_attention_3(attention, module):
    """Attention over pages, with blocks by the device's kind."""
    new, cache = array(256, 8, 128), array(*module.get_kv_cache_shape(256, 128, 8, 128, bf16))
    return attention, (array(256, 32, 128), new, new, cache, ints(16), ints(16 * 16), ints(17), ints(3))


@public("latent_attention", inference=f"{INFERENCE}.mla.v1.kernel:mla_ragged_paged_attention")
def latent_attention(attention, module):
    """Attention over compressed keys and values."""
    call = functools.partial(attention, num_kv_pages_per_block=4, num_queries_per_block=16, vmem_limit_bytes=64 << 20)
    given = array(128, 32, 512), array(128, 32, 64), array(128, 512), array(128, 64)
    cache = array(*module.get_kv_cache_shape(256, 64, 576, bf16))
    return call, (*given, cache, ints(16), ints(16 * 16), ints(17), ints(3))


@public("cache_update", inference=f"{INFERENCE}.ragged_paged_attention.v2.ragged_kv_cache_update:kv_cache_update")
def cache_update(update, _):
    """New keys and values into their pages."""
    call = functools.partial(update, num_slices_per_block=8)
    return call, (array(512, 16, 128), ints(3, 64), array(8192, 16, 128), ints(1))


@public("mhc_pre", inference=f"{INFERENCE}.experimental.deepseek_v4.mhc.pre_kernel:mhc_pre_mixes")
def mhc_pre(mix, _):
    """Weights of the streams of a residual."""
    return mix, (array(1024, 4 * 4096), array(24, 4 * 4096, dtype=f32))


@public("mhc_post", inference=f"{INFERENCE}.experimental.deepseek_v4.mhc.post_kernel:mhc_post")
def mhc_post(mix, _):
    """A layer's result added to the streams."""
    weights = array(1024, 4, 1, dtype=f32), array(1024, 4, 4, dtype=f32)
    return mix, (array(1024, 4096), array(1024, 4, 4096), *weights)


@public("convolution", inference=f"{INFERENCE}.causal_conv1d.causal_conv1d:ragged_causal_conv1d")
def convolution(convolve, _):
    """A convolution along sequences."""
    call = functools.partial(convolve, kernel_size=4, tile_size=64)
    given = array(1024, 4096), array(32, 3, 4096), array(4096, 1, 4), array(4096)
    return call, (*given, ints(17), ints(16), ints(3), array(16, dtype=jnp.bool_))
