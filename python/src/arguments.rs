//! What arguments may be.

use crate::{
    element_type::element_type,
    errors::{Error, Result},
    shape::PyShape,
};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyString};
use tilewise::{Shape, tpu::Generation};

/// A `Shape`, or the shape in a text.
pub(crate) fn shape_of(value: &Bound<'_, PyAny>) -> Result<Shape> {
    if let Ok(shape) = value.cast::<PyShape>() {
        return Ok(shape.get().as_shape().clone());
    }
    let Ok(text) = value.cast::<PyString>() else {
        let message = format!("a shape is a Shape or its text, not {}", value.get_type().name()?);
        return Err(PyTypeError::new_err(message).into());
    };
    let text = str_of(text)?;
    text.parse().map_err(|error| Error::in_text(error, text))
}

/// A text in UTF-8.
pub(crate) fn str_of<'a>(text: &'a Bound<'_, PyString>) -> Result<&'a str> {
    text.to_str().map_err(|_| Error::not_unicode())
}

/// A `Shape`, a text read as it is written, or whatever has a `shape` and a `dtype`: an array with its layout left open.
pub(crate) fn open_shape_of(value: &Bound<'_, PyAny>) -> Result<Shape> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = str_of(text)?;
        return Shape::parse_as_written(text).map_err(|error| Error::in_text(error, text));
    }
    if value.is_instance_of::<PyShape>() || !value.hasattr("dtype")? {
        return shape_of(value);
    }
    let bounds: Vec<u64> = match value.cast::<PyUntypedArray>() {
        Ok(array) => array.shape().iter().map(|&bound| bound as u64).collect(),
        Err(_) => value.getattr("shape")?.extract()?,
    };
    let array = Shape::array(element_type(&value.getattr("dtype")?)?, bounds)?;
    Ok(Shape::parse_as_written(&array.without_layout().to_string())?)
}

/// A generation by a name of it, or that of a JAX device.
pub(crate) fn generation(value: &Bound<'_, PyAny>) -> Result<Generation> {
    let name = match value.cast::<PyString>() {
        Ok(name) => name.clone(),
        Err(_) => match value.getattr_opt("device_kind")? {
            Some(kind) => kind.cast_into::<PyString>().map_err(PyErr::from)?,
            None => {
                let message = format!("a TPU is a name of it or a JAX device, not {}", value.get_type().name()?);
                return Err(PyTypeError::new_err(message).into());
            }
        },
    };
    let name = str_of(&name)?;
    name.parse().map_err(|error| Error::in_text(error, name))
}
