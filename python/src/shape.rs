//! `Shape`: the class. Its methods are in `shape_methods` and the other modules `shape_…`.

use crate::{
    builtins::str_of,
    errors::{Class, Error, Result},
};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyString};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{
    hash::{Hash, Hasher},
    sync::OnceLock,
};
use tilewise::{ArrayShape, Shape, Tiled};
use tilewise_report::parse_shape;

/// An XLA shape: an array with its layout, a tuple of shapes, or a token, opaque or buffer.
///
/// Parsed from XLA's text, which `str` returns byte for byte. As in XLA, a missing layout becomes the default one, the
/// last dimension minor; `Shape.parse_as_written` leaves it missing. A name behind `@` gives the array the tiles of another
/// machine or library, as `tilewise tiles` lists them.
///
/// Immutable and hashable. `==` is XLA's equality, which ignores run-time metadata (`M(n)`). Offsets and indices are in
/// elements, sizes in bytes.
///
/// Raises:
///     ParseError: the string is not a shape; `.span` is the place of the error, and the message points at it.
///
/// Examples:
///     >>> s = Shape("f32[3,5]{1,0:T(2,2)}")
///     >>> s
///     Shape('f32[3,5]{1,0:T(2,2)}')
///     >>> s.offset((2, 3))
///     17
///     >>> s.logical_bytes, s.physical_bytes
///     (60, 96)
///     >>> Shape("bf16[100,300]@tt-tile")
///     Shape('bf16[100,300]{1,0:T(32,32)(16,16)}')
///     >>> Shape("b16[2]")
///     Traceback (most recent call last):
///     ...
///     tilewise.ParseError: `b16` is not an element type
///       b16[2]
///       ^^^
///     help: did you mean `bf16`?
#[pyclass(frozen, module = "tilewise", name = "Shape")]
#[derive(Clone)]
pub(crate) struct PyShape {
    shape: Shape,
    /// Computed on first use.
    tiled: OnceLock<Result<Tiled, tilewise::Error>>,
}

impl PyShape {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, tiled: OnceLock::new() }
    }

    pub(crate) fn as_shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn tiled(&self) -> Result<&Tiled> {
        self.tiled.get_or_init(|| Tiled::new(&self.shape)).as_ref().map_err(|error| error.clone().into())
    }

    pub(crate) fn array(&self) -> Result<&ArrayShape> {
        self.shape.as_array().ok_or_else(|| {
            let kind = self.shape.kind().name();
            let error = Error::new(Class::Shape, "not_an_array", format!("a shape of kind '{kind}' is not an array"));
            if kind == "tuple" { error.with_help("use its `elements` or `leaves()`") } else { error }
        })
    }
}

/// XLA's equality.
impl PartialEq for PyShape {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
    }
}

impl Eq for PyShape {}

impl Hash for PyShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shape.hash(state);
    }
}

/// XLA's text.
impl Serialize for PyShape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.shape)
    }
}

impl<'de> Deserialize<'de> for PyShape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Shape::parse_as_written(&text).map(Self::new).map_err(D::Error::custom)
    }
}

impl std::fmt::Display for PyShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.shape.fmt(f)
    }
}

/// The shape of a `Shape` or of a `str`.
pub(crate) fn shape_of(value: &Bound<'_, PyAny>) -> Result<Shape> {
    if let Ok(shape) = value.cast::<PyShape>() {
        return Ok(shape.get().as_shape().clone());
    }
    let Ok(text) = value.cast::<PyString>() else {
        let message = format!("expected a Shape or a str, not {}", value.get_type().name()?);
        return Err(PyTypeError::new_err(message).into());
    };
    let text = str_of(text)?;
    parse_shape(text).map_err(|failure| Error::of_unread(failure, text))
}
