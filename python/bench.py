"""The package compared with NumPy, and what autotuners ask of it.

`--markdown` prints a table, `--json` the same as data, `--quick` uses small inputs.

Times are medians of rounds in which the contenders take turns. Each result is checked before it is timed.
`fit FOLDER` compares searches for the largest batch instead, and `audit FOLDER` audits with full compilations, as
`bench_fit` and `bench_audit` say.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

import tilewise as tw
import tilewise.kernels

ROUNDS = 9
INDEX_SHAPE = tw.Shape("bf16[30000,500]{1,0:T(8,128)(2,1)}")

WORDS = """\
The Python package on one thread. Each call allocates its result, as NumPy's operators do, except those with `out` and
the floor: the fastest round of a NumPy call that reads and writes as many bytes.
"""


@dataclass
class Row:
    """One contender."""

    work: str
    contender: str
    milliseconds: float
    #: This time ÷ that of the package's plain call.
    ratio: float


def race(work: str, ours: str, contenders: dict[str, Callable[[], object]]) -> list[Row]:
    """The medians of all contenders, and their ratios to ours."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    # The floor is a minimum, not a median.
    of = {name: min if name == "floor" else statistics.median for name in times}
    medians = {name: of[name](rounds) * 1e3 for name, rounds in times.items()}
    return [Row(work, name, median, median / medians[ours]) for name, median in medians.items()]


def indices_of(count: int) -> npt.NDArray[np.int64]:
    """Random indices, one a row, as `numpy.argwhere` returns them."""
    random = np.random.default_rng(7)
    return np.stack([random.integers(0, bound or 0, count) for bound in INDEX_SHAPE.dimensions], axis=1)


def offsets(count: int) -> list[Row]:
    """`Shape.offsets` compared with the tiled-layout document's formula on columns."""
    indices = indices_of(count)
    y, x = indices[:, 0], indices[:, 1]
    out = np.empty(count, np.int64)

    def formula() -> npt.NDArray[np.int64]:
        return (((y // 8 * 4 + x // 128) * 4 + y % 8 // 2) * 128 + x % 128) * 2 + y % 2

    def shifts() -> npt.NDArray[np.int64]:
        return ((y >> 3) << 12) + ((x >> 7) << 10) + (((y >> 1) & 3) << 8) + ((x & 127) << 1) + (y & 1)

    for answer in (INDEX_SHAPE.offsets(indices), INDEX_SHAPE.offsets(indices, out=out), shifts()):
        assert np.array_equal(answer, formula())
    return race(
        f"{count:,} offsets in `{INDEX_SHAPE}`",
        "`offsets(indices)`",
        {
            "NumPy, the formula with `//` and `%`": formula,
            "NumPy, with shifts and masks": shifts,
            "`offsets(indices)`": lambda: INDEX_SHAPE.offsets(indices),
            "`offsets(indices, out=out)`": lambda: INDEX_SHAPE.offsets(indices, out=out),
            "floor": lambda: np.add(y, x, out=out.view(np.int64)),
        },
    )


def indices(count: int) -> list[Row]:
    """`Shape.indices` compared with the inverse of the formula."""
    expected = indices_of(count)
    places = INDEX_SHAPE.offsets(expected).view(np.int64)
    out = np.empty((count, 2), np.int64)

    def formula() -> npt.NDArray[np.int64]:
        word, row = places // 2, places % 2
        tile, place = word // 512, word % 512
        y = tile // 4 * 8 + place // 128 * 2 + row
        x = tile % 4 * 128 + place % 128
        return np.stack([np.where((y < 30000) & (x < 500), axis, -1) for axis in (y, x)], axis=1)

    for answer in (INDEX_SHAPE.indices(places), INDEX_SHAPE.indices(places, out=out), formula()):
        assert np.array_equal(answer, expected)
    return race(
        f"{count:,} indices in `{INDEX_SHAPE}`",
        "`indices(offsets)`",
        {
            "NumPy, the formula with `//` and `%`": formula,
            "`indices(offsets)`": lambda: INDEX_SHAPE.indices(places),
            "`indices(offsets, out=out)`": lambda: INDEX_SHAPE.indices(places, out=out),
            "floor": lambda: np.copyto(out, places[:, None]),
        },
    )


def tiles(rows: int) -> list[Row]:
    """`tile` and `untile` compared with NumPy's reshape and transpose."""
    array = np.random.default_rng(7).integers(0, 100, (rows, 8192)).astype(ml_dtypes.bfloat16)
    shape = tw.Shape(f"bf16[{rows},8192]{{1,0:T(8,128)(2,1)}}")
    tiled, out, back = tw.tile(array, shape), np.empty(array.nbytes, np.uint8), np.empty_like(array)

    def parts() -> npt.NDArray[np.uint16]:
        return array.view(np.uint16).reshape(rows // 8, 4, 2, 64, 128).transpose(0, 3, 1, 4, 2)

    def untiled() -> npt.NDArray[np.uint16]:
        return tiled.view(np.uint16).reshape(rows // 8, 64, 4, 128, 2).transpose(0, 2, 4, 1, 3)

    assert np.ascontiguousarray(parts()).tobytes() == tiled.tobytes()
    assert untiled().tobytes() == tw.untile(tiled, shape, out=back).tobytes() == array.tobytes()
    rows_of_tiles = back.view(np.uint16).reshape(untiled().shape)
    into = out.view(np.uint16).reshape(parts().shape)
    there = race(
        f"`{shape}` from row-major",
        "`tile(array, shape)`",
        {
            "NumPy, reshape and transpose": lambda: np.ascontiguousarray(parts()),
            "NumPy, the same into `out`": lambda: np.copyto(into, parts()),
            "`tile(array, shape)`": lambda: tw.tile(array, shape),
            "`tile(array, shape, out=out)`": lambda: tw.tile(array, shape, out=out),
            "floor": lambda: np.copyto(out, array.view(np.uint8).reshape(-1)),
        },
    )
    return there + race(
        f"`{shape}` to row-major",
        "`untile(bytes, shape)`",
        {
            "NumPy, reshape and transpose": lambda: np.ascontiguousarray(untiled()),
            "NumPy, the same into `out`": lambda: np.copyto(rows_of_tiles, untiled()),
            "`untile(bytes, shape)`": lambda: tw.untile(tiled, shape),
            "`untile(bytes, shape, out=out)`": lambda: tw.untile(tiled, shape, out=back),
            "floor": lambda: np.copyto(back.view(np.uint8).reshape(-1), tiled),
        },
    )


MATMUL = """tpu v5e
grid 8,8,8
in  bf16[8192,8192] block 1024,1024 @ 0,2
in  bf16[8192,8192] block 1024,1024 @ 2,1
out bf16[8192,8192] block 1024,1024 @ 0,1
scratch vmem f32[1024,1024]
body 2097152"""


def kernels(calls: int) -> list[Row]:
    """`tilewise.kernels.fits`, which autotuners ask about thousands of choices."""
    assert not tw.kernels.fits(MATMUL)
    assert tw.kernels.fits(MATMUL, 32 << 20)

    def ask() -> None:
        for _ in range(calls):
            tw.kernels.fits(MATMUL, 32 << 20)

    return race(
        f"{calls:,} kernels of a matrix product that fit or don't",
        "`kernels.fits(text, limit)`",
        {"`kernels.fits(text, limit)`": ask},
    )


def markdown(rows: list[Row]) -> str:
    """A paragraph and a table."""
    lines = [WORDS, "| work | by | time | ÷ ours |", "| --- | --- | --- | --- |"]
    previous = None
    for row in rows:
        work, previous = (row.work if row.work != previous else ""), row.work
        lines.append(f"| {work} | {row.contender} | {row.milliseconds:.1f} ms | {row.ratio:.1f}× |")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print a Markdown table (the default)")
    form.add_argument("--json", action="store_true", help="print a list of rows")
    parser.add_argument("--quick", action="store_true", help="use smaller inputs")
    parser.add_argument("what", nargs="?", choices=("fit", "audit"), help="compare what asks the compiler")
    parser.add_argument("folder", nargs="*", help="its programs, and which of them")
    options = parser.parse_args()
    if options.what:
        importlib.import_module(f"bench_{options.what}").main(*options.folder)
        return
    count = 100_000 if options.quick else 10_000_000
    rows = offsets(count) + indices(count) + tiles(256 if options.quick else 4096)
    rows += kernels(100 if options.quick else 10_000)
    print(json.dumps([asdict(row) for row in rows], indent=2) if options.json else markdown(rows))


if __name__ == "__main__":
    main()
