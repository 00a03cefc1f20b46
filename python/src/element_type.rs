//! `ElementType`, and conversions to and from NumPy's dtypes.

use crate::{
    builtins::str_of,
    errors::{Class, Error, Result},
    typed::{self, Typed},
};
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyString};
use tilewise::{ElementKind, ElementType};

/// The type of an array's elements, under XLA's name.
///
/// Accepts XLA's names (`"bf16"`, `"f8e4m3fn"`, `"pred"`), NumPy's full names (`"bfloat16"`), PyTorch's dtypes
/// (`torch.bfloat16`), and anything that `numpy.dtype` accepts: dtypes, and the scalar types of NumPy, ml_dtypes and JAX.
///
/// NumPy's abbreviations are not accepted: `"u8"` is XLA's 8-bit type, not 8 bytes.
///
/// Raises:
///     ParseError: the string names no element type.
///     ShapeError: XLA has no element type for the dtype.
///     TypeError: the value is not a dtype, or is that of JAX's keys.
///
/// Examples:
///     >>> import numpy as np
///     >>> ElementType("bf16")
///     ElementType('bf16')
///     >>> ElementType(np.float32) == ElementType("f32")
///     True
///     >>> ElementType("s4").bits
///     4
#[pyclass(frozen, eq, hash, module = "tilewise", name = "ElementType")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyElementType(pub(crate) ElementType);

#[pymethods]
impl PyElementType {
    #[new]
    #[pyo3(signature = (value: "ElementType | DtypeLike", /), text_signature = "(value, /)")]
    fn new(value: &Bound<'_, PyAny>) -> Result<Self> {
        element_type(value).map(Self)
    }

    /// XLA's name, such as `'f8e4m3fn'`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The kind of value: `'predicate'`, `'signed'`, `'unsigned'`, `'float'` or `'complex'`.
    #[getter]
    fn kind(&self) -> Typed<&'static str, typed::ElementKind> {
        Typed::new(match self.0.kind() {
            ElementKind::Predicate => "predicate",
            ElementKind::Signed => "signed",
            ElementKind::Unsigned => "unsigned",
            ElementKind::Complex => "complex",
            _ => "float",
        })
    }

    /// Bits of information in one element: 1 for `pred`, 4 for `s4`, 128 for `c128`.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// Bits that one element occupies if the layout sets no element size: `bits` rounded up to whole bytes.
    #[getter]
    fn natural_bits(&self) -> u32 {
        self.0.natural_bits()
    }

    /// The dtype with the same values: NumPy's, or that of ml_dtypes for types that NumPy lacks.
    ///
    /// Raises:
    ///     ImportError: the type needs ml_dtypes, which is not installed.
    ///     ShapeError: the installed ml_dtypes has no such type.
    ///
    /// Examples:
    ///     >>> ElementType("s16").dtype
    ///     dtype('int16')
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Result<Typed<Bound<'py, PyArrayDescr>, typed::Dtype>> {
        dtype_of(py, self.0).map(Typed::new)
    }

    /// Every element type, in the order of XLA's documentation.
    ///
    /// Examples:
    ///     >>> [str(known) for known in ElementType.all()][:3]
    ///     ['pred', 's1', 's2']
    #[staticmethod]
    fn all() -> Vec<Self> {
        ElementType::ALL.iter().copied().map(Self).collect()
    }

    fn __str__(&self) -> &'static str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("ElementType('{}')", self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (&'static str,)) {
        (slf.get_type().into_any(), (slf.get().0.name(),))
    }
}

/// The element type that a Python value names: an `ElementType`, a `str` or a dtype.
pub(crate) fn element_type(value: &Bound<'_, PyAny>) -> Result<ElementType> {
    if let Ok(known) = value.cast::<PyElementType>() {
        return Ok(known.get().0);
    }
    if let Ok(text) = value.cast::<PyString>() {
        let text = str_of(text)?;
        return match text.parse() {
            Ok(known) => Ok(known),
            Err(error) => of_numpy_name(text).ok_or_else(|| Error::in_text(error, text)),
        };
    }
    if value.is_none() {
        return Err(PyTypeError::new_err("an element type must be a str or a dtype, not None").into());
    }
    match PyArrayDescr::new(value.py(), value) {
        Ok(dtype) => of_dtype(&dtype),
        Err(unknown) => of_foreign_dtype(value, unknown),
    }
}

/// The element type of a dtype that NumPy doesn't know.
fn of_foreign_dtype(dtype: &Bound<'_, PyAny>, unknown: PyErr) -> Result<ElementType> {
    let text = dtype.str()?.to_string();
    if text.starts_with("key<") {
        let message =
            format!("an array of JAX's keys ({text}) has no layout of its own: give `jax.random.key_data(keys)`");
        return Err(PyTypeError::new_err(message).into());
    }
    // PyTorch's names are those of NumPy and ml_dtypes.
    let name = text.strip_prefix("torch.").ok_or(unknown)?;
    of_numpy_name(name).ok_or_else(|| unsupported(&text))
}

/// The element type of a dtype, whatever its byte order.
pub(crate) fn of_dtype(dtype: &Bound<'_, PyArrayDescr>) -> Result<ElementType> {
    let name: String = dtype.getattr("name")?.extract()?;
    of_numpy_name(&name).ok_or_else(|| unsupported(&name))
}

fn unsupported(dtype: &str) -> Error {
    let message = format!("XLA has no element type for the dtype {dtype}");
    Error::new(Class::Shape, "unsupported_element_type", message)
}

/// The dtype of the same values.
pub(crate) fn dtype_of(py: Python<'_>, element_type: ElementType) -> Result<Bound<'_, PyArrayDescr>> {
    let name = numpy_name(element_type);
    let numpy = py.import("numpy")?;
    if let Some(scalar) = numpy.getattr_opt(&*name)? {
        return Ok(PyArrayDescr::new(py, scalar)?);
    }
    let Some(scalar) = py.import("ml_dtypes")?.getattr_opt(&*name)? else {
        let message = format!("the installed ml_dtypes has no {name}");
        return Err(Error::new(Class::Shape, "unsupported_element_type", message));
    };
    Ok(PyArrayDescr::new(py, scalar)?)
}

/// Whether the dtype has the machine's byte order, which is XLA's.
pub(crate) fn is_native(dtype: &Bound<'_, PyArrayDescr>) -> bool {
    dtype.is_native_byteorder() != Some(false)
}

fn of_numpy_name(name: &str) -> Option<ElementType> {
    ElementType::ALL.iter().copied().find(|&known| numpy_name(known) == name)
}

/// The name of the dtype: `float8_e4m3fn` for `f8e4m3fn`, `int4` for `s4`.
fn numpy_name(element_type: ElementType) -> String {
    let name = element_type.name();
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    match element_type.kind() {
        ElementKind::Predicate => "bool".to_owned(),
        ElementKind::Signed => format!("int{digits}"),
        ElementKind::Unsigned => format!("uint{digits}"),
        ElementKind::Complex => format!("complex{digits}"),
        _ if element_type == ElementType::Bf16 => "bfloat16".to_owned(),
        _ => match digits.split_once('e') {
            Some((bits, format)) => format!("float{bits}_e{format}"),
            None => format!("float{digits}"),
        },
    }
}
