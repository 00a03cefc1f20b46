"""A program for type checkers: shapes made from shapes, walked, compared, cut into runs and resharded."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import tilewise as tw


def layouts() -> None:
    assert_type(tw.Layout.ascending(2), tw.Layout)
    assert_type(tw.Layout.descending(2), tw.Layout)
    layout = tw.Layout.from_major_to_minor([0, 1])
    assert_type(layout.move_dim_to_major(1), tw.Layout)
    assert_type(layout.move_dim_to_minor(1), tw.Layout)
    program = tw.ProgramShape("(x: f32[2]) -> f32[3]")
    assert_type(program.parameters, tuple[tuple[str | None, tw.Shape], ...])
    assert_type(program.result, tw.Shape)
    assert_type(layout.logical_to_physical(), "tuple[int, ...]")
    assert_type(layout.are_dimensions_consecutive([0, 1]), bool)


def edits(shape: tw.Shape) -> None:
    assert_type(shape.change_element_type("bf16"), tw.Shape)
    assert_type(shape.complex_component_shape(), tw.Shape)
    assert_type(shape.append_major_dimension(2), tw.Shape)
    assert_type(shape.append_minor_dimension(2), tw.Shape)
    assert_type(shape.insert_dimension_at_index(0, 2), tw.Shape)
    assert_type(shape.insert_dimensions_at_index(0, [2, 3]), tw.Shape)
    assert_type(shape.delete_dimension(0), tw.Shape)
    assert_type(shape.delete_dimensions([0]), tw.Shape)
    assert_type(shape.filter_dimensions(lambda dimension: dimension > 0), tw.Shape)
    assert_type(shape.drop_degenerate_dimensions(), tw.Shape)
    assert_type(shape.permute_dimensions([1, 0]), tw.Shape)
    assert_type(shape.move_dim_to_major(1), tw.Shape)
    assert_type(shape.with_descending_layout_and_same_physical_layout(), tw.Shape)
    assert_type(shape.with_default_layout(), tw.Shape)
    assert_type(shape.clear_tiles(), tw.Shape)
    assert_type(shape.device_shape_to_host_shape(), tw.Shape)
    assert_type(shape.update_element_size_in_bits(pack_subbyte_types=True), tw.Shape)
    assert_type(shape.static_shape(), tw.Shape)


def trees(shape: tw.Shape) -> None:
    assert_type(shape.subshape((0,)), "tw.Shape | None")
    assert_type(shape.replace_subshape((0,), "f32[2]"), tw.Shape)
    assert_type(shape.subshapes(), "list[tuple[tuple[int, ...], tw.Shape]]")
    assert_type(shape.map_leaves(lambda index, leaf: leaf if index else "f32[2]"), tw.Shape)
    assert_type(shape.append_shape_to_tuple("f32[2]"), tw.Shape)
    assert_type(shape.slice_tuple(0, 1), tw.Shape)


def comparisons(shape: tw.Shape, other: tw.Shape) -> None:
    assert_type(shape.compatible(other), bool)
    assert_type(shape.compatible_ignoring_element_type(other), bool)
    assert_type(shape.compatible_ignoring_fp_precision(other), bool)
    assert_type(shape.compatible_kind(other), bool)
    assert_type(shape.equal(other, ignore=["tiles"]), bool)
    assert_type(shape.equal_structure(other), bool)
    assert_type(shape.same_dimensions(other), bool)
    assert_type(shape.dimensions_unmodified_by_reshape(other), "list[tuple[int, int]]")
    assert_type(shape.reshape_leaves_dimensions_unmodified(other, [0]), "list[int] | None")
    assert_type(shape.inserted_or_deleted_1_sized_dimensions(other), "tuple[list[int], list[int]] | None")


def walks(shape: tw.Shape) -> None:
    assert_type(shape.bump_indices((0, 0)), "tuple[int, ...] | None")
    assert_type(shape.for_each_index(lambda index: sum(index) < 5, base=(0, 0), count=(2, 2), step=(1, 1)), bool)
    assert_type(shape.for_each_in_memory(lambda _, index: index is not None), bool)
    assert_type(shape.dimension_stride(0), int)


def conditions(shape: tw.Shape, other: tw.Shape) -> None:
    assert_type(tw.Shape.dynamic_array("f32", ("<=8", 5, "?")), tw.Shape)
    assert_type(tw.Shape.token(), tw.Shape)
    assert_type(tw.Shape.opaque(), tw.Shape)
    assert_type(tw.Shape.buffer("f32[3]"), tw.Shape)
    assert_type(shape.update_dynamic_dimension(0, True), tw.Shape)
    assert_type(shape.subshapes_post_order(), "list[tuple[tuple[int, ...], tw.Shape]]")
    assert_type(shape.map_subshapes_post_order(lambda path, part: part if path else "f32[2]"), tw.Shape)
    assert_type(shape.is_prefix_of(other), bool)
    assert_type(shape.dynamic_shape_is_compatible(other), bool)
    assert_type(shape.byte_size_of(pointer_bytes=4), int)
    assert_type(shape.byte_strides(), "tuple[int, ...]")
    assert_type(shape.is_effectively_most_major_dimension(0), bool)
    assert_type(shape.elements_in, "int | None")
    assert_type(shape.is_scalar, bool)
    assert_type(shape.has_degenerate_dimensions, bool)
    assert_type(shape.index_in_bounds((0, 0)), bool)
    assert_type(tw.equation("1 + 1 = 2"), dict[str, Any])


def slices(shape: tw.Shape, shards: list[npt.NDArray[np.uint8] | None]) -> None:
    assert_type(shape.slice_runs((0, 0), (2, 2), strides=(1, 1), order="slice"), npt.NDArray[np.int64])
    moved = tw.reshard(shards, shape, "{devices=[2,1]<=[2]}", shape, "{replicated}")
    assert_type(moved, list[npt.NDArray[np.uint8]])
