//! Text from files and from bytes, plain or gzip, and the programs in folders.

use crate::errors::Result;
use pyo3::{exceptions::PyOSError, prelude::*};
use std::path::PathBuf;

/// A file's text, plain or gzip.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, path: PathBuf) -> Result<String> {
    match py.detach(|| tilewise_hlo::read_text(&path)) {
        Ok(text) => Ok(text),
        Err(error) => match system_error(&error) {
            Some(number) => {
                let text = py.import("os")?.call_method1("strerror", (number,))?.unbind();
                Err(PyOSError::new_err((number, text, path.into_os_string())).into())
            }
            None => Err(error.into()),
        },
    }
}

/// The files in a folder that are audited; `None` if the path isn't a folder.
#[pyfunction]
pub(crate) fn programs_in(py: Python<'_>, path: PathBuf) -> Result<Option<Vec<PathBuf>>> {
    let found = py.detach(|| path.is_dir().then(|| tilewise_cli::programs_in(&path)));
    Ok(found.transpose()?)
}

/// Bytes as text, plain or gzip.
#[pyfunction]
#[pyo3(signature = (bytes: "bytes"))]
pub(crate) fn decode(py: Python<'_>, bytes: Vec<u8>) -> Result<String> {
    Ok(py.detach(|| tilewise_hlo::decode(bytes, tilewise_hlo::DECOMPRESSION_LIMIT))?)
}

/// The operating system's error number, if it caused the error.
fn system_error(error: &tilewise_hlo::Error) -> Option<i32> {
    std::error::Error::source(error)?.downcast_ref::<std::io::Error>()?.raw_os_error()
}
