//! The rows of a `Report`.

use crate::{fix::PyFix, layout::tuple, shape::PyShape};
use pyo3::{prelude::*, types::PyTuple};
use std::sync::Arc;
use tilewise_audit::{BufferRow, CopyRow, SourceLine, SpaceTotal, Warning};
use tilewise_cli::Audited;

/// One buffer of a program: an array that an instruction defines. Sizes are in bytes.
#[pyclass(frozen, module = "tilewise", name = "Buffer")]
pub(crate) struct PyBuffer {
    pub(crate) of: Arc<Audited>,
    pub(crate) number: usize,
}

impl PyBuffer {
    fn row(&self) -> &BufferRow {
        &self.of.report.buffers[self.number]
    }
}

#[pymethods]
impl PyBuffer {
    /// The instruction that defines it.
    #[getter]
    fn instruction(&self) -> &str {
        &self.row().instruction
    }

    /// The computation the instruction is in.
    #[getter]
    fn computation(&self) -> &str {
        &self.row().computation
    }

    /// The instruction's opcode.
    #[getter]
    fn opcode(&self) -> &str {
        &self.row().opcode
    }

    /// The array.
    #[getter]
    fn shape(&self) -> PyShape {
        PyShape::new(self.row().shape.clone())
    }

    /// The array's place in the instruction's result; `()` if that is no tuple.
    #[getter]
    fn shape_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.row().shape_index)
    }

    /// The memory space's number, 0 for HBM.
    #[getter]
    fn memory_space(&self) -> u8 {
        self.row().memory_space
    }

    /// Bytes of data.
    #[getter]
    fn logical_bytes(&self) -> u64 {
        self.row().logical_bytes
    }

    /// Bytes taken.
    #[getter]
    fn physical_bytes(&self) -> u64 {
        self.row().physical_bytes
    }

    /// Bytes that hold no data.
    #[getter]
    fn padding_bytes(&self) -> u64 {
        self.row().padding_bytes()
    }

    /// How many times its data the buffer takes.
    #[getter]
    fn expansion(&self) -> f64 {
        self.row().expansion()
    }

    /// What makes the padding, in words, the largest cause first.
    #[getter]
    fn causes(&self) -> Vec<String> {
        self.row().causes.clone()
    }

    /// What to change so that it takes less, the best first.
    #[getter]
    fn fixes(&self) -> Vec<PyFix> {
        PyFix::all(self.row().advice(self.of.tpu).as_ref())
    }

    /// The best fix, if there is one.
    #[getter]
    fn fix(&self) -> Option<PyFix> {
        self.row().advice(self.of.tpu)?.best().map(PyFix::of)
    }

    /// The framework's name of the operation, such as `'jit(f)/dot_general'`.
    #[getter]
    fn op_name(&self) -> Option<&str> {
        self.row().op_name.as_deref()
    }

    /// The line of the user's program.
    #[getter]
    fn source(&self) -> Option<PySourceLine> {
        self.row().source.clone().map(PySourceLine)
    }

    fn __repr__(&self) -> String {
        let row = self.row();
        format!("<Buffer {} {}: {} bytes of padding>", row.instruction, row.shape, row.padding_bytes())
    }
}

/// The buffers of one memory space together. Sizes are in bytes.
#[pyclass(frozen, module = "tilewise", name = "SpaceTotal")]
pub(crate) struct PySpaceTotal(pub(crate) SpaceTotal);

#[pymethods]
impl PySpaceTotal {
    /// The memory space's number, 0 for HBM.
    #[getter]
    fn memory_space(&self) -> u8 {
        self.0.memory_space
    }

    /// Its name on a TPU, such as `'hbm'`.
    #[getter]
    fn name(&self) -> String {
        self.0.memory_space_name().into_owned()
    }

    /// How many buffers.
    #[getter]
    fn buffers(&self) -> usize {
        self.0.buffers
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

    /// Bytes that hold no data.
    #[getter]
    fn padding_bytes(&self) -> u64 {
        self.0.padding_bytes()
    }

    /// Padding as a share of the bytes taken, 0 … 1.
    #[getter]
    fn padding_share(&self) -> f64 {
        self.0.padding_share()
    }

    fn __repr__(&self) -> String {
        format!("<SpaceTotal {}: {} of {} bytes are padding>", self.name(), self.padding_bytes(), self.0.physical_bytes)
    }
}

/// One `copy` instruction. Sizes are in bytes.
#[pyclass(frozen, module = "tilewise", name = "Copy")]
pub(crate) struct PyCopy(pub(crate) CopyRow);

#[pymethods]
impl PyCopy {
    /// The instruction.
    #[getter]
    fn instruction(&self) -> &str {
        &self.0.instruction
    }

    /// The computation it is in.
    #[getter]
    fn computation(&self) -> &str {
        &self.0.computation
    }

    /// What is copied.
    #[getter(from_shape)]
    fn source_shape(&self) -> PyShape {
        PyShape::new(self.0.from.clone())
    }

    /// What it becomes.
    #[getter(to_shape)]
    fn result_shape(&self) -> PyShape {
        PyShape::new(self.0.to.clone())
    }

    /// Bytes the source takes.
    #[getter]
    fn read_bytes(&self) -> u64 {
        self.0.read_bytes
    }

    /// Bytes the result takes.
    #[getter]
    fn written_bytes(&self) -> u64 {
        self.0.written_bytes
    }

    /// The framework's name of the operation.
    #[getter]
    fn op_name(&self) -> Option<&str> {
        self.0.op_name.as_deref()
    }

    /// The line of the user's program.
    #[getter]
    fn source(&self) -> Option<PySourceLine> {
        self.0.source.clone().map(PySourceLine)
    }

    fn __repr__(&self) -> String {
        format!("<Copy {}: {} to {}>", self.0.instruction, self.0.from, self.0.to)
    }
}

/// Something in a program's text that could not be read or sized.
#[pyclass(frozen, module = "tilewise", name = "ReportWarning")]
pub(crate) struct PyReportWarning(pub(crate) Warning);

#[pymethods]
impl PyReportWarning {
    /// A stable name in snake case.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind
    }

    /// What it is about.
    #[getter]
    fn message(&self) -> &str {
        &self.0.message
    }

    fn __str__(&self) -> &str {
        &self.0.message
    }

    fn __repr__(&self) -> String {
        format!("<ReportWarning {}: {}>", self.0.kind, self.0.message)
    }
}

/// A line of the user's program; `str` gives `file:line`.
#[pyclass(frozen, eq, hash, module = "tilewise", name = "SourceLine")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PySourceLine(pub(crate) SourceLine);

#[pymethods]
impl PySourceLine {
    /// The file, as the compiler was told.
    #[getter]
    fn file(&self) -> &str {
        &self.0.file
    }

    /// The line, from 1.
    #[getter]
    fn line(&self) -> u32 {
        self.0.line
    }

    /// The function, where the text says.
    #[getter]
    fn function(&self) -> Option<&str> {
        self.0.function.as_deref()
    }

    fn __str__(&self) -> String {
        format!("{}:{}", self.0.file, self.0.line)
    }

    fn __repr__(&self) -> String {
        format!("<SourceLine {self}>", self = self.__str__())
    }
}
