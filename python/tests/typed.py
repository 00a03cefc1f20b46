"""A user's program, which only the type checkers read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import tilewise as tw
from tilewise.testing import assert_padding_below, assert_peak_below


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
        assert_type(buffer.causes, "list[str]")
    with tw.explain_oom():
        assert_type(tw.predict(np.zeros(3), tpu="v5e"), tw.Shape)
    assert_type(tw.explain(RuntimeError("x")).padding_bytes, int)
    assert_type(report.advice[0].shape, "tw.Shape | None")
    assert_type(report.peak_source, "tw.SourceLine | None")
    assert_type(report.libtpu, "str | None")
    assert_type(report.reported_temporary_bytes, "int | None")
    assert_type(report.peak_buffers, "list[tw.PeakBuffer]")
    assert_type(tw.Report.from_json(report.to_json()).diff(report).changes, "tuple[tw.Change, ...]")
    assert_type([buffer.shape for buffer in report], "list[tw.Shape]")
    assert_type(tw.audit([path, path]), "list[tw.Report | tw.Error | OSError]")
    assert_type(report.plot(memory_space=1, theme="dark").to_svg(), str)
    with path.open() as file:
        assert_type(tw.audit(file), tw.Report)
        assert_type(tw.explain(file), tw.Explanation)
    with path.open("rb") as file:
        assert_type(tw.audit(file, tpu="v5e"), tw.Report)
    assert_type(tw.explain([path, "message"]), "list[tw.Explanation]")


@tw.explain_oom
def train_step(x: float) -> float:
    return x


@tw.explain_oom(tpu="v5e")
async def served(x: float) -> float:
    return x


def programs(array: npt.NDArray[np.float32]) -> None:
    assert_type(train_step(1.0), float)
    assert_type(tw.audit(train_step, array, tpu="v5e", jit_options={"donate_argnums": 0}), tw.Report)
    tw.compile_for(train_step, array, tpu="v6e", topology="v6e:4x4").as_text()
    assert_type(tw.check_fix(train_step, train_step, array, tpu="v5e").after.peak_bytes, int)
    assert_type(tw.predict_tree({"w": array}, tpu="v5e")[0].shape, tw.Shape)
    assert_type(tw.Layout("{1,0:T(8,128)}"), tw.Layout)
    assert_type(tw.Shape.of(array, layout="{1,0}").with_layout("{0,1}"), tw.Shape)
    assert_peak_below(train_step, array, limit="8GiB", tpu="v5e")
    assert_padding_below(array.tobytes(), limit="10%", tpu="v5e")


def results(array: npt.NDArray[np.float32], report: tw.Report) -> None:
    diff = report.diff(report)
    assert_type([(each.what, each.owner) for each in diff.changes], "list[tuple[str, str | None]]")
    assert_type(tw.Comparison.from_json(diff.to_json()), tw.Comparison)
    assert_type(tw.Explanation.from_json("{}"), tw.Explanation)
    assert_type(tw.audit(train_step, array, scale=2.0, tpu="v5e", hbm_limit="14GiB"), tw.Report)
    tw.compile_for(train_step, array, tpu="v5e", scale=2.0)
    print(tw.mesh("v5e:4x2", ("data", "model")))
    tree = tw.predict_tree({"w": array}, tpu="v5e")
    assert_type(tree.table(depth=1, sort="bytes"), str)
    assert_type(tree[0].bytes, int)
    found = tw.live({"w": array}, next_program=report)
    assert_type(found, tw.Live)
    assert_type(found.devices, "tuple[tw.LiveDevice, ...]")
    assert_type(found.rows, "tuple[tw.LiveRow, ...]")
    assert_type(found.held_bytes("cpu:0"), int)
    for device in found.devices:
        assert_type(device.fits, "bool | None")
        print(device.needed_bytes, device.used_bytes, device.peak_used_bytes, device.largest_free_bytes)
    for row in found.rows:
        print(row.device, row.kind, row.temporary_bytes)
    tw.clear_cache()


def make(batch: int) -> Any:
    if batch % 2:
        raise tw.Skip("odd")
    return train_step, (np.zeros(batch),)


def searches(array: npt.NDArray[np.float32]) -> None:
    found = tw.fit(make, tpu="v5e", largest={"batch": range(1, 513)}, grid={"donate": [True, False]})
    assert_type(found, tw.Fit)
    assert_type(found.answered, bool)
    tw.fit(train_step, array, tpu=["v5e", "v6e"], in_axes=0, largest=range(1, 9), above="near", reserve="512MiB")
    assert_type(tw.fit_row(make, {"batch": 8}, tpu="v5e"), tw.FitRow)


def buffers(array: npt.NDArray[np.float32], out: npt.NDArray[np.uint8]) -> None:
    assert_type(tw.tile(array, "{1,0:T(8,128)}", out=out, threads=2), npt.NDArray[np.uint8])
    assert_type(tw.untile(out, "f32[3]", out=array), npt.NDArray[np.float32])
    assert_type(tw.untile(out, "f32[3]"), npt.NDArray[Any])
    assert_type(tw.relayout(memoryview(b""), "f32[0]", tw.Shape("f32[0]")), npt.NDArray[np.uint8])
    tw.Shape("f32[3]").draw(view="memory").save("x.svg")
