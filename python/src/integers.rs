//! NumPy integers of any dtype and any strides, passed on as slices of `u64`.

use crate::{
    arrays::readable,
    errors::{Class, Result},
    threads::available,
};
use numpy::{
    Element, PyArrayDescrMethods, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods, dtype,
    ndarray::{ArrayView2, Axis},
};
use pyo3::{
    exceptions::{PyMemoryError, PyTypeError, PyValueError},
    prelude::*,
};
use std::{panic, thread};

/// A two-dimensional array of integers: one index, or one offset, a row.
pub(crate) struct Integers<'py> {
    rows: Rows<'py>,
    signed: bool,
}

/// The array in NumPy's dtype; int64 is viewed as uint64.
enum Rows<'py> {
    U64(PyReadonlyArray2<'py, u64>),
    I32(PyReadonlyArray2<'py, i32>),
    U32(PyReadonlyArray2<'py, u32>),
    I16(PyReadonlyArray2<'py, i16>),
    U16(PyReadonlyArray2<'py, u16>),
    I8(PyReadonlyArray2<'py, i8>),
    U8(PyReadonlyArray2<'py, u8>),
}

/// Why integers can't be converted.
pub(crate) enum Failed {
    Negative(i64),
    Core(tilewise::Error),
}

impl<'py> Integers<'py> {
    /// The integers in an array-like value. `check` turns its shape into the width of a row, in integers, and whatever
    /// else the caller wants to know.
    ///
    /// Copies only arrays of another byte order, unaligned ones, and those whose strides do not reshape into rows.
    pub(crate) fn of<T>(
        value: &Bound<'py, PyAny>,
        check: impl FnOnce(&[usize]) -> Result<(usize, T)>,
    ) -> Result<(Self, T)> {
        let py = value.py();
        let numpy = py.import("numpy")?;
        let array = numpy.call_method1("asarray", (value,)).map_err(|error| in_memory(py, error))?;
        let array = array.cast_into::<PyUntypedArray>().map_err(PyErr::from)?;
        let kind = array.dtype().kind();
        // NumPy makes an array of floats of an empty list.
        if !matches!(kind, b'i' | b'u') && array.len() > 0 {
            let message = format!("indices and offsets are integers, not {}", array.dtype());
            return Err(PyTypeError::new_err(message).into());
        }
        let (width, more) = check(array.shape())?;
        let outer: usize = array.shape().iter().rev().skip(1).product();
        let count = array.len().checked_div(width).unwrap_or(outer);
        let mut rows = array.call_method1("reshape", (count, width))?;
        if !is_plain(&rows)? {
            // A dtype string without a byte order means the machine's own.
            let native = if kind == b'u' { 'u' } else { 'i' };
            let size = if matches!(kind, b'i' | b'u') { array.dtype().itemsize() } else { 8 };
            rows = numpy.call_method1("array", (rows, format!("{native}{size}")))?;
        }
        Ok((Self { rows: Rows::of(&rows)?, signed: kind != b'u' }, more))
    }

    /// Calls `fill` with runs of whole rows and the results' slice for them, `width` numbers a row. Releases the GIL.
    pub(crate) fn convert(
        &self,
        py: Python<'_>,
        results: &mut [u64],
        width: usize,
        threads: usize,
        fill: impl Fn(&[u64], &mut [u64]) -> Result<(), tilewise::Error> + Sync,
    ) -> Result<(), Failed> {
        let signed = self.signed;
        let fill = |numbers: &[u64], results: &mut [u64]| {
            fill(numbers, results).map_err(|error| {
                // A negative number read as a u64 is out of range too: report it with its sign.
                let negative = numbers.iter().map(|number| number.cast_signed()).find(|&number| number < 0);
                negative.filter(|_| signed).map_or(Failed::Core(error), Failed::Negative)
            })
        };
        macro_rules! any {
            ($($kind:ident)*) => {
                match &self.rows {
                    $(Rows::$kind(rows) => {
                        let rows = rows.as_array();
                        py.detach(|| in_parallel(&rows, results, width, threads, fill))
                    })*
                }
            };
        }
        any!(U64 I32 U32 I16 U16 I8 U8)
    }
}

/// The error of a value that claims more integers than there is memory for.
fn in_memory(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyMemoryError>(py) {
        return error;
    }
    let message = "these are more indices or offsets than the memory holds: pass them in parts, as NumPy arrays";
    PyValueError::new_err(message)
}

/// Whether Rust can read the integers in place: native byte order, aligned, strides of whole integers.
fn is_plain(array: &Bound<'_, PyAny>) -> Result<bool> {
    let array = array.cast::<PyUntypedArray>().map_err(PyErr::from)?;
    let dtype = array.dtype();
    let size = dtype.itemsize().cast_signed();
    let is_integer = matches!(dtype.kind(), b'i' | b'u') && dtype.is_native_byteorder() != Some(false);
    let is_aligned: bool = array.getattr("flags")?.getattr("aligned")?.extract()?;
    // The strides of a structured array's field may not be multiples of the field's size.
    Ok(is_integer && is_aligned && array.strides().iter().all(|stride| stride % size == 0))
}

impl<'py> Rows<'py> {
    fn of(rows: &Bound<'py, PyAny>) -> Result<Self> {
        macro_rules! first_that_fits {
            ($($kind:ident)*) => {
                $(if let Ok(rows) = rows.cast() {
                    return Ok(Self::$kind(readable(Class::Shape, rows)?));
                })*
            };
        }
        first_that_fits!(U64 I32 U32 I16 U16 I8 U8);
        let unsigned = rows.call_method1("view", (dtype::<u64>(rows.py()),))?;
        Ok(Self::U64(readable(Class::Shape, unsigned.cast().map_err(PyErr::from)?)?))
    }
}

/// An integer dtype of NumPy.
trait Number: Element + Copy + Sync {
    /// The number as a `u64`; a negative one becomes 2^63 or more.
    fn widened(self) -> u64;

    /// The numbers in place, if they have 64 bits already.
    fn wide(_: &[Self]) -> Option<&[u64]> {
        None
    }
}

impl Number for u64 {
    fn widened(self) -> u64 {
        self
    }

    fn wide(numbers: &[Self]) -> Option<&[u64]> {
        Some(numbers)
    }
}

macro_rules! narrow_numbers {
    ($($number:ty)*) => {
        $(impl Number for $number {
            fn widened(self) -> u64 {
                i64::from(self).cast_unsigned()
            }
        })*
    };
}

narrow_numbers!(i32 u32 i16 u16 i8 u8);

/// Converts rows, on several threads if there are enough rows.
fn in_parallel<T: Number>(
    rows: &ArrayView2<'_, T>,
    results: &mut [u64],
    width: usize,
    threads: usize,
    fill: impl Fn(&[u64], &mut [u64]) -> Result<(), Failed> + Sync,
) -> Result<(), Failed> {
    /// Rows that take about as long as starting a thread.
    const LEAST: usize = 1 << 16;
    let share = rows.nrows().div_ceil(available(threads)).max(LEAST);
    if share >= rows.nrows() {
        return in_runs(rows, results, &fill);
    }
    let fill = &fill;
    thread::scope(|scope| {
        let (mut workers, mut rest) = (Vec::new(), results);
        for rows in rows.axis_chunks_iter(Axis(0), share) {
            let (here, others) = rest.split_at_mut(rows.nrows() * width);
            rest = others;
            workers.push(scope.spawn(move || in_runs(&rows, here, fill)));
        }
        // Joins all; of several errors, that of the first rows is returned.
        let done: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.into_iter().try_for_each(|done| done.unwrap_or_else(|payload| panic::resume_unwind(payload)))
    })
}

/// Converts all rows at once in place, or copies them run by run.
fn in_runs<T: Number>(
    rows: &ArrayView2<'_, T>,
    mut results: &mut [u64],
    fill: &impl Fn(&[u64], &mut [u64]) -> Result<(), Failed>,
) -> Result<(), Failed> {
    /// Rows copied at a time: enough for the core's tables of short dimensions to pay off, few enough to stay in cache.
    const RUN: usize = 1 << 14;
    if let Some(numbers) = rows.as_slice().and_then(T::wide) {
        return fill(numbers, results);
    }
    let (count, width) = rows.dim();
    let each = results.len().checked_div(count).unwrap_or(0);
    let mut copied = vec![0; RUN.min(count) * width];
    for run in rows.axis_chunks_iter(Axis(0), RUN) {
        let copied = &mut copied[..run.len()];
        if let Some(numbers) = run.as_slice() {
            copied.iter_mut().zip(numbers).for_each(|(place, number)| *place = number.widened());
        } else {
            for (number, column) in run.columns().into_iter().enumerate() {
                let places = copied[number..].iter_mut().step_by(width);
                places.zip(column).for_each(|(place, number)| *place = number.widened());
            }
        }
        let (here, rest) = results.split_at_mut(run.nrows() * each);
        results = rest;
        fill(copied, here)?;
    }
    Ok(())
}
