//! Arguments that are whole numbers.

use pyo3::{
    exceptions::{PyOverflowError, PyValueError},
    prelude::*,
};

/// A whole number of one of Rust's types. Python's `OverflowError` names neither the number nor the range.
///
/// # Errors
///
/// `ValueError` with the range.
pub(crate) fn whole<'py, T>(value: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: Ranged + for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    value.extract().map_err(|error: PyErr| {
        if !error.is_instance_of::<PyOverflowError>(value.py()) {
            return error;
        }
        let given = value.to_string();
        let given = if given.len() > 40 { "that" } else { &given };
        PyValueError::new_err(format!("{given} is no number from {} to {}", T::LEAST, T::MOST))
    })
}

/// The range of a number type.
pub(crate) trait Ranged {
    const LEAST: i128;
    const MOST: i128;
}

macro_rules! ranged {
    ($($number:ty)*) => {
        $(impl Ranged for $number {
            const LEAST: i128 = <$number>::MIN as i128;
            const MOST: i128 = <$number>::MAX as i128;
        })*
    };
}

ranged!(u8 u64 usize i64);

impl<T: Ranged> Ranged for Option<T> {
    const LEAST: i128 = T::LEAST;
    const MOST: i128 = T::MOST;
}
