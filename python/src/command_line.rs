//! The command line in this process.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the `tilewise` command line with these arguments, the program's name first, and returns its exit status.
///
/// It reads and writes the standard streams of the process.
#[pyfunction]
#[pyo3(signature = (arguments: "Sequence[str]"))]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| tilewise_cli::run(arguments))
}

/// Whether these arguments, the program's name first, ask a compiler.
#[pyfunction]
#[pyo3(signature = (arguments: "Sequence[str]"))]
#[expect(clippy::needless_pass_by_value, reason = "as Python hands it over")]
pub(crate) fn asks_compiler(arguments: Vec<OsString>) -> bool {
    tilewise_cli::asks_compiler(&arguments)
}
