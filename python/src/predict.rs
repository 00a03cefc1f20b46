//! What a TPU would choose.

use crate::{
    arguments::{generation, open_shape_of},
    errors::Result,
    shape::PyShape,
};
use pyo3::prelude::*;
use tilewise::tpu;

/// The shape with the layout that a TPU generation picks.
///
/// Args:
///     shape: an array whose layout is left open, such as `"bf16[2048,1,2048,128]"`, or anything with a `shape` and a `dtype`: a NumPy
///         or JAX array, a `jax.ShapeDtypeStruct`. A text or a `Shape` with a layout keeps its order of dimensions and gets the tiles
///         for that order.
///     tpu: a generation by any name of it, `"v5e"`, `"TPU v5 lite"`, `"v5litepod-4"`, or a JAX device.
///
/// Raises:
///     ParseError: no shape, or no TPU.
///     ShapeError: no array, an unbounded dimension, an element type whose layout is not known.
///
/// Examples:
///     >>> predict("bf16[2048,1,2048,128]", tpu="v5e")
///     Shape('bf16[2048,1,2048,128]{3,2,1,0:T(8,128)(2,1)}')
///     >>> predict("f32[400000,12]{1,0}", tpu="v5e").expansion
///     10.666666666666666
#[pyfunction]
#[pyo3(signature = (shape, *, tpu))]
pub(crate) fn predict(shape: &Bound<'_, PyAny>, tpu: &Bound<'_, PyAny>) -> Result<PyShape> {
    Ok(PyShape::new(tpu::predict(&open_shape_of(shape)?, generation(tpu)?)?.shape))
}

/// The HBM one device of a TPU generation offers to programs, in bytes.
///
/// Raises:
///     ParseError: no TPU.
///
/// Examples:
///     >>> hbm_bytes("v5e") / 2**30
///     15.75
#[pyfunction]
#[pyo3(signature = (tpu, /))]
pub(crate) fn hbm_bytes(tpu: &Bound<'_, PyAny>) -> Result<u64> {
    Ok(generation(tpu)?.hbm_bytes())
}
