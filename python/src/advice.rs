//! `Advice`, on a program, and `MessageAdvice`, on what a message tells of one.

use crate::{
    row::PySourceLine,
    shape::PyShape,
    travel::{Reduced, reduced},
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use tilewise_audit::{Advice, MessageAdvice};

/// One change to a program, and by how much what it holds falls.
///
/// Examples:
///     >>> import pathlib
///     >>> first = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).advice[0]
///     >>> first.kind, first.target, str(first.shape)
///     ('split', 'upstream', 'bf16[400000,12]{1,0:T(8,128)(2,1)}')
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Advice")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyAdvice {
    /// The sort of change: `'order'`, `'transpose'`, `'reshape'`, `'split'`, `'chunk'`, `'checkpoint'`, `'donate'`, or
    /// `'none'` where none of these helps.
    kind: String,
    /// What is changed: an `'argument'`, a `'result'`, what is `'upstream'` of a gather or scatter, a `'kernel'`, what a
    /// `'loop'` keeps, or a `'value'` inside the program.
    target: String,
    /// The instruction that makes the array it is about.
    instruction: String,
    /// That array; of several the largest.
    shape: PyShape,
    /// Bytes by which arguments, results that don't lie in them, and temporaries together fall, once the advice before it
    /// is followed.
    peak_bytes_saved: u64,
    /// Whether that is the most it can free.
    is_bound: bool,
    /// What to do, as a sentence.
    sentence: String,
    /// The Python code that does it; `None` if there is none.
    code: Option<String>,
    /// What that code imports.
    imports: Option<String>,
    /// The framework's name of the operation, or of the argument.
    op_name: Option<String>,
    /// The line of the user's program.
    source: Option<PySourceLine>,
}

impl PyAdvice {
    pub(crate) fn of(advice: &Advice) -> Self {
        Self {
            kind: advice.kind.as_str().to_owned(),
            target: advice.target.as_str().to_owned(),
            instruction: advice.instruction.clone(),
            shape: PyShape::new(advice.shape.clone()),
            peak_bytes_saved: advice.peak_bytes_saved,
            is_bound: advice.is_bound,
            sentence: advice.sentence.clone(),
            code: advice.code.clone(),
            imports: advice.imports.clone(),
            op_name: advice.op_name.clone(),
            source: advice.source.as_ref().map(PySourceLine::of),
        }
    }
}

#[pymethods]
impl PyAdvice {
    fn __str__(&self) -> &str {
        &self.sentence
    }

    fn __repr__(&self) -> String {
        format!("<Advice {}: {}, frees {} bytes>", self.kind, self.sentence, self.peak_bytes_saved)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), slf.get())
    }
}

/// One thing to do about an out-of-memory message, and what it frees, as far as the message tells.
///
/// Examples:
///     >>> import pathlib
///     >>> first = explain(pathlib.Path("../examples/out_of_memory.txt")).advice[0]
///     >>> first.shape
///     'f32[400000,12]{1,0:T(8,128)}'
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "MessageAdvice")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyMessageAdvice {
    /// The sort of change: as of `Advice`, or `'narrow'` types, `'shard'` arrays between devices, a kernel's `'block'`, a
    /// `'limit'` to raise, memory to `'free'`, or `'audit'` where the program tells more than the message.
    kind: String,
    /// What is changed: as of `Advice`, or the `'compiler'`, or the `'process'` around the program.
    target: String,
    /// The array it is about, as a text, since it may be cut off; `None` if it is about none.
    shape: Option<String>,
    /// Bytes it frees; `None` where that is not known.
    bytes_saved: Option<u64>,
    /// Whether that is the most it can free.
    is_bound: bool,
    /// What to do, as a sentence.
    sentence: String,
    /// The code that does it, in the language of the message's framework; `None` if there is none.
    code: Option<String>,
    /// What that code imports.
    imports: Option<String>,
}

impl PyMessageAdvice {
    pub(crate) fn of(advice: &MessageAdvice) -> Self {
        Self {
            kind: advice.kind.as_str().to_owned(),
            target: advice.target.as_str().to_owned(),
            shape: advice.shape.clone(),
            bytes_saved: advice.bytes_saved,
            is_bound: advice.is_bound,
            sentence: advice.sentence.clone(),
            code: advice.code.clone(),
            imports: advice.imports.map(str::to_owned),
        }
    }
}

#[pymethods]
impl PyMessageAdvice {
    fn __str__(&self) -> &str {
        &self.sentence
    }

    fn __repr__(&self) -> String {
        let frees = self.bytes_saved.map(|bytes| format!(", frees {bytes} bytes")).unwrap_or_default();
        format!("<MessageAdvice {}: {}{frees}>", self.kind, self.sentence)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), slf.get())
    }
}
