//! NumPy arrays to read from and to write into.

use crate::errors::{Class, Error, Result};
use numpy::{
    Element, PyArray, PyArrayMethods, PyReadonlyArray, PyReadwriteArray, PyUntypedArrayMethods, dtype,
    ndarray::Dimension,
};
use pyo3::prelude::*;

/// A new array, whose every element is still to be written.
pub(crate) fn empty<'py, T: Element, D: Dimension>(
    py: Python<'py>,
    shape: impl IntoPyObject<'py>,
) -> Result<Bound<'py, PyArray<T, D>>> {
    // Of all ways to ask for memory, NumPy's has the largest pages.
    let new = py.import("numpy")?.call_method1("empty", (shape, dtype::<T>(py)))?;
    Ok(new.cast_into().map_err(PyErr::from)?)
}

/// An array that no other call writes to meanwhile.
pub(crate) fn readable<'py, T: Element, D: Dimension>(
    class: Class,
    array: &Bound<'py, PyArray<T, D>>,
) -> Result<PyReadonlyArray<'py, T, D>> {
    let message = "another call is writing to the memory that is to be read";
    array.try_readonly().map_err(|_| Error::new(class, "buffer_in_use", message))
}

/// An array that no other call uses meanwhile, in the order of its indices.
pub(crate) fn writable<'py, T: Element, D: Dimension>(
    class: Class,
    array: &Bound<'py, PyArray<T, D>>,
) -> Result<PyReadwriteArray<'py, T, D>> {
    let refused = |why: &str| Error::new(class, "buffer_not_writable", format!("can't write into `out`: {why}"));
    // A column-major array is one piece of memory too, but in another order.
    if !array.is_c_contiguous() {
        return Err(refused("it is not contiguous"));
    }
    array.try_readwrite().map_err(|error| match error {
        numpy::BorrowError::NotWriteable => refused("it is read-only"),
        _ => refused("it is in use, as the source or by another call"),
    })
}
