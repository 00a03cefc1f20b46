//! NumPy arrays to read from and to write into.

use crate::errors::{Class, Error, Result};
use numpy::{
    Element, PyArray, PyArrayMethods, PyReadonlyArray, PyReadwriteArray, PyUntypedArrayMethods, dtype,
    ndarray::Dimension,
};
use pyo3::prelude::*;

/// A new array with uninitialised contents: the caller writes every element.
pub(crate) fn empty<'py, T: Element, D: Dimension>(
    py: Python<'py>,
    shape: impl IntoPyObject<'py>,
) -> Result<Bound<'py, PyArray<T, D>>> {
    // NumPy's allocator asks the system for huge pages.
    let new = py.import("numpy")?.call_method1("empty", (shape, dtype::<T>(py)))?;
    Ok(new.cast_into().map_err(PyErr::from)?)
}

/// The array borrowed for reading: it fails while another call writes to the same memory.
pub(crate) fn readable<'py, T: Element, D: Dimension>(
    class: Class,
    array: &Bound<'py, PyArray<T, D>>,
) -> Result<PyReadonlyArray<'py, T, D>> {
    let message = "can't read the array: another call is writing to it";
    array.try_readonly().map_err(|_| Error::new(class, "buffer_in_use", message))
}

/// The array borrowed for writing: it must be C-contiguous, writable, and not in use by another call.
pub(crate) fn writable<'py, T: Element, D: Dimension>(
    class: Class,
    array: &Bound<'py, PyArray<T, D>>,
) -> Result<PyReadwriteArray<'py, T, D>> {
    let refused = |why: &str| Error::new(class, "buffer_not_writable", format!("can't write into `out`: {why}"));
    // A Fortran-contiguous array would pass NumPy's test for a slice, with its elements in another order.
    if !array.is_c_contiguous() {
        return Err(refused("it is not contiguous"));
    }
    array.try_readwrite().map_err(|error| match error {
        numpy::BorrowError::NotWriteable => refused("it is read-only"),
        _ => refused("it is in use, as the input or by another call"),
    })
}
