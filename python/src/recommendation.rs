//! `Recommendation`: a change, and what it frees.

use crate::{
    row::PySourceLine,
    shape::PyShape,
    typed::{Change, Target, Typed},
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tilewise_audit::{Recommendation, recommendation::MadeBatch};
use tilewise_report::words;

/// One change, and what it frees: of `Report.advice`, `Explanation.advice` or a `Copy.fix`. `str` gives the sentence.
///
/// Examples:
///     >>> import pathlib
///     >>> first = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).advice[0]
///     >>> first.kind, first.target, str(first.shape)
///     ('split', 'upstream', 'bf16[400000,12]{1,0:T(8,128)(2,1)}')
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Recommendation")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyRecommendation {
    /// The sort of change: `'order'`, `'transpose'`, `'reshape'`, `'split'`, `'chunk'`, `'checkpoint'`, `'donate'`,
    /// `'narrow'` types, `'shard'` arrays between devices, a kernel's `'block'`, a `'limit'` to raise, memory to
    /// `'free'`, `'audit'` where the program shows more than the message, or `'none'` where none of these helps.
    kind: Typed<String, Change>,
    /// The target of the change: an `'argument'`, a `'result'`, code `'upstream'` of a gather or scatter, a `'kernel'`,
    /// arrays that a `'loop'` keeps, a `'value'` inside the program, the `'compiler'`, or the `'process'` around the
    /// program.
    target: Typed<String, Target>,
    /// The instruction that makes the array it is about; `None` if it follows from a message.
    instruction: Option<String>,
    /// The array it is about, the largest of several; `None` without an array, or if the message cuts its shape off.
    shape: Option<PyShape>,
    /// The recommended shape, as the command line's JSON has it.
    shape_text: Option<String>,
    /// The layout to request for an argument or result; `None` if the change is not about a copy.
    requested: Option<PyShape>,
    /// The drop in bytes of arguments, results that don't lie in them, and temporaries together, after the preceding
    /// advice; `None` if unknown.
    peak_bytes_saved: Option<u64>,
    /// Whether `peak_bytes_saved` is an upper bound.
    is_bound: bool,
    /// Whether `peak_bytes_saved` is an estimate: it may free less or more.
    is_estimate: bool,
    /// The number of parts of the batch for this saving, where more parts save more; `None` for other changes.
    parts: Option<u64>,
    /// For a step that `microbatch` takes in `parts`: the arguments with a batch dimension, by their names in the
    /// report, each with that dimension. Empty for other changes.
    inputs: BTreeMap<String, usize>,
    /// The batch that the step makes itself and `microbatch` takes in parts; `None` for other changes.
    made: Option<PyMadeBatch>,
    /// The parameters of the function to donate; empty for other changes.
    donate: Vec<String>,
    /// The task, as a sentence.
    sentence: String,
    /// The code for it, in the language of the program's framework; `None` for a change without code.
    code: Option<String>,
    /// The imports of that code.
    imports: Option<String>,
    /// The framework's name of the operation, or of the argument.
    op_name: Option<String>,
    /// The line of the user's program.
    source: Option<PySourceLine>,
}

impl PyRecommendation {
    pub(crate) fn of(advice: &Recommendation) -> Self {
        let (array, said) = (advice.array.as_ref(), words(advice));
        Self {
            kind: advice.change.as_str().into(),
            target: advice.target.as_str().into(),
            instruction: array.and_then(|array| array.instruction.clone()),
            shape: array.and_then(|array| array.shape()).map(PyShape::new),
            shape_text: array.map(|array| array.shape_text.clone()),
            requested: array.and_then(|array| array.requested.clone()).map(PyShape::new),
            peak_bytes_saved: advice.saving.bytes(),
            is_bound: advice.saving.is_bound(),
            is_estimate: advice.saving.is_estimate(),
            parts: advice.parts,
            inputs: advice.inputs().map(|(name, at)| (name.to_owned(), at)).collect(),
            made: advice.made().as_ref().map(PyMadeBatch::of),
            donate: advice.donate().to_vec(),
            sentence: said.sentence,
            code: said.code,
            imports: said.imports.map(str::to_owned),
            op_name: array.and_then(|array| array.op_name.clone()),
            source: array.and_then(|array| array.source.as_ref()).map(PySourceLine::of),
        }
    }
}

#[pymethods]
impl PyRecommendation {
    fn __str__(&self) -> &str {
        &self.sentence
    }

    fn __repr__(&self) -> String {
        let frees = self.peak_bytes_saved.map(|bytes| format!(", frees {bytes} bytes")).unwrap_or_default();
        format!("<Recommendation {}: {}{frees}>", self.kind.0, self.sentence)
    }
}

/// A batch that a step makes itself, by the arguments that `microbatch` takes.
///
/// Examples:
///     >>> audit("x = f32[3] parameter(0)").advice
///     ()
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "MadeBatch")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyMadeBatch {
    /// The line that makes the largest array: ``train.py:30``.
    made_at: String,
    /// Samples.
    size: u64,
    /// Their dimension of that array.
    axis: usize,
    /// Parts, of equally many samples.
    parts: u64,
}

impl PyMadeBatch {
    fn of(made: &MadeBatch<'_>) -> Self {
        Self { made_at: made.made_at.clone(), size: made.size, axis: made.axis, parts: made.parts }
    }
}

#[pymethods]
impl PyMadeBatch {
    fn __repr__(&self) -> String {
        format!("<MadeBatch {} at {} in {} parts>", self.size, self.made_at, self.parts)
    }
}
