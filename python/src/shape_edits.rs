//! The methods of `Shape` that make one shape from another, compare shapes, and walk over arrays, as XLA's `ShapeUtil` has them.

use crate::{
    element_type::element_type,
    errors::Result,
    few::Few,
    shape::{PyShape, shape_of},
    typed::Tuple,
    whole::whole,
};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::ops::ControlFlow;
use tilewise::ShapeEqual;

/// A dimension's number: negative ones count from the end, −1 being the last.
fn number(shape: &PyShape, dimension: i64) -> Result<usize> {
    Ok(shape.array()?.dimension_number(dimension)?)
}

fn numbers(shape: &PyShape, dimensions: Vec<i64>) -> Result<Vec<usize>> {
    dimensions.into_iter().map(|dimension| number(shape, dimension)).collect()
}

/// A visitor's answer: false ends the walk, `None` doesn't.
fn flow(answer: PyResult<Bound<'_, PyAny>>) -> ControlFlow<Option<PyErr>> {
    match answer.and_then(|answer| Ok(!answer.is_none() && !answer.is_truthy()?)) {
        Ok(false) => ControlFlow::Continue(()),
        Ok(true) => ControlFlow::Break(None),
        Err(error) => ControlFlow::Break(Some(error)),
    }
}

fn walked(flow: ControlFlow<Option<PyErr>>) -> Result<bool> {
    match flow {
        ControlFlow::Continue(()) => Ok(true),
        ControlFlow::Break(None) => Ok(false),
        ControlFlow::Break(Some(error)) => Err(error.into()),
    }
}

fn ignoring(parts: Vec<String>) -> Result<ShapeEqual> {
    parts.into_iter().try_fold(ShapeEqual::new(), |equal, part| {
        Ok(match &*part {
            "layout" => equal.ignore_layout(),
            "tiles_in_layout" => equal.ignore_tiles_in_layout(),
            "element_size_in_layout" => equal.ignore_element_size_in_layout(),
            "memory_space_in_layout" => equal.ignore_memory_space_in_layout(),
            "element_type" => equal.ignore_element_type(),
            "fp_precision" => equal.ignore_fp_precision(),
            "dynamic_dimension" => equal.ignore_dynamic_dimension(),
            "dimensions" => equal.ignore_dimensions(),
            "tail_padding_alignment_in_elements" => equal.ignore_tail_padding_alignment_in_elements(),
            "split_config_in_layout" => equal.ignore_split_config_in_layout(),
            "buffer" => equal.ignore_buffer(),
            _ => return Err(PyValueError::new_err(format!("'{part}' is no part that can be left out")).into()),
        })
    })
}

#[pymethods]
impl PyShape {
    /// The shape with this element type; of a tuple, every leaf. Its layout stays, but for the element size: `E(n)` stays only where the new
    /// type has fewer than 8 bits.
    ///
    /// Args:
    ///     element_type: anything `ElementType` accepts.
    ///
    /// Raises:
    ///     ShapeError: a token or an opaque value, also in a tuple.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{1,0:T(2,2)}").change_element_type("s8")
    ///     Shape('s8[3,5]{1,0:T(2,2)}')
    #[pyo3(signature = (element_type: "ElementType | DtypeLike", /), text_signature = "($self, element_type, /)")]
    fn change_element_type(&self, element_type: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self::new(self.as_shape().change_element_type(self::element_type(element_type)?)?))
    }

    /// The shape of the real or the imaginary parts of complex numbers.
    ///
    /// Raises:
    ///     ShapeError: the elements aren't complex.
    ///
    /// Examples:
    ///     >>> Shape("c64[3]").complex_component_shape()
    ///     Shape('f32[3]{0}')
    fn complex_component_shape(&self) -> Result<Self> {
        Ok(Self::new(self.as_shape().complex_component_shape()?))
    }

    /// The array with another dimension of this size behind its own, the most major in memory; the rest of its layout stays.
    ///
    /// Raises:
    ///     ShapeError: not an array.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{1,0:T(2,2)}").append_major_dimension(7)
    ///     Shape('f32[3,5,7]{1,0,2:T(2,2)}')
    #[pyo3(signature = (bound: "int", /), text_signature = "($self, bound, /)")]
    fn append_major_dimension(&self, #[pyo3(from_py_with = whole)] bound: u64) -> Result<Self> {
        Ok(Self::new(self.as_shape().append_major_dimension(bound)?))
    }

    /// The array with another dimension of this size behind its own, the most minor in memory; the rest of its layout stays.
    ///
    /// Raises:
    ///     ShapeError: not an array.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{1,0:T(2,2)}").append_minor_dimension(7)
    ///     Shape('f32[3,5,7]{2,1,0:T(2,2)}')
    #[pyo3(signature = (bound: "int", /), text_signature = "($self, bound, /)")]
    fn append_minor_dimension(&self, #[pyo3(from_py_with = whole)] bound: u64) -> Result<Self> {
        Ok(Self::new(self.as_shape().append_minor_dimension(bound)?))
    }

    /// The array with a dimension of this size inserted in front of dimension `index`. As in XLA, the layout keeps only
    /// its order of dimensions, bounded dimensions become static, and a buffer becomes an array.
    ///
    /// Raises:
    ///     OutOfRangeError: there is no such place.
    ///     ShapeError: not an array, or one with an unbounded dimension.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{0,1}").insert_dimension_at_index(1, 7)
    ///     Shape('f32[3,7,5]{0,2,1}')
    #[pyo3(signature = (index: "int", bound: "int", /), text_signature = "($self, index, bound, /)")]
    fn insert_dimension_at_index(
        &self,
        #[pyo3(from_py_with = whole)] index: usize,
        #[pyo3(from_py_with = whole)] bound: u64,
    ) -> Result<Self> {
        Ok(Self::new(self.as_shape().insert_dimension_at_index(index, bound)?))
    }

    /// As `insert_dimension_at_index`, for several adjacent dimensions.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]").insert_dimensions_at_index(0, [1, 2])
    ///     Shape('f32[1,2,3,5]{3,2,1,0}')
    #[pyo3(signature = (index: "int", bounds, /), text_signature = "($self, index, bounds, /)")]
    fn insert_dimensions_at_index(&self, #[pyo3(from_py_with = whole)] index: usize, bounds: Few<u64>) -> Result<Self> {
        Ok(Self::new(self.as_shape().insert_dimensions_at_index(index, &bounds)?))
    }

    /// The array without a dimension; negative numbers count from the end. The layout keeps its tiles, which then apply to the dimensions
    /// that are left.
    ///
    /// Raises:
    ///     OutOfRangeError: there is no such dimension.
    ///     ShapeError: not an array.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,4,5]{0,2,1:T(2,2)}").delete_dimension(0)
    ///     Shape('f32[4,5]{1,0:T(2,2)}')
    #[pyo3(signature = (dimension: "int", /), text_signature = "($self, dimension, /)")]
    fn delete_dimension(&self, #[pyo3(from_py_with = whole)] dimension: i64) -> Result<Self> {
        Ok(Self::new(self.as_shape().delete_dimension(number(self, dimension)?)?))
    }

    /// The array without these dimensions; otherwise as `delete_dimension`.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,4,5]").delete_dimensions([0, -1])
    ///     Shape('f32[4]{0}')
    #[pyo3(signature = (dimensions, /), text_signature = "($self, dimensions, /)")]
    fn delete_dimensions(&self, dimensions: Few<i64>) -> Result<Self> {
        Ok(Self::new(self.as_shape().delete_dimensions(&numbers(self, dimensions.0)?)?))
    }

    /// The array with only the dimensions for whose number the function is true; otherwise as `delete_dimension`.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,4,5]").filter_dimensions(lambda dimension: dimension != 1)
    ///     Shape('f32[3,5]{1,0}')
    #[pyo3(signature = (is_kept: "Callable[[int], object]", /), text_signature = "($self, is_kept, /)")]
    fn filter_dimensions(&self, is_kept: &Bound<'_, PyAny>) -> Result<Self> {
        let kept = |dimension: usize| is_kept.call1((dimension,))?.is_truthy();
        let kept: Vec<bool> = (0..self.array()?.rank()).map(kept).collect::<PyResult<_>>()?;
        Ok(Self::new(self.as_shape().filter_dimensions(|dimension| kept[dimension])?))
    }

    /// The array without its dimensions of size 1; otherwise as `delete_dimension`.
    ///
    /// Examples:
    ///     >>> Shape("bf16[8,1,1280]{2,0,1:T(8,128)(2,1)}").drop_degenerate_dimensions()
    ///     Shape('bf16[8,1280]{1,0:T(8,128)(2,1)}')
    fn drop_degenerate_dimensions(&self) -> Result<Self> {
        Ok(Self::new(self.as_shape().drop_degenerate_dimensions()?))
    }

    /// The array whose dimension i is this array's dimension `permutation[i]`, its layout permuted too: no byte moves.
    ///
    /// Raises:
    ///     ShapeError: not an array, or no permutation of its dimensions.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,4,5]{0,2,1:T(2,2)}").permute_dimensions((2, 0, 1))
    ///     Shape('f32[5,3,4]{1,0,2:T(2,2)}')
    #[pyo3(signature = (permutation, /), text_signature = "($self, permutation, /)")]
    fn permute_dimensions(&self, permutation: Few<i64>) -> Result<Self> {
        Ok(Self::new(self.as_shape().permute_dimensions(&numbers(self, permutation.0)?)?))
    }

    /// The array with this dimension the most major in memory; of a tuple, every leaf. As in XLA, the layout keeps only
    /// its order of dimensions; `Layout.move_dim_to_major` keeps the rest.
    ///
    /// Raises:
    ///     OutOfRangeError: there is no such dimension.
    ///     ShapeError: a token or an opaque value, also in a tuple.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,4,5]").move_dim_to_major(2)
    ///     Shape('f32[3,4,5]{1,0,2}')
    #[pyo3(signature = (dimension: "int", /), text_signature = "($self, dimension, /)")]
    fn move_dim_to_major(&self, #[pyo3(from_py_with = whole)] dimension: usize) -> Result<Self> {
        Ok(Self::new(self.as_shape().move_dim_to_major(dimension)?))
    }

    /// The array with its dimensions in the order of memory and the layout `{N-1,…,0}`: the same bytes, tiles included.
    ///
    /// Raises:
    ///     ShapeError: not an array, or the layout is missing.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,4,5]{0,2,1:T(2,2)}").with_descending_layout_and_same_physical_layout()
    ///     Shape('f32[4,5,3]{2,1,0:T(2,2)}')
    fn with_descending_layout_and_same_physical_layout(&self) -> Result<Self> {
        Ok(Self::new(self.as_shape().with_descending_layout_and_same_physical_layout()?))
    }

    /// The shape with the default order of dimensions; as in XLA, everything else of its layouts stays.
    ///
    /// Raises:
    ///     ShapeError: a split does not fit the new order.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{0,1:T(2,2)}").with_default_layout()
    ///     Shape('f32[3,5]{1,0:T(2,2)}')
    fn with_default_layout(&self) -> Result<Self> {
        Ok(Self::new(self.as_shape().with_default_layout()?))
    }

    /// The shape without tiles; everything else of its layouts stays.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{0,1:T(2,2)S(1)}").clear_tiles()
    ///     Shape('f32[3,5]{0,1:S(1)}')
    fn clear_tiles(&self) -> Self {
        Self::new(self.as_shape().clear_tiles())
    }

    /// The shape as a host has it: without tiles, `L(n)`, `E(n)`, `S(n)` and `M(n)`.
    ///
    /// Examples:
    ///     >>> Shape("bf16[16,256]{0,1:T(8,128)(2,1)S(1)}").device_shape_to_host_shape()
    ///     Shape('bf16[16,256]{0,1}')
    fn device_shape_to_host_shape(&self) -> Self {
        Self::new(self.as_shape().device_shape_to_host_shape())
    }

    /// The shape with `E(n)` for types below 8 bits but `pred`, or without any.
    ///
    /// Examples:
    ///     >>> Shape("s4[8]").update_element_size_in_bits(pack_subbyte_types=True)
    ///     Shape('s4[8]{0:E(4)}')
    #[pyo3(signature = (*, pack_subbyte_types))]
    fn update_element_size_in_bits(&self, pack_subbyte_types: bool) -> Self {
        Self::new(self.as_shape().update_element_size_in_bits(pack_subbyte_types))
    }

    /// The shape with every bounded dimension static.
    ///
    /// Raises:
    ///     ShapeError: a dimension is unbounded.
    ///
    /// Examples:
    ///     >>> Shape("f32[<=3,5]").static_shape()
    ///     Shape('f32[3,5]{1,0}')
    fn static_shape(&self) -> Result<Self> {
        Ok(Self::new(self.as_shape().static_shape()?))
    }

    /// The part of the shape at a path through its tuples, XLA's `ShapeIndex`; `None` if nothing is there.
    ///
    /// Examples:
    ///     >>> Shape("(f32[2], (token[], s8[]))").subshape((1, 1))
    ///     Shape('s8[]')
    #[pyo3(signature = (index, /), text_signature = "($self, index, /)")]
    fn subshape(&self, index: Few<usize>) -> Option<Self> {
        self.as_shape().subshape(&index).map(Self::new)
    }

    /// The shape with another part at a path through its tuples.
    ///
    /// Args:
    ///     index: the path.
    ///     part: a `Shape` or a `str`.
    ///
    /// Raises:
    ///     OutOfRangeError: there is nothing at that path.
    ///
    /// Examples:
    ///     >>> Shape("(f32[2], (token[], s8[]))").replace_subshape((1, 0), "u8[4]")
    ///     Shape('(f32[2]{0}, (u8[4]{0}, s8[]))')
    #[pyo3(signature = (index, part: "ShapeLike", /), text_signature = "($self, index, part, /)")]
    fn replace_subshape(&self, index: Few<usize>, part: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self::new(self.as_shape().replace_subshape(&index, &shape_of(part)?)?))
    }

    /// Every part as a (path, shape) pair, a tuple in front of its elements, the shape itself first.
    ///
    /// Examples:
    ///     >>> [path for path, _ in Shape("(f32[2], (token[], s8[]))").subshapes()]
    ///     [(), (0,), (1,), (1, 0), (1, 1)]
    fn subshapes(&self) -> Vec<(Tuple<usize>, Self)> {
        self.as_shape().subshapes().map(|(path, part)| (Tuple(path), Self::new(part))).collect()
    }

    /// The shape with each leaf replaced by the function's result for its path and the leaf.
    ///
    /// Examples:
    ///     >>> Shape("(f32[2], s8[])").map_leaves(lambda path, leaf: leaf.change_element_type("bf16") if path == (0,) else leaf)
    ///     Shape('(bf16[2]{0}, s8[])')
    #[pyo3(signature = (map: "Callable[[tuple[int, ...], Shape], ShapeLike]", /), text_signature = "($self, map, /)")]
    fn map_leaves(&self, map: &Bound<'_, PyAny>) -> Result<Self> {
        let mapped = self
            .as_shape()
            .map_leaves(|path, leaf| shape_of(&map.call1((Tuple::from(path), Self::new(leaf.clone())))?));
        Ok(Self::new(mapped?))
    }

    /// The tuple with another element behind its own.
    ///
    /// Raises:
    ///     ShapeError: not a tuple.
    ///
    /// Examples:
    ///     >>> Shape("(f32[2])").append_shape_to_tuple("s8[]")
    ///     Shape('(f32[2]{0}, s8[])')
    #[pyo3(signature = (element: "ShapeLike", /), text_signature = "($self, element, /)")]
    fn append_shape_to_tuple(&self, element: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self::new(self.as_shape().append_shape_to_tuple(&shape_of(element)?)?))
    }

    /// The tuple of the elements from `start` up to `limit`.
    ///
    /// Raises:
    ///     OutOfRangeError: there are no such elements.
    ///     ShapeError: not a tuple.
    ///
    /// Examples:
    ///     >>> Shape("(f32[], s32[], u32[])").slice_tuple(1, 3)
    ///     Shape('(s32[], u32[])')
    #[pyo3(signature = (start: "int", limit: "int", /), text_signature = "($self, start, limit, /)")]
    fn slice_tuple(
        &self,
        #[pyo3(from_py_with = whole)] start: usize,
        #[pyo3(from_py_with = whole)] limit: usize,
    ) -> Result<Self> {
        Ok(Self::new(self.as_shape().slice_tuple(start..limit)?))
    }

    /// Whether both have the same element types and dimensions; ignores layouts, and which dimensions are dynamic.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,3]{0,1}").compatible("f32[2,<=3]")
    ///     True
    #[pyo3(signature = (other: "ShapeLike", /), text_signature = "($self, other, /)")]
    fn compatible(&self, other: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.as_shape().compatible(&shape_of(other)?))
    }

    /// As `compatible`, and ignores element types.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,3]").compatible_ignoring_element_type("s8[2,3]")
    ///     True
    #[pyo3(signature = (other: "ShapeLike", /), text_signature = "($self, other, /)")]
    fn compatible_ignoring_element_type(&self, other: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.as_shape().compatible_ignoring_element_type(&shape_of(other)?))
    }

    /// As `compatible`, and treats all floating-point types as equal.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,3]").compatible_ignoring_fp_precision("bf16[2,3]")
    ///     True
    #[pyo3(signature = (other: "ShapeLike", /), text_signature = "($self, other, /)")]
    fn compatible_ignoring_fp_precision(&self, other: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.as_shape().compatible_ignoring_fp_precision(&shape_of(other)?))
    }

    /// Whether both are the same tuples of leaves of the same kinds and ranks.
    ///
    /// Examples:
    ///     >>> Shape("(f32[2,3], token[])").compatible_kind("(s8[4,5], token[])")
    ///     True
    #[pyo3(signature = (other: "ShapeLike", /), text_signature = "($self, other, /)")]
    fn compatible_kind(&self, other: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.as_shape().compatible_kind(&shape_of(other)?))
    }

    /// `==` that ignores parts, XLA's `Shape::Equal`.
    ///
    /// Args:
    ///     other: a `Shape` or a `str`.
    ///     ignore: the ignored parts: `'layout'`, `'tiles_in_layout'`, `'element_size_in_layout'`,
    ///         `'memory_space_in_layout'`, `'element_type'`, `'fp_precision'`, `'dynamic_dimension'`, `'dimensions'`,
    ///         `'tail_padding_alignment_in_elements'`, `'split_config_in_layout'`, `'buffer'`.
    ///
    /// Raises:
    ///     ValueError: there is no such part.
    ///
    /// Examples:
    ///     >>> Shape("f32[8,128]{1,0:T(8,128)S(1)}").equal("f32[8,128]", ignore=["tiles_in_layout", "memory_space_in_layout"])
    ///     True
    #[pyo3(signature = (other: "ShapeLike", /, *, ignore = Few(Vec::new())),
           text_signature = "($self, other, /, *, ignore=())")]
    fn equal(&self, other: &Bound<'_, PyAny>, ignore: Few<String>) -> Result<bool> {
        Ok(ignoring(ignore.0)?.holds(self.as_shape(), &shape_of(other)?))
    }

    /// Whether both have parts at the same paths through their tuples, whatever their leaves are.
    ///
    /// Examples:
    ///     >>> Shape("(f32[2], (s8[], token[]))").equal_structure("(u8[], (u8[], u8[]))")
    ///     True
    #[pyo3(signature = (other: "ShapeLike", /), text_signature = "($self, other, /)")]
    fn equal_structure(&self, other: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.as_shape().equal_structure(&shape_of(other)?))
    }

    /// Whether both are arrays with the same dimensions, of any element types; an unbounded one is like any other.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,3]").same_dimensions("s8[2,3]{0,1}")
    ///     True
    #[pyo3(signature = (other: "ShapeLike", /), text_signature = "($self, other, /)")]
    fn same_dimensions(&self, other: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.as_shape().same_dimensions(&shape_of(other)?))
    }

    /// The dimensions that a reshape to another array does not modify: pairs of a dimension of this array and one of the other.
    ///
    /// Raises:
    ///     ShapeError: not arrays with the same number of elements.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,3,5,7,12]").dimensions_unmodified_by_reshape("f32[6,5,1,7,3,4]")
    ///     [(2, 1), (3, 3)]
    #[pyo3(signature = (to: "ShapeLike", /), text_signature = "($self, to, /)")]
    fn dimensions_unmodified_by_reshape(&self, to: &Bound<'_, PyAny>) -> Result<Vec<(usize, usize)>> {
        Ok(self.as_shape().dimensions_unmodified_by_reshape(&shape_of(to)?)?)
    }

    /// The array reshaped to these dimensions, in each layout that leaves every element in place, those with the
    /// array's own tiles first; may be empty. `free_reshapes` has the orders of this array with such a layout on a TPU.
    ///
    /// Raises:
    ///     ShapeError: not an array, or another number of elements.
    ///
    /// Examples:
    ///     >>> Shape("bf16[8,512,768]{1,2,0:T(8,128)(2,1)}").free_reshape([8, 512, 12, 64])
    ///     [Shape('bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}')]
    ///     >>> Shape("bf16[8,512,768]{2,1,0:T(8,128)(2,1)}").free_reshape([8, 512, 12, 64])
    ///     []
    #[pyo3(signature = (dimensions, /), text_signature = "($self, dimensions, /)")]
    fn free_reshape(&self, dimensions: Few<u64>) -> Result<Vec<Self>> {
        Ok(self.as_shape().free_reshape(&dimensions.0)?.layouts.into_iter().map(Self::new).collect())
    }

    /// The dimensions of the other array that a reshape makes of these, given in ascending order; `None` if it modifies
    /// one of them.
    ///
    /// Raises:
    ///     ShapeError: not arrays with the same number of elements.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,3,5,7,12]").reshape_leaves_dimensions_unmodified("f32[6,5,1,7,3,4]", [2, 3])
    ///     [1, 3]
    #[pyo3(signature = (to: "ShapeLike", dimensions, /), text_signature = "($self, to, dimensions, /)")]
    fn reshape_leaves_dimensions_unmodified(
        &self,
        to: &Bound<'_, PyAny>,
        dimensions: Few<usize>,
    ) -> Result<Option<Vec<usize>>> {
        Ok(self.as_shape().reshape_leaves_dimensions_unmodified(&shape_of(to)?, &dimensions)?)
    }

    /// The dimensions of size 1 that a reshape to the other array deletes and inserts; `None` if it does anything else.
    ///
    /// Raises:
    ///     ShapeError: not arrays with the same number of elements.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,1,5]").inserted_or_deleted_1_sized_dimensions("f32[3,5,1]")
    ///     ([1], [2])
    #[pyo3(signature = (to: "ShapeLike", /), text_signature = "($self, to, /)")]
    fn inserted_or_deleted_1_sized_dimensions(
        &self,
        to: &Bound<'_, PyAny>,
    ) -> Result<Option<(Vec<usize>, Vec<usize>)>> {
        let found = self.as_shape().inserted_or_deleted_1_sized_dimensions(&shape_of(to)?)?;
        Ok(found.map(|found| (found.deleted, found.inserted)))
    }

    /// The index after another, the last dimension counting fastest; `None` after the last.
    ///
    /// Raises:
    ///     OutOfRangeError: the index is outside the array.
    ///     ShapeError: not an array, or one with an unbounded dimension.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,3]").bump_indices((0, 2))
    ///     (1, 0)
    #[pyo3(signature = (index, /), text_signature = "($self, index, /)")]
    fn bump_indices(&self, mut index: Few<u64>) -> Result<Option<Tuple<u64>>> {
        let goes_on = self.array()?.bump_indices(&mut index.0)?;
        Ok(goes_on.then_some(Tuple(index.0)))
    }

    /// Calls a function with the index of each element, in the order of the dimensions in memory, the most minor counting fastest, until it
    /// returns false. Tiles play no part; `for_each_in_memory` follows them.
    ///
    /// Args:
    ///     visit: called with a tuple; returning `None` doesn't end the walk.
    ///     base, count, step: along each dimension the start, the extent, and the step; `None` visits everything.
    ///
    /// Returns:
    ///     Whether all were visited.
    ///
    /// Raises:
    ///     OutOfRangeError: the range leaves the array.
    ///     ShapeError: not an array, or one with an unbounded dimension.
    ///
    /// Examples:
    ///     >>> Shape("f32[2,2]{0,1}").for_each_index(print)
    ///     (0, 0)
    ///     (1, 0)
    ///     (0, 1)
    ///     (1, 1)
    ///     True
    #[pyo3(signature = (visit: "Callable[[tuple[int, ...]], object]", /, *, base = None, count = None, step = None),
           text_signature = "($self, visit, /, *, base=None, count=None, step=None)")]
    fn for_each_index(
        &self,
        visit: &Bound<'_, PyAny>,
        base: Option<Few<u64>>,
        count: Option<Few<u64>>,
        step: Option<Few<u64>>,
    ) -> Result<bool> {
        let array = self.array()?;
        let base = base.map_or_else(|| vec![0; array.rank()], |base| base.0);
        let bounds = array.dimensions().iter().zip(&base);
        let all = || bounds.map(|(dimension, base)| dimension.bound().unwrap_or(0).saturating_sub(*base)).collect();
        let count = count.map_or_else(all, |count| count.0);
        let step = step.map_or_else(|| vec![1; array.rank()], |step| step.0);
        let call = |index: &[u64]| flow(visit.call1((Tuple::from(index),)));
        walked(array.for_each_index_in(&base, &count, &step, call)?)
    }

    /// Calls a function with each place of memory, in order: its offset in elements, and the index of the element there or `None` for
    /// padding, until it returns false.
    ///
    /// Returns:
    ///     Whether all were visited.
    ///
    /// Raises:
    ///     ShapeError: not an array, or one with an unbounded dimension or no layout.
    ///
    /// Examples:
    ///     >>> Shape("f32[1,3]{1,0:T(2)}").for_each_in_memory(print)
    ///     0 (0, 0)
    ///     1 (0, 1)
    ///     2 (0, 2)
    ///     3 None
    ///     True
    #[pyo3(signature = (visit: "Callable[[int, tuple[int, ...] | None], object]", /),
           text_signature = "($self, visit, /)")]
    fn for_each_in_memory(&self, visit: &Bound<'_, PyAny>) -> Result<bool> {
        walked(self.tiled()?.for_each_in_memory(|offset, index| flow(visit.call1((offset, index.map(Tuple::from))))))
    }

    /// How many elements lie between neighbours along a dimension, without tiles.
    ///
    /// Examples:
    ///     >>> Shape("f32[5,8,10,4]").dimension_stride(1)
    ///     40
    #[pyo3(signature = (dimension: "int", /), text_signature = "($self, dimension, /)")]
    fn dimension_stride(&self, #[pyo3(from_py_with = whole)] dimension: i64) -> Result<u64> {
        Ok(self.array()?.dimension_stride(number(self, dimension)?)?)
    }
}
