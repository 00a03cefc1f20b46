"""The rivals that live in Python. Each line of standard input names a work; the answer is its time in seconds.

    hlo FILE               jaxlib parses the file's HLO text
    offsets LAYOUT N FILE  NumPy computes the offsets of N indices (little-endian int64 in FILE) by the document's formula
"""

import sys
import time

import jaxlib
import numpy as np
from jaxlib._hlo import hlo_module_from_text


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def hlo(path):
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


def main():
    print(f"jaxlib {jaxlib.__version__}, NumPy {np.__version__}", flush=True)
    for line in sys.stdin:
        work, *arguments = line.rstrip("\n").split("\t")
        print({"hlo": hlo, "offsets": offsets}[work](*arguments), flush=True)


if __name__ == "__main__":
    main()
