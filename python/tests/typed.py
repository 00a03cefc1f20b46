"""A user's program, which only the type checkers read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import tilewise as tw


def arithmetic(indices: npt.NDArray[np.int32]) -> None:
    shape = tw.Shape("f32[3,5]{1,0:T(2,2)}")
    assert_type(shape.offset((2, 3)), int)
    assert_type(shape.index(17), "tuple[int, ...] | None")
    assert_type(shape.offsets(indices), npt.NDArray[np.int64])
    assert_type(shape.offsets([[0, 1]]), npt.NDArray[np.int64])
    assert_type(shape.indices(shape.offsets(indices)), npt.NDArray[np.int64])
    assert_type(shape.layout.minor_to_major, "tuple[int, ...]")
    assert_type(shape.layout.tiles, "tuple[tuple[int | None, ...], ...]")
    assert_type(tw.Shape.array(np.float32, (3, 5), tw.Layout((1, 0), tiles=[(8, 128), (None, 2)])), tw.Shape)
    assert_type(shape.steps()[0].operation == "pad", bool)


def reports(path: Path) -> None:
    report = tw.audit(path, tpu="v5e")
    for buffer in report.largest_padding():
        if buffer.fix is not None:
            assert_type(buffer.fix.jax, str)
    with tw.explain_oom():
        assert_type(tw.predict(np.zeros(3), tpu="v5e"), tw.Shape)
    assert_type(tw.explain(RuntimeError("x")).padding_bytes, int)


def buffers(array: npt.NDArray[np.float32], out: npt.NDArray[np.uint8]) -> None:
    assert_type(tw.tile(array, "{1,0:T(8,128)}", out=out, threads=2), npt.NDArray[np.uint8])
    assert_type(tw.relayout(memoryview(b""), "f32[0]", tw.Shape("f32[0]")), npt.NDArray[np.uint8])
    tw.Shape("f32[3]").draw(view="memory").save("x.svg")
