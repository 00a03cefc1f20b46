"""Offsets and indices in bulk, sizes, steps."""

from __future__ import annotations

import einops
import numpy as np
import pytest
from conftest import tile_elementwise

import tilewise as tw

SHAPES = [
    "f32[3,5]{1,0:T(2,2)}",
    "bf16[19,300]{1,0:T(8,128)(2,1)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "s8[5,17,33]{0,2,1:T(8,128)(4,1)}",
    "f32[7]{0:L(16)}",
    "f32[]",
    "f32[0,5]{1,0:T(2,2)}",
]
DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8"]


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_indices_as_one_by_one(text: str, dtype: str) -> None:
    shape = tw.Shape(text)
    bounds = [bound or 0 for bound in shape.dimensions]
    indices = np.array([index for index in np.ndindex(*bounds) if max(index, default=0) < 128], dtype=dtype)
    indices = indices.reshape(len(indices), shape.rank)[:5000]
    offsets = shape.offsets(indices)
    assert (offsets.dtype, offsets.shape) == (np.dtype("i8"), indices.shape[:1])
    sample = indices[::97]
    assert offsets[::97].tolist() == [shape.offset(index) for index in sample.tolist()]
    back = shape.indices(offsets)
    assert (back.dtype, back.shape) == (np.dtype("i8"), indices.shape)
    np.testing.assert_array_equal(back, indices)


def test_more_rows_than_are_copied_at_a_time() -> None:
    shape = tw.Shape("bf16[300,500]{1,0:T(8,128)(2,1)}")
    indices = np.stack(np.meshgrid(np.arange(300), np.arange(500), indexing="ij"), axis=-1)
    offsets = shape.offsets(indices)
    assert offsets.shape == (300, 500)
    for narrow in (np.int16, np.uint32):
        np.testing.assert_array_equal(shape.offsets(indices.astype(narrow)), offsets)
        np.testing.assert_array_equal(shape.offsets(indices.astype(narrow), threads=3), offsets)
    np.testing.assert_array_equal(shape.offsets(indices, threads=2), offsets)
    np.testing.assert_array_equal(shape.offsets(indices, threads=0), offsets)
    # Neither contiguous nor aligned.
    np.testing.assert_array_equal(shape.offsets(indices[::3, ::-7]), offsets[::3, ::-7])
    np.testing.assert_array_equal(shape.offsets(np.asfortranarray(indices)), offsets)
    unaligned = np.empty(indices.nbytes + 1, np.uint8)[1:].view(np.int64).reshape(indices.shape)
    unaligned[...] = indices
    np.testing.assert_array_equal(shape.offsets(unaligned), offsets)
    every = np.arange(shape.physical_elements)
    found = shape.indices(every)
    is_padding = (found == -1).any(axis=-1)
    assert is_padding.sum() == shape.physical_elements - 300 * 500
    np.testing.assert_array_equal(shape.offsets(found[~is_padding]), every[~is_padding])
    np.testing.assert_array_equal(shape.indices(every.reshape(-1, 64)), found.reshape(-1, 64, 2))


def test_offsets_with_out() -> None:
    shape = tw.Shape("f32[3,5]{1,0:T(2,2)}")
    out = np.zeros((2, 1), np.int64)
    assert shape.offsets([[[0, 4]], [[2, 3]]], out=out) is out
    assert out.tolist() == [[8], [17]]
    frozen = np.zeros(2, np.int64)
    frozen.flags.writeable = False
    indices = np.array([[0, 4], [2, 3]], np.int64)
    grid = np.zeros((3, 4, 2), np.int64)
    with pytest.raises(tw.ShapeError, match="out"):
        shape.offsets(grid, out=np.zeros((3, 4), np.int64, order="F"))
    for bad in (np.zeros(3, np.int64), np.zeros((2, 1), np.int64), np.zeros(4, np.int64)[::2], frozen, indices[0]):
        before = bad.copy()
        with pytest.raises(tw.ShapeError, match="out"):
            shape.offsets(indices, out=bad)
        np.testing.assert_array_equal(bad, before)
    with pytest.raises(TypeError):
        shape.offsets(indices, out=np.zeros(2, np.uint64))  # type: ignore[arg-type]


def test_indices_with_out() -> None:
    shape = tw.Shape("bf16[300,500]{1,0:T(8,128)(2,1)}")
    offsets = np.arange(shape.physical_elements)
    expected = shape.indices(offsets)
    out = np.zeros((len(offsets), 2), np.int64)
    assert shape.indices(offsets, out=out, threads=2) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(shape.indices(offsets[::-3]), expected[::-3])
    for bad in (out[1:], np.asfortranarray(out), out.reshape(-1)):
        with pytest.raises(tw.ShapeError, match="out"):
            shape.indices(offsets, out=bad)
    with pytest.raises(TypeError):
        shape.indices(offsets, out=out.view(np.uint64))  # type: ignore[arg-type]


def test_every_stride() -> None:
    shape = tw.Shape("bf16[300,500]{1,0:T(8,128)(2,1)}")
    random = np.random.default_rng(5)
    for dtype in (np.int64, np.uint64, np.int32, np.uint16):
        indices = np.stack([random.integers(0, bound, 40_000) for bound in (300, 500)], axis=-1).astype(dtype)
        offsets = shape.offsets(indices)
        record = np.zeros(len(indices), [("x", "u1"), ("index", dtype, 2)])
        record["index"] = indices
        for same in (
            np.asfortranarray(indices),
            np.stack([indices, indices], axis=1)[:, 1],
            indices[::-1][::-1],
            indices[:, ::-1][:, ::-1],
            record["index"],
            indices.astype(indices.dtype.newbyteorder()),
            indices.tolist(),
        ):
            np.testing.assert_array_equal(shape.offsets(same), offsets)
            np.testing.assert_array_equal(shape.offsets(same, threads=2), offsets)
        np.testing.assert_array_equal(shape.offsets(indices[::-3, :]), offsets[::-3])
        np.testing.assert_array_equal(
            shape.offsets(indices.reshape(200, 200, 2)[::7, ::-9]), offsets.reshape(200, 200)[::7, ::-9]
        )
        np.testing.assert_array_equal(
            shape.offsets(np.broadcast_to(indices[7], (70_000, 2))), np.full(70_000, offsets[7])
        )
    frozen = indices.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(shape.offsets(frozen), offsets)


def test_errors_name_the_number_that_is_out_of_range() -> None:
    shape = tw.Shape("f32[3,5]{1,0:T(2,2)}")
    for bad in ([[0, 5]], [[3, 0]], [[0, 0]] * 40_000 + [[0, 5]]):
        for dtype in ("i8", "u8", "i4", "u1"):
            with pytest.raises(tw.OutOfRangeError, match="outside dimension"):
                shape.offsets(np.array(bad, dtype=dtype))
            with pytest.raises(tw.OutOfRangeError, match="outside dimension"):
                shape.offsets(np.array(bad * 4, dtype=dtype), threads=4)
    for dtype in ("i8", "i4", "i1"):
        with pytest.raises(tw.OutOfRangeError, match="index -2"):
            shape.offsets(np.array([[0, 0], [0, -2]], dtype=dtype))
        with pytest.raises(tw.OutOfRangeError, match="offset -2"):
            shape.indices(np.array([0, -2], dtype=dtype))
    with pytest.raises(tw.OutOfRangeError, match="24"):
        shape.indices([3, 24])
    with pytest.raises(tw.OutOfRangeError):
        shape.offset((2**64, 0))
    with pytest.raises(tw.OutOfRangeError):
        shape.index(2**64)


def test_other_values_than_integers() -> None:
    shape = tw.Shape("f32[3,5]{1,0:T(2,2)}")
    for bad in ([[0.5, 1]], [[True, False]], [["0", "1"]]):
        with pytest.raises(TypeError):
            shape.offsets(bad)
    for scalar in ((0.5, 1), "ab", 3):
        with pytest.raises(TypeError):
            shape.offset(scalar)  # type: ignore[arg-type]
    assert shape.offset(np.array([2, 3], np.int16)) == 17
    assert shape.offset([np.uint8(2), 3]) == 17
    assert shape.index(np.uint64(17)) == (2, 3)
    with pytest.raises(tw.ShapeError, match="rank"):
        shape.offsets([2, 3, 4])
    with pytest.raises(tw.ShapeError, match="rank"):
        shape.offsets(2)
    assert shape.offsets([2, 3]).shape == ()
    assert shape.offsets(np.empty((0, 2), np.int64)).tolist() == []


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize("language", ["as_numpy", "as_einops"])
def test_generated_programs_make_the_buffer(text: str, language: str) -> None:
    shape = tw.Shape(text)
    array = np.arange(np.prod(shape.dimensions), dtype=np.float32).reshape(shape.dimensions)
    program: dict[str, object] = {"np": np, "einops": einops}
    exec(getattr(shape.steps(), language)(), program)
    buffer = program["to_buffer"](array)  # type: ignore[operator]
    expected = tile_elementwise(array, tw.Shape(text.replace("bf16", "f32").replace("s8", "f32"))).view(np.float32)
    np.testing.assert_array_equal(np.asarray(buffer).reshape(-1), expected)
    np.testing.assert_array_equal(program["from_buffer"](buffer), array)  # type: ignore[operator]


def test_steps_are_a_sequence() -> None:
    steps = tw.Shape("f32[3,5]{1,0:T(2,2)}").steps()
    assert len(steps) == 4
    assert [step.operation for step in steps] == ["pad", "reshape", "transpose", "reshape"]
    assert (steps[0].before, steps[0].after, steps[0].padding) == ((3, 5), (4, 6), (1, 1))
    assert (steps[2].permutation, steps[2].tile, steps[2].effect) == ((0, 2, 1, 3), 0, "move")
    assert steps[-1] == steps[3]
    assert str(steps[0]) == "pad [3,5] → [4,6]"
    with pytest.raises(IndexError):
        steps[4]
    assert "(d0, d1)" in steps.as_mlir()


def test_sizes_and_causes() -> None:
    shape = tw.Shape("f32[400000,12]{1,0:T(8,128)}")
    assert (shape.logical_bytes, shape.physical_bytes, shape.padding_bytes) == (19_200_000, 204_800_000, 185_600_000)
    assert (shape.physical_elements, shape.xla_array_size) == (51_200_000, 204_800_000)
    assert shape.causes() == ["dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used"]


def test_predictions_of_objects_with_a_shape() -> None:
    expected = tw.Shape("f32[8,64]{1,0:T(8,128)}")
    assert tw.predict(np.zeros((8, 64), np.float32), tpu="TPU v5 lite") == expected
    assert tw.predict(tw.Shape("f32[8,64]"), tpu="v5e") == expected

    class Device:
        device_kind = "TPU v5 lite"

    assert tw.predict("f32[8,64]", tpu=Device()) == expected
    assert tw.hbm_bytes(Device()) == tw.hbm_bytes("v5e")
    assert tw.TPU_GENERATIONS == ("v2", "v3", "v4", "v5e", "v5p", "v6e", "v7x")
    with pytest.raises(tw.ParseError):
        tw.predict("f32[8]", tpu="v99")
    with pytest.raises(TypeError):
        tw.predict("f32[8]", tpu=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tw.predict(5, tpu="v5e")  # type: ignore[arg-type]
