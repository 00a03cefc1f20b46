//! Offsets and indices, of one element and of many.

use crate::{
    arrays::{empty, writable},
    errors::{Class, Error, Result},
    few,
    integers::{Failed, Integers},
};
use numpy::{Element, PyArrayDyn, PyUntypedArrayMethods, dtype};
use pyo3::prelude::*;
use tilewise::Tiled;

pub(crate) fn offset(tiled: &Tiled, index: &Bound<'_, PyAny>) -> Result<u64> {
    let parts: Vec<Bound<'_, PyAny>> = index.try_iter()?.take(few::MOST + 1).collect::<PyResult<_>>()?;
    few::check(parts.len())?;
    let mut numbers = Vec::with_capacity(parts.len());
    for (dimension, part) in parts.iter().enumerate() {
        match natural(part)? {
            Some(number) => numbers.push(number),
            // Negative, or above 2^64: outside whatever the bound is.
            None if parts.len() == tiled.logical_dimensions().len() => {
                let bound = tiled.logical_dimensions()[dimension];
                return Err(outside(format!("index {part} is outside dimension {dimension}, which has bound {bound}")));
            }
            None => numbers.push(0),
        }
    }
    Ok(tiled.offset_of(&numbers)?)
}

pub(crate) fn index(tiled: &Tiled, offset: &Bound<'_, PyAny>) -> Result<Option<Vec<u64>>> {
    match natural(offset)? {
        Some(offset) => Ok(tiled.index_of(offset)?),
        None => Err(outside_buffer(offset, tiled)),
    }
}

pub(crate) fn offsets<'py>(
    tiled: &Tiled,
    indices: &Bound<'py, PyAny>,
    out: Option<Bound<'py, PyArrayDyn<i64>>>,
    threads: usize,
) -> Result<Bound<'py, PyArrayDyn<i64>>> {
    let py = indices.py();
    let rank = tiled.logical_dimensions().len();
    let (indices, shape) = Integers::of(indices, |shape| match shape.split_last() {
        Some((&last, outer)) if last == rank => Ok((rank, outer.to_vec())),
        _ => {
            let message = format!(
                "the last axis of the indices must have the length of the rank, {rank}; their shape is {shape:?}"
            );
            Err(Error::new(Class::Shape, "index_rank_mismatch", message))
        }
    })?;
    let result = result(py, out, shape)?;
    {
        let unsigned = unsigned(&result)?;
        let mut offsets = writable(Class::Shape, &unsigned)?;
        let offsets = offsets.as_slice_mut().map_err(PyErr::from)?;
        let fill = |numbers: &[u64], offsets: &mut [u64]| tiled.fill_offsets(numbers, offsets);
        let filled = indices.convert(py, offsets, 1, threads, fill);
        filled.map_err(|failed| match failed {
            Failed::Core(error) => error.into(),
            Failed::Negative(number) => outside(format!("index {number} is outside {:?}", tiled.logical_dimensions())),
        })?;
    }
    Ok(result)
}

pub(crate) fn indices<'py>(
    tiled: &Tiled,
    offsets: &Bound<'py, PyAny>,
    out: Option<Bound<'py, PyArrayDyn<i64>>>,
    threads: usize,
) -> Result<Bound<'py, PyArrayDyn<i64>>> {
    let py = offsets.py();
    let rank = tiled.logical_dimensions().len();
    let (offsets, shape) = Integers::of(offsets, |shape| Ok((1, [shape, &[rank]].concat())))?;
    let result = result(py, out, shape)?;
    {
        // The core marks padding with the largest u64, which is −1 as an i64. No index reaches 2^63.
        let unsigned = unsigned(&result)?;
        let mut indices = writable(Class::Shape, &unsigned)?;
        let indices = indices.as_slice_mut().map_err(PyErr::from)?;
        let fill = |numbers: &[u64], indices: &mut [u64]| tiled.fill_indices(numbers, indices);
        let filled = offsets.convert(py, indices, rank, threads, fill);
        filled.map_err(|failed| match failed {
            Failed::Core(error) => error.into(),
            Failed::Negative(number) => outside_buffer(number, tiled),
        })?;
    }
    Ok(result)
}

/// The array viewed as `u64`, the core's type. No offset reaches 2^63.
fn unsigned<'py>(array: &Bound<'py, PyArrayDyn<i64>>) -> Result<Bound<'py, PyArrayDyn<u64>>> {
    let unsigned = array.call_method1("view", (dtype::<u64>(array.py()),))?;
    Ok(unsigned.cast_into().map_err(PyErr::from)?)
}

/// The array to write into: `out` if it has the right shape, or a new one.
fn result<'py, T: Element>(
    py: Python<'py>,
    out: Option<Bound<'py, PyArrayDyn<T>>>,
    shape: Vec<usize>,
) -> Result<Bound<'py, PyArrayDyn<T>>> {
    match out {
        None => empty(py, shape),
        Some(out) if out.shape() == shape => Ok(out),
        Some(out) => {
            let message = format!("`out` has the shape {:?}, the result has the shape {shape:?}", out.shape());
            Err(Error::new(Class::Shape, "buffer_length_mismatch", message))
        }
    }
}

/// A Python integer as a `u64`; `None` if it is negative or too large.
fn natural(number: &Bound<'_, PyAny>) -> Result<Option<u64>> {
    match number.extract::<u64>() {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(number.py()) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn outside(message: String) -> Error {
    Error::new(Class::OutOfRange, "index_out_of_bounds", message)
        .with_help("indices start at 0; negative ones do not count from the end")
}

fn outside_buffer(offset: impl std::fmt::Display, tiled: &Tiled) -> Error {
    let message = format!("offset {offset} is outside the buffer, which has {} elements", tiled.physical_elements());
    Error::new(Class::OutOfRange, "offset_out_of_range", message)
}
