"""Kernels of inference: attention over compressed or batched pages, what fills these, and sparse products."""

import functools

import jax.numpy as jnp

from .products import INFERENCE, SGLANG
from .registry import array, f32, i8, ints, public

DEEPSEEK = f"{INFERENCE}.experimental.deepseek_v4"
EXPERIMENTAL = f"{INFERENCE}.experimental"


def packed(*shape):
    """An array of bytes, of which four lie in each word: a compressed cache."""
    return array(*shape, dtype=jnp.uint8)


@public(
    "top_positions",
    {
        "tpu-inference": f"{DEEPSEEK}.indexer.streamindex_topk:streamindex_topk",
        "sglang-jax": f"{SGLANG}.dsa.streamindex_topk:streamindex_topk",
    },
    {"pages": 4, "queries": 32},
    {"pages": 8, "queries": 16, "page": 128},
)
def top_positions(choose, _, pages, queries, page=64, heads=64):
    """The positions that sparse attention reads."""
    sizes = {"num_kv_pages_per_block": pages, "num_queries_per_block": queries}
    call = functools.partial(choose, k=512, compression_ratio=4, **sizes)
    given = array(256, heads, 128, dtype=f32), array(256, heads, dtype=f32)
    return call, (*given, packed(512, page // 4, 4, 256), ints(8), ints(8 * 64), ints(9), ints(3))


@public(
    "compressed_store",
    {"tpu-inference": f"{DEEPSEEK}.compress_and_store.kernel:compress_norm_rope_store"},
    {"dim": 512, "ratio": 4, "block": 64},
    {"dim": 128, "ratio": 4, "block": 128},
    {"dim": 512, "ratio": 128, "block": 0},
)
def compressed_store(store, _, dim, ratio, block):
    """Compressed keys, normalized, rotated and stored."""
    is_indexer, is_shared = dim == 128, ratio == 4
    cache = packed(64, 16 if is_indexer else 64, 4, 256 if is_indexer else 128)
    options = {"block_table_stride": 64, "compress_ratio": ratio, "overlap": is_shared, "quant_block": block}
    given = cache, ints(256), ints(8 * 64), ints(256), ints(256), array(dim, dtype=f32), array(256, 64, dtype=f32)

    def call(cache, positions, table, requests, slots, weight, turns, rope=None, state=None):
        more = {"rope_cache": rope, "state_cache": state}
        return store(cache, positions, table, requests, slots, weight, cos_sin_cache=turns, **more, **options)

    rope = packed(64, 16, 4, 128)
    return call, (*given, rope) if is_shared else (*given, rope, packed(64, 64, 4, 128))


@public(
    "state_store",
    {"tpu-inference": f"{DEEPSEEK}.compress_and_store.proj_and_save_state:proj_and_save_state"},
    {"wide": 2048},
    {"wide": 512},
)
def state_store(store, _, wide):
    """Projects and stores the states that compressed keys are computed from."""
    call = functools.partial(store, compress_ratio=4)
    hidden, weight = array(256, 4096), array(4096, wide)
    cache = packed(64, 64, 4, 256 if wide == 512 else 128)
    return call, (hidden, weight, array(4, wide // 2, dtype=f32), ints(256), ints(256), cache)


SUMS = (array(256, 128, 512), array(256, 128, dtype=f32), array(256, 128, dtype=f32))
"""Attention so far: sums, and what they are divided by."""
SINKS = array(128, dtype=f32)


@public(
    "compressed_attention",
    {"tpu-inference": f"{DEEPSEEK}.core_attention.mla:mla_ragged_paged_attention"},
    {"pages": 2, "queries": 16},
    {"pages": 4, "queries": 8},
)
def compressed_attention(attention, _, pages, queries):
    """Attention over compressed keys."""
    call = functools.partial(attention, num_kv_pages_per_block=pages, num_queries_per_block=queries)
    tables = ints(8), ints(256), ints(8 * 32), ints(9), ints(3)
    return call, (array(256, 128, 512), packed(256, 32, 4, 128), *tables, SINKS, *SUMS)


@public(
    "compressed_window_attention",
    {"tpu-inference": f"{DEEPSEEK}.core_attention.mla_swa:mla_sliding_window_ragged_paged_attention"},
    {"pages": 2, "queries": 8},
    {"pages": 4, "queries": 16},
)
def compressed_window_attention(attention, _, pages, queries):
    """Attention over the last keys."""
    sizes = {"num_kv_pages_per_block": pages, "num_queries_per_block": queries, "q_compute_block_size": 2}
    call = functools.partial(attention, sliding_window=128, logical_page_size=64, **sizes)
    tables = ints(8), ints(8 * 32), ints(9), ints(3)
    return call, (array(256, 128, 512), array(256, 512), packed(256, 136, 4, 128), *tables, SINKS)


@public(
    "sparse_compressed_attention",
    {"tpu-inference": f"{DEEPSEEK}.core_attention.sparse_mla:sparse_ragged_paged_attention"},
    {"batch": 4},
    {"batch": 16},
)
def sparse_compressed_attention(attention, _, batch):
    """Attention over the keys that were chosen."""
    sizes = {"attention_kernel_batch_size": batch, "gather_and_attention_chunk_size": 32}
    call = functools.partial(attention, **sizes)
    caches = packed(256, 64, 4, 128), packed(256, 16, 4, 128)
    return call, (array(256, 128, 512), *caches, ints(256, 512), ints(8 * 32), ints(9), ints(3), SINKS, *SUMS)


@public(
    "batched_attention",
    {
        "tpu-inference": f"{EXPERIMENTAL}.batched_rpa.wrapper:ragged_paged_attention",
        "tpu-inference stacked": f"{EXPERIMENTAL}.stacked_rpa.wrapper:ragged_paged_attention",
        "tpu-inference parallel": f"{EXPERIMENTAL}.rpa_v3_cp.kernel:ragged_paged_attention",
    },
    {},
    {"heads": 8, "kv_heads": 1},
    {"window": 256},
)
def batched_attention(attention, module, heads=32, kv_heads=8, window=None):
    """Attention of sequences of different lengths, several at a time."""
    new = array(256, kv_heads, 128)
    given = array(256, heads, 128), new, new
    tables = ints(16), ints(16 * 16), ints(17), ints(3)

    def call(q, k, v, *tables):
        # Its layout depends on the device.
        cache = jnp.zeros(module.get_kv_cache_shape(256, 128, kv_heads, 128, jnp.bfloat16), jnp.bfloat16)
        return attention(q, k, v, cache, *tables, sliding_window=window)

    return call, (*given, *tables)


@public(
    "structured_product",
    {"tpu-inference": f"{INFERENCE}.structured_sparse_matmul.v1.spmm:structured_spmm"},
    {"m": 512, "k": 512, "n": 512, "block": 256},
    {"m": 128, "k": 512, "n": 128, "block": 128},
)
def structured_product(product, _, m, k, n, block):
    """A product with a matrix of which one in four elements is kept."""
    options = {"rhs_sparse": True, "contract_sparse": True, "stride": 128}
    sizes = {"block_m": block, "block_k": k, "block_n": block}
    call = functools.partial(product, (1, 4), **options, **sizes)
    return call, (array(1, k // 4, n), ints(1, k // 64, n), array(m, k))


@public("gated_delta", {"sglang-jax": f"{SGLANG}.kda.kda:chunk_kda_fwd"}, {"heads": 4}, {"heads": 16})
def gated_delta(scan, _, heads):
    """States that forget at a rate for each channel, in chunks."""
    x = array(1, 1024, heads, 128)

    def call(q, k, v, g, beta, state, lengths, rates, bias):
        options = {"use_gate_in_kernel": True, "A_log": rates, "dt_bias": bias}
        return scan(q, k, v, g, beta, 0.1, state, True, lengths, **options)

    more = array(8, heads, 128, 128, dtype=f32), ints(9), array(heads, dtype=f32), array(heads, 128, dtype=f32)
    return call, (x, x, x, x, array(1, 1024, heads), *more)
