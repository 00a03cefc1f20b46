//! Values pickled and copied as JSON.

use pyo3::{PyClass, exceptions::PyValueError, prelude::*, types::PyType};
use serde::{Serialize, de::DeserializeOwned};

/// The result of `__reduce__`: a function and its arguments; mostly `restore`, the class, and the value's JSON.
pub(crate) type Reduced<'py, A = (Bound<'py, PyType>, String)> = (Bound<'py, PyAny>, A);

/// The pickled form of a value of class `T`, from its fields.
pub(crate) fn reduced<'py, T: PyClass>(py: Python<'py>, held: &impl Serialize) -> PyResult<Reduced<'py>> {
    let held = serde_json::to_string(held).map_err(not_held)?;
    Ok((native(py, "restore")?, (py.get_type::<T>(), held)))
}

/// A function of the native module, which pickled values call.
pub(crate) fn native<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("tilewise._tilewise")?.getattr(name)
}

/// The value in a JSON text.
pub(crate) fn parsed<T: DeserializeOwned>(held: &str) -> PyResult<T> {
    serde_json::from_str(held).map_err(not_held)
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
pub(crate) fn not_held(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
