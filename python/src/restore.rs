//! Restores pickled values from their JSON.

use crate::{
    buffer::PyBuffer,
    copy::PyCopy,
    explanation::PyAllocation,
    kernel::{PyBoundaryChange, PyKernelArray, PyKernelUse, PyRemedy},
    recommendation::PyRecommendation,
    relation::PyRelation,
    row::PySourceLine,
    screen::{PyCause, PyHeadline, PyPlannedChange},
    space::{PyPeakBuffer, PySpaceTotal},
    travel::parsed,
    warning::PyReportWarning,
};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyType};

/// The value of this class in a JSON text. Pickled values call it.
#[pyfunction]
pub(crate) fn restore<'py>(class_: &Bound<'py, PyType>, held: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = class_.py();
    macro_rules! first_of {
        ($($type:ty)*) => {
            $(if class_.is(&py.get_type::<$type>()) {
                return Ok(Bound::new(py, parsed::<$type>(held)?)?.into_any());
            })*
        };
    }
    first_of!(
        PyBoundaryChange PyCause PyCopy PyHeadline PyKernelArray PyKernelUse PyPeakBuffer PyPlannedChange PyRecommendation
        PyRelation PyRemedy PyReportWarning PySourceLine PySpaceTotal
    );
    if class_.is(py.get_type::<PyBuffer>()) {
        return Ok(parsed::<PyBuffer>(held)?.into_python(py)?.into_any());
    }
    if class_.is(py.get_type::<PyAllocation>()) {
        return Ok(parsed::<PyAllocation>(held)?.into_python(py)?.into_any());
    }
    Err(PyTypeError::new_err(format!("values of {class_} are not restored from text")))
}
