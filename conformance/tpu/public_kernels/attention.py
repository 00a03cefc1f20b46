"""Kernels of attention."""

import functools
import inspect

import jax
import jax.numpy as jnp

from .products import INFERENCE, JAX, MAXTEXT, SGLANG, TOKAMAX
from .registry import array, bf16, f32, ints, public


@public(
    "flash",
    {
        "jax": f"{JAX}.flash_attention:flash_attention",
        "tpu-inference": f"{INFERENCE}.flash_attention.kernel:flash_attention",
        "sglang-jax": "sgl_jax.srt.multimodal.kernels.flash_attention:flash_attention",
    },
    {"q": 512, "k": 512},
    {"q": 128, "k": 128},
    {"q": 1024, "k": 1024},
    # Of the tuning table of tpu-inference: a vision encoder.
    {"q": 640, "k": 512, "major": 2560, "length": 2560, "heads": 16, "dim": 72},
)
def flash(attention, module, q, k, major=None, length=2048, heads=8, dim=128):
    """Attention whose scores are never stored."""
    sizes = module.BlockSizes(block_q=q, block_k_major=major or k, block_k=k, block_b=1)
    x = array(1, heads, length, dim)
    return functools.partial(attention, block_sizes=sizes), (x, x, x)


@public(
    "flash_gradient",
    {"jax": f"{JAX}.flash_attention:flash_attention"},
    {"length": 2048},
    {"length": 1024, "dtype": f32},
)
def flash_gradient(attention, _, length, dtype=bf16):
    """Its gradient."""
    x = array(1, 8, length, 128, dtype=dtype)
    return jax.grad(lambda q, k, v: attention(q, k, v).astype(f32).sum(), argnums=(0, 1, 2)), (x, x, x)


@public(
    "splash",
    {
        "jax": f"{JAX}.splash_attention.splash_attention_kernel:make_splash_mha",
        "tokamax": f"{TOKAMAX}.experimental.tpu.splash_attention.splash_attention_kernel:make_splash_mha",
        "maxtext": f"{MAXTEXT}.tokamax_splash_attention.splash_attention_kernel:make_splash_mha",
    },
    {},
    {"q": 512, "kv": 512},
    {"q": 512, "kv": 1024, "compute": 512},
    {"q": 1024, "kv": 1024},
)
def splash(make, module, q=None, kv=None, compute=None):
    """Attention with a mask that leaves blocks out."""
    sizes = {"block_q": q, "block_kv": kv, "block_kv_compute": compute or kv}
    mask, options = module.mask_lib.CausalMask((2048, 2048)), {"q_seq_shards": 1}
    if "head_shards" in inspect.signature(make).parameters:
        mask, options = (module.mask_lib.MultiHeadMask([mask] * 8), {**options, "head_shards": 1})
        options |= {"block_sizes": module.BlockSizes(**sizes)} if q else {}
    elif q:
        options["config"] = module.SplashConfig(**sizes)
    kernel = make(mask, **options)
    x = array(8, 2048, 128)
    return (lambda q, k, v: kernel(q, k, v)), (x, x, x)


@public(
    "paged_attention", {"jax": f"{JAX}.paged_attention:paged_attention"}, {"pages": 16}, {"pages": 4}, {"pages": 32}
)
def paged_attention(attention, _, pages):
    """Attention of one token over pages of keys and values."""
    keys = array(8, 512, 16, 128)
    call = functools.partial(attention, pages_per_compute_block=pages)
    return call, (array(16, 32, 128), keys, keys, ints(16), ints(16, 64))


@public(
    "ragged_paged_attention",
    {
        "jax": f"{JAX}.ragged_paged_attention:ragged_paged_attention",
        "tpu-inference": f"{INFERENCE}.ragged_paged_attention.v2.kernel:ragged_paged_attention",
    },
    {"pages": 8, "queries": 32},
    # Of the tuning table of tpu-inference, for heads and pages of these sizes.
    {"pages": 4, "queries": 32, "heads": 12, "kv_heads": 2, "page": 128},
    {"pages": 16, "queries": 32, "heads": 12, "kv_heads": 2, "page": 16},
    {"pages": 16, "queries": 64, "heads": 32, "kv_heads": 8, "page": 32},
    {"pages": 8, "queries": 128, "heads": 8, "kv_heads": 8, "page": 16},
)
def ragged_paged_attention(attention, _, pages, queries, heads=32, kv_heads=8, page=16):
    """Attention of sequences of different lengths, over pages."""
    call = functools.partial(attention, num_kv_pages_per_block=pages, num_queries_per_block=queries)
    cache = array(300, page, 2 * kv_heads, 128)
    return call, (array(256, heads, 128), cache, ints(24), ints(24, 64), ints(25), ints(1))


@public(
    "ragged_paged_attention_3",
    {
        "tpu-inference": f"{INFERENCE}.ragged_paged_attention.v3.kernel:ragged_paged_attention",
        "tpu-inference 64": f"{INFERENCE}.ragged_paged_attention.v3.kernel_hd64:ragged_paged_attention_hd64",
        "sglang-jax": f"{SGLANG}.ragged_paged_attention.ragged_paged_attention_v3:ragged_paged_attention",
    },
    {},
    {"heads": 16, "kv_heads": 4},
    {"heads": 8, "kv_heads": 1, "page": 64},
)
def ragged_paged_attention_3(attention, module, heads=32, kv_heads=8, page=128):
    """Attention over pages, with blocks by the device's kind."""
    dim = 64 if "hd64" in attention.__module__ else 128
    new = array(256, kv_heads, dim)
    cache = array(*module.get_kv_cache_shape(256, page, kv_heads, dim, bf16))
    more = (ints(17),) if "cu_kv_lens" in inspect.signature(attention).parameters else ()

    def call(q, k, v, cache, *tables):
        return attention(q, k, v, cache, *tables, *([None] if more else []))

    return call, (array(256, heads, dim), new, new, cache, ints(16), ints(16 * 16), ints(17), *more, ints(3))


@public(
    "latent_attention",
    {
        "tpu-inference": f"{INFERENCE}.mla.v1.kernel:mla_ragged_paged_attention",
        "tpu-inference 2": f"{INFERENCE}.mla.v2.kernel:mla_ragged_paged_attention",
        "sglang-jax": f"{SGLANG}.mla.v2.kernel:mla_ragged_paged_attention",
        "tokamax": f"{TOKAMAX}.experimental.mla.pallas_mosaic_tpu_kernel:mla_ragged_paged_attention",
    },
    {"pages": 4, "queries": 16},
    {"pages": 2, "queries": 8},
    {"pages": 8, "queries": 32},
)
def latent_attention(attention, module, pages, queries):
    """Attention over compressed keys and values."""
    cache = array(*module.get_kv_cache_shape(256, 64, 576, bf16))
    each = (lambda size: (size,) * 3) if attention.__module__.endswith("v2.kernel") else (lambda size: size)
    sizes = {"num_kv_pages_per_block": each(pages), "num_queries_per_block": each(queries)}
    call = functools.partial(attention, **sizes, vmem_limit_bytes=64 << 20)
    more = (ints(17),) if "cu_kv_lens" in inspect.signature(attention).parameters else ()
    # Of one of them, heads come first.
    scores = array(32, 128, 512) if attention.__module__ == f"{INFERENCE}.mla.v2.kernel" else array(128, 32, 512)
    given = scores, array(128, 32, 64), array(128, 512), array(128, 64), cache
    return call, (*given, ints(16), ints(16 * 16), ints(17), *more, ints(3))


@public(
    "varlen_attention",
    {"sglang-jax": "sgl_jax.srt.multimodal.kernels.varlen_attention:varlen_attention"},
    {"q": 128, "kv": 128},
    {"q": 256, "kv": 512},
)
def varlen_attention(attention, _, q, kv):
    """Attention of sequences that lie behind each other."""
    x = array(4096, 16, 128)
    call = functools.partial(attention, num_queries_per_block=q, num_kv_per_block=kv, max_seq_len=4096)
    return call, (x, x, x, ints(9), ints(1))


@public(
    "ragged_attention", {"maxtext": f"{MAXTEXT}.attention.ragged_attention:ragged_mqa"}, {"block": 256}, {"block": 512}
)
def ragged_attention(attention, _, block):
    """Attention of one token of each sequence."""
    keys = array(8, 2048, 128)
    return functools.partial(attention, block_size=block), (array(8, 16, 128), keys, keys, ints(8))


@public(
    "cache_update",
    {"tpu-inference": f"{INFERENCE}.ragged_paged_attention.v2.ragged_kv_cache_update:kv_cache_update"},
    {"slices": 8},
    {"slices": 32},
)
def cache_update(update, _, slices):
    """New keys and values into their pages."""
    call = functools.partial(update, num_slices_per_block=slices)
    return call, (array(512, 16, 128), ints(3, 64), array(8192, 16, 128), ints(1))


@public(
    "cache_update",
    {"sglang-jax": f"{SGLANG}.update_kv_cache.update_kv_cache:kv_cache_update_impl"},
    {"slices": 8},
    {"slices": 32},
)
def cache_update_fused(update, _, slices):
    """New keys and values, side by side, into their pages."""
    given = array(32, 16, 8, 2, 128), ints(3, 64), array(512, 16, 8, 2, 128), ints(1)
    return (lambda *given: update(*given, page_size=16, num_slices_per_block=slices)), given


@public(
    "sparse_latent_attention",
    {"sglang-jax": f"{SGLANG}.dsa.sparse_mla_prefill:sparse_mla_attention"},
    {"block": 8},
    {"block": 64},
)
def sparse_latent_attention(attention, _, block):
    """Attention over the positions that were chosen."""
    given = (array(1, 128, 32, 576), array(1, 4096, 576), ints(1, 128, 2048), ints(1, 128))
    return functools.partial(attention, block_units=block, sm_scale=0.1), given


@public("linear_attention", {"sglang-jax": f"{SGLANG}.simple_gla.simple_gla_fused:decode_simple_gla_fused"})
def linear_attention(attention, _):
    """A step of linear attention."""
    x = array(64, 16, 128)
    given = (x, x, x, array(65, 16, 128, 128, dtype=f32), ints(64), array(64, dtype=jnp.bool_), array(16, dtype=f32))
    return (lambda q, k, v, state, at, has, gamma: attention(q, k, v, state, at, has, g_gamma=gamma)), given


@public("delta_rule", {"tpu-inference": f"{INFERENCE}.gdn.v2.recurrent_scan_v2:recurrent_scan"})
def delta_rule(scan, _):
    """A recurrence of states that forget."""
    call = functools.partial(scan, n_kq=16, n_v=32, d_k=128, d_v=128)
    gates, states = [array(1024, 32)] * 2, array(16, 32, 128, 128, dtype=f32)
    rates = [array(32, dtype=f32)] * 2
    return call, (array(1024, 8192), *gates, states, *rates, ints(17), ints(16), ints(3))


@public(
    "delta_rule_fused",
    {
        "tpu-inference": f"{INFERENCE}.gdn.v3.wrapper:fused_conv1d_gdn",
        "tokamax": f"{TOKAMAX}.causal_conv1d_gated_delta_rule.wrapper:fused_conv1d_gdn",
        "sglang-jax": f"{SGLANG}.gdn.fused_chunk_parallel.wrapper:fused_conv1d_gdn",
    },
)
def delta_rule_fused(scan, _):
    """A recurrence of states that forget, behind its convolution."""
    call = functools.partial(scan, n_kq=4, n_v=8, d_k=128, d_v=128, kernel_size=4)
    wide = 2 * 4 * 128 + 8 * 128
    states = array(17, 3, wide), array(17, 8, 128, 128, dtype=f32)
    weights = array(wide, 1, 4), array(wide), array(8, dtype=f32), array(8, dtype=f32)
    tables = ints(17), ints(16), ints(3), ints(16)
    return call, (array(256, wide), array(256, 8), array(256, 8), *states, *weights, *tables)


@public(
    "rope", {"tpu-inference": f"{INFERENCE}.experimental.deepseek_v4.rope:qnorm_rope"}, {"heads": 64}, {"heads": 16}
)
def rope(rotate, _, heads):
    """Heads, normalized and rotated."""
    return rotate, (array(512, heads, 512), ints(512), array(4096, 64, dtype=f32))
