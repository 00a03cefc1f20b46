//! `Row`, which `Buffer` and `Allocation` extend, and `SourceLine`.

use crate::fix::PyFix;
use pyo3::prelude::*;
use tilewise_audit::{SourceLine, fix::Advice};

/// Something that takes memory, what of it is padding, why, and what to change: a `Buffer` or an `Allocation`. Sizes are in bytes.
///
/// Examples:
///     >>> row = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").buffers[0]
///     >>> row.padding_bytes, row.causes
///     (185600000, ['dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used'])
#[pyclass(frozen, subclass, module = "tilewise", name = "Row")]
pub(crate) struct PyRow {
    /// Bytes that hold no data; 0 where they can't be computed.
    #[pyo3(get)]
    pub(crate) padding_bytes: u64,
    /// How many times its data the array takes; 1 where that can't be computed.
    #[pyo3(get)]
    pub(crate) expansion: f64,
    /// What makes the padding, in words, the largest cause first.
    #[pyo3(get)]
    pub(crate) causes: Vec<String>,
    /// The framework's name of the operation, such as `'jit(f)/dot_general'`.
    #[pyo3(get)]
    pub(crate) op_name: Option<String>,
    /// The line of the user's program.
    #[pyo3(get)]
    pub(crate) source: Option<PySourceLine>,
    /// Searched for when first asked for: a program has many buffers.
    pub(crate) advice: Box<dyn Fn() -> Option<Advice> + Send + Sync>,
}

#[pymethods]
impl PyRow {
    /// What to change so that it takes less, the best first.
    #[getter]
    fn fixes(&self) -> Vec<PyFix> {
        (self.advice)().map_or(Vec::new(), |advice| advice.fixes.iter().map(PyFix::of).collect())
    }

    /// The best fix, if there is one.
    #[getter]
    fn fix(&self) -> Option<PyFix> {
        (self.advice)()?.best().map(PyFix::of)
    }
}

/// A line of the user's program; `str` gives `file:line`.
///
/// Examples:
///     >>> import pathlib
///     >>> worst = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).largest_padding()[0]
///     >>> str(worst.source)
///     'model.py:439'
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "SourceLine")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PySourceLine {
    /// The file, as the compiler was told.
    file: String,
    /// The line, from 1.
    line: u32,
    /// The function, where the text says.
    function: Option<String>,
}

impl PySourceLine {
    pub(crate) fn of(line: &SourceLine) -> Self {
        Self { file: line.file.clone(), line: line.line, function: line.function.clone() }
    }
}

#[pymethods]
impl PySourceLine {
    fn __str__(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    fn __repr__(&self) -> String {
        format!("<SourceLine {}:{}>", self.file, self.line)
    }
}
