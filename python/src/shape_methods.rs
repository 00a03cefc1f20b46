//! The methods and properties of `Shape`.

use crate::{
    builtins::tuple,
    drawing::{PyDrawing, Request},
    element_type::{PyElementType, element_type},
    errors::{Class, Error, Result},
    fix::PyFix,
    html, index,
    layout::PyLayout,
    shape::{PyShape, shape_of},
    steps::PySteps,
    tpu::generation,
};
use numpy::PyArrayDyn;
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};
use std::hash::{DefaultHasher, Hash, Hasher};
use tilewise::{Shape, Tiled};

#[pymethods]
impl PyShape {
    #[new]
    #[pyo3(signature = (text, /), text_signature = "(text, /)")]
    fn parse(text: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self::new(shape_of(text)?))
    }

    /// Reads a shape and leaves a missing layout missing, as messages and reports print it.
    ///
    /// Raises:
    ///     ParseError: no shape.
    ///
    /// Examples:
    ///     >>> Shape.parse_as_written("f32[20000,12]").has_layout
    ///     False
    #[staticmethod]
    #[pyo3(signature = (text, /), text_signature = "(text, /)")]
    fn parse_as_written(text: &str) -> Result<Self> {
        Ok(Self::new(Shape::parse_as_written(text).map_err(|error| Error::in_text(error, text))?))
    }

    /// An array; without a layout, with XLA's default one.
    ///
    /// Args:
    ///     element_type: whatever `ElementType` takes, such as `"bf16"`, `numpy.float32` or `x.dtype`.
    ///     dimensions: bounds in elements.
    ///     layout: how it lies in memory.
    ///
    /// Raises:
    ///     ShapeError: a layout of another rank, or a size above 2^63 − 1.
    ///
    /// Examples:
    ///     >>> Shape.array("f32", (3, 5))
    ///     Shape('f32[3,5]{1,0}')
    #[staticmethod]
    #[pyo3(name = "array", signature = (element_type, dimensions, layout = None))]
    fn of_array(
        element_type: &Bound<'_, PyAny>,
        dimensions: Vec<u64>,
        layout: Option<&Bound<'_, PyLayout>>,
    ) -> Result<Self> {
        let shape = Shape::array(self::element_type(element_type)?, dimensions)?;
        Ok(Self::new(match layout {
            Some(layout) => shape.with_layout(layout.get().0.clone())?,
            None => shape,
        }))
    }

    /// A tuple of shapes, each a `Shape` or its text.
    ///
    /// Examples:
    ///     >>> Shape.tuple(["f32[2]", "token[]"])
    ///     Shape('(f32[2]{0}, token[])')
    #[staticmethod]
    #[pyo3(name = "tuple", signature = (elements, /), text_signature = "(elements, /)")]
    fn of_tuple(elements: &Bound<'_, PyAny>) -> Result<Self> {
        let elements = elements.try_iter()?.map(|element| shape_of(&element?)).collect::<Result<Vec<_>>>()?;
        Ok(Self::new(Shape::tuple(elements)))
    }

    /// The shape in a serialised `xla.ShapeProto`.
    ///
    /// Raises:
    ///     ShapeError: bytes that are no such message.
    ///
    /// Examples:
    ///     >>> Shape.from_proto(bytes.fromhex("100b1a0103"))
    ///     Shape('f32[3]')
    #[staticmethod]
    #[pyo3(signature = (message, /), text_signature = "(message, /)")]
    fn from_proto(message: &[u8]) -> Result<Self> {
        Ok(Self::new(Shape::decode_proto(message)?))
    }

    /// The shape as a serialised `xla.ShapeProto`, byte for byte as XLA writes it.
    ///
    /// Examples:
    ///     >>> Shape.from_proto(Shape("f32[3,5]").to_proto())
    ///     Shape('f32[3,5]{1,0}')
    fn to_proto<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.as_shape().encode_proto())
    }

    /// What it is: `'array'`, `'tuple'`, `'token'`, `'opaque'` or `'buffer'`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.as_shape().kind().name()
    }

    /// The element type of an array.
    ///
    /// Raises:
    ///     ShapeError: a tuple, token or opaque.
    #[getter]
    fn element_type(&self) -> Result<PyElementType> {
        Ok(PyElementType(self.array()?.element_type()))
    }

    /// The bounds of an array, in elements; `None` for `?`. Dynamic dimensions count with their bound.
    ///
    /// Raises:
    ///     ShapeError: a tuple, token or opaque.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,<=5,?]").dimensions
    ///     (3, 5, None)
    #[getter]
    fn dimensions<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        Ok(tuple(py, self.array()?.dimensions().iter().map(|d| d.bound()))?)
    }

    /// Which dimensions are dynamic.
    ///
    /// Raises:
    ///     ShapeError: a tuple, token or opaque.
    #[getter]
    fn dynamic_dimensions<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        Ok(tuple(py, self.array()?.dimensions().iter().map(|d| d.is_dynamic()))?)
    }

    /// How many dimensions an array has.
    ///
    /// Raises:
    ///     ShapeError: a tuple, token or opaque.
    #[getter]
    fn rank(&self) -> Result<usize> {
        Ok(self.array()?.rank())
    }

    /// How an array lies in memory.
    ///
    /// Raises:
    ///     ShapeError: a tuple, token or opaque, or a shape read without its layout; `has_layout` tells.
    #[getter]
    fn layout(&self) -> Result<PyLayout> {
        match self.array()?.layout() {
            Some(layout) => Ok(PyLayout(layout.clone())),
            None => Err(Error::new(
                Class::Shape,
                "missing_layout",
                format!("`{}` was read without a layout", self.as_shape()),
            )),
        }
    }

    /// Whether this is an array whose layout is known.
    #[getter]
    fn has_layout(&self) -> bool {
        self.as_shape().layout().is_some()
    }

    /// A tuple's elements; none for anything else.
    #[getter]
    fn elements<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, self.as_shape().elements().map(Self::new).collect::<Vec<_>>())
    }

    /// Every leaf with its path through the tuples; a shape that is no tuple is its own, at `()`.
    ///
    /// Examples:
    ///     >>> Shape("(f32[2], (token[], s8[]))").leaves()[2]
    ///     ((1, 1), Shape('s8[]'))
    fn leaves<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyTuple>, Self)>> {
        self.as_shape().leaves().map(|(path, leaf)| Ok((tuple(py, &path)?, Self::new(leaf)))).collect()
    }

    /// The same array with another layout.
    ///
    /// Raises:
    ///     ShapeError: no array, or a layout that does not fit it.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]").with_layout(Layout((0, 1), tiles=[(2, 2)]))
    ///     Shape('f32[3,5]{0,1:T(2,2)}')
    #[pyo3(signature = (layout, /), text_signature = "($self, layout, /)")]
    fn with_layout(&self, layout: &Bound<'_, PyLayout>) -> Result<Self> {
        Ok(Self::new(self.as_shape().with_layout(layout.get().0.clone())?))
    }

    /// The same shape with every layout left open, as `predict` takes it.
    ///
    /// Examples:
    ///     >>> str(Shape("f32[8,64]{0,1:T(8,128)}").without_layout())
    ///     'f32[8,64]'
    fn without_layout(&self) -> Result<Self> {
        Self::parse_as_written(&self.as_shape().without_layout().to_string())
    }

    /// Whether both print alike: stricter than `==`, which leaves out run-time metadata.
    ///
    /// Examples:
    ///     >>> one, other = Shape("f32[3]{0:M(8)}"), Shape("f32[3]{0}")
    ///     >>> one == other, one.identical(other)
    ///     (True, False)
    #[pyo3(signature = (other, /), text_signature = "($self, other, /)")]
    fn identical(&self, other: &Bound<'_, Self>) -> bool {
        self.as_shape().identical(other.get().as_shape())
    }

    /// The offset of an element, in elements from the start of the buffer.
    ///
    /// Args:
    ///     index: one integer for each dimension, from 0; negative ones do not count from the end.
    ///
    /// Raises:
    ///     OutOfRangeError: outside the array; also an `IndexError`.
    ///     ShapeError: as many integers as there are dimensions were needed, or this shape has no offsets.
    ///
    /// Examples:
    ///     >>> Shape("bf16[8,256]{1,0:T(8,128)(2,1)}").offset((1, 0))
    ///     1
    #[pyo3(signature = (index, /), text_signature = "($self, index, /)")]
    fn offset(&self, index: &Bound<'_, PyAny>) -> Result<u64> {
        index::offset(self.tiled()?, index)
    }

    /// The offsets of many elements at once.
    ///
    /// Args:
    ///     indices: integers of any dtype, of shape (…, rank): the last axis is one index.
    ///     out: a contiguous uint64 array of shape (…) to write into; a new one where there is none.
    ///     threads: how many threads to use, if the machine has them and there are many indices.
    ///
    /// Returns:
    ///     `numpy.ndarray` of uint64, of shape (…): offsets in elements; `out` if that was given.
    ///
    /// Raises:
    ///     OutOfRangeError: an index outside the array; also an `IndexError`.
    ///     ShapeError: a last axis of another length, an `out` that does not fit, or a shape without offsets.
    ///     TypeError: not integers.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{1,0:T(2,2)}").offsets([[0, 4], [2, 3]])
    ///     array([ 8, 17], dtype=uint64)
    #[pyo3(signature = (indices, /, *, out = None, threads = 1),
           text_signature = "($self, indices, /, *, out=None, threads=1)")]
    fn offsets<'py>(
        &self,
        indices: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyArrayDyn<u64>>>,
        threads: usize,
    ) -> Result<Bound<'py, PyArrayDyn<u64>>> {
        index::offsets(self.tiled()?, indices, out, threads)
    }

    /// The index of the element at an offset, or `None` where it holds padding.
    ///
    /// Args:
    ///     offset: in elements from the start of the buffer.
    ///
    /// Raises:
    ///     OutOfRangeError: past the end of the buffer; also an `IndexError`.
    ///     ShapeError: a shape without offsets.
    ///
    /// Examples:
    ///     >>> s = Shape("f32[3,5]{1,0:T(2,2)}")
    ///     >>> s.index(17)
    ///     (2, 3)
    ///     >>> s.index(9) is None
    ///     True
    #[pyo3(signature = (offset, /), text_signature = "($self, offset, /)")]
    fn index<'py>(&self, py: Python<'py>, offset: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyTuple>>> {
        match index::index(self.tiled()?, offset)? {
            Some(index) => Ok(Some(tuple(py, &index)?)),
            None => Ok(None),
        }
    }

    /// The indices of the elements at many offsets.
    ///
    /// Args:
    ///     offsets: integers of any dtype and of any shape (…): offsets in elements.
    ///     out: a contiguous int64 array of shape (…, rank) to write into; a new one where there is none.
    ///     threads: how many threads to use, if the machine has them and there are many offsets.
    ///
    /// Returns:
    ///     `numpy.ndarray` of int64, of shape (…, rank); −1 all along the last axis where the offset holds padding; `out` if that was given.
    ///
    /// Raises:
    ///     OutOfRangeError: an offset past the end of the buffer; also an `IndexError`.
    ///     ShapeError: an `out` that does not fit, or a shape without offsets.
    ///     TypeError: not integers.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{1,0:T(2,2)}").indices([17, 9])
    ///     array([[ 2,  3],
    ///            [-1, -1]])
    #[pyo3(signature = (offsets, /, *, out = None, threads = 1),
           text_signature = "($self, offsets, /, *, out=None, threads=1)")]
    fn indices<'py>(
        &self,
        offsets: &Bound<'py, PyAny>,
        out: Option<Bound<'py, PyArrayDyn<i64>>>,
        threads: usize,
    ) -> Result<Bound<'py, PyArrayDyn<i64>>> {
        index::indices(self.tiled()?, offsets, out, threads)
    }

    /// Bytes of the array's data, without padding.
    ///
    /// Raises:
    ///     ShapeError: no array, an unbounded dimension, a missing layout, or more than 2^63 − 1 bytes. So for every size.
    #[getter]
    fn logical_bytes(&self) -> Result<u64> {
        Ok(self.tiled()?.logical_bytes())
    }

    /// Bytes the array takes in memory, padding included.
    #[getter]
    fn physical_bytes(&self) -> Result<u64> {
        Ok(self.tiled()?.physical_bytes())
    }

    /// Bytes that hold no data.
    #[getter]
    fn padding_bytes(&self) -> Result<u64> {
        Ok(self.tiled()?.padding_bytes())
    }

    /// How many times its data the array takes; 1 for an array without elements.
    #[getter]
    fn expansion(&self) -> Result<f64> {
        Ok(self.tiled()?.expansion())
    }

    /// The bounds in memory after all tiles, major to minor, in elements.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{1,0:T(2,2)}").physical_dimensions
    ///     (2, 3, 2, 2)
    #[getter]
    fn physical_dimensions<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        Ok(tuple(py, self.tiled()?.physical_dimensions())?)
    }

    /// Elements the buffer has room for, padding included.
    #[getter]
    fn physical_elements(&self) -> Result<u64> {
        Ok(self.tiled()?.physical_elements())
    }

    /// What XLA's `ShapeUtil::ArraySize` answers, in bytes, which counts the first tile only; `None` where it fails.
    #[getter]
    fn xla_array_size(&self) -> Result<Option<u64>> {
        Ok(self.array()?.xla_array_size())
    }

    /// Each part of the layout's text with what it means; empty without a layout.
    ///
    /// Examples:
    ///     >>> Shape("bf16[300,500]{1,0:T(8,128)(2,1)}").layout_in_words()[1]
    ///     ('T(8,128)', 'the two minor dimensions are cut into blocks of 8 rows × 128 columns')
    fn layout_in_words(&self) -> Result<Vec<(String, String)>> {
        Ok(self.array()?.layout_in_words().into_iter().map(|part| (part.text, part.meaning)).collect())
    }

    /// What makes the padding, in words, the largest cause first; none without padding.
    ///
    /// Examples:
    ///     >>> Shape("f32[400000,12]{1,0:T(8,128)}").causes()
    ///     ['dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used']
    fn causes(&self) -> Result<Vec<String>> {
        Ok(tilewise_audit::causes(self.tiled()?))
    }

    /// What to change so that the array takes less, the best first.
    ///
    /// Args:
    ///     tpu: the generation that prices the fixes, as `predict` takes it; inferred from the tiles where it is not given.
    ///
    /// Examples:
    ///     >>> Shape("s32[32768,8,4]{2,1,0:T(8,128)}").fixes()[2].jax
    ///     'x = x.reshape(32768, 32)  # s32[32768,32]'
    #[pyo3(signature = (*, tpu = None))]
    fn fixes(&self, tpu: Option<&Bound<'_, PyAny>>) -> Result<Vec<PyFix>> {
        let generation = tpu.map(generation).transpose()?;
        Ok(tilewise_audit::fix::suggest(self.as_shape(), generation).fixes.iter().map(PyFix::of).collect())
    }

    /// How the buffer is made from the array, step by step: pad, reshape, transpose.
    ///
    /// Raises:
    ///     ShapeError: a shape without offsets.
    ///
    /// Examples:
    ///     >>> print(Shape("f32[4,6]{1,0:T(2,2)}").steps())
    ///     reshape    [4,6] → [2,2,3,2]      bitcast      T(2,2)
    ///     transpose  [2,2,3,2] → [2,3,2,2]  moves bytes  T(2,2): axes 0,2,1,3
    ///     reshape    [2,3,2,2] → [24]       bitcast
    fn steps(&self) -> Result<PySteps> {
        Ok(PySteps::of(self.tiled()?))
    }

    /// A picture of the layout.
    ///
    /// Args:
    ///     view: `'logical'` shows the array with offsets, `'memory'` memory with indices, `'both'` the two, `'word'` which elements
    ///         share a 32-bit word, `'steps'` how the layout comes about.
    ///     compare: another layout of the same array, in place of a view: what moves, and where to.
    ///     highlight: the index of an element to follow.
    ///     slices: for dimensions that are not drawn, the index to draw; {0: 3} draws the plane at 3 of dimension 0.
    ///     theme: `'auto'` follows the reader's colour scheme, or `'light'`, or `'dark'`.
    ///
    /// Raises:
    ///     DrawError: nothing to draw.
    ///     OutOfRangeError: an index outside the array.
    ///     ShapeError: a shape without offsets.
    ///     ValueError: an unknown view or theme.
    ///
    /// Examples:
    ///     >>> print(Shape("f32[2,2]{0,1}").draw(view="logical"), end="")
    ///     f32[2,2]{0,1}
    ///     4 elements, no padding, 16 bytes.
    ///     ...
    #[pyo3(signature = (*, view = "both", compare = None, highlight = None, slices = None, theme = "auto"))]
    fn draw(
        &self,
        view: &str,
        compare: Option<&Bound<'_, PyAny>>,
        highlight: Option<Vec<u64>>,
        slices: Option<std::collections::BTreeMap<i64, u64>>,
        theme: &str,
    ) -> Result<PyDrawing> {
        let compare = compare.map(|other| Ok::<_, Error>(Tiled::new(&shape_of(other)?)?)).transpose()?;
        PyDrawing::of(self.tiled()?, Request { view, compare, highlight, slices: slices.unwrap_or_default(), theme })
    }

    /// For notebooks: the text, what it means, and the picture.
    fn _repr_html_(&self) -> String {
        html::shape(self.as_shape(), self.tiled().ok())
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let restore = slf.get_type().getattr("parse_as_written")?;
        Ok((restore, (slf.get().as_shape().to_string(),)))
    }
}
