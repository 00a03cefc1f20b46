"""The rivals in Python. Each line of standard input is a request; the answer is its time in seconds.

    hlo FILE               jaxlib parses the file's HLO text
    offsets LAYOUT N FILE  NumPy computes the offsets of N indices (little-endian int64 in FILE) by the document's formula
    relayout CASE          prepares the case (JSON); the answer lists the rivals that convert it to the same bytes
    move RIVAL N           one of those converts it N times
"""

import importlib.metadata
import json
import os
import sys
import time
import zlib

import numpy as np


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def hlo(path):
    from jaxlib._hlo import hlo_module_from_text

    with open(path) as file:
        text = file.read()
    return timed(lambda: hlo_module_from_text(text))[0]


def tiled_8_128(y, x, columns):
    """The offset in T(8,128): linear_index((e div t, e mod t), (ceil(d / t), t))."""
    across = -(-columns // 128)
    return ((y // 8 * across + x // 128) * 8 + y % 8) * 128 + x % 128


def tiled_8_128_2_1(y, x, columns):
    """The offset in T(8,128)(2,1): pairs of rows inside each tile."""
    across = -(-columns // 128)
    return (((y // 8 * across + x // 128) * 4 + y % 8 // 2) * 128 + x % 128) * 2 + y % 2


LAYOUTS = {
    "f32[30000,500]{1,0:T(8,128)}": lambda i: tiled_8_128(i[:, 0], i[:, 1], 500),
    "bf16[30000,500]{1,0:T(8,128)(2,1)}": lambda i: tiled_8_128_2_1(i[:, 0], i[:, 1], 500),
    "f32[30000,500]{1,0}": lambda i: np.ravel_multi_index((i[:, 0], i[:, 1]), (30000, 500)),
}


def offsets(layout, count, path):
    indices = np.fromfile(path, dtype="<i8").reshape(int(count), -1)
    seconds, result = timed(lambda: LAYOUTS[layout](indices))
    expected = np.fromfile(path + ".offsets", dtype="<i8")
    assert np.array_equal(result, expected), layout
    return seconds


def filled(size):
    """The bytes that `filled` in src/relayout/mod.rs makes."""
    period = np.arange(1_000_003, dtype=np.uint64) * np.uint64(2_654_435_761) >> np.uint64(13)
    return np.resize(period.astype(np.uint8), size)


def rearrange(array, steps, pad, transpose):
    """The case as people write it with an array library."""
    for step in steps:
        ((name, argument),) = step.items()
        if name == "reshape":
            array = array.reshape(argument)
        elif name == "transpose":
            array = transpose(array, argument)
        elif name == "pad":
            array = pad(array, argument)
        elif name == "cut":
            array = array[tuple(slice(bound) for bound in argument)]
        else:
            array = array[..., 0::2] & 15 | array[..., 1::2] << 4
    return array


def numpy_rivals(source, steps):
    def view():
        return rearrange(source, steps, np.pad, np.transpose)

    kept = np.ones_like(view(), order="C")

    def into_kept():
        np.copyto(kept, view())
        return kept

    return {"numpy": lambda: np.ascontiguousarray(view()), "numpy_into": into_kept}


def jax_rivals(source, steps):
    import jax
    import jax.numpy as jnp

    array = jnp.asarray(source)
    jitted = jax.jit(lambda a: rearrange(a, steps, jnp.pad, jnp.transpose))
    return {"jax": lambda: jitted(array).block_until_ready()}


def torch_rivals(source, steps):
    import torch

    def pad(array, widths):
        return torch.nn.functional.pad(array, [width for pair in reversed(widths) for width in pair])

    torch.set_num_threads(1)
    array = torch.from_numpy(source.view({1: np.uint8, 2: np.int16, 4: np.int32}[source.itemsize]))

    def view():
        return rearrange(array, steps, pad, torch.permute)

    kept = torch.ones_like(view(), memory_format=torch.contiguous_format)
    return {"torch": lambda: view().contiguous(), "torch_into": lambda: kept.copy_(view())}


def installed(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


MOVES = {}


def relayout(case):
    case = json.loads(case)
    if hasattr(os, "sched_setaffinity"):
        # On one core: some use pools of threads.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    MOVES.clear()
    source = filled(case["bytes"]).view(f"<u{case['width']}")
    for package, rivals in {"numpy": numpy_rivals, "jax": jax_rivals, "torch": torch_rivals}.items():
        if installed(package):
            MOVES.update(rivals(source, case["steps"]))
    for name, move in MOVES.items():
        result = np.ascontiguousarray(move()).reshape(-1).view(np.uint8)
        assert zlib.crc32(result.data) == case["crc32"], f"{name} gives another result: {case}"
    return " ".join(MOVES)


def move(rival, count):
    work, count = MOVES[rival], int(count)
    if count > 1:
        work()  # Warms the caches.

    def works():
        for _ in range(count):
            work()

    return timed(works)[0]


def main():
    names = {"jax": "JAX", "jaxlib": "jaxlib", "numpy": "NumPy", "torch": "PyTorch"}
    print(", ".join(f"{name} {installed(package)}" for package, name in names.items() if installed(package)), flush=True)
    works = {"hlo": hlo, "offsets": offsets, "relayout": relayout, "move": move}
    for line in sys.stdin:
        work, *arguments = line.rstrip("\n").split("\t")
        print(works[work](*arguments), flush=True)


if __name__ == "__main__":
    main()
