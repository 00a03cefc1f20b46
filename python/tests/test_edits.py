"""Shapes made from shapes: the answers of jaxlib's own functions that `conformance/edits` recorded."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import tilewise as tw

FACTS = Path(__file__).resolve().parents[2] / "conformance" / "facts" / "shape_edits.csv"
SAME = {
    "compatible",
    "compatible_ignoring_element_type",
    "compatible_ignoring_fp_precision",
    "compatible_kind",
    "equal_structure",
    "same_dimensions",
    "dynamic_shape_is_compatible",
    "is_prefix_of",
}
PLAIN = {
    "drop_degenerate_dimensions",
    "with_descending_layout_and_same_physical_layout",
    "static_shape",
    "device_shape_to_host_shape",
    "complex_component_shape",
    "with_default_layout",
}


def answer(row: dict[str, str]) -> Any:
    function, shape = row["function"], tw.Shape(row["shape"])
    numbers = [int(part) for part in row["argument"].split(",") if part.isdigit()]
    method = getattr(shape, function, None)
    if function in SAME:
        return str(method(row["other"])).lower()
    if function == "equal":
        return str(shape.equal(row["other"], ignore=row["argument"].split())).lower()
    if function in PLAIN:
        return method()
    if function == "change_element_type":
        return shape.change_element_type(row["argument"])
    if function in ("append_major_dimension", "append_minor_dimension", "delete_dimension", "move_dim_to_major"):
        return method(numbers[0])
    if function in ("insert_dimension_at_index", "insert_dimensions_at_index"):
        return shape.insert_dimensions_at_index(numbers[0], numbers[1:])
    if function in ("delete_dimensions", "permute_dimensions"):
        return method(numbers)
    if function == "byte_size_of":
        return method(numbers[0])
    if function == "byte_strides":
        return ",".join(map(str, method()))
    if function == "update_element_size_in_bits":
        return shape.update_element_size_in_bits(pack_subbyte_types=row["argument"] == "true")
    if function == "append_shape_to_tuple":
        return shape.append_shape_to_tuple(row["other"])
    if function == "subshape":
        return shape.subshape(numbers) or "none"
    return None


def test_answers_are_xlas() -> None:
    compared = 0
    with FACTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["cleared"] == "1":
                continue
            try:
                found = answer(row)
            except tw.ShapeError:
                found = "invalid"
            if found is not None:
                assert str(found) == row["answer"], row
                compared += 1
    assert compared > 2700


def test_one_reader_for_all() -> None:
    assert tw.Shape("ShapeUtil::MakeShape(F32, {2, 3, 4, 5})") == tw.Shape("f32[2,3,4,5]")
    with pytest.raises(tw.ParseError) as caught:
        tw.Shape("F32[4,8] (2,4)(2,1)")
    assert (caught.value.kind, caught.value.span) == ("trailing_input", (9, 19))
    assert caught.value.help == "write `f32[4,8]{1,0:T(2,4)(2,1)}`"


def test_walks() -> None:
    shape = tw.Shape("f32[3,5]{1,0:T(2,2)}")
    places: list[tuple[int, ...] | None] = []
    assert shape.for_each_in_memory(lambda offset, index: places.append(index))
    assert places == [shape.index(offset) for offset in range(shape.physical_elements)]
    seen: list[tuple[int, ...]] = []
    assert not shape.for_each_index(lambda index: seen.append(index) or len(seen) < 3)
    assert seen == [(0, 0), (0, 1), (0, 2)]
    with pytest.raises(ZeroDivisionError):
        shape.for_each_index(lambda index: 1 // 0)
    with pytest.raises(tw.OutOfRangeError):
        shape.for_each_index(print, base=(2, 0), count=(2, 1))


def test_shapes_of_programs() -> None:
    program = tw.ProgramShape("(x: f32[2]{0:S(1)}, (s32[], token[])) -> f32[3,4]{0,1}")
    assert [name for name, _ in program.parameters] == ["x", None]
    assert program.parameters[1][1] == tw.Shape("(s32[], token[])")
    assert program.result == tw.Shape("f32[3,4]{0,1}")
    assert str(program) == "(x: f32[2], (s32[], token[])) -> f32[3,4]"
    assert eval(repr(program), {"ProgramShape": tw.ProgramShape}) == program
    assert program != tw.ProgramShape(str(program))
    with pytest.raises(tw.ParseError) as caught:
        tw.ProgramShape("(f32[2]) -> ")
    assert caught.value.kind == "syntax"


def test_layouts() -> None:
    assert tw.Layout((1, 0), tiles=["(8,128)", (2, 1)]) == tw.Layout("{1,0:T(8,128)(2,1)}")
    with pytest.raises(tw.ParseError):
        tw.Layout((1, 0), tiles=["(8,128)(2,1)"])
    layout = tw.Layout((1, 0), tiles=[(-1, 2)], index_primitive_type="u32")
    assert str(layout) == "{1,0:T(*,2)#(u32)}"
    assert eval(repr(layout), {"Layout": tw.Layout}) == layout
    assert tw.Layout.from_proto(layout.to_proto()) == layout
    with pytest.raises(tw.ShapeError):
        tw.Layout((0,), pointer_primitive_type="f32")


def test_constructors_and_walks_in_post_order() -> None:
    assert [str(shape) for shape in (tw.Shape.token(), tw.Shape.opaque(), tw.Shape.buffer("f32[3]"))] == [
        "token[]",
        "opaque[]",
        "b(f32[3]{0})",
    ]
    dynamic = tw.Shape.dynamic_array("f32", ("<=8", 5, "?"))
    assert str(dynamic) == "f32[<=8,5,?]{2,1,0}"
    assert str(dynamic.update_dynamic_dimension(0, False)) == "f32[8,5,?]{2,1,0}"
    with pytest.raises(ValueError, match="isn't a size"):
        tw.Shape.dynamic_array("f32", ("<8",))
    nested = tw.Shape("(f32[2], (token[], s8[]))")
    assert [path for path, _ in nested.subshapes_post_order()] == [(0,), (1, 0), (1, 1), (1,), ()]
    assert nested.map_subshapes_post_order(lambda path, part: part) == nested
    shape = tw.Shape("f32[1,16,1]{2,1,0}")
    assert shape.is_effectively_most_major_dimension(1)
    assert shape.has_degenerate_dimensions
    assert (shape.elements_in, shape.is_scalar, dynamic.elements_in) == (16, False, None)
    assert [shape.index_in_bounds(index) for index in ((0, 15, 0), (0, 16, 0), (0,))] == [True, False, False]


def test_equations() -> None:
    found = tw.equation("linear_index_with_tile((2,3), (3,5), (2,2)) = (1 ∙ 3 + 1) ∙ 2 ∙ 2 + (0 ∙ 2 + 1) = 17.")
    assert (found["holds"], [member["value"] for member in found["members"]]) == (True, [17, 17, 17])
    assert (found["shape"], found["index"]) == ("f32[3,5]{1,0:T(2,2)}", [2, 3])
    with pytest.raises(tw.ParseError) as caught:
        tw.equation("linear_index((2,3), (3,5)")
    assert caught.value.span == (25, 25)
