"""Kernels of other kinds: routing, convolutions, mixtures of streams, speculation."""

import functools

import jax
import jax.numpy as jnp

from .products import INFERENCE, MAXTEXT, SGLANG
from .registry import array, f32, ints, public


@public(
    "biased_topk",
    {"sglang-jax": f"{SGLANG}.biased_topk.v1.kernel:biased_topk_pallas"},
    {"tokens": 2048, "experts": 256, "block": 256},
    # Of its tuning table.
    {"tokens": 512, "experts": 384, "block": 256},
    {"tokens": 4096, "experts": 384, "block": 1024},
    {"tokens": 64, "experts": 384, "block": 64},
)
def biased_topk(choose, _, tokens, experts, block):
    """The experts of each token."""
    call = functools.partial(choose, topk=8, block_tokens=block, interpret=False)
    return call, (array(tokens, experts, dtype=f32), array(experts, dtype=f32))


@public(
    "grouped_topk",
    {"sglang-jax": f"{SGLANG}.grouped_topk.v1.kernel:grouped_topk_pallas"},
    {"tokens": 2048, "experts": 256, "block": 256},
    # Of its tuning table.
    {"tokens": 512, "experts": 256, "block": 512},
    {"tokens": 1024, "experts": 512, "block": 512},
    {"tokens": 64, "experts": 512, "block": 64},
)
def grouped_topk(choose, _, tokens, experts, block):
    """The experts of each token, from the best groups."""
    options = {"num_expert_group": 8, "topk_group": 4, "topk": 8, "block_tokens": block, "interpret": False}
    return functools.partial(choose, **options), (array(tokens, experts, dtype=f32), array(experts, dtype=f32))


MIXES = f"{INFERENCE}.experimental.deepseek_v4.mhc"


@public(
    "mhc_pre",
    {"tpu-inference": f"{MIXES}.pre_kernel:mhc_pre_mixes"},
    {"tokens": 1024, "wide": 4096},
    {"tokens": 256, "wide": 2048},
)
def mhc_pre(mix, _, tokens, wide):
    """Weights of the streams of a residual."""
    return mix, (array(tokens, 4 * wide), array(24, 4 * wide, dtype=f32))


@public(
    "mhc_post",
    {"tpu-inference": f"{MIXES}.post_kernel:mhc_post"},
    {"tokens": 1024, "wide": 4096},
    {"tokens": 256, "wide": 2048},
    {"tokens": 512, "wide": 7168},
)
def mhc_post(mix, _, tokens, wide):
    """A layer's result added to the streams."""
    weights = array(tokens, 4, 1, dtype=f32), array(tokens, 4, 4, dtype=f32)
    return mix, (array(tokens, wide), array(tokens, 4, wide), *weights)


@public(
    "mhc_post_pre", {"tpu-inference": f"{MIXES}.fused_post_pre_kernel:mhc_fused_post_pre"}, {"block": 32}, {"block": 64}
)
def mhc_post_pre(mix, _, block):
    """Both."""
    options = {"rms_eps": 1e-6, "hc_pre_eps": 1e-6, "hc_sinkhorn_eps": 1e-6, "hc_post_mult_value": 2.0}
    call = functools.partial(mix, **options, sinkhorn_repeat=20, token_block_size=block)
    weights = array(256, 4, 1, dtype=f32), array(256, 4, 4, dtype=f32)
    given = array(24, 4 * 4096, dtype=f32), array(3, dtype=f32), array(24, dtype=f32)
    return call, (array(256, 4096), array(256, 4, 4096), *weights, *given)


@public(
    "convolution",
    {"tpu-inference": f"{INFERENCE}.causal_conv1d.causal_conv1d:ragged_causal_conv1d"},
    {"wide": 4096, "tile": 64},
    {"wide": 2048, "tile": 32},
    {"wide": 8192, "tile": 64},
)
def convolution(convolve, _, wide, tile):
    """A convolution along sequences."""
    call = functools.partial(convolve, kernel_size=4, tile_size=tile)
    given = array(1024, wide), array(32, 3, wide), array(wide, 1, 4), array(wide)
    return call, (*given, ints(17), ints(16), ints(3), array(16, dtype=jnp.bool_))


SPECULATIVE = f"{SGLANG}.speculative"


def over_one(call):
    """The call over a mesh of one device, which it asks JAX for."""

    def over(*given):
        with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((1,), ("tensor",))):
            return call(*given)

    return over


@public(
    "speculative_tree", {"sglang-jax": f"{SPECULATIVE}.build_eagle_tree_structure_kernel:build_eagle_tree_structure"}
)
def speculative_tree(build, _):
    """The tree of drafts."""
    call = functools.partial(build, draft_token_num=8, topk=4, max_context_len=2048)
    return over_one(call), (ints(8, 13), ints(8, 7), ints(8), ints())


@public("speculative_verify", {"sglang-jax": f"{SPECULATIVE}.verify_tree_greedy_kernel:verify_tree_greedy"})
def speculative_verify(verify, _):
    """Which drafts are taken."""
    table = ints(8, 8)
    call = functools.partial(verify, 4, 8)
    return over_one(call), (table, table, table, table, array(64, 32000, dtype=f32))


@public("streams", {"maxtext": f"{MAXTEXT}.mhc.mhc_kernels_fwd:post_fwd"})
def streams(mix, module):
    """Streams of a residual."""
    config = module.common.MhcKernelConfig()
    h = array(1, 1024, 4, dtype=f32), array(1, 1024, 4, 4, dtype=f32)
    return functools.partial(mix, config=config), (array(1, 1024, 2048), array(1, 1024, 4, 2048), *h)
