//! `predict`: the layout that a TPU picks.

use crate::{
    builtins::str_of,
    element_type::element_type,
    errors::{Error, Result},
    few::Few,
    shape::{PyShape, shape_of},
    tpu::generation,
};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::{prelude::*, types::PyString};
use tilewise::{Shape, tpu};
use tilewise_report::parse_shape_as_written;

/// The shape with the layout that the compiler picks on a TPU generation.
///
/// Args:
///     shape: an array shape without a layout, such as `"bf16[2048,1,2048,128]"`, or any object with a `shape` and a
///         `dtype`: an array of NumPy, JAX or PyTorch, a `jax.ShapeDtypeStruct`. A sharded array counts as one device's
///         shard. A `str` or `Shape` with a layout keeps its order of dimensions and gets the tiles for that order.
///     tpu: a generation under any of its names, `"v5e"`, `"TPU v5 lite"`, `"v5litepod-4"`, or a JAX device.
///
/// Raises:
///     ParseError: the string is not a shape, or `tpu` names no TPU.
///     ShapeError: not an array, an unbounded dimension, or an element type whose layout is not known.
///
/// Examples:
///     >>> predict("bf16[2048,1,2048,128]", tpu="v5e")
///     Shape('bf16[2048,1,2048,128]{3,2,1,0:T(8,128)(2,1)}')
///     >>> predict("f32[400000,12]{1,0}", tpu="v5e").expansion
///     10.666666666666666
#[pyfunction]
#[pyo3(signature = (shape: "ShapeLike | HasShape", *, tpu: "Tpu"))]
pub(crate) fn predict(shape: &Bound<'_, PyAny>, tpu: &Bound<'_, PyAny>) -> Result<PyShape> {
    Ok(PyShape::new(tpu::predict(&open_shape_of(shape)?, generation(tpu)?)?.shape))
}

/// The orders of an array's dimensions for which a reshape is free on a TPU generation: pairs of the array and the reshaped
/// array, each with the tiles that the TPU gives it, the fewest bytes first. `Shape.free_reshape` answers for one layout.
///
/// Args:
///     shape: an array shape, as `predict` takes it; its layout doesn't matter.
///     dimensions: the bounds of the result.
///     tpu: a generation under any of its names, or a JAX device.
///
/// Raises:
///     ParseError: the string is not a shape, or `tpu` names no TPU.
///     ShapeError: not an array, another number of elements, or more than six dimensions.
///
/// Examples:
///     >>> for array, result in free_reshapes("bf16[8,512,768]", (8, 512, 12, 64), tpu="v6e")[:2]:
///     ...     print(array, result)
///     bf16[8,512,768]{1,2,0:T(8,128)(2,1)} bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}
///     bf16[8,512,768]{1,0,2:T(8,128)(2,1)} bf16[8,512,12,64]{1,0,3,2:T(8,128)(2,1)}
#[pyfunction]
#[pyo3(signature = (shape: "ShapeLike | HasShape", dimensions, *, tpu: "Tpu"))]
pub(crate) fn free_reshapes(
    shape: &Bound<'_, PyAny>,
    dimensions: Few<u64>,
    tpu: &Bound<'_, PyAny>,
) -> Result<Vec<(PyShape, PyShape)>> {
    let found = tpu::free_reshapes(&open_shape_of(shape)?, &dimensions, generation(tpu)?)?;
    Ok(found.into_iter().map(|found| (PyShape::new(found.from), PyShape::new(found.to))).collect())
}

/// The shape of a `Shape`, of a `str`, whose layout may be missing, or of an object with a `shape` and a `dtype`, which
/// has no layout.
pub(crate) fn open_shape_of(value: &Bound<'_, PyAny>) -> Result<Shape> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = str_of(text)?;
        return parse_shape_as_written(text).map_err(|failure| Error::of_unread(failure, text));
    }
    if value.is_instance_of::<PyShape>() || !value.hasattr("dtype")? || !value.hasattr("shape")? {
        return shape_of(value);
    }
    let bounds: Vec<u64> = match value.cast::<PyUntypedArray>() {
        Ok(array) => array.shape().iter().map(|&bound| bound as u64).collect(),
        Err(_) => {
            let shape = value.getattr("shape")?;
            // Abstract arrays have `None` until they are sharded.
            match value.getattr_opt("sharding")?.filter(|sharding| !sharding.is_none()) {
                Some(sharding) => sharding.call_method1("shard_shape", (shape,))?.extract::<Few<u64>>()?.0,
                None => shape.extract::<Few<u64>>()?.0,
            }
        }
    };
    let array = Shape::array(element_type(&value.getattr("dtype")?)?, bounds)?;
    Ok(Shape::parse_as_written(&array.without_layout().to_string())?)
}
