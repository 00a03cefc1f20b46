//! Values pickled and copied as JSON, and their JSON for users.

use pyo3::{PyClass, exceptions::PyValueError, prelude::*, types::PyType};
#[cfg(feature = "stub")]
use pyo3::{PyTypeInfo, inspect::PyStaticExpr};
use serde::{Deserialize, Serialize};

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
pub(crate) fn parsed<'a, T: Deserialize<'a>>(held: &'a str) -> PyResult<T> {
    serde_json::from_str(held).map_err(not_held)
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
pub(crate) fn not_held(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A value's JSON, with the version of its schema.
pub(crate) fn to_json(held: &impl Serialize) -> PyResult<String> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        schema: u8,
        #[serde(flatten)]
        held: &'a T,
    }
    serde_json::to_string(&Line { schema: 1, held }).map_err(not_held)
}

/// The error of a text that isn't the JSON of such a value.
pub(crate) fn not_one(class: &str, error: &PyErr) -> PyErr {
    PyValueError::new_err(format!("this is not a {class} in JSON: {error}"))
}

/// A value that Python has as its JSON's `dict`, `list` or number.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Json<T>(pub(crate) T);

impl<'py, T: Serialize> IntoPyObject<'py> for Json<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    #[cfg(feature = "stub")]
    const OUTPUT_TYPE: PyStaticExpr = PyAny::TYPE_HINT;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let text = serde_json::to_string(&self.0).map_err(not_held)?;
        py.import("json")?.call_method1("loads", (text,))
    }
}
