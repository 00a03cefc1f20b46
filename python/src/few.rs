//! Arguments with one item per dimension.

#[cfg(feature = "stub")]
use pyo3::inspect::PyStaticExpr;
use pyo3::{
    exceptions::{PyOverflowError, PyValueError},
    prelude::*,
};
use std::ops::Deref;

/// The most items of an argument: no array has more dimensions.
pub(crate) const MOST: usize = 1 << 16;

/// Items of an argument. A caller's object may claim any length, and memory is reserved by that length: it is checked
/// first.
pub(crate) struct Few<T>(pub(crate) Vec<T>);

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Few<T>
where
    Vec<T>: FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;
    #[cfg(feature = "stub")]
    const INPUT_TYPE: PyStaticExpr = PyStaticExpr::Subscript {
        value: &PyStaticExpr::Attribute { value: &PyStaticExpr::Name { id: "collections.abc" }, attr: "Sequence" },
        slice: &T::INPUT_TYPE,
    };

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(length) = value.len() {
            check(length)?;
        }
        value.extract().map(Self).map_err(|error: PyErr| {
            let py = value.py();
            let is_overflow = error.is_instance_of::<PyOverflowError>(py);
            if is_overflow { PyValueError::new_err(error.value(py).to_string()) } else { error }
        })
    }
}

impl<T> Deref for Few<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Refuses more than [`MOST`] dimensions.
pub(crate) fn check(dimensions: usize) -> PyResult<()> {
    if dimensions > MOST {
        let message = format!("{dimensions} items, where an array has an item a dimension and no more than {MOST}");
        return Err(PyValueError::new_err(message));
    }
    Ok(())
}
