//! Where elements lie, one by one and by the million.

use crate::errors::{Class, Error, Result};
use numpy::{
    PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
    ndarray::{ArrayD, IxDyn},
};
use pyo3::{
    exceptions::{PyMemoryError, PyTypeError, PyValueError},
    prelude::*,
};
use tilewise::Tiled;

pub(crate) fn offset(tiled: &Tiled, index: &Bound<'_, PyAny>) -> Result<u64> {
    let parts: Vec<Bound<'_, PyAny>> = index.try_iter()?.collect::<PyResult<_>>()?;
    let mut numbers = Vec::with_capacity(parts.len());
    for (dimension, part) in parts.iter().enumerate() {
        match natural(part)? {
            Some(number) => numbers.push(number),
            // No u64: outside whatever the bound is.
            None if parts.len() == tiled.logical_dimensions().len() => {
                return Err(outside(part, dimension, tiled.logical_dimensions()[dimension]));
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
    out: Option<Bound<'py, PyArrayDyn<u64>>>,
    threads: usize,
) -> Result<Bound<'py, PyArrayDyn<u64>>> {
    let py = indices.py();
    let rank = tiled.logical_dimensions().len();
    let indices = Integers::of(indices)?;
    let Some((_, outer)) = indices.shape.split_last().filter(|(last, _)| **last == rank) else {
        let shape = &indices.shape;
        let message = format!("the last axis of the indices is to be the rank, {rank}; their shape is {shape:?}");
        return Err(Error::new(Class::Shape, "index_rank_mismatch", message));
    };
    let result = match out {
        Some(out) if out.shape() == outer => out,
        Some(out) => {
            let message = format!("`out` has the shape {:?}, the offsets have {outer:?}", out.shape());
            return Err(Error::new(Class::Shape, "buffer_length_mismatch", message));
        }
        None => {
            // NumPy's own function asks for large pages. Every offset is written.
            let new = py.import("numpy")?.call_method1("empty", (outer, "uint64"))?;
            new.cast_into::<PyArrayDyn<u64>>().map_err(PyErr::from)?
        }
    };
    {
        let refused = |why: &dyn std::fmt::Display| {
            Error::new(Class::Shape, "buffer_not_writable", format!("can't write into `out`: {why}"))
        };
        let mut writable = result.try_readwrite().map_err(|error| refused(&error))?;
        let offsets = writable.as_slice_mut().map_err(|error| refused(&error))?;
        let filled = match (rank, &indices.data) {
            (0, _) => {
                offsets.fill(0);
                Ok(())
            }
            (_, Data::U64 { array, signed }) => {
                let fill = |numbers: &[u64], offsets: &mut [u64]| {
                    tiled.fill_offsets(numbers, offsets).map_err(|error| Failed::of(error, numbers, *signed))
                };
                let numbers = array.as_slice().unwrap_or_default();
                py.detach(|| in_parallel(numbers, rank, offsets, threads, fill))
            }
            (_, Data::Narrow(narrow)) => narrow.fill(py, tiled, offsets, threads),
        };
        filled.map_err(|failed| failed.of_index(tiled))?;
    }
    Ok(result)
}

pub(crate) fn indices<'py>(tiled: &Tiled, offsets: &Bound<'py, PyAny>) -> Result<Bound<'py, PyArrayDyn<i64>>> {
    let py = offsets.py();
    let rank = tiled.logical_dimensions().len();
    let offsets = Integers::of(offsets)?;
    let mut shape = offsets.shape.clone();
    shape.push(rank);
    let mut found: Vec<i64> = Vec::new();
    let expected = shape.iter().try_fold(1_usize, |count, &bound| count.checked_mul(bound)).unwrap_or(usize::MAX);
    found.try_reserve_exact(expected).map_err(|_| PyMemoryError::new_err("too many indices"))?;
    let mut find = |offsets: &[u64]| {
        for &offset in offsets {
            match tiled.index_of(offset)? {
                // Bounds are below 2^63.
                Some(index) => found.extend(index.iter().map(|&i| i.cast_signed())),
                None => found.extend(std::iter::repeat_n(-1, rank)),
            }
        }
        Ok(())
    };
    let searched = match &offsets.data {
        Data::U64 { array, signed } => {
            let numbers = array.as_slice().unwrap_or_default();
            py.detach(|| find(numbers).map_err(|error| Failed::of(error, numbers, *signed)))
        }
        Data::Narrow(narrow) => narrow.visit(py, find),
    };
    searched.map_err(|failed| failed.of_offset(tiled))?;
    let found =
        ArrayD::from_shape_vec(IxDyn(&shape), found).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyArrayDyn::from_owned_array(py, found))
}

/// Fills the offsets of rows of numbers, on several threads if there are enough.
fn in_parallel<T: Sync>(
    numbers: &[T],
    rank: usize,
    offsets: &mut [u64],
    threads: usize,
    fill: impl Fn(&[T], &mut [u64]) -> Result<(), Failed> + Sync,
) -> Result<(), Failed> {
    /// Fewer rows than this take less time than a thread.
    const LEAST: usize = 1 << 16;
    let share = offsets.len().div_ceil(threads.max(1)).max(LEAST);
    if share >= offsets.len() {
        return fill(numbers, offsets);
    }
    let fill = &fill;
    std::thread::scope(|scope| {
        let shares = numbers.chunks(share * rank).zip(offsets.chunks_mut(share));
        let workers: Vec<_> = shares.map(|(numbers, offsets)| scope.spawn(move || fill(numbers, offsets))).collect();
        // All are waited for; of several errors the first rows' counts.
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        results.into_iter().try_for_each(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// A Python integer, if 64 bits without a sign hold it.
fn natural(number: &Bound<'_, PyAny>) -> Result<Option<u64>> {
    match number.extract::<u64>() {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(number.py()) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

const FROM_ZERO: &str = "indices count from 0, never from the end";

fn outside(index: impl std::fmt::Display, dimension: usize, bound: u64) -> Error {
    let message = format!("index {index} is outside dimension {dimension}, which has bound {bound}");
    Error::new(Class::OutOfRange, "index_out_of_bounds", message).with_help(FROM_ZERO)
}

fn outside_buffer(offset: impl std::fmt::Display, tiled: &Tiled) -> Error {
    let message = format!("offset {offset} is not inside the buffer's {} elements", tiled.physical_elements());
    Error::new(Class::OutOfRange, "offset_out_of_range", message)
}

/// Why numbers can't be looked up.
enum Failed {
    Negative(i64),
    Core(tilewise::Error),
}

impl Failed {
    /// Numbers with a sign are read without; what is far outside may have been negative.
    fn of(error: tilewise::Error, numbers: &[u64], signed: bool) -> Self {
        let negative = numbers.iter().map(|number| number.cast_signed()).find(|&number| number < 0);
        negative.filter(|_| signed).map_or(Self::Core(error), Self::Negative)
    }

    fn of_index(self, tiled: &Tiled) -> Error {
        match self {
            Self::Core(error) => error.into(),
            Self::Negative(number) => {
                let message = format!("index {number} is outside {:?}", tiled.logical_dimensions());
                Error::new(Class::OutOfRange, "index_out_of_bounds", message).with_help(FROM_ZERO)
            }
        }
    }

    fn of_offset(self, tiled: &Tiled) -> Error {
        match self {
            Self::Core(error) => error.into(),
            Self::Negative(number) => outside_buffer(number, tiled),
        }
    }
}

/// Integers of any dtype, contiguous, in the machine's byte order.
struct Integers<'py> {
    shape: Vec<usize>,
    data: Data<'py>,
}

enum Data<'py> {
    /// Numbers with a sign are seen without.
    U64 {
        array: PyReadonlyArrayDyn<'py, u64>,
        signed: bool,
    },
    Narrow(Narrow<'py>),
}

enum Narrow<'py> {
    U32(PyReadonlyArrayDyn<'py, u32>),
    I32(PyReadonlyArrayDyn<'py, i32>),
    U16(PyReadonlyArrayDyn<'py, u16>),
    I16(PyReadonlyArrayDyn<'py, i16>),
    U8(PyReadonlyArrayDyn<'py, u8>),
    I8(PyReadonlyArrayDyn<'py, i8>),
}

impl<'py> Integers<'py> {
    fn of(values: &Bound<'py, PyAny>) -> Result<Self> {
        let py = values.py();
        let numpy = py.import("numpy")?;
        let array = numpy.call_method1("asarray", (values,))?;
        let kind: char = array.getattr("dtype")?.getattr("kind")?.extract()?;
        let is_empty = array.getattr("size")?.extract::<usize>()? == 0;
        if !matches!(kind, 'i' | 'u') && !is_empty {
            let dtype = array.getattr("dtype")?;
            return Err(PyTypeError::new_err(format!("indices and offsets are integers, not {dtype}")).into());
        }
        let shape = array.cast::<PyUntypedArray>().map_err(PyErr::from)?.shape().to_vec();
        let order = numpy.call_method1("require", (&array, py.None(), ["C", "ALIGNED"]))?;
        Ok(Self { shape, data: Data::of(&order)? })
    }
}

impl<'py> Data<'py> {
    fn of(array: &Bound<'py, PyAny>) -> Result<Self> {
        macro_rules! narrow {
            ($($kind:ident $native:ty),*) => {
                $(if let Ok(array) = array.cast::<PyArrayDyn<$native>>() {
                    return Ok(Self::Narrow(Narrow::$kind(array.readonly())));
                })*
            };
        }
        narrow!(U32 u32, I32 i32, U16 u16, I16 i16, U8 u8, I8 i8);
        if let Ok(array) = array.cast::<PyArrayDyn<u64>>() {
            return Ok(Self::U64 { array: array.readonly(), signed: false });
        }
        // What is neither (another byte order, an empty list) is copied.
        let signed = match array.cast::<PyArrayDyn<i64>>() {
            Ok(array) => array.clone().into_any(),
            Err(_) if array.getattr("dtype")?.getattr("kind")?.extract::<char>()? == 'u' => {
                return Self::of(&array.call_method1("astype", ("uint64",))?);
            }
            Err(_) => array.call_method1("astype", ("int64",))?,
        };
        let array = signed.call_method1("view", ("uint64",))?;
        Ok(Self::U64 { array: array.cast::<PyArrayDyn<u64>>().map_err(PyErr::from)?.readonly(), signed: true })
    }
}

/// Runs an expression with the numbers of whichever type.
macro_rules! with_numbers {
    ($narrow:expr, $numbers:ident => $run:expr) => {
        match $narrow {
            Narrow::U32(array) => with_numbers!(@ array, $numbers => $run),
            Narrow::I32(array) => with_numbers!(@ array, $numbers => $run),
            Narrow::U16(array) => with_numbers!(@ array, $numbers => $run),
            Narrow::I16(array) => with_numbers!(@ array, $numbers => $run),
            Narrow::U8(array) => with_numbers!(@ array, $numbers => $run),
            Narrow::I8(array) => with_numbers!(@ array, $numbers => $run),
        }
    };
    (@ $array:ident, $numbers:ident => $run:expr) => {{
        let $numbers = $array.as_slice().unwrap_or_default();
        $run
    }};
}

impl Narrow<'_> {
    fn fill(&self, py: Python<'_>, tiled: &Tiled, offsets: &mut [u64], threads: usize) -> Result<(), Failed> {
        let rank = tiled.logical_dimensions().len();
        with_numbers!(self, numbers => py.detach(|| {
            in_parallel(numbers, rank, offsets, threads, |numbers, offsets| {
                let mut at = 0;
                widened(numbers, rank, |rows| {
                    let start = at;
                    at += rows.len() / rank;
                    tiled.fill_offsets(rows, &mut offsets[start..at])
                })
            })
        }))
    }

    fn visit(
        &self,
        py: Python<'_>,
        each: impl FnMut(&[u64]) -> Result<(), tilewise::Error> + Send,
    ) -> Result<(), Failed> {
        with_numbers!(self, numbers => py.detach(|| widened(numbers, 1, each)))
    }
}

/// Calls `each` with runs of whole rows in 64 bits; negative numbers become numbers above 2^63, which are outside everything.
fn widened<T: Copy + Into<i64>>(
    numbers: &[T],
    rank: usize,
    mut each: impl FnMut(&[u64]) -> Result<(), tilewise::Error>,
) -> Result<(), Failed> {
    /// Rows at a time: enough for tables of short dimensions to pay, few enough for the cache.
    const ROWS: usize = 1 << 14;
    let mut wide = Vec::with_capacity(numbers.len().min(ROWS * rank));
    for numbers in numbers.chunks(ROWS * rank) {
        wide.clear();
        wide.extend(numbers.iter().map(|&number| number.into().cast_unsigned()));
        each(&wide).map_err(|error| Failed::of(error, &wide, true))?;
    }
    Ok(())
}
