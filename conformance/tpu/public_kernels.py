"""Kernels of public libraries, each with arguments of a size that is used: those of JAX, and of tpu-inference, sglang-jax, tokamax
and maxtext where their checkouts are on the path (`PYTHONPATH=tpu-inference:sglang-jax/python:tokamax:maxtext/src`).

Nothing of them is kept here: only how each is called.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

bf16, f32, i32, i8 = jnp.bfloat16, jnp.float32, jnp.int32, jnp.int8


@dataclass(frozen=True)
class Public:
    """A kernel of a library: `make` gives the function, and its arguments without data."""

    library: str
    make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]


PUBLIC: dict[str, Public] = {}


def public(library: str) -> Callable:
    """Adds the decorated function to the kernels, by its name."""

    def add(make):
        PUBLIC[make.__name__] = Public(library, make)
        return make

    return add


def array(*shape, dtype=bf16):
    return jax.ShapeDtypeStruct(shape, dtype)


def ints(*shape):
    return array(*shape, dtype=i32)


@public("jax")
def jax_flash():
    from jax.experimental.pallas.ops.tpu.flash_attention import BlockSizes, flash_attention

    sizes = BlockSizes(block_q=512, block_k_major=512, block_k=512, block_b=1)
    x = array(1, 8, 4096, 128)
    return functools.partial(flash_attention, block_sizes=sizes), (x, x, x)


@public("jax")
def jax_flash_gradient():
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    x = array(1, 8, 2048, 128)
    return jax.grad(lambda q, k, v: flash_attention(q, k, v).astype(f32).sum(), argnums=(0, 1, 2)), (x, x, x)


@public("jax")
def jax_grouped_product():
    from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm

    call = functools.partial(gmm, preferred_element_type=bf16, tiling=(512, 512, 512))
    return call, (array(4096, 2048), array(8, 2048, 1024), ints(8))


@public("jax")
def jax_grouped_product_transposed():
    from jax.experimental.pallas.ops.tpu.megablox.gmm import tgmm

    call = functools.partial(tgmm, preferred_element_type=bf16, tiling=(512, 512, 512))
    return call, (array(2048, 4096), array(4096, 1024), ints(8))


@public("jax")
def jax_paged_attention():
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    keys = array(8, 512, 16, 128)
    call = functools.partial(paged_attention, pages_per_compute_block=16)
    return call, (array(16, 32, 128), keys, keys, ints(16), ints(16, 64))


@public("jax")
def jax_ragged_paged_attention():
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention

    call = functools.partial(ragged_paged_attention, num_kv_pages_per_block=8, num_queries_per_block=32)
    return call, (array(256, 32, 128), array(300, 16, 16, 128), ints(24), ints(24, 64), ints(25), ints(1))


@public("jax")
def jax_splash():
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    mask = masks.MultiHeadMask([masks.CausalMask((2048, 2048)) for _ in range(8)])
    kernel = splash.make_splash_mha(mask, head_shards=1, q_seq_shards=1)
    x = array(8, 2048, 128)
    return (lambda q, k, v: kernel(q, k, v)), (x, x, x)


@public("jax")
def jax_matmul():
    from jax.experimental.pallas.ops.tpu.matmul import matmul

    return functools.partial(matmul, block_shape=(512, 512), block_k=512), (array(2048, 2048), array(2048, 2048))


@public("tpu-inference")
def inference_quantized_matmul():
    from tpu_inference.kernels.quantized_matmul.kernel import quantized_matmul_kernel

    return quantized_matmul_kernel, (array(512, 4096), array(4096, 4096, dtype=i8), array(4096, dtype=f32))


@public("tpu-inference")
def inference_flash():
    from tpu_inference.kernels.flash_attention.kernel import flash_attention

    x = array(1, 16, 2048, 128)
    return flash_attention, (x, x, x)


@public("tpu-inference")
def inference_grouped_product():
    from tpu_inference.kernels.megablox.gmm import gmm

    call = functools.partial(gmm, preferred_element_type=bf16, tiling=(256, 1024, 512))
    return call, (array(2048, 2048), array(8, 2048, 1024), ints(8))


@public("tpu-inference")
def inference_grouped_product_2():
    from tpu_inference.kernels.megablox.gmm_v2 import gmm_v2

    return gmm_v2, (array(2048, 2048), array(8, 2048, 1024), ints(8))


@public("tpu-inference")
def inference_ragged_paged_attention_2():
    from tpu_inference.kernels.ragged_paged_attention.v2.kernel import ragged_paged_attention

    return ragged_paged_attention, (array(256, 32, 128), array(300, 16, 16, 128), ints(24), ints(24, 64), ints(25), ints(1))


@public("tpu-inference")
def inference_ragged_paged_attention_3():
    from tpu_inference.kernels.ragged_paged_attention.v3.kernel import get_kv_cache_shape, ragged_paged_attention

    new = array(256, 8, 128)
    cache = array(*get_kv_cache_shape(256, 128, 8, 128, bf16))
    return ragged_paged_attention, (array(256, 32, 128), new, new, cache, ints(16), ints(16 * 16), ints(17), ints(3))


@public("tpu-inference")
def inference_cache_update():
    from tpu_inference.kernels.ragged_paged_attention.v2.ragged_kv_cache_update import kv_cache_update

    call = functools.partial(kv_cache_update, num_slices_per_block=8)
    return call, (array(512, 16, 128), ints(3, 64), array(8192, 16, 128), ints(1))


@public("tpu-inference")
def inference_latent_attention():
    from tpu_inference.kernels.mla.v1.kernel import get_kv_cache_shape, mla_ragged_paged_attention

    cache = array(*get_kv_cache_shape(256, 64, 576, bf16))
    call = functools.partial(mla_ragged_paged_attention, num_kv_pages_per_block=4, num_queries_per_block=16)
    queries = array(128, 32, 512), array(128, 32, 64)
    return call, (*queries, array(128, 512), array(128, 64), cache, ints(16), ints(16 * 16), ints(17), ints(3))


@public("tpu-inference")
def inference_mhc_pre():
    from tpu_inference.kernels.experimental.deepseek_v4.mhc.pre_kernel import mhc_pre_mixes

    return mhc_pre_mixes, (array(1024, 4 * 4096), array(24, 4 * 4096, dtype=f32))


@public("tpu-inference")
def inference_mhc_post():
    from tpu_inference.kernels.experimental.deepseek_v4.mhc.post_kernel import mhc_post

    return mhc_post, (array(1024, 4096), array(1024, 4, 4096), array(1024, 4, 1, dtype=f32), array(1024, 4, 4, dtype=f32))


@public("tpu-inference")
def inference_convolution():
    from tpu_inference.kernels.causal_conv1d.causal_conv1d import ragged_causal_conv1d

    call = functools.partial(ragged_causal_conv1d, kernel_size=4)
    state = array(32, 3, 4096)
    weights = array(4096, 1, 4), array(4096)
    return call, (array(1024, 4096), state, *weights, ints(17), ints(16), ints(3), array(16, dtype=jnp.bool_))


@public("tpu-inference")
def inference_delta_rule():
    from tpu_inference.kernels.gdn.v2.recurrent_scan_v2 import recurrent_scan

    call = functools.partial(recurrent_scan, n_kq=16, n_v=32, d_k=128, d_v=128)
    gates = array(1024, 32), array(1024, 32)
    return call, (
        array(1024, 8192),
        *gates,
        array(16, 32, 128, 128, dtype=f32),
        array(32, dtype=f32),
        array(32, dtype=f32),
        ints(17),
        ints(16),
        ints(3),
    )


@public("sglang-jax")
def sglang_biased_topk():
    from sgl_jax.srt.kernels.biased_topk.v1.kernel import biased_topk_pallas

    call = functools.partial(biased_topk_pallas, topk=8, block_tokens=256, interpret=False)
    return call, (array(2048, 256, dtype=f32), array(256, dtype=f32))


@public("sglang-jax")
def sglang_grouped_topk():
    from sgl_jax.srt.kernels.grouped_topk.v1.kernel import grouped_topk_pallas

    options = {"num_expert_group": 8, "topk_group": 4, "topk": 8, "block_tokens": 256, "interpret": False}
    return functools.partial(grouped_topk_pallas, **options), (array(2048, 256, dtype=f32), array(256, dtype=f32))


@public("sglang-jax")
def sglang_cache_update():
    from sgl_jax.srt.kernels.update_kv_cache.update_kv_cache import kv_cache_update_impl

    arrays = array(32, 16, 8, 2, 128), ints(3, 64), array(512, 16, 8, 2, 128), ints(1)
    return (lambda *given: kv_cache_update_impl(*given, page_size=16, num_slices_per_block=8)), arrays


@public("sglang-jax")
def sglang_grouped_product_2():
    from sgl_jax.srt.kernels.gmm.megablox_gmm_kernel.gmm_v2 import gmm_v2

    return gmm_v2, (array(2048, 2048), array(8, 2048, 1024), ints(8))


@public("sglang-jax")
def sglang_ragged_paged_attention():
    from sgl_jax.srt.kernels.ragged_paged_attention.ragged_paged_attention_v3 import get_kv_cache_shape, ragged_paged_attention

    new = array(256, 8, 128)
    cache = array(*get_kv_cache_shape(256, 128, 8, 128, bf16))
    tables = ints(16), ints(16 * 16), ints(17), ints(17), ints(3)
    call = lambda q, k, v, cache, *tables: ragged_paged_attention(q, k, v, cache, *tables, None)  # noqa: E731
    return call, (array(256, 32, 128), new, new, cache, *tables)


@public("sglang-jax")
def sglang_latent_attention():
    from sgl_jax.srt.kernels.mla.v2.kernel import get_kv_cache_shape, mla_ragged_paged_attention

    cache = array(*get_kv_cache_shape(256, 64, 576, bf16))
    call = functools.partial(mla_ragged_paged_attention, num_kv_pages_per_block=4, num_queries_per_block=16)
    queries = array(128, 32, 512), array(128, 32, 64)
    tables = ints(16), ints(16 * 16), ints(17), ints(17), ints(3)
    return call, (*queries, array(128, 512), array(128, 64), cache, *tables)


@public("sglang-jax")
def sglang_linear_attention():
    from sgl_jax.srt.kernels.simple_gla.simple_gla_fused import decode_simple_gla_fused

    x = array(64, 16, 128)
    return (lambda q, k, v, state, at, has, gamma: decode_simple_gla_fused(q, k, v, state, at, has, g_gamma=gamma)), (
        x,
        x,
        x,
        array(65, 16, 128, 128, dtype=f32),
        ints(64),
        array(64, dtype=jnp.bool_),
        array(16, dtype=f32),
    )


@public("tokamax")
def tokamax_ragged_dot():
    from tokamax._src.ops.ragged_dot.pallas_mosaic_tpu_kernel import gmm

    call = functools.partial(gmm, precision=jax.lax.Precision.DEFAULT, out_dtype=bf16, tiling=(512, 512, 512))
    return call, (array(4096, 2048), array(8, 2048, 1024), ints(8))


@public("tokamax")
def tokamax_cross_entropy():
    from tokamax._src.ops.linear_softmax_cross_entropy_loss import pallas_mosaic_tpu_kernel as loss

    call = functools.partial(loss.linear_softmax_cross_entropy_loss_fwd_pallas_mosaic_tpu, b_block_size=512)
    return call, (array(2048, 1024), ints(2048), array(1024, 16384))


@public("tokamax")
def tokamax_grouped_product_2():
    from tokamax._src.ops.experimental.gmm_v2.gmm_v2 import gmm_v2

    return gmm_v2, (array(2048, 2048), array(8, 2048, 1024), ints(8))


@public("tokamax")
def tokamax_splash():
    from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_kernel as splash
    from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_mask as masks

    kernel = splash.make_splash_mha(masks.CausalMask((2048, 2048)), q_seq_shards=1)
    x = array(8, 2048, 128)
    return (lambda q, k, v: kernel(q, k, v)), (x, x, x)


@public("maxtext")
def maxtext_ragged_attention():
    from maxtext.kernels.attention.ragged_attention import ragged_mqa

    return ragged_mqa, (array(8, 16, 128), array(8, 2048, 128), array(8, 2048, 128), ints(8))


@public("maxtext")
def maxtext_grouped_product():
    from maxtext.kernels.megablox.backend import gmm

    call = functools.partial(gmm, preferred_element_type=bf16, tiling=(512, 512, 512))
    return call, (array(4096, 2048), array(8, 2048, 1024), ints(8))


@public("maxtext")
def maxtext_grouped_product_2():
    from maxtext.kernels.megablox.pallas_mosaic_tpu_v2_gmm_kernel import gmm_v2

    return gmm_v2, (array(2048, 2048), array(8, 2048, 1024), ints(8))


@public("maxtext")
def maxtext_grouped_product_transposed():
    from maxtext.kernels.megablox.pallas_mosaic_tpu_v2_tgmm_kernel import tgmm_v2

    call = functools.partial(tgmm_v2, num_actual_groups=8, preferred_element_type=bf16)
    return call, (array(4096, 2048), array(4096, 1024), ints(8))


@public("maxtext")
def maxtext_splash():
    from maxtext.kernels.tokamax_splash_attention import splash_attention_kernel as splash
    from maxtext.kernels.tokamax_splash_attention import splash_attention_mask as masks

    kernel = splash.make_splash_mha(masks.CausalMask((2048, 2048)), q_seq_shards=1)
    x = array(8, 2048, 128)
    return (lambda q, k, v: kernel(q, k, v)), (x, x, x)
