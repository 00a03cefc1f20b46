//! `Row`, which `Buffer` and `Allocation` extend, and `SourceLine`.

use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilewise_audit::SourceLine;

/// The base class of `Buffer` and `Allocation`: something that takes memory, its padding and the causes. Sizes are in
/// bytes.
///
/// Examples:
///     >>> row = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").buffers[0]
///     >>> row.padding_bytes, row.causes
///     (185600000, ['dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used'])
#[pyclass(frozen, subclass, module = "tilewise", name = "Row")]
pub(crate) struct PyRow(pub(crate) Arc<Taken>);

/// A row's sizes and origin.
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Taken {
    pub(crate) reported_bytes: Option<u64>,
    pub(crate) logical_bytes: Option<u64>,
    pub(crate) physical_bytes: Option<u64>,
    pub(crate) causes: Vec<String>,
    pub(crate) op_name: Option<String>,
    pub(crate) source: Option<PySourceLine>,
}

#[pymethods]
impl PyRow {
    /// Bytes taken; for a message's entry without a readable shape, as printed. `None` if neither is known.
    #[getter]
    fn bytes(&self) -> Option<u64> {
        self.0.physical_bytes.or(self.0.reported_bytes)
    }

    /// Bytes of padding; 0 if they can't be computed.
    #[getter]
    pub(crate) fn padding_bytes(&self) -> u64 {
        self.0.physical_bytes.unwrap_or(0).saturating_sub(self.0.logical_bytes.unwrap_or(0))
    }

    /// Bytes taken as a multiple of the bytes of data; 1 if that can't be computed.
    #[getter]
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn expansion(&self) -> f64 {
        match (self.0.physical_bytes, self.0.logical_bytes) {
            (Some(physical), Some(logical)) if logical > 0 => physical as f64 / logical as f64,
            _ => 1.0,
        }
    }

    /// Bytes of data, computed from the shape.
    #[getter]
    fn logical_bytes(&self) -> Option<u64> {
        self.0.logical_bytes
    }

    /// Bytes taken, computed from the shape.
    #[getter]
    fn physical_bytes(&self) -> Option<u64> {
        self.0.physical_bytes
    }

    /// The causes of the padding, as sentences, the largest first.
    #[getter]
    fn causes(&self) -> Vec<String> {
        self.0.causes.clone()
    }

    /// The framework's name of the operation, such as `'jit(f)/dot_general'`.
    #[getter]
    fn op_name(&self) -> Option<&str> {
        self.0.op_name.as_deref()
    }

    /// The line of the user's program.
    #[getter]
    fn source(&self) -> Option<PySourceLine> {
        self.0.source.clone()
    }
}

/// A line of the user's program; `str` gives `file:line`.
///
/// Examples:
///     >>> import pathlib
///     >>> worst = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).largest_padding()[0]
///     >>> str(worst.source)
///     'model.py:439'
#[pyclass(frozen, eq, hash, module = "tilewise", name = "SourceLine")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PySourceLine {
    /// The path of the file, as the program's metadata has it.
    #[pyo3(get)]
    file: String,
    /// The line number, from 1.
    #[pyo3(get)]
    line: u32,
    /// The function, if the metadata names it.
    #[pyo3(get)]
    function: Option<String>,
    library: Option<Box<Self>>,
}

impl PySourceLine {
    pub(crate) fn of(line: &SourceLine) -> Self {
        let library = line.library.as_deref().map(|library| Box::new(Self::of(library)));
        Self { file: line.file.clone(), line: line.line, function: line.function.clone(), library }
    }
}

#[pymethods]
impl PySourceLine {
    /// The line of an installed package, such as a model's, that it leads to; `None` without one.
    #[getter]
    fn library(&self) -> Option<Self> {
        self.library.as_deref().cloned()
    }

    fn __str__(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    fn __repr__(&self) -> String {
        format!("<SourceLine {}:{}>", self.file, self.line)
    }
}
