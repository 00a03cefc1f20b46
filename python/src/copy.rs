//! `Copy`: a copy between two layouts.

use crate::{recommendation::PyRecommendation, row::PySourceLine, shape::PyShape};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use tilewise_audit::{CopyReason, CopyRow};
use tilewise_report::why;

/// One `copy` instruction. Sizes are in bytes.
///
/// Examples:
///     >>> report = audit('''
///     ...   x = f32[256,512]{1,0:T(8,128)} parameter(0)
///     ...   y = f32[256,512]{0,1:T(8,128)} copy(x)''')
///     >>> report.copies
///     [<Copy y: f32[256,512]{1,0:T(8,128)} to f32[256,512]{0,1:T(8,128)}>]
///     >>> report = audit('''HloModule jit_f, is_scheduled=true
///     ...   ENTRY main {
///     ...     w = f32[1024,1024]{0,1:T(8,128)} parameter(0), metadata={op_name="w"}
///     ...     c = f32[1024,1024]{1,0:T(8,128)} copy(w)
///     ...     ROOT r = f32[1024]{0:T(1024)} custom-call(c), custom_call_target="rows"
///     ...   }''')
///     >>> print(report.copies[0].fix.code)
///     w = jax.device_put(w, Format(Layout(major_to_minor=(0, 1)), w.sharding))
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Copy")]
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyCopy {
    /// The name of the instruction.
    instruction: String,
    /// The name of the computation that contains it.
    computation: String,
    /// The operand's shape.
    from_shape: PyShape,
    /// The result's shape.
    to_shape: PyShape,
    /// The class of its reason, as in the command line's JSON.
    class_name: String,
    /// How often it runs; `None` where a loop around it runs an unknown number of times.
    trips: Option<u64>,
    /// Bytes that the operand takes.
    read_bytes: u64,
    /// Bytes that the result takes.
    written_bytes: u64,
    /// The reason, as a sentence: what needs which layout.
    why: String,
    /// The other copy of a pair whose second copy undoes the first; `None` for all others.
    cancels: Option<String>,
    /// The layout in which to pass an argument or take a result so that the copy isn't needed; `None` if unknown.
    fix: Option<PyRecommendation>,
    /// The framework's name of the operation.
    op_name: Option<String>,
    /// The line of the user's program.
    source: Option<PySourceLine>,
}

impl PyCopy {
    pub(crate) fn of(copy: &CopyRow, reason: &CopyReason) -> Self {
        Self {
            instruction: copy.instruction.clone(),
            computation: copy.computation.clone(),
            from_shape: PyShape::new(copy.from.clone()),
            to_shape: PyShape::new(copy.to.clone()),
            class_name: copy.class.as_str().to_owned(),
            trips: copy.trips,
            read_bytes: copy.read_bytes,
            written_bytes: copy.written_bytes,
            why: why(copy, reason),
            cancels: reason.cancels.clone(),
            fix: reason.fix.as_ref().map(PyRecommendation::of),
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
