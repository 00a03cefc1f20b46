"""Matrix products: of groups, of quantized weights, and losses that are computed beside one."""

import functools
import inspect

import jax

from .registry import array, bf16, f8, f32, i8, ints, public

JAX = "jax.experimental.pallas.ops.tpu"
INFERENCE = "tpu_inference.kernels"
SGLANG = "sgl_jax.srt.kernels"
TOKAMAX = "tokamax._src.ops"
MAXTEXT = "maxtext.kernels"


@public(
    "grouped_product",
    {
        "jax": f"{JAX}.megablox.gmm:gmm",
        "tpu-inference": f"{INFERENCE}.megablox.gmm:gmm",
        "sglang-jax": f"{SGLANG}.gmm.megablox_gmm_kernel.gmm:gmm",
        "tokamax": f"{TOKAMAX}.ragged_dot.pallas_mosaic_tpu_kernel:gmm",
        "maxtext": f"{MAXTEXT}.megablox.backend:gmm",
    },
    # The tiles of maxtext's configurations, of the functions' own default, and of tokamax's heuristics.
    {"tiles": (512, 512, 512)},
    {"tiles": (512, 1024, 1024)},
    {"tiles": (128, 128, 128)},
    {"tiles": (256, 1024, 512)},
)
def grouped_product(gmm, _, tiles, k=2048, n=1024):
    """Rows times their group's matrix."""
    is_tokamax = "precision" in inspect.signature(gmm).parameters
    own = {"preferred_element_type": bf16}
    if is_tokamax:
        own = {"precision": jax.lax.Precision.DEFAULT, "out_dtype": bf16}
    return functools.partial(gmm, tiling=tiles, **own), (array(4096, k), array(8, k, n), ints(8))


@public(
    "grouped_product_transposed",
    {"jax": f"{JAX}.megablox.gmm:tgmm", "maxtext": f"{MAXTEXT}.megablox.backend:tgmm"},
    {"tiles": (512, 512, 512)},
    {"tiles": (512, 1024, 1024)},
    {"tiles": (128, 128, 128)},
)
def grouped_product_transposed(tgmm, _, tiles):
    """The gradient of the matrices."""
    call = functools.partial(tgmm, preferred_element_type=bf16, tiling=tiles)
    return call, (array(2048, 4096), array(4096, 1024), ints(8))


@public(
    "grouped_product_2",
    {
        "tpu-inference": f"{INFERENCE}.megablox.gmm_v2:gmm_v2",
        "sglang-jax": f"{SGLANG}.gmm.megablox_gmm_kernel.gmm_v2:gmm_v2",
        "tokamax": f"{TOKAMAX}.experimental.gmm_v2.gmm_v2:gmm_v2",
        "maxtext": f"{MAXTEXT}.megablox.pallas_mosaic_tpu_v2_gmm_kernel:gmm_v2",
    },
    {"m": 2048, "k": 2048, "n": 1024, "groups": 8},
    # Of the tuning tables of tpu-inference and sglang-jax.
    {"m": 128, "k": 2560, "n": 5120, "groups": 20, "weights": f8},
    {"m": 512, "k": 2560, "n": 6144, "groups": 20, "weights": f8},
    {"m": 256, "k": 6144, "n": 5120, "groups": 20, "weights": f8},
)
def grouped_product_2(gmm, _, m, k, n, groups, weights=bf16):
    """A product for each group, with tiles by the kernel's own estimate of VMEM."""
    given = array(m, k), array(groups, k, n, dtype=weights), ints(groups)
    if weights == bf16:
        return gmm, given
    return (lambda x, w, sizes, scale: gmm(x, w, sizes, rhs_scale=scale)), (*given, array(groups, 1, 1, n, dtype=f32))


@public(
    "grouped_product_transposed_2",
    {
        "tokamax": f"{TOKAMAX}.experimental.gmm_v2.tgmm_v2:tgmm_v2",
        "maxtext": f"{MAXTEXT}.megablox.pallas_mosaic_tpu_v2_tgmm_kernel:tgmm_v2",
    },
    {"m": 4096, "k": 2048, "n": 1024},
    {"m": 1024, "k": 512, "n": 512},
)
def grouped_product_transposed_2(tgmm, _, m, k, n):
    """Its gradient."""
    call = functools.partial(tgmm, num_actual_groups=8, preferred_element_type=bf16)
    return call, (array(m, k), array(m, n), ints(8))


@public(
    "quantized_matmul",
    {
        "tpu-inference": f"{INFERENCE}.quantized_matmul.kernel:quantized_matmul_kernel",
        "sglang-jax": f"{SGLANG}.quantized_matmul.quantized_matmul_kernels.kernel:quantized_matmul_kernel",
    },
    {"batch": 512, "out": 4096, "into": 4096},
    # Of the tuning tables of tpu-inference.
    {"batch": 1024, "out": 1280, "into": 8192, "x": i8},
    {"batch": 1024, "out": 4096, "into": 14336, "x": i8},
    {"batch": 128, "out": 1024, "into": 4096, "x": i8},
    {"batch": 1024, "out": 5120, "into": 640, "x": i8},
)
def quantized_matmul(kernel, _, batch, out, into, x=None):
    """Activations, quantized in the kernel or as they are, times weights of eight bits."""
    return functools.partial(kernel, x_q_dtype=x), (
        array(batch, into),
        array(out, into, dtype=i8),
        array(out, dtype=f32),
    )


@public(
    "blockwise_matmul",
    {
        "tpu-inference": f"{INFERENCE}.quantized_matmul.blockwise_kernel:quantized_matmul_kernel",
        "sglang-jax": f"{SGLANG}.quantized_matmul.quantized_matmul_kernels.blockwise_kernel:quantized_matmul_kernel",
    },
    {"batch": 512, "out": 4096, "into": 4096},
    {"batch": 128, "out": 2048, "into": 4096},
)
def blockwise_matmul(kernel, module, batch, out, into):
    """Products with weights of eight bits, with a scale for each block of 256 inputs."""
    weights = array(out, into, dtype=f8), array(into // 256, 1, out, dtype=f32)
    sizes = module.TunedValue(128, 512, 1024, 1)
    call = functools.partial(kernel, block_size=256, x_q_dtype=f8, tuned_value=sizes)
    return call, (array(batch, into), *weights)


@public(
    "matmul",
    {"jax": f"{JAX}.matmul:matmul"},
    {"block": (512, 512), "k": 512},
    {"block": (256, 256), "k": 2048},
    {"block": (1024, 512), "k": 1024},
)
def matmul(kernel, _, block, k):
    """A product."""
    return functools.partial(kernel, block_shape=block, block_k=k), (array(2048, 2048), array(2048, 2048))


LOSS = f"{TOKAMAX}.linear_softmax_cross_entropy_loss.pallas_mosaic_tpu_kernel"


@public(
    "cross_entropy",
    {"tokamax": f"{LOSS}:linear_softmax_cross_entropy_loss_fwd_pallas_mosaic_tpu"},
    {"b": 512, "h": 512, "v": 2048},
    {"b": 1024, "h": 512, "v": 1024},
    {"b": 256, "h": 256, "v": 1024},
)
def cross_entropy(loss, _, b, h, v):
    """A loss of the product with the vocabulary."""
    call = functools.partial(loss, b_block_size=b, h_block_size=h, v_block_size=v)
    return call, (array(2048, 1024), ints(2048), array(1024, 16384))


@public(
    "cross_entropy_gradient",
    {"tokamax": f"{LOSS}:linear_softmax_cross_entropy_loss_bwd_pallas_mosaic_tpu"},
    {"b": 512, "h": 512, "v": 1024},
    {"b": 256, "h": 256, "v": 512},
)
def cross_entropy_gradient(loss, _, b, h, v):
    """Its gradient."""
    call = functools.partial(loss, b_block_size=b, h_block_size=h, v_block_size=v)
    given = array(dtype=f32), array(2048, dtype=f32), array(2048, 1024)
    return call, (*given, ints(2048), array(1024, 16384))


@public(
    "output_projection",
    {"tpu-inference": f"{INFERENCE}.experimental.deepseek_v4.o_projection:wo_a_projection"},
    {"tokens": 256},
    {"tokens": 1024},
)
def output_projection(project, _, tokens):
    """A product of heads that are rotated back."""
    weights = array(8 * 512, 8 * 1024, dtype=f8), array(8 * 1024, dtype=f32)
    return project, (array(tokens, 64, 512), *weights, array(tokens, 256, dtype=f32))


@public("triangle_inverse", {"tpu-inference": f"{INFERENCE}.gdn.triangle_solver:newton_schulz_inverse_pallas"})
def triangle_inverse(solve, _):
    """Inverses of triangular matrices."""
    return solve, (array(256, 64, 64, dtype=f32),)
