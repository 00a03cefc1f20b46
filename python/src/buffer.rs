//! `Buffer`: an array that an instruction defines.

use crate::{
    builtins::tuple,
    fix::PyFix,
    row::{PyRow, PySourceLine, RowValue},
    shape::PyShape,
    table::{Column, Framed},
    travel::{Reduced, reduced},
};
use pyo3::{prelude::*, types::PyTuple};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilewise::tpu::Generation;
use tilewise_audit::{BufferRow, BufferView, fix};

/// One buffer of a program: an array that an instruction defines. Sizes are in bytes.
///
/// Examples:
///     >>> buffer = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").largest_padding()[0]
///     >>> buffer.instruction, buffer.shape, buffer.fix.jax
///     ('x', Shape('f32[400000,12]{1,0:T(8,128)}'), 'x = jax.device_put(x, Format(Layout(major_to_minor=(1, 0)), x.sharding))...')
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
    /// The generation that prices the fixes.
    tpu: Option<String>,
}

impl BufferValue {
    /// The buffer of a report whose fixes are for `tpu`.
    pub(crate) fn new(row: BufferRow, tpu: Option<Generation>) -> Self {
        Self {
            instruction: row.instruction,
            computation: row.computation,
            opcode: row.opcode,
            shape: PyShape::new(row.shape),
            shape_index: row.shape_index,
            memory_space: row.memory_space,
            logical_bytes: row.sizes.logical_bytes,
            physical_bytes: row.sizes.physical_bytes,
            causes: row.causes,
            op_name: row.op_name,
            source: row.source.as_ref().map(PySourceLine::of),
            tpu: tpu.map(|tpu| tpu.name().to_owned()),
        }
    }
}

impl RowValue for BufferValue {
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

    /// Of arguments alone, as `BufferRow::fixes` says: a compiler chooses the layouts of everything else.
    fn fixes(&self) -> Vec<PyFix> {
        if self.padding_bytes() == 0 || self.opcode != "parameter" {
            return Vec::new();
        }
        let tpu = self.tpu.as_ref().and_then(|name| name.parse().ok());
        let mut fixes = fix::suggest(self.shape.as_shape(), tpu);
        if let Some(argument) = self.op_name().filter(|name| !name.is_empty() && !name.contains('/')) {
            fixes = fixes.for_argument(argument);
        }
        fixes.list.iter().map(PyFix::of).collect()
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

impl Framed for BufferView {
    fn more() -> Vec<(&'static str, Column)> {
        vec![
            ("memory_space_name", Column::Text(Vec::new())),
            ("function", Column::Text(Vec::new())),
            ("fix_jax", Column::Text(Vec::new())),
            ("fix_imports", Column::Text(Vec::new())),
            ("fix_bytes_saved", Column::MaybeCount(Vec::new())),
        ]
    }
}
