//! Values pickled as the JSON of their fields, and restored from it.

use crate::{
    budget::{PyKernelBudget, PyKernelRow},
    buffer::PyBuffer,
    comparison::{PyChange, PyComparedProgram, PyComparison, PyOwner},
    copy::PyCopy,
    explanation::PyAllocation,
    kernel::{PyBoundaryChange, PyKernelArray, PyKernelUse, PyRemedy},
    recommendation::{PyMadeBatch, PyRecommendation},
    relation::PyRelation,
    row::PySourceLine,
    screen::{PyCause, PyHeadline, PyLineEdit, PyPlannedChange},
    space::{PyPeakBuffer, PySpaceTotal},
    time::{PyTime, PyTimeGroup, PyTimeRow},
    together::{PyAlternative, PyLoadedProgram, PyPageArrays, PyResidentArray, PyTogether},
    travel::{Reduced, parsed, reduced},
    warning::PyReportWarning,
};
use pyo3::{IntoPyObjectExt, exceptions::PyTypeError, prelude::*, types::PyType};

/// Classes that are pickled as the JSON of their fields.
macro_rules! of_fields {
    ($($class:ty)*) => {
        $(
            #[pymethods]
            impl $class {
                fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
                    reduced::<Self>(slf.py(), slf.get())
                }
            }
        )*

        /// The value of such a class in a JSON text; `None` of another class.
        fn of_fields<'py>(class: &Bound<'py, PyType>, held: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
            let py = class.py();
            $(if class.is(&py.get_type::<$class>()) {
                return parsed::<$class>(held)?.into_bound_py_any(py).map(Some);
            })*
            Ok(None)
        }
    };
}

of_fields! {
    PyAlternative PyBoundaryChange PyCause PyChange PyComparedProgram PyCopy PyHeadline PyKernelArray PyKernelBudget PyKernelRow PyKernelUse PyLoadedProgram
    PyLineEdit PyMadeBatch PyOwner PyPageArrays PyPeakBuffer PyPlannedChange PyRecommendation PyRelation PyRemedy PyReportWarning
    PyResidentArray PySourceLine PySpaceTotal PyTimeGroup PyTimeRow
}

/// The fields of such a value, as JSON has them.
#[pyfunction]
#[pyo3(signature = (value: "object") -> "dict[str, Any]")]
pub(crate) fn fields_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (_, (_, held)): Reduced<'py> = value.call_method0("__reduce__")?.extract()?;
    value.py().import("json")?.call_method1("loads", (held,))
}

/// The value of this class in a JSON text. Pickled values call it.
#[pyfunction]
pub(crate) fn restore<'py>(class_: &Bound<'py, PyType>, held: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = class_.py();
    if let Some(value) = of_fields(class_, held)? {
        return Ok(value);
    }
    macro_rules! one_of {
        ($($class:ty: $made:expr,)*) => {
            $(if class_.is(&py.get_type::<$class>()) {
                return Ok(Bound::into_any($made));
            })*
        };
    }
    one_of! {
        PyAllocation: parsed::<PyAllocation>(held)?.into_python(py)?,
        PyBuffer: parsed::<PyBuffer>(held)?.into_python(py)?,
        PyComparison: PyComparison::of(py, parsed(held)?)?,
        PyTime: PyTime::of(py, parsed(held)?)?,
        PyTogether: Bound::new(py, PyTogether::of(parsed(held)?)?)?,
    }
    Err(PyTypeError::new_err(format!("values of {class_} are not restored from text")))
}
