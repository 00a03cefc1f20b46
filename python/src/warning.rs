//! `ReportWarning`.

use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use tilewise_audit::ReportWarning;

/// A part of a program's text that could not be read or sized; or, first, that the program was not compiled for a TPU.
///
/// Examples:
///     >>> first, *_, last = audit("x = b16[3] parameter(0)").warnings
///     >>> first.kind
///     'not_tpu'
///     >>> last
///     <ReportWarning shape: the shape of `x` isn't valid: `b16` is not an element type ...>
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "ReportWarning")]
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyReportWarning {
    /// A stable name in snake case.
    kind: String,
    /// The warning, as a sentence.
    message: String,
}

impl PyReportWarning {
    pub(crate) fn of(warning: &ReportWarning) -> Self {
        Self { kind: warning.as_str().to_owned(), message: tilewise_report::warning(warning) }
    }
}

#[pymethods]
impl PyReportWarning {
    fn __str__(&self) -> &str {
        &self.message
    }

    fn __repr__(&self) -> String {
        format!("<ReportWarning {}: {}>", self.kind, self.message)
    }
}
