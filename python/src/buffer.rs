//! `Buffer`: an array that an instruction defines.

use crate::{
    row::{PyRow, PySourceLine, Taken},
    shape::PyShape,
    table::{Column, Framed},
    travel::{Reduced, reduced},
    typed::Tuple,
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilewise_audit::BufferRow;
use tilewise_report::causes_in_words;

/// One buffer of a program: an array that an instruction defines. Sizes are in bytes.
///
/// Examples:
///     >>> buffer = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").largest_padding()[0]
///     >>> buffer.instruction, buffer.shape
///     ('x', Shape('f32[400000,12]{1,0:T(8,128)}'))
#[pyclass(frozen, eq, hash, extends = PyRow, module = "tilewise", name = "Buffer")]
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyBuffer {
    #[serde(flatten)]
    row: Arc<Taken>,
    /// The name of the instruction that defines it.
    #[pyo3(get)]
    instruction: String,
    /// The name of the computation that contains the instruction.
    #[pyo3(get)]
    computation: String,
    /// The instruction's opcode.
    #[pyo3(get)]
    opcode: String,
    /// The shape of the array.
    #[pyo3(get)]
    shape: PyShape,
    /// The array's index in the instruction's result; `()` if the result is not a tuple.
    #[pyo3(get)]
    shape_index: Tuple<usize>,
    /// The memory space's number, 0 for HBM.
    #[pyo3(get)]
    memory_space: u8,
}

impl PyBuffer {
    pub(crate) fn new(row: BufferRow) -> Self {
        Self {
            row: Arc::new(Taken {
                reported_bytes: None,
                logical_bytes: Some(row.sizes.logical_bytes),
                physical_bytes: Some(row.sizes.physical_bytes),
                causes: causes_in_words(&row.causes),
                op_name: row.op_name,
                source: row.source.as_ref().map(PySourceLine::of),
            }),
            instruction: row.instruction,
            computation: row.computation,
            opcode: row.opcode,
            shape: PyShape::new(row.shape),
            shape_index: Tuple(row.shape_index),
            memory_space: row.memory_space,
        }
    }

    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, Self>> {
        Bound::new(py, PyClassInitializer::from(PyRow(self.row.clone())).add_subclass(self))
    }
}

#[pymethods]
impl PyBuffer {
    /// Bytes of data, computed from the shape.
    #[getter]
    fn logical_bytes(&self) -> u64 {
        self.row.logical_bytes.unwrap_or(0)
    }

    /// Bytes taken, computed from the shape.
    #[getter]
    fn physical_bytes(&self) -> u64 {
        self.row.physical_bytes.unwrap_or(0)
    }

    fn __repr__(&self) -> String {
        let padding = PyRow(self.row.clone()).padding_bytes();
        format!("<Buffer {} {}: {padding} bytes of padding>", self.instruction, self.shape)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), slf.get())
    }
}

impl Framed for BufferRow {
    fn more() -> Vec<(&'static str, Column)> {
        vec![("memory_space_name", Column::Text(Vec::new())), ("function", Column::Text(Vec::new()))]
    }
}
