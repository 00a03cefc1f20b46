"""How much of the tuning spaces of public libraries `tilewise.suggest_blocks` leaves out, and whether the compiler refuses that.

The spaces are those that the libraries' own tuners try: tokamax's `_get_autotuning_configs` of a ragged product, and the search
spaces of tpu-inference's `tools/kernel/tuner`. All that is left out, and a sample of what is left, is compiled without a TPU. A
second table has the choices of the libraries' tuning tables, which ran on TPUs: what is left out of these is wrong. Needs the
libraries on the path.
"""

import functools
import importlib
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
from public_kernels import array, bf16, f32, i8, ints  # noqa: E402

TPU = "v6e"
SAMPLE = 40
"""How many of the choices that are left are compiled."""


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
        return (scaled, array(m, k), weights, ints(groups), array(groups, 1, 1, n, dtype=f32))

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


# Errors of tuners' and kernels' own checks: such choices are never tried.
OWN_CHECKS = ("Skip", "ValueError", "AssertionError")


def spaces(chosen):
    """The first table."""
    print("| library | space | choices | left out | of these the compiler takes | refused, of a sample of the others |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    all_spaces = {"tokamax": ragged_dot, "tpu-inference": flash_attention, "tpu-inference, gmm_v2": grouped_product}
    for library, space in all_spaces.items():
        if chosen and space.__name__ not in chosen:
            continue
        make, sizes = space()
        found = tw.suggest_blocks(make, tpu=TPU, space=sizes)
        out = [choice for choice, reason in found.removed if not reason.startswith(OWN_CHECKS)]
        left = [choice.sizes for choice in found.choices]
        sample = random.Random(1).sample(left, min(SAMPLE, len(left)))
        wrong = sum(not is_refused(make, choice) for choice in out)
        refused = sum(is_refused(make, choice) for choice in sample)
        count = len(out) + len(left)
        cells = [library, space.__name__, count, f"{len(out)} ({len(out) / count:.0%})"]
        cells += [f"{wrong} of {len(out)}", f"{refused} of {len(sample)}"]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def quantized(module):
    """The choices of a table of quantized products, each with its generation: what makes the call."""
    table = importlib.import_module(f"{module}.tuned_block_sizes").TUNED_BLOCK_SIZES
    kernel = importlib.import_module(f"{module}.kernel").quantized_matmul_kernel
    for key, value in table.items():
        if key.w_q_dtype == "int8" and key.x_q_dtype == "int8":
            given = (array(key.n_batch, key.n_in), array(key.n_out, key.n_in, dtype=i8), array(key.n_out, dtype=f32))
            call = functools.partial(kernel, x_q_dtype=i8, tuned_value=value)
            yield {6: "v6e", 7: "v7x"}[key.tpu_version], call, given


def paged():
    """The choices of tpu-inference's table of ragged paged attention, for one batch of each shape."""
    place = "tpu_inference.kernels.ragged_paged_attention.v2"
    kernel = importlib.import_module(f"{place}.kernel").ragged_paged_attention
    seen = set()
    for kind, table in importlib.import_module(f"{place}.tuned_block_sizes").TUNED_BLOCK_SIZES.items():
        for (_, _, heads, kv_heads, width, page, _, length), (pages, queries) in table.items():
            shape = kind, heads, kv_heads, width, page, pages, queries
            if shape in seen:
                continue
            seen.add(shape)
            cache = array(300, page, 2 * kv_heads, width)
            given = (array(512, heads, width), cache, ints(24), ints(24, max(length // page, pages)), ints(25), ints(1))
            sizes = {"num_kv_pages_per_block": pages, "num_queries_per_block": queries}
            # The limit that its caller asks for.
            call = functools.partial(kernel, **sizes, vmem_limit_bytes=100 << 20)
            yield {"TPU v6": "v6e", "TPU v5": "v5p"}[kind], call, given


def tables():
    """The second table."""
    print("\n| library | table | TPU | choices | left out | verdict `ask` or worse |")
    print("| --- | --- | --- | ---: | ---: | ---: |")
    places = {
        "tpu-inference": "tpu_inference.kernels.quantized_matmul",
        "sglang-jax": "sgl_jax.srt.kernels.quantized_matmul.quantized_matmul_kernels",
    }
    tuned = [(library, "quantized products", quantized(place)) for library, place in places.items()]
    for library, name, choices in [*tuned, ("tpu-inference", "ragged paged attention", paged())]:
        counts = {}
        for tpu, function, arguments in choices:
            found = tw.suggest_blocks(lambda one, call=(function, *arguments): call, tpu=tpu, space={"one": [1]})
            counts.setdefault(tpu, []).append(found)
        for tpu, rows in counts.items():
            out = sum(bool(found.removed) for found in rows)
            doubtful = sum(
                choice.verdict not in ("probably_fits", "declared_fits") for found in rows for choice in found
            )
            print(f"| {library} | {name} | {tpu} | {len(rows)} | {out} | {doubtful} |", flush=True)


if __name__ == "__main__":
    spaces(sys.argv[1:])
    if not sys.argv[1:]:
        tables()
