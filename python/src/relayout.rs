//! `relayout`, `tile` and `untile`: buffers from one layout to another.

use crate::{
    arrays::{empty, readable, writable},
    builtins::str_of,
    element_type::{dtype_of, is_native, of_dtype},
    errors::{Class, Error, Result},
    layout::PyLayout,
    shape::shape_of,
    threads::available,
    whole::whole,
};
use numpy::{PyArray1, PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyString,
};
use tilewise::{Layout, Shape};
use tilewise_relayout::{Padding, Plan};

/// Converts a buffer from one layout of an array to another.
///
/// Args:
///     buffer: the array's bytes in `from_shape`'s layout: `bytes`, any other object with the buffer protocol, a NumPy
///         array, a PyTorch tensor of any dtype on the CPU, or another CPU array that supports DLPack. The dtype of an
///         array must be uint8 or that of `from_shape`. Contiguous memory is not copied.
///     from_shape: a `Shape` or `str`.
///     to_shape: a `Shape` or `str`: another layout of the same array.
///     out: a contiguous one-dimensional array of uint8, of NumPy or PyTorch, of exactly `to_shape`'s physical bytes to
///         write into; `None` for a new one.
///     padding: `"zero"` clears the result's padding; `"leave"` writes only elements, and needs `out`.
///     threads: the number of threads to use at most.
///
/// Returns:
///     A one-dimensional `numpy.ndarray` of uint8 with `to_shape`'s physical bytes; `out` if given.
///
/// Raises:
///     RelayoutError: the shapes are different arrays, or the buffer has another length, dtype or shape than
///         `from_shape`.
///     TypeError: `buffer` holds no bytes.
///
/// Releases the GIL. Other threads must not write to the buffers meanwhile.
///
/// Examples:
///     >>> import numpy as np
///     >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
///     >>> y = relayout(x, "f32[3,5]", "f32[3,5]{1,0:T(2,2)}")
///     >>> y.view(np.float32)[17] == x[2, 3]
///     np.True_
#[pyfunction]
#[pyo3(signature = (buffer: "BytesLike", from_shape: "ShapeLike", to_shape: "ShapeLike", *, out: "Out" = None,
                    padding: "Literal['zero', 'leave']" = "zero",
                    threads: "int" = 1) -> "Out | npt.NDArray[np.uint8]")]
pub(crate) fn relayout<'py>(
    buffer: &Bound<'py, PyAny>,
    from_shape: &Bound<'py, PyAny>,
    to_shape: &Bound<'py, PyAny>,
    out: Option<Bound<'py, PyAny>>,
    padding: &str,
    #[pyo3(from_py_with = whole)] threads: usize,
) -> Result<Bound<'py, PyAny>> {
    let (from, to) = (shape_of(from_shape)?, shape_of(to_shape)?);
    let padding = match padding {
        "zero" => Padding::Zero,
        "leave" => Padding::Leave,
        other => {
            let message = format!("padding must be 'zero' or 'leave', not {other:?}");
            return Err(PyValueError::new_err(message).into());
        }
    };
    if padding == Padding::Leave && out.is_none() {
        return Err(PyValueError::new_err("padding='leave' needs `out`").into());
    }
    run(&Plan::new(&from, &to)?.with_padding(padding), &bytes_of(buffer, &from)?, out, threads)
}

/// Runs the plan: the result is `out` if given, else a new array.
fn run<'py>(
    plan: &Plan,
    source: &PyReadonlyArray1<'py, u8>,
    out: Option<Bound<'py, PyAny>>,
    threads: usize,
) -> Result<Bound<'py, PyAny>> {
    let py = source.py();
    let source = source.as_slice().map_err(PyErr::from)?;
    if source.len() as u64 != plan.source_bytes() {
        // Fails before the result is allocated.
        plan.run(source, &mut [])?;
    }
    let memory = match &out {
        Some(out) => memory_of(out)?
            .into_any()
            .cast_into::<PyArray1<u8>>()
            .map_err(|_| PyTypeError::new_err("`out` must be a one-dimensional array of uint8"))?,
        // The plan writes every byte.
        None => empty(py, plan.destination_bytes())?,
    };
    {
        let mut destination = writable(Class::Relayout, &memory)?;
        let destination = destination.as_slice_mut().map_err(PyErr::from)?;
        py.detach(|| plan.run_with_threads(source, destination, available(threads)))?;
    }
    Ok(out.unwrap_or_else(|| memory.into_any()))
}

/// The bytes of an object, as a NumPy array of uint8.
fn bytes_of<'py>(buffer: &Bound<'py, PyAny>, shape: &Shape) -> Result<PyReadonlyArray1<'py, u8>> {
    let py = buffer.py();
    let numpy = py.import("numpy")?;
    if let Some(array) = as_array(buffer)? {
        check_elements(&array, shape)?;
        // Copies only an array that is not contiguous.
        let array = numpy.call_method1("ascontiguousarray", (array,))?;
        let bytes = array.call_method1("reshape", (-1,))?.call_method1("view", ("uint8",))?;
        return readable(Class::Relayout, bytes.cast().map_err(PyErr::from)?);
    }
    // `frombuffer` takes contiguous buffers only; others are copied.
    let view = py.import("builtins")?.call_method1("memoryview", (buffer,))?;
    let view = if view.getattr("c_contiguous")?.extract()? { view } else { view.call_method0("tobytes")? };
    let array = numpy.call_method1("frombuffer", (view, "uint8"))?;
    readable(Class::Relayout, array.cast().map_err(PyErr::from)?)
}

/// The object as a NumPy array, through `__array__` or DLPack if it is not one; `None` for plain buffers.
fn as_array<'py>(buffer: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyUntypedArray>>> {
    if let Ok(array) = buffer.cast::<PyUntypedArray>() {
        return Ok(Some(array.clone()));
    }
    if let Some(array) = of_tensor(buffer)? {
        return Ok(Some(array));
    }
    let numpy = buffer.py().import("numpy")?;
    // DLPack has no codes for most ml_dtypes, so `__array__` comes first.
    let array = if buffer.hasattr("__array__")? {
        numpy.call_method1("asarray", (buffer,))?
    } else if buffer.hasattr("__dlpack__")? {
        numpy.call_method1("from_dlpack", (buffer,))?
    } else {
        return Ok(None);
    };
    Ok(Some(array.cast_into().map_err(PyErr::from)?))
}

/// A NumPy array that shares the memory of `out`.
fn memory_of<'py>(out: &Bound<'py, PyAny>) -> Result<Bound<'py, PyUntypedArray>> {
    if let Ok(array) = out.cast::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    if !out.hasattr("__dlpack__")? {
        return Err(PyTypeError::new_err(format!("`out` must be an array, not {}", out.get_type().name()?)).into());
    }
    if let Some(array) = of_tensor(out)? {
        // A tensor that isn't contiguous was copied.
        return match out.call_method0("is_contiguous")?.extract()? {
            true => Ok(array),
            false => Err(Error::new(Class::Relayout, "buffer_not_writable", "`out` is not contiguous")),
        };
    }
    let array = out.py().import("numpy")?.call_method1("from_dlpack", (out,))?;
    Ok(array.cast_into().map_err(PyErr::from)?)
}

/// A PyTorch tensor as a NumPy array; `None` for anything else. Neither `__array__` nor DLPack supports every dtype.
fn of_tensor<'py>(value: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyUntypedArray>>> {
    let py = value.py();
    // A tensor exists only if PyTorch is imported.
    let modules = py.import("sys")?.getattr("modules")?;
    let torch = modules.call_method1("get", ("torch",))?;
    if torch.is_none() || !value.is_instance(&torch.getattr("Tensor")?)? {
        return Ok(None);
    }
    let array = py.import("tilewise._base.torch")?.call_method1("as_numpy", (value,))?;
    Ok(Some(array.cast_into().map_err(PyErr::from)?))
}

/// Checks that an array has the shape's elements. Arrays of uint8 hold the bytes of any element type.
fn check_elements(array: &Bound<'_, PyUntypedArray>, shape: &Shape) -> Result<()> {
    let dtype = array.dtype();
    let refuse = |kind, message| Err(Error::new(Class::Relayout, kind, message));
    if !is_native(&dtype) {
        return refuse(
            "byte_order",
            format!("the array's dtype {dtype} is not in native byte order, as XLA's elements are"),
        );
    }
    let wanted = shape.element_type();
    match of_dtype(&dtype) {
        Ok(found) if Some(found) == wanted => {}
        Ok(tilewise::ElementType::U8) => return Ok(()),
        _ => {
            return refuse(
                "element_type_mismatch",
                format!("the array's dtype is {dtype}, which is not the element type of `{shape}`"),
            );
        }
    }
    // A row-major array must have the shape's dimensions. In any other layout it is a buffer of any shape.
    let row_major =
        shape.layout().is_none_or(|layout| layout.order_name() == Some("row-major") && layout.tiles().is_empty());
    let bounds: Vec<u64> = array.shape().iter().map(|&bound| bound as u64).collect();
    let wanted: Vec<u64> = shape.dimensions().iter().filter_map(|d| d.bound()).collect();
    if row_major && bounds.len() > 1 && bounds != wanted {
        return refuse("shape_mismatch", format!("the array's shape is {bounds:?}, which is not that of `{shape}`"));
    }
    Ok(())
}

/// The bytes of an array in a device's layout.
///
/// Args:
///     array: a NumPy array, with ml_dtypes' dtypes too, a PyTorch tensor of any dtype on the CPU, or another CPU array
///         that NumPy can convert, such as JAX's.
///     layout: a `Layout`, its text such as `"{1,0:T(8,128)(2,1)}"`, or a `Shape` or `str` of the whole shape.
///     out, threads: as for `relayout`.
///
/// Returns:
///     A one-dimensional `numpy.ndarray` of uint8 with the layout's physical bytes, padding zero; `out` if given.
///
/// Raises:
///     ParseError: the string is not a layout.
///     RelayoutError: the shape is not the array's.
///     ShapeError: the layout has another rank, or XLA has no element type for the dtype.
///
/// Examples:
///     >>> import numpy as np
///     >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
///     >>> tile(x, "{1,0:T(2,2)}").view(np.float32)[:4]
///     array([0., 1., 5., 6.], dtype=float32)
#[pyfunction]
#[pyo3(signature = (array: "ArrayLike", layout: "Layout | Shape | str", *, out: "Out" = None,
                    threads: "int" = 1) -> "Out | npt.NDArray[np.uint8]")]
pub(crate) fn tile<'py>(
    array: &Bound<'py, PyAny>,
    layout: &Bound<'py, PyAny>,
    out: Option<Bound<'py, PyAny>>,
    #[pyo3(from_py_with = whole)] threads: usize,
) -> Result<Bound<'py, PyAny>> {
    let Some(array) = as_array(array)? else {
        return Err(PyTypeError::new_err("tile takes an array; use relayout for bytes").into());
    };
    let row_major =
        || Shape::array(of_dtype(&array.dtype())?, array.shape().iter().map(|&b| b as u64)).map_err(Error::from);
    let to = if let Ok(layout) = layout.cast::<PyLayout>() {
        row_major()?.with_layout(layout.get().0.clone())?
    } else {
        match layout.cast::<PyString>().ok().map(str_of).transpose()? {
            Some(text) if text.trim_start().starts_with('{') => {
                let text = format!("{}{text}", row_major()?.without_layout());
                text.parse().map_err(|error| Error::in_text(error, &text))?
            }
            _ => shape_of(layout)?,
        }
    };
    let from = in_row_major(&to)?;
    run(&Plan::new(&from, &to)?, &bytes_of(array.as_any(), &from)?, out, threads)
}

/// The array in a buffer with a device's layout: the inverse of `tile`.
///
/// Args:
///     buffer: the bytes, as `relayout` takes them.
///     shape: a `Shape` or `str`: the array and the layout of its bytes.
///     out: a contiguous array of the shape's dimensions and dtype, of NumPy or PyTorch, to write into; `None` for a new
///         one.
///     threads: as for `relayout`.
///
/// Returns:
///     A row-major `numpy.ndarray` of the shape's dimensions and dtype; `out` if given.
///
/// Raises:
///     ImportError: the dtype needs ml_dtypes, which is not installed.
///     RelayoutError: the buffer has another length, or `out` does not fit.
///     ShapeError: not an array, or one without a layout.
///
/// Examples:
///     >>> import numpy as np
///     >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
///     >>> np.array_equal(untile(tile(x, "{1,0:T(2,2)}"), "f32[3,5]{1,0:T(2,2)}"), x)
///     True
#[pyfunction]
#[pyo3(signature = (buffer: "BytesLike", shape: "ShapeLike", *, out: "Out" = None,
                    threads: "int" = 1) -> "Out | npt.NDArray[Any]")]
pub(crate) fn untile<'py>(
    buffer: &Bound<'py, PyAny>,
    shape: &Bound<'py, PyAny>,
    out: Option<Bound<'py, PyAny>>,
    #[pyo3(from_py_with = whole)] threads: usize,
) -> Result<Bound<'py, PyAny>> {
    let from = shape_of(shape)?;
    let to = in_row_major(&from)?;
    let plan = Plan::new(&from, &to)?;
    let dtype = to.element_type().map(|element_type| dtype_of(buffer.py(), element_type)).transpose()?;
    let bounds: Vec<usize> = to.dimensions().iter().filter_map(|d| d.bound()?.try_into().ok()).collect();
    let source = bytes_of(buffer, &from)?;
    let Some(out) = out else {
        let bytes = run(&plan, &source, None, threads)?;
        return Ok(bytes.call_method1("view", (dtype,))?.call_method1("reshape", (bounds,))?);
    };
    let memory = memory_of(&out)?;
    if !dtype.is_some_and(|dtype| memory.dtype().is_equiv_to(&dtype))
        || memory.shape() != bounds
        || !memory.is_c_contiguous()
    {
        let message = format!("`out` must be a contiguous array with the dimensions and dtype of `{to}`");
        return Err(Error::new(Class::Relayout, "buffer_not_writable", message));
    }
    let bytes = memory.call_method1("reshape", (-1,))?.call_method1("view", ("uint8",))?;
    run(&plan, &source, Some(bytes), threads)?;
    Ok(out)
}

fn in_row_major(shape: &Shape) -> Result<Shape> {
    Ok(shape.with_layout(Layout::row_major(shape.dimensions().len()))?)
}
