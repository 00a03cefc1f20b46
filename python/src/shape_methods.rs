//! The methods and properties of `Shape`.

use crate::{
    drawing::{PyDrawing, Request},
    element_type::{PyElementType, element_type},
    errors::{Class, Error, Result},
    few::Few,
    index,
    layout::{PyLayout, layout_of},
    predict::open_shape_of,
    relation::{PyRelation, reading_of},
    shape::{PyShape, shape_of},
    slices,
    steps::PySteps,
    travel::Reduced,
    typed::{ShapeKind, Tuple, Typed},
    whole::whole,
};
use numpy::{PyArray2, PyArrayDyn};
use pyo3::{prelude::*, types::PyBytes};
use std::hash::{DefaultHasher, Hash, Hasher};
use tilewise::{Shape, interop::Notation};
use tilewise_report::{notebook, parse_shape_as_written};

#[pymethods]
impl PyShape {
    #[new]
    #[pyo3(signature = (text: "ShapeLike", /), text_signature = "(text, /)")]
    fn parse(text: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self::new(shape_of(text)?))
    }

    /// Parses a shape and leaves a missing layout missing: compilers' messages print shapes without layouts.
    ///
    /// Raises:
    ///     ParseError: the string is not a shape.
    ///
    /// Examples:
    ///     >>> Shape.parse_as_written("f32[20000,12]").has_layout
    ///     False
    #[staticmethod]
    #[pyo3(signature = (text, /), text_signature = "(text, /)")]
    fn parse_as_written(text: &str) -> Result<Self> {
        Ok(Self::new(parse_shape_as_written(text).map_err(|failure| Error::of_unread(failure, text))?))
    }

    /// The shape of an array; `layout=None` is XLA's default layout.
    ///
    /// Args:
    ///     element_type: anything `ElementType` accepts, such as `"bf16"`, `numpy.float32` or `x.dtype`.
    ///     dimensions: the bounds in elements.
    ///     layout: how the array lies in memory.
    ///
    /// Raises:
    ///     ShapeError: the layout has another rank, or a size exceeds 2^63 − 1.
    ///
    /// Examples:
    ///     >>> Shape.array("f32", (3, 5))
    ///     Shape('f32[3,5]{1,0}')
    #[staticmethod]
    #[pyo3(name = "array", signature = (element_type: "ElementType | DtypeLike", dimensions, layout = None))]
    fn of_array(
        element_type: &Bound<'_, PyAny>,
        dimensions: Few<u64>,
        layout: Option<&Bound<'_, PyLayout>>,
    ) -> Result<Self> {
        let shape = Shape::array(self::element_type(element_type)?, dimensions)?;
        Ok(Self::new(match layout {
            Some(layout) => shape.with_layout(layout.get().0.clone())?,
            None => shape,
        }))
    }

    /// The shape of an array, or of anything with a `shape` and a `dtype`; with a `sharding`, that of one device's shard.
    ///
    /// Args:
    ///     array: a NumPy or JAX array, a `jax.ShapeDtypeStruct`, or a `Shape` or `str`.
    ///     layout: a `Layout` or its text; `None` is XLA's default layout.
    ///
    /// Raises:
    ///     ParseError: the string is not a layout.
    ///     ShapeError: the layout has another rank.
    ///
    /// Examples:
    ///     >>> import numpy as np
    ///     >>> Shape.of(np.zeros((16, 256), np.float32), layout="{1,0:T(8,128)}")
    ///     Shape('f32[16,256]{1,0:T(8,128)}')
    #[staticmethod]
    #[pyo3(signature = (array: "ShapeLike | HasShape", /, *, layout: "Layout | str | None" = None),
           text_signature = "(array, /, *, layout=None)")]
    fn of(array: &Bound<'_, PyAny>, layout: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        let shape = open_shape_of(array)?;
        Ok(Self::new(match layout {
            Some(layout) => shape.with_layout(layout_of(layout)?)?,
            None => shape.to_string().parse()?,
        }))
    }

    /// A tuple of shapes, each a `Shape` or a `str`.
    ///
    /// Examples:
    ///     >>> Shape.tuple(["f32[2]", "token[]"])
    ///     Shape('(f32[2]{0}, token[])')
    #[staticmethod]
    #[pyo3(name = "tuple", signature = (elements: "Iterable[ShapeLike]", /), text_signature = "(elements, /)")]
    fn of_tuple(elements: &Bound<'_, PyAny>) -> Result<Self> {
        let elements = elements.try_iter()?.map(|element| shape_of(&element?)).collect::<Result<Vec<_>>>()?;
        Ok(Self::new(Shape::tuple(elements)))
    }

    /// The shape in a serialised `xla.ShapeProto` message.
    ///
    /// Raises:
    ///     ShapeError: the bytes are not such a message.
    ///
    /// Examples:
    ///     >>> Shape.from_proto(bytes.fromhex("100b1a0103"))
    ///     Shape('f32[3]')
    #[staticmethod]
    #[pyo3(signature = (message, /), text_signature = "(message, /)")]
    fn from_proto(message: &[u8]) -> Result<Self> {
        Ok(Self::new(Shape::decode_proto(message)?))
    }

    /// The shape as a serialised `xla.ShapeProto` message, byte for byte as XLA writes it.
    ///
    /// Examples:
    ///     >>> Shape.from_proto(Shape("f32[3,5]").to_proto())
    ///     Shape('f32[3,5]{1,0}')
    fn to_proto<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.as_shape().encode_proto())
    }

    /// The kind of shape: `'array'`, `'tuple'`, `'token'`, `'opaque'` or `'buffer'`.
    #[getter]
    fn kind(&self) -> Typed<&'static str, ShapeKind> {
        Typed::new(self.as_shape().kind().name())
    }

    /// The element type of an array.
    ///
    /// Raises:
    ///     ShapeError: not an array.
    #[getter]
    fn element_type(&self) -> Result<PyElementType> {
        Ok(PyElementType(self.array()?.element_type()))
    }

    /// The bounds of an array, in elements; of a dynamic dimension its upper bound, `None` for an unbounded one (`?`).
    ///
    /// Raises:
    ///     ShapeError: not an array.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,<=5,?]").dimensions
    ///     (3, 5, None)
    #[getter]
    fn dimensions(&self) -> Result<Tuple<Option<u64>>> {
        Ok(self.array()?.dimensions().iter().map(|d| d.bound()).collect())
    }

    /// For each dimension, whether it is dynamic.
    ///
    /// Raises:
    ///     ShapeError: not an array.
    #[getter]
    fn dynamic_dimensions(&self) -> Result<Tuple<bool>> {
        Ok(self.array()?.dimensions().iter().map(|d| d.is_dynamic()).collect())
    }

    /// The number of dimensions of an array.
    ///
    /// Raises:
    ///     ShapeError: not an array.
    #[getter]
    fn rank(&self) -> Result<usize> {
        Ok(self.array()?.rank())
    }

    /// How many dimensions of an array have another size than 1; an unbounded one counts.
    ///
    /// Raises:
    ///     ShapeError: not an array.
    #[getter]
    fn true_rank(&self) -> Result<usize> {
        Ok(self.array()?.true_rank())
    }

    /// How an array lies in memory.
    ///
    /// Raises:
    ///     ShapeError: not an array, or the layout is missing (`has_layout` is `False`).
    #[getter]
    fn layout(&self) -> Result<PyLayout> {
        match self.array()?.layout() {
            Some(layout) => Ok(PyLayout(layout.clone())),
            None => Err(Error::new(Class::Shape, "missing_layout", format!("`{}` has no layout", self.as_shape()))),
        }
    }

    /// Whether this is an array with a layout.
    #[getter]
    fn has_layout(&self) -> bool {
        self.as_shape().layout().is_some()
    }

    /// The elements of a tuple; empty for other kinds.
    #[getter]
    fn elements(&self) -> Tuple<Self> {
        self.as_shape().elements().map(Self::new).collect()
    }

    /// Every leaf as a (path through the tuples, shape) pair; a shape that is not a tuple is its only leaf, at `()`.
    ///
    /// Examples:
    ///     >>> Shape("(f32[2], (token[], s8[]))").leaves()[2]
    ///     ((1, 1), Shape('s8[]'))
    fn leaves(&self) -> Vec<(Tuple<usize>, Self)> {
        self.as_shape().leaves().map(|(path, leaf)| (Tuple(path), Self::new(leaf))).collect()
    }

    /// This array with another layout.
    ///
    /// Args:
    ///     layout: a `Layout`, or its text, such as `"{1,0:T(8,128)}"`.
    ///
    /// Raises:
    ///     ParseError: the string is not a layout.
    ///     ShapeError: not an array, or the layout does not fit it.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]").with_layout(Layout((0, 1), tiles=[(2, 2)]))
    ///     Shape('f32[3,5]{0,1:T(2,2)}')
    #[pyo3(signature = (layout: "Layout | str", /), text_signature = "($self, layout, /)")]
    fn with_layout(&self, layout: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self::new(self.as_shape().with_layout(layout_of(layout)?)?))
    }

    /// This shape without any layout, as `predict` takes it.
    ///
    /// Examples:
    ///     >>> str(Shape("f32[8,64]{0,1:T(8,128)}").without_layout())
    ///     'f32[8,64]'
    fn without_layout(&self) -> Result<Self> {
        Self::parse_as_written(&self.as_shape().without_layout().to_string())
    }

    /// Whether both have the same text: stricter than `==`, which ignores run-time metadata.
    ///
    /// Examples:
    ///     >>> one, other = Shape("f32[3]{0:M(8)}"), Shape("f32[3]{0}")
    ///     >>> one == other, one.identical(other)
    ///     (True, False)
    #[pyo3(signature = (other, /), text_signature = "($self, other, /)")]
    fn identical(&self, other: &Bound<'_, Self>) -> bool {
        self.as_shape().identical(other.get().as_shape())
    }

    /// How the bytes of this array relate to those of another: true if they can be read as it. Exact for arrays of any size.
    ///
    /// Args:
    ///     to: the array to read the bytes as, a `Shape` or a `str`.
    ///     reading: the relation to test: `'any'`, `'reshape'` (the same elements in row-major order) or `'transpose'`.
    ///
    /// Raises:
    ///     ShapeError: not arrays with layouts; or `.kind` is `'undecided'`: a tile cuts across dimensions that `*`
    ///         merged out of order, and there are too many elements to compare.
    ///     ValueError: the reading is unknown.
    ///
    /// Examples:
    ///     >>> heads = Shape("bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}")
    ///     >>> heads.bitcast("bf16[8,512,768]{1,2,0:T(8,128)(2,1)}")
    ///     <Relation reshape>
    ///     >>> Shape("f32[16,16]").bitcast("f32[16,16]{0,1}", reading="reshape").counterexample
    ///     ((0, 1), (0, 1), 1, 16)
    #[pyo3(signature = (to: "ShapeLike", /, *, reading: "Literal['any', 'reshape', 'transpose']" = "any"),
           text_signature = "($self, to, /, *, reading='any')")]
    fn bitcast(&self, to: &Bound<'_, PyAny>, reading: &str) -> Result<PyRelation> {
        let to = Self::new(shape_of(to)?);
        Ok(PyRelation::of(&self.tiled()?.bitcast(to.tiled()?, reading_of(reading)?)?))
    }

    /// Whether both have the same dimensions and put every element into the same bits of buffers of the same size, however
    /// their layouts are written.
    ///
    /// Raises:
    ///     ShapeError: as for `bitcast`.
    ///
    /// Examples:
    ///     >>> one, other = Shape("f32[3,5]{1,0:T(1,1)}"), Shape("f32[3,5]")
    ///     >>> one == other, one.same_bytes(other)
    ///     (False, True)
    #[pyo3(signature = (other: "ShapeLike", /), text_signature = "($self, other, /)")]
    fn same_bytes(&self, other: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.as_shape().same_bytes(&shape_of(other)?)?)
    }

    /// The layout in another system's notation.
    ///
    /// Args:
    ///     notation: `'pjrt'`, `'jax'`, `'mlir'`, `'memref'`, `'mosaic'`, `'numpy'`, `'dlpack'`, `'cute'` or `'einops'`.
    ///
    /// Raises:
    ///     ShapeError: the notation can't express this layout, with the reason (`.kind` is `'not_expressible'`), or is
    ///         unknown.
    ///
    /// Examples:
    ///     >>> Shape("bf16[64,512]{1,0:T(8,128)(2,1)}").to_notation("cute")
    ///     '((2,4,8),(128,4)):((1,256,4096),(2,1024))'
    #[pyo3(signature = (notation: "Notation", /), text_signature = "($self, notation, /)")]
    fn to_notation(&self, notation: &str) -> Result<String> {
        Ok(notation.parse::<Notation>()?.write(self.tiled()?)?)
    }

    /// An array in the layout of a text in another system's notation, as `to_notation` writes it.
    ///
    /// Args:
    ///     notation: as for `to_notation`.
    ///     text: the layout.
    ///     array: the array, a `Shape` or a `str`; it gives `E(n)` and `S(n)` if the notation doesn't express them.
    ///
    /// Raises:
    ///     ShapeError: the text is not in this notation or describes another array, no layout fits it, or the notation
    ///         is unknown.
    ///
    /// Examples:
    ///     >>> Shape.from_notation("memref", "memref<3x5xf32, strided<[8, 1]>>", "f32[3,5]")
    ///     Shape('f32[3,5]{1,0:T(8)}')
    #[staticmethod]
    #[pyo3(signature = (notation: "Notation", text, array: "ShapeLike", /),
           text_signature = "(notation, text, array, /)")]
    fn from_notation(notation: &str, text: &str, array: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self::new(notation.parse::<Notation>()?.read(text, &shape_of(array)?)?))
    }

    /// The offset of an element, in elements from the start of the buffer.
    ///
    /// Args:
    ///     index: one integer for each dimension, from 0; negative integers do not count from the end.
    ///
    /// Raises:
    ///     OutOfRangeError: the index is outside the array; also an `IndexError`.
    ///     ShapeError: the index has another length than the rank, or the shape is not an array, or one with an
    ///         unbounded dimension or no layout.
    ///
    /// Examples:
    ///     >>> Shape("bf16[8,256]{1,0:T(8,128)(2,1)}").offset((1, 0))
    ///     1
    #[pyo3(signature = (index: "Iterable[SupportsIndex]", /), text_signature = "($self, index, /)")]
    fn offset(&self, index: &Bound<'_, PyAny>) -> Result<u64> {
        index::offset(self.tiled()?, index)
    }

    /// The offsets of many elements.
    ///
    /// Args:
    ///     indices: integers of any dtype and of shape (…, rank): each row along the last axis is one index.
    ///     out: a contiguous int64 array of shape (…) to write into; `None` for a new one.
    ///     threads: the number of threads to use at most; few indices take one.
    ///
    /// Returns:
    ///     A `numpy.ndarray` of int64 and of shape (…): offsets in elements; `out` if given.
    ///
    /// Raises:
    ///     OutOfRangeError: an index is outside the array; also an `IndexError`.
    ///     ShapeError: the last axis has another length than the rank, `out` does not fit, or the shape is
    ///         not an array, or one with an unbounded dimension or no layout.
    ///     TypeError: the values are not integers.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{1,0:T(2,2)}").offsets([[0, 4], [2, 3]])
    ///     array([ 8, 17])
    #[pyo3(signature = (indices: "Integers", /, *, out: "npt.NDArray[np.int64] | None" = None,
                        threads: "int" = 1) -> "npt.NDArray[np.int64]",
           text_signature = "($self, indices, /, *, out=None, threads=1)")]
    fn offsets<'py>(
        &self,
        indices: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyArrayDyn<i64>>>,
        #[pyo3(from_py_with = whole)] threads: usize,
    ) -> Result<Bound<'py, PyArrayDyn<i64>>> {
        index::offsets(self.tiled()?, indices, out, threads)
    }

    /// The index of the element at an offset, or `None` if the offset holds padding.
    ///
    /// Args:
    ///     offset: in elements from the start of the buffer.
    ///
    /// Raises:
    ///     OutOfRangeError: the offset is past the end of the buffer; also an `IndexError`.
    ///     ShapeError: not an array, or one with an unbounded dimension or no layout.
    ///
    /// Examples:
    ///     >>> s = Shape("f32[3,5]{1,0:T(2,2)}")
    ///     >>> s.index(17)
    ///     (2, 3)
    ///     >>> s.index(9) is None
    ///     True
    #[pyo3(signature = (offset: "SupportsIndex", /), text_signature = "($self, offset, /)")]
    fn index(&self, offset: &Bound<'_, PyAny>) -> Result<Option<Tuple<u64>>> {
        Ok(index::index(self.tiled()?, offset)?.map(Tuple))
    }

    /// The indices of the elements at many offsets.
    ///
    /// Args:
    ///     offsets: integers of any dtype and of any shape (…): offsets in elements.
    ///     out: a contiguous int64 array of shape (…, rank) to write into; `None` for a new one.
    ///     threads: the number of threads to use at most; few offsets take one.
    ///
    /// Returns:
    ///     A `numpy.ndarray` of int64 and of shape (…, rank): indices, all −1 where the offset holds padding; `out` if
    ///         given.
    ///
    /// Raises:
    ///     OutOfRangeError: an offset is past the end of the buffer; also an `IndexError`.
    ///     ShapeError: `out` does not fit, or the shape is not an array, or one with an unbounded dimension or no
    ///         layout.
    ///     TypeError: the values are not integers.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{1,0:T(2,2)}").indices([17, 9])
    ///     array([[ 2,  3],
    ///            [-1, -1]])
    #[pyo3(signature = (offsets: "Integers", /, *, out: "npt.NDArray[np.int64] | None" = None,
                        threads: "int" = 1) -> "npt.NDArray[np.int64]",
           text_signature = "($self, offsets, /, *, out=None, threads=1)")]
    fn indices<'py>(
        &self,
        offsets: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyArrayDyn<i64>>>,
        #[pyo3(from_py_with = whole)] threads: usize,
    ) -> Result<Bound<'py, PyArrayDyn<i64>>> {
        index::indices(self.tiled()?, offsets, out, threads)
    }

    /// The runs of bits that a slice takes.
    ///
    /// A run holds bits of the slice's elements only: padding and other elements end it. Neighbours are merged.
    ///
    /// Args:
    ///     start: the first index, one integer for each dimension.
    ///     limit: the first index behind the slice, for each dimension.
    ///     strides: the step from one index to the next, from `start` on, for each dimension; `None` for every index.
    ///     order: `"memory"`: by rising offset; `"slice"`: row-major over the slice, so that the runs, one after the other,
    ///         are the slice as a dense array.
    ///
    /// Returns:
    ///     A `numpy.ndarray` of int64 and of shape (runs, 2): where each run begins, in bits from the start of the buffer, and
    ///         its length in bits.
    ///
    /// Raises:
    ///     OutOfRangeError: the slice is not inside the array; also an `IndexError`.
    ///     ShapeError: `start` or `limit` has another length than the rank, or the shape is not an array, or one with an
    ///         unbounded dimension or no layout, or runs of its layout can't be computed in this order.
    ///
    /// Examples:
    ///     >>> cache = Shape("bf16[4096,8,128]{2,1,0:T(8,128)(2,1)}")
    ///     >>> cache.slice_runs((32, 0, 0), (48, 8, 128)) // 8    # a block of 16 tokens is one run, in bytes
    ///     array([[65536, 32768]])
    #[pyo3(signature = (start, limit, /, *, strides = None,
                        order: "Literal['memory', 'slice']" = "memory") -> "npt.NDArray[np.int64]",
           text_signature = "($self, start, limit, /, *, strides=None, order='memory')")]
    fn slice_runs<'py>(
        &self,
        py: Python<'py>,
        start: Few<u64>,
        limit: Few<u64>,
        strides: Option<Few<u64>>,
        order: &str,
    ) -> Result<Bound<'py, PyArray2<i64>>> {
        slices::slice_runs(py, self.tiled()?, &start, &limit, strides.as_deref().map(Vec::as_slice), order)
    }

    /// How the buffer is made from the array, step by step: pad, reshape, transpose.
    ///
    /// Raises:
    ///     ShapeError: not an array, or one with an unbounded dimension or no layout.
    ///
    /// Examples:
    ///     >>> print(Shape("f32[4,6]{1,0:T(2,2)}").steps())
    ///     reshape    [4,6] → [2,2,3,2]      bitcast      T(2,2)
    ///     transpose  [2,2,3,2] → [2,3,2,2]  moves bytes  T(2,2): axes 0,2,1,3
    ///     reshape    [2,3,2,2] → [24]       bitcast
    fn steps(&self) -> Result<PySteps> {
        PySteps::of(self)
    }

    /// A picture of the layout, or of each array in a tuple.
    ///
    /// Args:
    ///     view: `'logical'` draws the array with the offset in each cell, `'memory'` the memory with the index in each
    ///         cell, `'both'` the two, `'word'` which elements share a 32-bit word, `'steps'` how the buffer is made.
    ///     compare: another layout of the same array: draws which elements move, and where to, in place of a view.
    ///     highlight: the index of an element to mark.
    ///     slices: for dimensions that are not drawn, the index to draw: `{0: 3}` draws index 3 of dimension 0.
    ///     theme: `'auto'` follows the viewer's colour scheme; or `'light'`, or `'dark'`.
    ///
    /// Raises:
    ///     DrawError: there is nothing to draw.
    ///     OutOfRangeError: an index is outside the array.
    ///     ShapeError: neither an array nor a tuple of arrays, or one with an unbounded dimension or no layout.
    ///     ValueError: the view or theme is unknown.
    ///
    /// Examples:
    ///     >>> print(Shape("f32[2,2]{0,1}").draw(view="logical"), end="")
    ///     f32[2,2]{0,1}
    ///     4 elements, no padding, 16 bytes.
    ///     ...
    #[pyo3(signature = (*, view: "Literal['logical', 'memory', 'both', 'word', 'steps']" = "both",
                        compare: "ShapeLike | None" = None, highlight = None,
                        slices: "Mapping[int, int] | None" = None,
                        theme: "Literal['auto', 'light', 'dark']" = "auto"))]
    fn draw(
        &self,
        view: &str,
        compare: Option<&Bound<'_, PyAny>>,
        highlight: Option<Few<u64>>,
        slices: Option<std::collections::BTreeMap<i64, u64>>,
        theme: &str,
    ) -> Result<PyDrawing> {
        let compare = compare.map(shape_of).transpose()?.map(Self::new);
        let slices = slices.unwrap_or_default();
        let (view, theme) = (view.to_owned(), theme.to_owned());
        PyDrawing::of(Request {
            shape: self.clone(),
            view,
            compare,
            highlight: highlight.map(|index| index.0),
            slices,
            theme,
        })
    }

    /// For notebooks: the text, its meaning, and the picture.
    fn _repr_html_(&self) -> String {
        notebook::shape(self.as_shape())
    }

    fn __str__(&self) -> String {
        self.as_shape().to_string()
    }

    fn __repr__(&self) -> String {
        format!("Shape('{}')", self.as_shape())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.as_shape() == other.get().as_shape())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.as_shape().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py, (String,)>> {
        let restore = slf.get_type().getattr("parse_as_written")?;
        Ok((restore, (slf.get().as_shape().to_string(),)))
    }
}
