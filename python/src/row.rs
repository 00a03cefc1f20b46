//! `Row`, which `Buffer` and `Allocation` extend, and `SourceLine`.

use crate::fix::PyFix;
use pyo3::prelude::*;
use tilewise_audit::{SourceLine, fix::Advice};

/// The base class of `Buffer` and `Allocation`: something that takes memory, its padding, the causes, and what to
/// change. Sizes are in bytes.
///
/// Examples:
///     >>> row = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").buffers[0]
///     >>> row.padding_bytes, row.causes
///     (185600000, ['dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used'])
#[pyclass(frozen, subclass, module = "tilewise", name = "Row")]
pub(crate) struct PyRow {
    /// Bytes of padding; 0 if they can't be computed.
    #[pyo3(get)]
    pub(crate) padding_bytes: u64,
    /// Bytes taken as a multiple of the bytes of data; 1 if that can't be computed.
    #[pyo3(get)]
    pub(crate) expansion: f64,
    /// The causes of the padding, as sentences, the largest first.
    #[pyo3(get)]
    pub(crate) causes: Vec<String>,
    /// The framework's name of the operation, such as `'jit(f)/dot_general'`.
    #[pyo3(get)]
    pub(crate) op_name: Option<String>,
    /// The line of the user's program.
    #[pyo3(get)]
    pub(crate) source: Option<PySourceLine>,
    /// Searches for fixes only when asked: a program has many buffers.
    pub(crate) advice: Box<dyn Fn() -> Option<Advice> + Send + Sync>,
}

#[pymethods]
impl PyRow {
    /// Changes that make it take less memory, the best first.
    #[getter]
    fn fixes(&self) -> Vec<PyFix> {
        (self.advice)().map_or(Vec::new(), |advice| advice.fixes.iter().map(PyFix::of).collect())
    }

    /// The best fix; `None` if there is none.
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
    /// The path of the file, as the program's metadata has it.
    file: String,
    /// The line number, from 1.
    line: u32,
    /// The function, if the metadata names it.
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
