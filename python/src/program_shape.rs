//! `ProgramShape`: the shapes of a computation's parameters and result.

use crate::{
    builtins::str_of,
    errors::{Error, Result},
    shape::PyShape,
    typed::Tuple,
};
use pyo3::{
    prelude::*,
    types::{PyString, PyType},
};
use tilewise::ProgramShape;

/// The shapes of a computation's parameters and of its result: XLA's `ProgramShape`.
///
/// Parsed from XLA's text, with layouts or without; a missing layout stays missing. `str` returns the text as XLA prints it, without layouts.
///
/// Raises:
///     ParseError: the string is not the shape of a program.
///
/// Examples:
///     >>> program = ProgramShape("(x: f32[2]{0:S(1)}, s32[]) -> f32[3]")
///     >>> program.parameters
///     (('x', Shape('f32[2]{0:S(1)}')), (None, Shape('s32[]')))
///     >>> program.result
///     Shape('f32[3]')
///     >>> str(program)
///     '(x: f32[2], s32[]) -> f32[3]'
#[pyclass(frozen, eq, hash, module = "tilewise", name = "ProgramShape")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PyProgramShape(ProgramShape);

impl PyProgramShape {
    /// The text with layouts, which XLA's text leaves out; it parses to the same value.
    fn text(&self) -> String {
        let parameters = self.0.parameters.iter().map(|(name, shape)| match name {
            Some(name) => format!("{name}: {shape}"),
            None => shape.to_string(),
        });
        format!("({}) -> {}", parameters.collect::<Vec<_>>().join(", "), self.0.result)
    }
}

#[pymethods]
impl PyProgramShape {
    #[new]
    #[pyo3(signature = (text, /), text_signature = "(text, /)")]
    fn new(text: &Bound<'_, PyString>) -> Result<Self> {
        let text = str_of(text)?;
        Ok(Self(text.parse().map_err(|error| Error::in_text(error, text))?))
    }

    /// Each parameter's name, `None` where it has none, and its shape.
    #[getter]
    fn parameters(&self) -> Tuple<(Option<String>, PyShape)> {
        self.0.parameters.iter().map(|(name, shape)| (name.clone(), PyShape::new(shape.clone()))).collect()
    }

    /// The result's shape.
    #[getter]
    fn result(&self) -> PyShape {
        PyShape::new(self.0.result.clone())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("ProgramShape('{}')", self.text())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String,)) {
        (slf.get_type(), (slf.get().text(),))
    }
}
