//! `SpaceTotal`, the buffers of one memory space and its peak, and `PeakBuffer`, arrays alive at the peak.

use crate::{row::PySourceLine, shape::PyShape};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use tilewise_audit::{PeakRow, SpacePeak, SpaceTotal};
use tilewise_report::causes_in_words;

/// Totals of the buffers in one memory space, and its peak. Sizes are in bytes.
///
/// The fields of the peak are `None` for a program without a memory plan: one that isn't scheduled.
///
/// Examples:
///     >>> import pathlib
///     >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").memory_spaces
///     [<SpaceTotal hbm: 185600000 of 204800000 bytes are padding>]
///     >>> hbm = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).memory_spaces[0]
///     >>> hbm.peak_instruction, str(hbm.peak_source), hbm.peak_buffers[0].count
///     ('fusion.6', 'model.py:439', 1)
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "SpaceTotal")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PySpaceTotal {
    /// The memory space's number, 0 for HBM.
    memory_space: u8,
    /// The memory space's name on a TPU, such as `'hbm'`.
    memory_space_name: String,
    /// The number of buffers.
    buffers: usize,
    /// Bytes of data.
    logical_bytes: u64,
    /// Bytes taken.
    physical_bytes: u64,
    /// Bytes of padding.
    padding_bytes: u64,
    /// Bytes of everything alive at the peak.
    peak_live_bytes: Option<u64>,
    /// Bytes of the temporaries' memory.
    peak_temporary_bytes: Option<u64>,
    /// Padding of everything alive at the peak.
    peak_padding_bytes: Option<u64>,
    /// Bytes of the temporaries' memory that nothing uses at the peak.
    peak_fragmentation_bytes: Option<u64>,
    /// The instruction that runs at the peak.
    peak_instruction: Option<String>,
    /// The line of the user's program that it comes from.
    peak_source: Option<PySourceLine>,
    /// The arrays alive at the peak, the largest first.
    peak_buffers: Option<Vec<PyPeakBuffer>>,
}

impl PySpaceTotal {
    pub(crate) fn of(total: &SpaceTotal) -> Self {
        let peak = total.peak.as_ref();
        Self {
            memory_space: total.memory_space,
            memory_space_name: total.memory_space_name().into_owned(),
            buffers: total.buffers,
            logical_bytes: total.logical_bytes,
            physical_bytes: total.physical_bytes,
            padding_bytes: total.padding_bytes(),
            peak_live_bytes: peak.map(|peak| peak.live_bytes),
            peak_temporary_bytes: peak.map(|peak| peak.temporary_bytes),
            peak_padding_bytes: peak.map(|peak| peak.padding_bytes),
            peak_fragmentation_bytes: peak.map(|peak| peak.fragmentation_bytes),
            peak_instruction: peak.map(|peak| peak.instruction.clone()),
            peak_source: peak.and_then(|peak| peak.source.as_ref()).map(PySourceLine::of),
            peak_buffers: peak.map(PyPeakBuffer::all),
        }
    }
}

#[pymethods]
impl PySpaceTotal {
    /// Padding as a fraction of the bytes taken, 0 … 1.
    #[getter]
    #[expect(clippy::cast_precision_loss, reason = "a fraction for people")]
    fn padding_share(&self) -> f64 {
        if self.physical_bytes == 0 { 0.0 } else { self.padding_bytes as f64 / self.physical_bytes as f64 }
    }

    fn __repr__(&self) -> String {
        let Self { memory_space_name: name, padding_bytes, physical_bytes, .. } = self;
        format!("<SpaceTotal {name}: {padding_bytes} of {physical_bytes} bytes are padding>")
    }
}

/// Equal arrays of one line that are alive at the peak. Sizes are in bytes, of all of them together.
///
/// Examples:
///     >>> import pathlib
///     >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).peak_buffers[0]
///     <PeakBuffer fusion.6 f32[400000,12]{1,0:T(8,128)}: 204800000 bytes>
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "PeakBuffer")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyPeakBuffer {
    /// The instruction that makes the first of them.
    instruction: String,
    /// The instruction's computation.
    computation: String,
    /// The instruction's opcode.
    opcode: String,
    /// The array; a tuple where it is a tuple's table of pointers.
    shape: PyShape,
    /// The role of the arrays, such as `'argument'` or `'temporary'`.
    role: String,
    /// The number of arrays.
    count: usize,
    /// Bytes they take.
    bytes: u64,
    /// Bytes of data.
    logical_bytes: u64,
    /// Bytes of padding.
    padding_bytes: u64,
    /// The causes of the padding, as sentences.
    causes: Vec<String>,
    /// The framework's name of the operation, or of the argument.
    op_name: Option<String>,
    /// The line of the user's program.
    source: Option<PySourceLine>,
}

impl PyPeakBuffer {
    /// The arrays alive at a peak.
    pub(crate) fn all(peak: &SpacePeak) -> Vec<Self> {
        peak.rows.iter().map(Self::of).collect()
    }

    fn of(row: &PeakRow) -> Self {
        Self {
            instruction: row.instruction.clone(),
            computation: row.computation.clone(),
            opcode: row.opcode.clone(),
            shape: PyShape::new(row.shape.clone()),
            role: row.role.as_str().to_owned(),
            count: row.count,
            bytes: row.bytes,
            logical_bytes: row.logical_bytes,
            padding_bytes: row.padding_bytes,
            causes: causes_in_words(&row.causes),
            op_name: row.op_name.clone(),
            source: row.source.as_ref().map(PySourceLine::of),
        }
    }
}

#[pymethods]
impl PyPeakBuffer {
    fn __repr__(&self) -> String {
        format!("<PeakBuffer {} {}: {} bytes>", self.instruction, self.shape, self.bytes)
    }
}
