//! `Shape.slice_runs` and `reshard`: parts of arrays, and where their bytes are.

use crate::{
    arrays::{empty, readable, writable},
    errors::{Class, Error, Result},
    shape::shape_of,
};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::{exceptions::PyValueError, prelude::*};
use tilewise::{Resharding, RunOrder, Sharding, Tiled};
use tilewise_relayout::Reshard;

pub(crate) fn slice_runs<'py>(
    py: Python<'py>,
    tiled: &Tiled,
    start: &[u64],
    limit: &[u64],
    strides: Option<&[u64]>,
    order: &str,
) -> Result<Bound<'py, PyArray2<i64>>> {
    let order = match order {
        "memory" => RunOrder::Memory,
        "slice" => RunOrder::Slice,
        other => {
            let message = format!("order must be 'memory' or 'slice', not {other:?}");
            return Err(PyValueError::new_err(message).into());
        }
    };
    let ones = vec![1; start.len()];
    let runs = tiled.strided_slice_runs(start, limit, strides.unwrap_or(&ones), order)?;
    if tiled.physical_elements().checked_mul(tiled.stored_bits()).is_none_or(|bits| i64::try_from(bits).is_err()) {
        return Err(Error::new(
            Class::Shape,
            "overflow",
            "the buffer has 2^63 bits or more, so int64 can't count them",
        ));
    }
    let array: Bound<'py, PyArray2<i64>> = empty(py, (runs.remaining(), 2))?;
    {
        // Bits are below 2^63, so they are the same as an i64.
        let unsigned = array.call_method1("view", ("uint64",))?.cast_into::<PyArray2<u64>>().map_err(PyErr::from)?;
        let mut rows = writable(Class::Shape, &unsigned)?;
        let rows = rows.as_slice_mut().map_err(PyErr::from)?;
        py.detach(|| {
            for (row, run) in rows.chunks_exact_mut(2).zip(runs) {
                row.copy_from_slice(&[run.start, run.end - run.start]);
            }
        });
    }
    Ok(array)
}

/// An array's shards on every device, from the shards of another sharding.
///
/// Args:
///     shards: for each device the bytes of its shard, a one-dimensional `numpy.ndarray` of uint8 in `from_shape`'s layout;
///         `None` for a device that holds none.
///     from_shape: a `Shape` or `str`: the whole array, with the layout of its shards.
///     from_sharding: how it is divided, in XLA's notation, such as `"{devices=[2,2]<=[4]}"`; `str()` of jax's
///         `HloSharding` is one.
///     to_shape, to_sharding: the shape and the sharding of the result.
///
/// Returns:
///     For each device the bytes of its new shard, in `to_shape`'s layout. Padding is zero.
///
/// Raises:
///     ParseError: a sharding is not in XLA's notation.
///     ShapeError: the shardings don't fit the array or each other.
///     RelayoutError: a shard has another length.
///
/// Releases the GIL. Other threads must not write to the shards meanwhile.
///
/// Examples:
///     >>> import numpy as np
///     >>> rows = [np.arange(4, dtype=np.uint8), np.arange(4, 8, dtype=np.uint8)]
///     >>> reshard(rows, "u8[2,4]", "{devices=[2,1]<=[2]}", "u8[2,4]", "{devices=[1,2]<=[2]}")
///     [array([0, 1, 4, 5], dtype=uint8), array([2, 3, 6, 7], dtype=uint8)]
#[pyfunction]
#[pyo3(signature = (shards: "Sequence[npt.NDArray[np.uint8] | None]", from_shape: "ShapeLike", from_sharding,
                    to_shape: "ShapeLike", to_sharding) -> "list[npt.NDArray[np.uint8]]")]
pub(crate) fn reshard<'py>(
    shards: Vec<Option<Bound<'py, PyArray1<u8>>>>,
    from_shape: &Bound<'py, PyAny>,
    from_sharding: &str,
    to_shape: &Bound<'py, PyAny>,
    to_sharding: &str,
) -> Result<Vec<Bound<'py, PyArray1<u8>>>> {
    let py = from_shape.py();
    let sharding = |text: &str| text.parse::<Sharding>().map_err(|error| Error::in_text(error, text));
    let (from, to) = (shape_of(from_shape)?, shape_of(to_shape)?);
    let copies = Resharding::on(shards.len() as u64, &from, &sharding(from_sharding)?, &to, &sharding(to_sharding)?)?;
    let (devices, plan) = (copies.devices(), Reshard::new(copies)?);
    let sources = shards.iter().map(|shard| shard.as_ref().map(|shard| readable(Class::Relayout, shard)).transpose());
    let sources: Vec<Option<PyReadonlyArray1<'py, u8>>> = sources.collect::<Result<_>>()?;
    // Memory that isn't contiguous is copied.
    let gathered = sources.iter().map(|source| source.as_ref().filter(|shard| shard.as_slice().is_err()));
    let gathered: Vec<Option<Vec<u8>>> = gathered.map(|shard| Some(shard?.as_array().to_vec())).collect();
    let mut slices: Vec<&[u8]> = Vec::with_capacity(sources.len());
    for (source, gathered) in sources.iter().zip(&gathered) {
        slices.push(match (source, gathered) {
            (_, Some(gathered)) => gathered,
            (Some(source), None) => source.as_slice().map_err(PyErr::from)?,
            (None, None) => &[],
        });
    }
    let made = (0..devices).map(|_| empty(py, plan.destination_bytes()));
    let made: Vec<Bound<'py, PyArray1<u8>>> = made.collect::<Result<_>>()?;
    {
        let mut places = made.iter().map(|array| writable(Class::Relayout, array)).collect::<Result<Vec<_>>>()?;
        let mut places =
            places.iter_mut().map(|place| place.as_slice_mut()).collect::<Result<Vec<_>, _>>().map_err(PyErr::from)?;
        py.detach(|| plan.run(&slices, &mut places))?;
    }
    Ok(made)
}
