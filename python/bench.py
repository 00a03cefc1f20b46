"""The package beside NumPy: offsets of ten million indices, and a bfloat16 array into a TPU's tiles. Medians.

The floor reads and writes as many bytes as the work has to, and does next to nothing else.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt

import tilewise as tw

ROUNDS = 9


def median(work: Callable[[], object]) -> float:
    """Milliseconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def show(what: str, numpy: float, new: float, into: float, floor: float) -> None:
    """One row of the table, with how many times NumPy's time each saves."""
    print(f"| {what} | {numpy:.1f} | {new:.1f} ({numpy / new:.1f}×) | {into:.1f} ({numpy / into:.1f}×) | {floor:.1f} |")


def offsets(count: int) -> None:
    """`Shape.offsets` beside the tiled-layout document's formula on columns."""
    shape = tw.Shape("bf16[30000,500]{1,0:T(8,128)(2,1)}")
    random = np.random.default_rng(7)
    indices = np.stack([random.integers(0, bound, count) for bound in (30000, 500)], axis=1)

    def formula() -> npt.NDArray[np.int64]:
        y, x = indices[:, 0], indices[:, 1]
        return (((y // 8 * 4 + x // 128) * 4 + y % 8 // 2) * 128 + x % 128) * 2 + y % 2

    out = np.empty(count, np.uint64)
    assert np.array_equal(shape.offsets(indices, out=out), formula())
    # What has to be read and written, and nothing else.
    floor = median(lambda: np.add(indices[:, 0], indices[:, 1], out=out.view(np.int64)))
    new, into = median(lambda: shape.offsets(indices)), median(lambda: shape.offsets(indices, out=out))
    show(f"offsets of {count:,} indices, `{shape}`", median(formula), new, into, floor)


def tiles(rows: int) -> None:
    """`tile` beside NumPy's reshape and transpose."""
    array = np.random.default_rng(7).integers(0, 100, (rows, 8192)).astype(ml_dtypes.bfloat16)
    shape = tw.Shape(f"bf16[{rows},8192]{{1,0:T(8,128)(2,1)}}")

    def transpose() -> npt.NDArray[np.uint16]:
        parts = array.view(np.uint16).reshape(rows // 8, 4, 2, 64, 128)
        return np.ascontiguousarray(parts.transpose(0, 3, 1, 4, 2))

    out = np.empty(array.nbytes, np.uint8)
    assert transpose().tobytes() == tw.tile(array, shape, out=out).tobytes()
    floor = median(lambda: np.copyto(out, array.view(np.uint8).reshape(-1)))
    new, into = median(lambda: tw.tile(array, shape)), median(lambda: tw.tile(array, shape, out=out))
    show(f"`tile` into `{shape}`", median(transpose), new, into, floor)


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    print("| work | NumPy, ms | tilewise, new memory | tilewise, `out=` | floor, ms |\n|---|---|---|---|---|")
    offsets(1_000_000 if quick else 10_000_000)
    tiles(512 if quick else 4096)
