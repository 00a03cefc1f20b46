//! What else a `Report` and its rows speak of: plain values with names.

use crate::shape::PyShape;
use pyo3::prelude::*;
use tilewise_audit::{CopyRow, SourceLine, SpaceTotal, Warning};

/// The buffers of one memory space together. Sizes are in bytes.
///
/// Examples:
///     >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").memory_spaces
///     [<SpaceTotal hbm: 185600000 of 204800000 bytes are padding>]
#[pyclass(frozen, get_all, module = "tilewise", name = "SpaceTotal")]
pub(crate) struct PySpaceTotal {
    /// The memory space's number, 0 for HBM.
    memory_space: u8,
    /// Its name on a TPU, such as `'hbm'`.
    name: String,
    /// How many buffers.
    buffers: usize,
    /// Bytes of data.
    logical_bytes: u64,
    /// Bytes taken.
    physical_bytes: u64,
    /// Bytes that hold no data.
    padding_bytes: u64,
    /// Padding as a share of the bytes taken, 0 … 1.
    padding_share: f64,
}

impl PySpaceTotal {
    pub(crate) fn of(total: &SpaceTotal) -> Self {
        Self {
            memory_space: total.memory_space,
            name: total.memory_space_name().into_owned(),
            buffers: total.buffers,
            logical_bytes: total.logical_bytes,
            physical_bytes: total.physical_bytes,
            padding_bytes: total.padding_bytes(),
            padding_share: total.padding_share(),
        }
    }
}

#[pymethods]
impl PySpaceTotal {
    fn __repr__(&self) -> String {
        let Self { name, padding_bytes, physical_bytes, .. } = self;
        format!("<SpaceTotal {name}: {padding_bytes} of {physical_bytes} bytes are padding>")
    }
}

/// One `copy` instruction. Sizes are in bytes.
///
/// Examples:
///     >>> report = audit('''
///     ...   x = f32[256,512]{1,0:T(8,128)} parameter(0)
///     ...   y = f32[256,512]{0,1:T(8,128)} copy(x)''')
///     >>> report.copies
///     [<Copy y: f32[256,512]{1,0:T(8,128)} to f32[256,512]{0,1:T(8,128)}>]
#[pyclass(frozen, get_all, module = "tilewise", name = "Copy")]
pub(crate) struct PyCopy {
    /// The instruction.
    instruction: String,
    /// The computation it is in.
    computation: String,
    /// What is copied.
    from_shape: PyShape,
    /// What it becomes.
    to_shape: PyShape,
    /// Bytes the source takes.
    read_bytes: u64,
    /// Bytes the result takes.
    written_bytes: u64,
    /// The framework's name of the operation.
    op_name: Option<String>,
    /// The line of the user's program.
    source: Option<PySourceLine>,
}

impl PyCopy {
    pub(crate) fn of(copy: &CopyRow) -> Self {
        Self {
            instruction: copy.instruction.clone(),
            computation: copy.computation.clone(),
            from_shape: PyShape::new(copy.from.clone()),
            to_shape: PyShape::new(copy.to.clone()),
            read_bytes: copy.read_bytes,
            written_bytes: copy.written_bytes,
            op_name: copy.op_name.clone(),
            source: copy.source.as_ref().map(PySourceLine::of),
        }
    }
}

#[pymethods]
impl PyCopy {
    fn __repr__(&self) -> String {
        format!("<Copy {}: {} to {}>", self.instruction, self.from_shape, self.to_shape)
    }
}

/// Something in a program's text that could not be read or sized.
///
/// Examples:
///     >>> audit("x = b16[3] parameter(0)").warnings
///     [<ReportWarning shape: the shape of `x` isn't valid: `b16` is not an element type ...>]
#[pyclass(frozen, get_all, module = "tilewise", name = "ReportWarning")]
pub(crate) struct PyReportWarning {
    /// A stable name in snake case.
    kind: &'static str,
    /// What it is about.
    message: String,
}

impl PyReportWarning {
    pub(crate) fn of(warning: &Warning) -> Self {
        Self { kind: warning.kind, message: warning.message.clone() }
    }
}

#[pymethods]
impl PyReportWarning {
    fn __str__(&self) -> &str {
        &self.message
    }

    fn __repr__(&self) -> String {
        format!("<ReportWarning {}: {}>", self.kind, self.message)
    }
}

/// A line of the user's program; `str` gives `file:line`.
///
/// Examples:
///     >>> import pathlib
///     >>> worst = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).largest_padding()[0]
///     >>> str(worst.source)
///     'model.py:439'
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "SourceLine")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PySourceLine {
    /// The file, as the compiler was told.
    file: String,
    /// The line, from 1.
    line: u32,
    /// The function, where the text says.
    function: Option<String>,
}

impl PySourceLine {
    pub(crate) fn of(line: &SourceLine) -> Self {
        Self { file: line.file.clone(), line: line.line, function: line.function.clone() }
    }
}

#[pymethods]
impl PySourceLine {
    fn __str__(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    fn __repr__(&self) -> String {
        format!("<SourceLine {}:{}>", self.file, self.line)
    }
}
