//! Values that travel: pickled and copied as the JSON of what they hold, and made again from it.

use crate::{
    advice::{PyAdvice, PyMessageAdvice},
    buffer::PyBuffer,
    copy::PyCopy,
    explanation::PyAllocation,
    fix::PyFix,
    report::PyReportWarning,
    row::PySourceLine,
    space::{PyPeakBuffer, PySpaceTotal},
};
use pyo3::{
    PyClass,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyType,
};
use serde::{Serialize, de::DeserializeOwned};

/// What `__reduce__` returns: a function and its arguments; mostly `restore`, the class, and what the value holds.
pub(crate) type Reduced<'py, A = (Bound<'py, PyType>, String)> = (Bound<'py, PyAny>, A);

/// What pickles a value of this class that holds that.
pub(crate) fn reduced<'py, T: PyClass>(py: Python<'py>, held: &impl Serialize) -> PyResult<Reduced<'py>> {
    let held = serde_json::to_string(held).map_err(not_held)?;
    Ok((native(py, "restore")?, (py.get_type::<T>(), held)))
}

/// The value of that class that holds that. Pickled values call it.
#[pyfunction]
pub(crate) fn restore<'py>(class: &Bound<'py, PyType>, held: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    macro_rules! first_of {
        ($($type:ty)*) => {
            $(if class.is(&py.get_type::<$type>()) {
                return Ok(Bound::new(py, parsed::<$type>(held)?)?.into_any());
            })*
        };
    }
    first_of!(PyAdvice PyCopy PyFix PyMessageAdvice PyPeakBuffer PyReportWarning PySourceLine PySpaceTotal);
    if class.is(py.get_type::<PyBuffer>()) {
        return Ok(PyBuffer::of(py, parsed(held)?)?.into_any());
    }
    if class.is(py.get_type::<PyAllocation>()) {
        return Ok(PyAllocation::of(py, parsed(held)?)?.into_any());
    }
    Err(PyTypeError::new_err(format!("values of {class} are not restored from text")))
}

/// A function of the native module, which pickled values call.
pub(crate) fn native<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("tilewise._tilewise")?.getattr(name)
}

fn parsed<T: DeserializeOwned>(held: &str) -> PyResult<T> {
    serde_json::from_str(held).map_err(not_held)
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
fn not_held(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
