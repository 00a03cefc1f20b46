"""Buffers from one layout to another."""

from __future__ import annotations

import mmap

import ml_dtypes
import numpy as np
import pytest
from conftest import tile_elementwise

import tilewise as tw

RNG = np.random.default_rng(7)
CASES = [
    (np.float32, "T(8,128)"),
    (ml_dtypes.bfloat16, "T(8,128)(2,1)"),
    (np.int8, "T(8,128)(4,1)"),
    (ml_dtypes.float8_e4m3fn, "T(32,128)(4,1)"),
    (ml_dtypes.int4, "T(8,128)(4,1)"),
    (ml_dtypes.float4_e2m1fn, "T(8,128)(4,1)"),
    (np.bool_, "T(8,128)(4,1)"),
    (np.float64, "T(2,2)"),
    (np.complex128, "T(2,2)"),
]
BOUNDS = [(8, 128), (19, 300), (3, 17, 129), (5,), (0, 4)]


@pytest.mark.parametrize(("dtype", "tiles"), CASES)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_tile_and_untile_are_inverse(dtype: np.dtype, tiles: str, bounds: tuple[int, ...]) -> None:
    array = RNG.integers(0, 7, bounds).astype(dtype)
    order = ",".join(str(dimension) for dimension in reversed(range(len(bounds))))
    shape = tw.Shape.array(
        array.dtype, bounds, tw.Shape(f"f32[{','.join(map(str, bounds))}]{{{order}:{tiles}}}").layout
    )
    tiled = tw.tile(array, shape)
    assert (tiled.dtype, tiled.shape) == (np.uint8, (shape.physical_bytes,))
    np.testing.assert_array_equal(tiled, tile_elementwise(array, shape))
    for same in (tw.tile(array, shape.layout), tw.tile(array, str(shape)), tw.tile(array, str(shape.layout))):
        np.testing.assert_array_equal(same, tiled)
    back = tw.untile(tiled, shape)
    assert (back.dtype, back.shape) == (array.dtype, bounds)
    np.testing.assert_array_equal(back, array)
    flat = tw.Shape.array(array.dtype, bounds)
    np.testing.assert_array_equal(tw.relayout(array, flat, shape), tiled)
    assert tw.relayout(tiled, shape, flat).tobytes() == array.tobytes()


@pytest.mark.parametrize("element_type", tw.ElementType.all(), ids=str)
def test_every_element_type(element_type: tw.ElementType) -> None:
    array = RNG.integers(0, 2, (5, 7)).astype(element_type.dtype)
    shape = tw.Shape.array(element_type, array.shape, tw.Layout((0, 1), tiles=[(2, 4), (2, 1)]))
    tiled = tw.tile(array, shape)
    np.testing.assert_array_equal(tiled, tile_elementwise(array, shape))
    back = tw.untile(tiled, shape)
    assert (back.dtype, back.tobytes()) == (array.dtype, array.tobytes())


def test_every_kind_of_array() -> None:
    expected = tw.tile(ARRAY, SHAPE)
    frozen = ARRAY.copy()
    frozen.flags.writeable = False
    unaligned = np.empty(61, np.uint8)[1:].view(np.float32).reshape(3, 5)
    unaligned[...] = ARRAY
    for same in (
        frozen,
        unaligned,
        np.asfortranarray(ARRAY),
        ARRAY[::-1, ::-1].copy()[::-1, ::-1],
        np.repeat(ARRAY, 3, axis=1)[:, ::3],
        np.stack([ARRAY, ARRAY], axis=2)[:, :, 1],
    ):
        np.testing.assert_array_equal(tw.tile(same, SHAPE), expected)
    np.testing.assert_array_equal(
        tw.tile(np.broadcast_to(ARRAY[1], (3, 5)), SHAPE), tw.tile(np.stack([ARRAY[1]] * 3), SHAPE)
    )


def test_more_threads_than_cores() -> None:
    array = RNG.standard_normal((300, 500), np.float32)
    expected = tw.tile(array, "{1,0:T(8,128)}")
    for threads in (0, 3, 2**63 - 1):
        np.testing.assert_array_equal(tw.tile(array, "{1,0:T(8,128)}", threads=threads), expected)


def test_packed_types() -> None:
    array = np.arange(-8, 8).astype(ml_dtypes.int4).reshape(2, 8)
    packed = tw.tile(array, "s4[2,8]{1,0:E(4)}")
    assert packed.tolist() == [0x98, 0xBA, 0xDC, 0xFE, 0x10, 0x32, 0x54, 0x76]
    np.testing.assert_array_equal(tw.untile(packed, "s4[2,8]{1,0:E(4)}"), array)


SHAPE = "f32[3,5]{1,0:T(2,2)}"
ARRAY = np.arange(15, dtype=np.float32).reshape(3, 5)


def test_every_kind_of_buffer() -> None:
    tiled = tw.tile(ARRAY, SHAPE)
    data = ARRAY.tobytes()
    anonymous = mmap.mmap(-1, 60)
    anonymous.write(data)
    for buffer in (
        data,
        bytearray(data),
        memoryview(data),
        memoryview(ARRAY),
        memoryview(np.asfortranarray(ARRAY)),
        anonymous,
        np.frombuffer(data, np.uint8),
        ARRAY.reshape(-1),
        np.asfortranarray(ARRAY),
        np.stack([ARRAY, ARRAY], axis=-1)[..., 0],
    ):
        np.testing.assert_array_equal(tw.relayout(buffer, "f32[3,5]", SHAPE), tiled)


def test_dlpack() -> None:
    class OnlyDlpack:
        def __dlpack__(self, **options: object) -> object:
            return ARRAY.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return ARRAY.__dlpack_device__()

    np.testing.assert_array_equal(tw.relayout(OnlyDlpack(), "f32[3,5]", SHAPE), tw.tile(ARRAY, SHAPE))
    np.testing.assert_array_equal(tw.tile(OnlyDlpack(), SHAPE), tw.tile(ARRAY, SHAPE))


def test_relayout_with_out() -> None:
    out = np.full(96, 0xAB, np.uint8)
    assert tw.tile(ARRAY, SHAPE, out=out) is out
    np.testing.assert_array_equal(out, tile_elementwise(ARRAY, tw.Shape(SHAPE)))
    left = np.full(96, 0xAB, np.uint8)
    assert tw.relayout(ARRAY, "f32[3,5]", SHAPE, out=left, padding="leave") is left
    assert (left != out).sum() == 9 * 4
    frozen = np.zeros(96, np.uint8)
    frozen.flags.writeable = False
    for bad in (np.zeros(95, np.uint8), np.zeros(192, np.uint8)[::2], frozen, np.zeros(97, np.uint8)):
        before = bad.copy()
        with pytest.raises(tw.RelayoutError):
            tw.tile(ARRAY, SHAPE, out=bad)
        np.testing.assert_array_equal(bad, before)
    with pytest.raises(tw.RelayoutError):
        tw.relayout(out, SHAPE, "f32[3,5]{0,1:T(2,2)}", out=out)
    with pytest.raises(TypeError):
        tw.tile(ARRAY, SHAPE, out=bytearray(96))  # type: ignore[arg-type]


def test_tile_and_untile_with_out() -> None:
    tiled, out = tw.tile(ARRAY, SHAPE), np.full((3, 5), 7, np.float32)
    assert tw.untile(tiled, SHAPE, out=out) is out
    np.testing.assert_array_equal(out, ARRAY)
    scalar = np.zeros((), ml_dtypes.bfloat16)
    tw.untile(tw.tile(np.ones((), ml_dtypes.bfloat16), "{}"), "bf16[]", out=scalar)
    assert scalar == 1
    frozen = out.copy()
    frozen.flags.writeable = False
    others = (
        out.view(np.int32),
        out.T,
        out.reshape(-1),
        np.asfortranarray(out),
        np.zeros((3, 10), "f4")[:, ::2],
        frozen,
    )
    for bad in (*others, out.astype(">f4")):
        before = bad.copy()
        with pytest.raises(tw.RelayoutError, match="out"):
            tw.untile(tiled, SHAPE, out=bad)
        np.testing.assert_array_equal(bad, before)


def test_contiguous_input_is_not_copied() -> None:
    """The input is read in place: a write between two calls shows in the second result."""
    source, out = bytearray(ARRAY.tobytes()), np.zeros(96, np.uint8)
    tw.relayout(source, "f32[3,5]", SHAPE, out=out)
    source[0] = 7
    tw.relayout(source, "f32[3,5]", SHAPE, out=out)
    assert out[0] == 7


def test_errors() -> None:
    for kind, ask in {
        "buffer_length_mismatch": lambda: tw.relayout(b"\0" * 59, "f32[3,5]", SHAPE),
        "shape_mismatch": lambda: tw.relayout(ARRAY, "f32[3,5]", "f32[5,3]"),
        "element_type_mismatch": lambda: tw.relayout(ARRAY.view(np.int32), "f32[3,5]", SHAPE),
        "byte_order": lambda: tw.relayout(ARRAY.astype(">f4"), "f32[3,5]", SHAPE),
        "not_an_array": lambda: tw.relayout(b"", "token[]", "token[]"),
        "unsupported_element_size": lambda: tw.relayout(b"", "s8[0]{0:E(4)}", "s8[0]"),
    }.items():
        with pytest.raises(tw.RelayoutError) as caught:
            ask()
        assert caught.value.kind == kind
    with pytest.raises(tw.RelayoutError, match="shape"):
        tw.relayout(ARRAY.T, "f32[3,5]", SHAPE)
    with pytest.raises(tw.RelayoutError, match="shape"):
        tw.tile(ARRAY.T, SHAPE)
    with pytest.raises(TypeError):
        tw.relayout([1, 2, 3], "f32[3,5]", SHAPE)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tw.tile(b"abc", SHAPE)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="padding"):
        tw.relayout(ARRAY, "f32[3,5]", SHAPE, padding="keep")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="out"):
        tw.relayout(ARRAY, "f32[3,5]", SHAPE, padding="leave")
    with pytest.raises(tw.ShapeError):
        tw.untile(b"", "token[]")
    with pytest.raises(tw.ParseError):
        tw.tile(ARRAY, "{1,0:T(2,2)")
