//! The summary of a program or a message: `Headline`, `Cause`, `PlannedChange`.

use crate::{recommendation::PyRecommendation, row::PySourceLine};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use tilewise_report::{CauseAxis, Headline, LineEdit, PeakCause, PlannedChange, axis};

/// Whether a program fits, or what ran out, in a sentence: `Report.headline`, `Explanation.headline`. `str` gives the
/// sentence. Sizes are in bytes.
///
/// Examples:
///     >>> import pathlib
///     >>> headline = audit(pathlib.Path("../examples/gnn_large.v5e.hlo"), hbm_limit="200MiB").headline
///     >>> headline.verdict, headline.needed_bytes - headline.limit_bytes
///     ('does_not_fit', 115176960)
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Headline")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyHeadline {
    /// `'fits'`, `'does_not_fit'`, `'may_not_fit'` or `'unknown'`; for a message its own verdict.
    verdict: String,
    /// Bytes that it needs; `None` if unknown.
    needed_bytes: Option<u64>,
    /// Bytes of the memory limit; `None` if unknown.
    limit_bytes: Option<u64>,
    /// Whether it needs less than 80 % of the limit: nothing needs to change.
    is_comfortable: bool,
    /// The verdict, the bytes needed, the limit, and the difference.
    sentence: String,
}

impl PyHeadline {
    pub(crate) fn of(headline: &Headline) -> Self {
        Self {
            verdict: headline.verdict.to_owned(),
            needed_bytes: headline.needed_bytes,
            limit_bytes: headline.limit_bytes,
            is_comfortable: headline.is_comfortable,
            sentence: headline.sentence.clone(),
        }
    }
}

#[pymethods]
impl PyHeadline {
    fn __str__(&self) -> &str {
        &self.sentence
    }

    fn __repr__(&self) -> String {
        format!("<Headline {}: {}>", self.verdict, self.sentence)
    }
}

/// A part of a program's need, and its meaning: one of `Report.causes`, `Explanation.causes`. `str` gives the sentence.
/// Sizes are in bytes.
///
/// Examples:
///     >>> import pathlib
///     >>> cause = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).causes[0]
///     >>> cause.kind, cause.arrays, cause.filled, str(cause.source)
///     ('padding', 3, (12, 128), 'model.py:439')
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Cause")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PyCause {
    /// The kind of its arrays: `'padding'`, `'held_twice'`, `'fragmentation'`, `'parameters'`, `'optimizer_state'`,
    /// `'cache'`, `'arguments'`, `'results'`, `'logits'`, `'attention_scores'`, `'kept_for_gradient'`, `'gradients'`,
    /// `'copies_of_arguments'`, `'loop_carry'`, `'workspace'` or `'intermediates'`; for a message `'padding'`,
    /// `'listed'`, `'kernel'` (its own memory), `'temporaries'`, `'arguments'`, `'others'` (memory in use before) or
    /// `'fragmentation'`.
    kind: String,
    /// Bytes that it takes.
    bytes: u64,
    /// Its share of the need, 0 to 1; `None` if unknown.
    share: Option<f64>,
    /// The number of its arrays.
    arrays: usize,
    /// The dimensions of the largest array, without those of size 1: the name of each, `None` if unknown, and its size.
    axes: Vec<(Option<String>, u64)>,
    /// Its description, without a full stop.
    sentence: String,
    /// A change that makes them take less, without a price; `None` where nothing helps.
    remedy: Option<String>,
    /// The places of a row that hold data, and all that the row takes; `None` where most of it isn't padding.
    filled: Option<(u64, u64)>,
    /// The line that makes the largest array.
    source: Option<PySourceLine>,
    /// The text of that line, if the program's function is at hand.
    quote: Option<String>,
}

// A share is never NaN.
impl Eq for PyCause {}

impl Hash for PyCause {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.kind, self.bytes, &self.sentence).hash(state);
    }
}

impl PyCause {
    pub(crate) fn of(cause: &PeakCause) -> Self {
        let named = |of: &CauseAxis| (of.name.as_ref().map(axis), of.size);
        Self {
            kind: cause.kind.to_owned(),
            bytes: cause.bytes,
            share: cause.share,
            arrays: cause.arrays,
            axes: cause.axes.iter().map(named).collect(),
            sentence: cause.sentence.clone(),
            remedy: cause.remedy.map(str::to_owned),
            filled: cause.filled.map(|[filled, places]| (filled, places)),
            source: cause.source.as_ref().map(PySourceLine::of),
            quote: cause.quote.clone(),
        }
    }
}

#[pymethods]
impl PyCause {
    fn __str__(&self) -> &str {
        &self.sentence
    }

    fn __repr__(&self) -> String {
        format!("<Cause {}: {} bytes, {}>", self.kind, self.bytes, self.sentence)
    }
}

/// A change, and the need after it: one of `Report.changes`, which are in the order in which to try them, or of
/// `Explanation.changes`. `str` gives the task.
///
/// Examples:
///     >>> import pathlib
///     >>> change = audit(pathlib.Path("../examples/gnn_large.v5e.hlo"), hbm_limit="200MiB").changes[0]
///     >>> change.kind, change.fits
///     ('split', True)
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "PlannedChange")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PyPlannedChange {
    /// The task, in a few words.
    r#do: String,
    /// The `kind` of its `Recommendation`.
    kind: String,
    /// Bytes needed after it and the changes before it; for a message, after it alone. `None` if a message doesn't show
    /// them.
    bytes_after: Option<u64>,
    /// Whether that fits; `None` if the memory is unknown.
    fits: Option<bool>,
    /// Seconds of a run after the change, estimated from the compiler's cycle counts; `None` if unknown.
    seconds_after: Option<f64>,
    /// The place of the change: a line, and the call on it; empty if unknown.
    place: String,
    /// Code for it, in the program's framework; `None` for a change without code.
    code: Option<String>,
    /// A caveat, without a full stop.
    caveat: Option<String>,
    /// The lines to edit: file, number, and text if the program's function is at hand.
    lines: Vec<(String, u32, Option<String>)>,
    /// The line of source that makes the change; `None` unless it is one line at hand, and the only one that could be
    /// meant.
    edit: Option<PyLineEdit>,
    /// More about it.
    recommendation: PyRecommendation,
}

// Seconds are never NaN.
impl Eq for PyPlannedChange {}

impl Hash for PyPlannedChange {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.r#do, &self.kind, self.bytes_after).hash(state);
    }
}

impl PyPlannedChange {
    pub(crate) fn of(change: &PlannedChange<'_>) -> Self {
        Self {
            r#do: change.task.clone(),
            kind: change.recommendation.change.as_str().to_owned(),
            bytes_after: change.bytes_after,
            fits: change.fits,
            seconds_after: change.seconds_after,
            place: change.place.clone(),
            code: change.code(),
            caveat: change.caveat.clone(),
            lines: change.lines.iter().map(|line| (line.file.clone(), line.line, line.text.clone())).collect(),
            edit: change.edit.as_ref().map(PyLineEdit::of),
            recommendation: PyRecommendation::of(change.recommendation),
        }
    }
}

#[pymethods]
impl PyPlannedChange {
    fn __str__(&self) -> &str {
        &self.r#do
    }

    fn __repr__(&self) -> String {
        format!("<PlannedChange {}: {}>", self.kind, self.r#do)
    }
}

/// A line of the program's own source, and its replacement: `PlannedChange.edit`.
///
/// Examples:
///     >>> import pathlib
///     >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).changes[0].edit is None
///     True
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "LineEdit")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyLineEdit {
    /// Its file, as the program names it.
    file: String,
    /// Its number, from 1.
    line: u32,
    /// The line now, without its indentation, and those that its call goes on in.
    before: String,
    /// The line after the change, perhaps behind a new one.
    after: String,
}

impl PyLineEdit {
    fn of(edit: &LineEdit) -> Self {
        let LineEdit { file, line, before, after, .. } = edit.clone();
        Self { file, line, before, after }
    }
}

#[pymethods]
impl PyLineEdit {
    fn __repr__(&self) -> String {
        format!("<LineEdit {}:{}>", self.file, self.line)
    }
}
