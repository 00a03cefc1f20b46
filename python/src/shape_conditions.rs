//! The constructors of everything but plain arrays, the walks in post order, and the queries of XLA's `ShapeUtil`.

use crate::{
    element_type::element_type,
    errors::{Error, Result},
    few::Few,
    shape::{PyShape, shape_of},
    typed::Tuple,
    whole::whole,
};
use pyo3::{exceptions::PyValueError, prelude::*};
use tilewise::{Dimension, Shape};
use tilewise_report::Equation;

/// A dimension's size: a number, `"<=8"` or `"?"`.
fn dimension(value: &Bound<'_, PyAny>) -> Result<Dimension> {
    if let Ok(size) = value.extract::<u64>() {
        return Ok(Dimension::fixed(size)?);
    }
    let text: String = value.extract()?;
    let wrong = || PyValueError::new_err(format!("'{text}' isn't a size: write 8, \"<=8\" or \"?\""));
    match text.trim() {
        "?" => Ok(Dimension::UNBOUNDED),
        bounded => {
            let bound = bounded.strip_prefix("<=").and_then(|bound| bound.trim().parse().ok()).ok_or_else(wrong)?;
            Ok(Dimension::bounded(bound)?)
        }
    }
}

#[pymethods]
impl PyShape {
    /// An array with dynamic dimensions, and XLA's default layout.
    ///
    /// Args:
    ///     element_type: anything `ElementType` accepts.
    ///     dimensions: each a size, `"<=8"` for at most 8, or `"?"`.
    ///
    /// Examples:
    ///     >>> Shape.dynamic_array("f32", ("<=8", 5))
    ///     Shape('f32[<=8,5]{1,0}')
    #[staticmethod]
    #[pyo3(signature = (element_type: "ElementType | DtypeLike", dimensions: "Sequence[int | str]"))]
    fn dynamic_array(element_type: &Bound<'_, PyAny>, dimensions: Few<Bound<'_, PyAny>>) -> Result<Self> {
        let dimensions = dimensions.0.iter().map(dimension).collect::<Result<Vec<_>>>()?;
        Ok(Self::new(Shape::dynamic_array(self::element_type(element_type)?, dimensions)?))
    }

    /// The shape of a token, which orders operations and holds no data.
    ///
    /// Examples:
    ///     >>> Shape.token()
    ///     Shape('token[]')
    #[staticmethod]
    fn token() -> Self {
        Self::new(Shape::token())
    }

    /// The shape of an opaque value, which only custom calls read.
    ///
    /// Examples:
    ///     >>> Shape.opaque()
    ///     Shape('opaque[]')
    #[staticmethod]
    fn opaque() -> Self {
        Self::new(Shape::opaque())
    }

    /// The shape of a buffer of an array.
    ///
    /// Raises:
    ///     ShapeError: not an array.
    ///
    /// Examples:
    ///     >>> Shape.buffer("f32[3]")
    ///     Shape('b(f32[3]{0})')
    #[staticmethod]
    #[pyo3(signature = (array: "ShapeLike", /), text_signature = "(array, /)")]
    fn buffer(array: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self::new(Shape::buffer(shape_of(array)?)?))
    }

    /// The array with this dimension made dynamic, at most its size, or static.
    ///
    /// Examples:
    ///     >>> Shape("f32[8,5]{0,1}").update_dynamic_dimension(0, True)
    ///     Shape('f32[<=8,5]{0,1}')
    #[pyo3(signature = (dimension: "int", is_dynamic, /), text_signature = "($self, dimension, is_dynamic, /)")]
    fn update_dynamic_dimension(&self, #[pyo3(from_py_with = whole)] dimension: i64, is_dynamic: bool) -> Result<Self> {
        Ok(Self::new(self.as_shape().update_dynamic_dimension(self.array()?.dimension_number(dimension)?, is_dynamic)?))
    }

    /// Every part as a (path, shape) pair, a tuple behind its elements, the shape itself last.
    ///
    /// Examples:
    ///     >>> [path for path, _ in Shape("(f32[2], (token[], s8[]))").subshapes_post_order()]
    ///     [(0,), (1, 0), (1, 1), (1,), ()]
    fn subshapes_post_order(&self) -> Vec<(Tuple<usize>, Self)> {
        let parts = self.as_shape().subshapes_post_order().into_iter();
        parts.map(|(path, part)| (Tuple(path), Self::new(part))).collect()
    }

    /// The shape with each part, a tuple behind its elements, replaced by the function's result for path and part.
    ///
    /// Examples:
    ///     >>> Shape("(f32[2], (s8[]))").map_subshapes_post_order(lambda path, part: "u8[]" if path == (1,) else part)
    ///     Shape('(f32[2]{0}, u8[])')
    #[pyo3(signature = (map: "Callable[[tuple[int, ...], Shape], ShapeLike]", /), text_signature = "($self, map, /)")]
    fn map_subshapes_post_order(&self, map: &Bound<'_, PyAny>) -> Result<Self> {
        let mapped = self
            .as_shape()
            .map_subshapes_post_order(|path, part| shape_of(&map.call1((Tuple::from(path), Self::new(part.clone())))?));
        Ok(Self::new(mapped?))
    }

    /// Whether each leaf is at the same path in the other shape, and equal.
    ///
    /// Examples:
    ///     >>> Shape("(f32[2])").is_prefix_of("(f32[2], s8[])")
    ///     True
    #[pyo3(signature = (other: "ShapeLike", /), text_signature = "($self, other, /)")]
    fn is_prefix_of(&self, other: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.as_shape().is_prefix_of(&shape_of(other)?))
    }

    /// Whether a value of this shape may stand where the bounded one is expected: no dynamic array is larger.
    ///
    /// Examples:
    ///     >>> Shape("f32[<=3]").dynamic_shape_is_compatible("f32[<=8]")
    ///     True
    #[pyo3(signature = (bounded: "ShapeLike", /), text_signature = "($self, bounded, /)")]
    fn dynamic_shape_is_compatible(&self, bounded: &Bound<'_, PyAny>) -> Result<bool> {
        Ok(self.as_shape().dynamic_shape_is_compatible(&shape_of(bounded)?))
    }

    /// XLA's `ByteSizeOf`: an array's elements without padding, or a tuple's table of pointers to its elements.
    ///
    /// Examples:
    ///     >>> Shape("(f32[256], s32[])").byte_size_of()
    ///     16
    #[pyo3(signature = (pointer_bytes: "int" = 8))]
    fn byte_size_of(&self, #[pyo3(from_py_with = whole)] pointer_bytes: u64) -> Result<u64> {
        Ok(self.as_shape().byte_size_of(pointer_bytes)?)
    }

    /// The bytes between neighbours along each dimension, as in an array without tiles.
    ///
    /// Examples:
    ///     >>> Shape("bf16[5,8,10]{1,2,0}").byte_strides()
    ///     (160, 2, 16)
    fn byte_strides(&self) -> Result<Tuple<u64>> {
        Ok(Tuple(self.array()?.byte_strides()?))
    }

    /// Whether a dimension varies slowest of those that are not of size 1.
    ///
    /// Examples:
    ///     >>> Shape("f32[1,16,279]").is_effectively_most_major_dimension(1)
    ///     True
    #[pyo3(signature = (dimension: "int", /), text_signature = "($self, dimension, /)")]
    fn is_effectively_most_major_dimension(&self, #[pyo3(from_py_with = whole)] dimension: i64) -> Result<bool> {
        let array = self.array()?;
        Ok(array.is_effectively_most_major_dimension(array.dimension_number(dimension)?)?)
    }

    /// The elements of the array, without padding; `None` where a dimension is `?`.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]{1,0:T(2,2)}").elements_in
    ///     15
    #[getter]
    fn elements_in(&self) -> Result<Option<u64>> {
        Ok(self.array()?.dimensions().iter().map(|dimension| dimension.bound()).product())
    }

    /// Whether it is an array without dimensions.
    ///
    /// Examples:
    ///     >>> Shape("f32[]").is_scalar
    ///     True
    #[getter]
    fn is_scalar(&self) -> bool {
        self.as_shape().as_array().is_some_and(|array| array.rank() == 0)
    }

    /// Whether a dimension has size 1.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,1]").has_degenerate_dimensions
    ///     True
    #[getter]
    fn has_degenerate_dimensions(&self) -> Result<bool> {
        Ok(self.array()?.dimensions().iter().any(|dimension| dimension.bound() == Some(1)))
    }

    /// Whether an element has that index.
    ///
    /// Examples:
    ///     >>> Shape("f32[3,5]").index_in_bounds((2, 4)), Shape("f32[3,5]").index_in_bounds((3, 0))
    ///     (True, False)
    #[pyo3(signature = (index, /), text_signature = "($self, index, /)")]
    fn index_in_bounds(&self, index: Few<u64>) -> Result<bool> {
        let index = index.0;
        let dimensions = self.array()?.dimensions();
        let is_below = |(at, dimension): (&u64, &Dimension)| dimension.bound().is_none_or(|bound| *at < bound);
        Ok(index.len() == dimensions.len() && index.iter().zip(dimensions).all(is_below))
    }
}

/// The answer of `tilewise index` to an equation of XLA's tiled-layout document, as JSON.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn equation_json(text: &str) -> Result<String> {
    let equation = Equation::read(text).map_err(|failure| Error::of_unread(failure, text))?;
    serde_json::to_string(&equation).map_err(|error| PyValueError::new_err(error.to_string()).into())
}
