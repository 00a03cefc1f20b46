//! What is said first of a program or a message: `Headline`, `Cause`, `PlannedChange`.

use crate::{
    row::PySourceLine,
    travel::{Reduced, reduced},
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use tilewise_report::{CauseAxis, Headline, PeakCause, PlannedChange, axis};

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
    /// `'fits'`, `'does_not_fit'`, `'may_not_fit'` or `'unknown'`; of a message its own verdict.
    verdict: String,
    /// Bytes that it needs; `None` where that isn't known.
    needed_bytes: Option<u64>,
    /// Bytes that it is to fit; `None` where no memory is known.
    limit_bytes: Option<u64>,
    /// Whether it needs less than 80 % of that: nothing needs to change.
    is_comfortable: bool,
    /// The verdict, what is needed, what there is, and the difference.
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), slf.get())
    }
}

/// A part of what a program needs, and what that is: one of `Report.causes`, `Explanation.causes`. `str` gives the
/// sentence. Sizes are in bytes.
///
/// Examples:
///     >>> import pathlib
///     >>> cause = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).causes[0]
///     >>> cause.kind, cause.arrays, cause.filled, str(cause.source)
///     ('padding', 3, (12, 128), 'model.py:439')
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Cause")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PyCause {
    /// What its arrays have in common: `'padding'`, `'held_twice'`, `'fragmentation'`, `'parameters'`,
    /// `'optimizer_state'`, `'cache'`, `'arguments'`, `'results'`, `'logits'`, `'kept_for_gradient'`, `'gradients'`,
    /// `'copies_of_arguments'`, `'loop_carry'`, `'workspace'` or `'intermediates'`; of a message `'padding'`,
    /// `'listed'`, `'kernel'` (its own memory), `'temporaries'`, `'arguments'`, `'others'` (what was there before) or
    /// `'fragmentation'`.
    kind: String,
    /// Bytes that it takes.
    bytes: u64,
    /// Of what is needed, 0 to 1; `None` where that isn't known.
    share: Option<f64>,
    /// How many arrays it is.
    arrays: usize,
    /// The dimensions of the largest, without those of size 1: what each is called, `None` where that isn't known, and
    /// its size.
    axes: Vec<(Option<String>, u64)>,
    /// What it is, without a full stop.
    sentence: String,
    /// The places of a row that hold data, and all that it takes; `None` where most of it isn't padding.
    filled: Option<(u64, u64)>,
    /// The line that makes the largest.
    source: Option<PySourceLine>,
    /// That line's text, where the program is of a function at hand.
    quote: Option<String>,
}

// A share is a number.
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), slf.get())
    }
}

/// What to change, and what is needed then: one of `Report.changes`, which come in the order in which to try them, or of
/// `Explanation.changes`. `str` gives what to do.
///
/// Examples:
///     >>> import pathlib
///     >>> change = audit(pathlib.Path("../examples/gnn_large.v5e.hlo"), hbm_limit="200MiB").changes[0]
///     >>> change.kind, change.fits
///     ('split', True)
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "PlannedChange")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PyPlannedChange {
    /// What to do, in a few words.
    r#do: String,
    /// As that of a `Recommendation`.
    kind: String,
    /// Bytes needed once it and those before it are made; of a message, once it alone is. `None` where a message doesn't
    /// tell.
    bytes_after: Option<u64>,
    /// Whether that fits; `None` where no memory is known.
    fits: Option<bool>,
    /// How long a run then takes, estimated from the compiler's cycle counts; `None` where that isn't known.
    seconds_after: Option<f64>,
    /// Where to make it: a line, and which call it is; empty where nothing tells.
    place: String,
    /// Code for it, of the program's framework; `None` if there is none.
    code: Option<String>,
    /// What to know before making it, without a full stop.
    caveat: Option<String>,
    /// The text of that line, where the program is of a function at hand.
    quote: Option<String>,
}

// Seconds are a number.
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
            quote: change.quote.clone(),
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), slf.get())
    }
}
