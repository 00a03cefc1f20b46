//! Integers of any dtype and any strides, as runs of 64-bit numbers.

use crate::{
    arrays::readable,
    errors::{Class, Result},
    threads::available,
};
use numpy::{
    Element, PyArrayDescrMethods, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods, dtype,
    ndarray::{ArrayView2, Axis},
};
use pyo3::{exceptions::PyTypeError, prelude::*};
use std::{panic, thread};

/// Rows of integers.
pub(crate) struct Integers<'py> {
    rows: Rows<'py>,
    signed: bool,
}

/// As NumPy has them; those of 64 bits are seen without a sign.
enum Rows<'py> {
    U64(PyReadonlyArray2<'py, u64>),
    I32(PyReadonlyArray2<'py, i32>),
    U32(PyReadonlyArray2<'py, u32>),
    I16(PyReadonlyArray2<'py, i16>),
    U16(PyReadonlyArray2<'py, u16>),
    I8(PyReadonlyArray2<'py, i8>),
    U8(PyReadonlyArray2<'py, u8>),
}

/// Why numbers can't be converted.
pub(crate) enum Failed {
    Negative(i64),
    Core(tilewise::Error),
}

impl<'py> Integers<'py> {
    /// The integers in a value, `width` of them a row, which `check` gets from the value's shape with whatever else the caller wants.
    ///
    /// Copies only what has another byte order, is not aligned, or has no two strides to be seen as rows with.
    pub(crate) fn of<T>(
        value: &Bound<'py, PyAny>,
        check: impl FnOnce(&[usize]) -> Result<(usize, T)>,
    ) -> Result<(Self, T)> {
        let py = value.py();
        let numpy = py.import("numpy")?;
        let array = numpy.call_method1("asarray", (value,))?.cast_into::<PyUntypedArray>().map_err(PyErr::from)?;
        let kind = array.dtype().kind();
        // An empty list is an array of floats.
        if !matches!(kind, b'i' | b'u') && array.len() > 0 {
            let message = format!("indices and offsets are integers, not {}", array.dtype());
            return Err(PyTypeError::new_err(message).into());
        }
        let (width, more) = check(array.shape())?;
        let outer: usize = array.shape().iter().rev().skip(1).product();
        let count = array.len().checked_div(width).unwrap_or(outer);
        let mut rows = array.call_method1("reshape", (count, width))?;
        if !is_plain(&rows)? {
            // In the machine's byte order, which a dtype without one has.
            let native = if kind == b'u' { 'u' } else { 'i' };
            let size = if matches!(kind, b'i' | b'u') { array.dtype().itemsize() } else { 8 };
            rows = numpy.call_method1("array", (rows, format!("{native}{size}")))?;
        }
        Ok((Self { rows: Rows::of(&rows)?, signed: kind != b'u' }, more))
    }

    /// Calls `fill` with runs of whole rows, and with room for what they become, `width` numbers a row. The GIL is released.
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
                // Read without its sign, a negative number is outside whatever there is.
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

/// Whether Rust can read the integers where they are.
fn is_plain(array: &Bound<'_, PyAny>) -> Result<bool> {
    let array = array.cast::<PyUntypedArray>().map_err(PyErr::from)?;
    let dtype = array.dtype();
    let size = dtype.itemsize().cast_signed();
    let is_integer = matches!(dtype.kind(), b'i' | b'u') && dtype.is_native_byteorder() != Some(false);
    let is_aligned: bool = array.getattr("flags")?.getattr("aligned")?.extract()?;
    // A field of a record may lie at strides that are no multiple of its size.
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

/// An integer of NumPy.
trait Number: Element + Copy + Sync {
    /// In 64 bits, where a negative number is above 2^63.
    fn widened(self) -> u64;

    /// The numbers themselves, if they have 64 bits.
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

/// Converts rows, on several threads if there are enough.
fn in_parallel<T: Number>(
    rows: &ArrayView2<'_, T>,
    results: &mut [u64],
    width: usize,
    threads: usize,
    fill: impl Fn(&[u64], &mut [u64]) -> Result<(), Failed> + Sync,
) -> Result<(), Failed> {
    /// Fewer rows than this take less time than a thread.
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
        // All are waited for; of several errors the first rows' counts.
        let done: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.into_iter().try_for_each(|done| done.unwrap_or_else(|payload| panic::resume_unwind(payload)))
    })
}

/// All rows at once, where they are, or copied a run at a time.
fn in_runs<T: Number>(
    rows: &ArrayView2<'_, T>,
    mut results: &mut [u64],
    fill: &impl Fn(&[u64], &mut [u64]) -> Result<(), Failed>,
) -> Result<(), Failed> {
    /// Rows at a time: enough for tables of short dimensions to pay, few enough for the cache.
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
