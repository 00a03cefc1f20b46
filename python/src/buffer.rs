//! `Buffer`: an array that an instruction defines.

use crate::{
    builtins::tuple,
    row::{PyRow, PySourceLine, RowValue},
    shape::PyShape,
    table::{Column, Framed},
    travel::{Reduced, reduced},
};
use pyo3::{prelude::*, types::PyTuple};
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
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyBuffer(Arc<BufferValue>);

/// What a `Buffer` holds.
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct BufferValue {
    instruction: String,
    computation: String,
    opcode: String,
    shape: PyShape,
    shape_index: Vec<usize>,
    memory_space: u8,
    logical_bytes: u64,
    physical_bytes: u64,
    causes: Vec<String>,
    op_name: Option<String>,
    source: Option<PySourceLine>,
}

impl BufferValue {
    pub(crate) fn new(row: BufferRow) -> Self {
        Self {
            instruction: row.instruction,
            computation: row.computation,
            opcode: row.opcode,
            shape: PyShape::new(row.shape),
            shape_index: row.shape_index,
            memory_space: row.memory_space,
            logical_bytes: row.sizes.logical_bytes,
            physical_bytes: row.sizes.physical_bytes,
            causes: causes_in_words(&row.causes),
            op_name: row.op_name,
            source: row.source.as_ref().map(PySourceLine::of),
        }
    }
}

impl RowValue for BufferValue {
    fn bytes(&self) -> Option<u64> {
        Some(self.physical_bytes)
    }

    fn padding_bytes(&self) -> u64 {
        self.physical_bytes.saturating_sub(self.logical_bytes)
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn expansion(&self) -> f64 {
        if self.logical_bytes == 0 { 1.0 } else { self.physical_bytes as f64 / self.logical_bytes as f64 }
    }

    fn causes(&self) -> &[String] {
        &self.causes
    }

    fn op_name(&self) -> Option<&str> {
        self.op_name.as_deref()
    }

    fn source(&self) -> Option<&PySourceLine> {
        self.source.as_ref()
    }
}

impl PyBuffer {
    pub(crate) fn of(py: Python<'_>, value: BufferValue) -> PyResult<Bound<'_, Self>> {
        let value = Arc::new(value);
        Bound::new(py, PyClassInitializer::from(PyRow(value.clone())).add_subclass(Self(value)))
    }
}

#[pymethods]
impl PyBuffer {
    /// The name of the instruction that defines it.
    #[getter]
    fn instruction(&self) -> &str {
        &self.0.instruction
    }

    /// The name of the computation that contains the instruction.
    #[getter]
    fn computation(&self) -> &str {
        &self.0.computation
    }

    /// The instruction's opcode.
    #[getter]
    fn opcode(&self) -> &str {
        &self.0.opcode
    }

    /// The shape of the array.
    #[getter]
    fn shape(&self) -> PyShape {
        self.0.shape.clone()
    }

    /// The array's index in the instruction's result; `()` if the result is not a tuple.
    #[getter]
    fn shape_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.0.shape_index)
    }

    /// The memory space's number, 0 for HBM.
    #[getter]
    fn memory_space(&self) -> u8 {
        self.0.memory_space
    }

    /// Bytes of data.
    #[getter]
    fn logical_bytes(&self) -> u64 {
        self.0.logical_bytes
    }

    /// Bytes taken.
    #[getter]
    fn physical_bytes(&self) -> u64 {
        self.0.physical_bytes
    }

    fn __repr__(&self) -> String {
        let BufferValue { instruction, shape, .. } = &*self.0;
        format!("<Buffer {instruction} {shape}: {} bytes of padding>", self.0.padding_bytes())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), &*slf.get().0)
    }
}

impl Framed for BufferRow {
    fn more() -> Vec<(&'static str, Column)> {
        vec![("memory_space_name", Column::Text(Vec::new())), ("function", Column::Text(Vec::new()))]
    }
}
