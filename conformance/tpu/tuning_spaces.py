"""How much of the tuning spaces of public libraries `tilewise.suggest_blocks` leaves out, and whether the compiler refuses that.

The spaces are those that the libraries' own tuners try: tokamax's `_get_autotuning_configs` of a ragged product, and the search
spaces of tpu-inference's `tools/kernel/tuner`. A sample of what is left out, and of what is left, is compiled without a TPU. Needs
both libraries on the path.
"""

import functools
import os
import random
import sys
import warnings
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, str(Path(__file__).parent))
warnings.filterwarnings("ignore")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import tilewise as tw  # noqa: E402
from public_kernels import array, bf16, f32, ints  # noqa: E402

TPU = "v6e"
SAMPLE = 8


def powers(least, most):
    """Powers of two between these."""
    return [size for size in (least << at for at in range(16)) if size <= most]


def ragged_dot():
    from tokamax._src.ops.ragged_dot.pallas_mosaic_tpu_kernel import gmm

    m, k, n = 4096, 8192, 4096

    def make(tile_m, tile_k, tile_n, buffers):
        options = {"tiling": (tile_m, tile_k, tile_n), "input_buffer_count": buffers}
        call = functools.partial(gmm, precision=jax.lax.Precision.DEFAULT, out_dtype=bf16, **options)
        return call, array(m, k), array(8, k, n), ints(8)

    return make, {"tile_m": powers(128, 1024), "tile_k": powers(128, k), "tile_n": powers(128, n), "buffers": [2, 3, 4]}


def flash_attention():
    from tpu_inference.kernels.flash_attention.kernel import BlockSizes, SegmentIds, flash_attention

    def make(block_q, block_k_major, block_k, block_b):
        if block_k_major % block_k or 2560 % block_k_major or (block_k == 2560 and block_k_major != 2560):
            raise tw.Skip("the tuner leaves it out")
        sizes = BlockSizes(block_q=block_q, block_k_major=block_k_major, block_k=block_k, block_b=block_b)

        def call(q, k, v, ids):
            return flash_attention(q, k, v, segment_ids=SegmentIds(ids, ids), block_sizes=sizes)

        x = array(8, 16, 2560, 72)
        return call, x, x, x, ints(8, 2560)

    keys = [128, 256, 512, 640, 1280, 2560]
    space = {"block_q": [32, 64, 128, 256, 512, 640], "block_k_major": keys, "block_k": keys, "block_b": [1, 2, 4, 8]}
    return make, space


def grouped_product():
    from tpu_inference.kernels.megablox.gmm_v2 import TileSizes, gmm_v2

    m, k, n, groups = 128, 2560, 6144, 20

    def make(tm, tk, tn, bucket_base):
        tiles = TileSizes(tile_m=tm, tile_k=tk, tile_n=tn, bucket_base=bucket_base)
        call = functools.partial(gmm_v2, tile_info=tiles, preferred_element_type=bf16)

        def scaled(x, w, sizes, scale):
            return call(x, w, sizes, rhs_scale=scale)

        weights = array(groups, k, n, dtype=jnp.float8_e4m3fn)
        return scaled, array(m, k), weights, ints(groups), array(groups, 1, 1, n, dtype=f32)

    tiles = powers(128, 1024)
    return make, {"tm": [64, 128], "tk": tiles, "tn": tiles, "bucket_base": [64, 128]}


def is_refused(make, sizes):
    """Whether the compiler refuses a choice."""
    try:
        function, *arguments = make(**sizes)
        tw.compile_for(function, *arguments, tpu=TPU)
    except Exception:
        return True
    return False


def main():
    """All spaces, or those named."""
    print("| library | space | choices | left out | false, of a sample | refused, of a sample of the others |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    spaces = {"tokamax": ragged_dot, "tpu-inference": flash_attention, "tpu-inference, gmm_v2": grouped_product}
    for library, space in spaces.items():
        if sys.argv[1:] and space.__name__ not in sys.argv[1:]:
            continue
        make, sizes = space()
        found = tw.suggest_blocks(make, tpu=TPU, space=sizes)
        # What the tuner or the kernel's own checks leave out was never tried.
        removed = [
            choice for choice, reason in found.removed if not reason.startswith(("Skip", "ValueError", "AssertionError"))
        ]
        count = len(found.choices) + len(removed)
        draw = random.Random(1)
        out = draw.sample(removed, min(SAMPLE, len(removed)))
        left = draw.sample([choice.sizes for choice in found.choices], min(SAMPLE, len(found.choices)))
        wrong = sum(not is_refused(make, choice) for choice in out)
        refused = sum(is_refused(make, choice) for choice in left)
        share = len(removed) / count
        cells = [
            library,
            space.__name__,
            count,
            f"{len(removed)} ({share:.0%})",
            f"{wrong} of {len(out)}",
            f"{refused} of {len(left)}",
        ]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
