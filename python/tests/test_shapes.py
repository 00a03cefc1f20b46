"""Element types, layouts and shapes as Python values."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import rows

import tilewise as tw

TEXTS = [
    "f32[]",
    "f32[3,5]{1,0:T(2,2)}",
    "s4[64,256]{1,0:T(8,128)(8,1)L(4)E(4)S(1)SC(0:32)M(8)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "f32[3,<=5,?]{2,1,0}",
    "(f32[2]{0}, (token[], s8[]))",
    "b(f32[2]{0})",
    "opaque[]",
]


@pytest.mark.parametrize("text", TEXTS)
def test_shapes_are_values(text: str) -> None:
    shape = tw.Shape(text)
    assert str(shape) == text
    assert eval(repr(shape), {"Shape": tw.Shape}).identical(shape)
    for again in (tw.Shape(text), tw.Shape(shape), copy.copy(shape), copy.deepcopy(shape)):
        assert again == shape
        assert hash(again) == hash(shape)
        assert again.identical(shape)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(shape, protocol)).identical(shape)
    with pytest.raises(AttributeError):
        shape.rank = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        shape.colour = "red"  # type: ignore[attr-defined]


def test_a_missing_layout_stays_missing() -> None:
    shape = tw.Shape.parse_as_written("f32[20000,12]")
    assert not shape.has_layout
    assert not pickle.loads(pickle.dumps(shape)).has_layout
    for ask in (lambda: shape.physical_bytes, lambda: shape.layout, lambda: shape.offset((0, 0))):
        with pytest.raises(tw.ShapeError) as caught:
            ask()
        assert caught.value.kind == "missing_layout"
    assert shape != tw.Shape("f32[20000,12]")
    assert tw.Shape("f32[20000,12]").without_layout() == shape


def test_metadata_is_not_compared() -> None:
    one, other = tw.Shape("f32[3]{0:M(8)}"), tw.Shape("f32[3]{0}")
    assert one == other
    assert hash(one) == hash(other)
    assert not one.identical(other)
    assert one != "f32[3]{0:M(8)}"


def test_parts_of_a_shape() -> None:
    shape = tw.Shape("bf16[8,1,<=1280,?]{3,2,0,1:T(8,128)(2,1)S(1)}")
    assert (shape.kind, shape.rank, shape.element_type) == ("array", 4, tw.ElementType("bf16"))
    assert shape.dimensions == (8, 1, 1280, None)
    assert shape.dynamic_dimensions == (False, False, True, True)
    layout = shape.layout
    assert layout.minor_to_major == (3, 2, 0, 1)
    assert layout.tiles == ((8, 128), (2, 1))
    assert (layout.memory_space, layout.memory_space_name) == (1, "vmem")
    assert layout.element_size_in_bits is None
    assert layout.order_name is None
    assert shape.true_rank == 3


def test_a_transpose_around_a_reshape() -> None:
    relation = tw.Shape("f32[4,8,6,2,16]{1,4,3,2,0:T(8,128)}").bitcast("f32[3,4,8,4,16]{2,4,3,0,1:T(8,128)}")
    assert relation.kind == "transpose_reshape"
    assert (relation.permutation, relation.reshape, relation.then) == (
        (0, 1, 2, 3, 4),
        (4, 8, 3, 4, 16),
        (2, 0, 1, 3, 4),
    )


def test_what_programs_and_documents_print() -> None:
    line = "%add.936 = bf16[8,128]{1,0:T(8,128)(2,1)} add(%a, %b)"
    assert tw.Shape(line) == tw.Shape("bf16[8,128]{1,0:T(8,128)(2,1)}")
    assert str(tw.predict("x = f32[3,128] copy(y)", tpu="v5e")) == "f32[3,128]{1,0:T(4,128)}"
    proto = "element_type: F32 dimensions: [3, 5] layout { minor_to_major: [1, 0] }"
    assert tw.Shape(proto) == tw.Shape("f32[3,5]")
    assert tw.Shape("f32[3,128]@tpu-compact-2nd-minor").physical_bytes == 2048


def test_tuples() -> None:
    shape = tw.Shape.tuple([tw.Shape("f32[2]"), "(token[], s8[])"])
    assert (shape.kind, [str(part) for part in shape.elements]) == ("tuple", ["f32[2]{0}", "(token[], s8[])"])
    assert [path for path, _ in shape.leaves()] == [(0,), (1, 0), (1, 1)]
    for ask in (lambda: shape.dimensions, lambda: shape.layout, lambda: shape.element_type):
        with pytest.raises(tw.ShapeError) as caught:
            ask()
        assert caught.value.kind == "not_an_array"


@pytest.mark.parametrize(
    "layout",
    [
        tw.Layout(()),
        tw.Layout((1, 0)),
        tw.Layout((0, 1), tiles=[(8, 128), (2, 1)]),
        tw.Layout((1, 0), tiles=[(None, 3)], memory_space=5, tail_padding_alignment=7),
        tw.Layout((1, 0), element_size_in_bits=4, split_configs=[(0, (3, 9)), (1, (2,))]),
        tw.Shape("f32[3]{0:#(u8)*(u32)}").layout,
    ],
)
def test_layouts_are_values(layout: tw.Layout) -> None:
    again = pickle.loads(pickle.dumps(layout))
    assert again == layout
    assert hash(again) == hash(layout)
    assert copy.deepcopy(layout) == layout
    if layout.index_primitive_type is None:
        assert eval(repr(layout), {"Layout": tw.Layout}) == layout
    assert layout != tw.Layout((0,), memory_space=3)


def test_layouts_are_checked() -> None:
    for kind, make in {
        "not_a_permutation": lambda: tw.Layout((0, 0)),
        "invalid_tile": lambda: tw.Layout((0,), tiles=[()]),
        "invalid_memory_space": lambda: tw.Layout((0,), memory_space=128),
        "layout_rank_mismatch": lambda: tw.Shape("f32[3,5]").with_layout(tw.Layout((0,))),
        "invalid_split_config": lambda: tw.Shape.array("f32", (3,), tw.Layout((0,), split_configs=[(0, (3,))])),
    }.items():
        with pytest.raises(tw.ShapeError) as caught:
            make()
        assert caught.value.kind == kind


def test_element_types_and_dtypes() -> None:
    for element_type in tw.ElementType.all():
        assert tw.ElementType(element_type.name) == tw.ElementType(element_type) == element_type
        assert pickle.loads(pickle.dumps(element_type)) == element_type
        assert eval(repr(element_type), {"ElementType": tw.ElementType}) == element_type
        dtype = element_type.dtype
        assert tw.ElementType(dtype) == tw.ElementType(dtype.type) == tw.ElementType(dtype.name) == element_type
        assert hash(tw.ElementType(dtype)) == hash(element_type)
        assert dtype.itemsize * 8 == element_type.natural_bits
    assert len(tw.ElementType.all()) == 32
    assert tw.ElementType(ml_dtypes.float8_e4m3b11fnuz).name == "f8e4m3b11fnuz"
    assert tw.ElementType(np.dtype(">f4")) == tw.ElementType("F32")
    assert tw.ElementType("u8") != tw.ElementType("uint64")


@pytest.mark.parametrize("value", [None, 3, "", "b16", "f4", "int", np.dtype("M8[s]"), np.longdouble, object])
def test_unsupported_element_types(value: object) -> None:
    with pytest.raises((TypeError, tw.ParseError, tw.ShapeError)):
        tw.ElementType(value)  # type: ignore[arg-type]


def test_as_keys() -> None:
    texts = {fact["shape"] for fact in rows("index.csv")}
    shapes = {tw.Shape(text): text for text in texts}
    assert all(str(shapes[tw.Shape(text)]) in (text, str(tw.Shape(text))) for text in texts)


def test_bytes_are_compared() -> None:
    tiled = tw.Shape("f32[64,128]{1,0:T(8,128)}")
    transposed = tiled.bitcast("f32[128,64]{0,1:T(8,128)}")
    assert (transposed.kind, bool(transposed), transposed.permutation) == ("transpose", True, (1, 0))
    reshaped = tiled.bitcast(tw.Shape("f32[64,128]{0,1:T(8,128)}"), reading="reshape")
    assert not reshaped
    assert repr(reshaped) == f"<Relation none: {reshaped.reason}>"
    assert reshaped.counterexample == ((0, 1), (0, 1), 1, 128)
    exposed = tw.Shape("f32[8,1000]{1,0:T(8,128)}").bitcast("f32[8,1024]{1,0:T(8,128)}")
    assert (exposed.kind, exposed.exposed, exposed.hidden) == ("exposes_padding", 192, 0)
    assert tiled.same_bytes("f32[64,128]")
    assert not tiled.same_bytes("f32[64,128]{0,1}")
    with pytest.raises(ValueError, match="reading"):
        tiled.bitcast(tiled, reading="rows")  # type: ignore[arg-type]
    with pytest.raises(tw.ShapeError) as caught:
        tw.Shape("f32[1000,1000]{0,1:T(*,7)}").bitcast("f32[1000,100,10]{0,2,1:T(*,*,7)}")
    assert caught.value.kind == "undecided"


def test_the_tpu_compiler_s_bitcasts_are() -> None:
    for row in rows("tpu_bitcasts.csv"):
        relation = tw.Shape(row["from"]).bitcast(row["to"])
        assert relation or row["opcode"] != "bitcast", row
        if row["relation"] == "reshape":
            assert relation.kind in ("identical", "reshape"), row


def test_notations_go_both_ways() -> None:
    facts = list(rows("notations.csv"))
    for row in facts:
        shape = tw.Shape(row["shape"])
        notation: Any = row["notation"]
        assert shape.to_notation(notation) == row["text"]
    for notation in ("pjrt", "jax", "mlir", "memref", "mosaic", "numpy", "cute"):
        tiled = tw.Shape("bf16[64,512]{1,0:T(8,128)(2,1)}")
        text = tiled.to_notation(notation)  # type: ignore[arg-type]
        assert tw.Shape.from_notation(notation, text, "bf16[64,512]") == tiled  # type: ignore[arg-type]
    with pytest.raises(tw.ShapeError, match="cut dimension 0") as caught:
        tw.Shape("f32[3,5]{1,0:T(2,2)}").to_notation("dlpack")
    assert caught.value.kind == "not_expressible"
    with pytest.raises(tw.ShapeError) as caught:
        tw.Shape("f32[3,5]").to_notation("fortran")  # type: ignore[arg-type]
    assert caught.value.kind == "unknown_notation"


def test_named_tiles() -> None:
    assert str(tw.Shape("bf16[100,300]@tt-tile")) == "bf16[100,300]{1,0:T(32,32)(16,16)}"
    assert tw.Shape("u8[256,8]@nvidia-scale-128x4").offset((40, 5)) == 645
    with pytest.raises(tw.ParseError) as caught:
        tw.Shape("f32[64,64]@swizzle-128b")
    assert caught.value.kind == "unsupported_tile_format"
