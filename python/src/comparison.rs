//! `Comparison`, the differences between two programs, with its `ComparedProgram`, `Change` and `Owner`.

use crate::{
    tabular::PyTabular,
    travel::{Json, Reduced, not_held, not_one, parsed, reduced, to_json},
    typed::{Outcome, Settings, Tuple, Typed},
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    hash::{Hash, Hasher},
    path::Path,
};
use tilewise_report::{Amount, Change, ComparedProgram, Comparison, Owner};

/// A buffer that takes memory in a program, such as at its peak. `str` gives its line and its shape.
///
/// Examples:
///     >>> str(Owner("src/model.py", 12, "dot", "f32[8,128]{1,0:T(8,128)}", 4096))
///     'model.py:12 f32[8,128]'
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Owner")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyOwner {
    /// The file that it is written in; `None` if the program does not say.
    file: Option<String>,
    /// The line there, from 1.
    line: Option<u32>,
    /// Its name, as JAX gives it.
    op: String,
    /// Its shape and layout.
    shape: String,
    /// Its size, padding included.
    bytes: u64,
    /// The padding in it.
    padding_bytes: u64,
}

impl PyOwner {
    fn all(owners: Vec<Owner>) -> Tuple<Self> {
        let of = |Owner { op, shape, bytes, padding_bytes, file, line, .. }| Self {
            file,
            line,
            op,
            shape,
            bytes,
            padding_bytes,
        };
        owners.into_iter().map(of).collect()
    }
}

#[pymethods]
impl PyOwner {
    #[new]
    #[pyo3(signature = (file, line, op, shape, bytes, padding_bytes = 0))]
    fn new(file: Option<String>, line: Option<u32>, op: String, shape: String, bytes: u64, padding_bytes: u64) -> Self {
        Self { file, line, op, shape, bytes, padding_bytes }
    }

    fn __str__(&self) -> String {
        let array = self.shape.split('{').next().unwrap_or_default();
        let name = self.file.as_deref().and_then(|file| Path::new(file).file_name()).zip(self.line);
        match name {
            Some((name, line)) => format!("{}:{line} {array}", name.display()),
            None => format!("{} {array}", self.op),
        }
    }

    fn __repr__(&self) -> String {
        format!("<Owner {}: {} in {} bytes>", self.op, self.shape, self.bytes)
    }
}

/// One difference between two programs.
///
/// Examples:
///     >>> before = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
///     >>> after = audit("x = f32[50000,12]{1,0:T(8,128)} parameter(0)")
///     >>> before.diff(after).changes[0]
///     <Change total: 409600000 to 51200000, better>
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Change")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PyChange {
    /// `'total'`, `'argument'`, `'output'`, `'alias'`, `'constant'`, `'temporary'`, `'padding'`, `'limit'`, `'copies'`,
    /// the opcode of a collective, `'kernel_copies'`, `'vmem'` and other memories, `'recomputed'`, `'fits'`, `'time'`,
    /// `'owner'`, `'layout'` or `'settings'`.
    what: String,
    /// The value before: bytes, a count, whether, a layout, settings, or the estimated seconds of a run; `None` if the
    /// first program doesn't have it.
    before: Json<Option<Amount>>,
    /// The value after; `None` if the second program doesn't have it.
    after: Json<Option<Amount>>,
    /// Whose it is, and its shape; `None` for the whole program.
    owner: Option<String>,
    /// The file that the owner is written in.
    file: Option<String>,
    /// The line there, from 1.
    line: Option<u32>,
    /// Whether that is `'better'`, `'worse'` or only `'changed'`.
    verdict: Typed<String, Outcome>,
}

impl PyChange {
    fn of(change: Change) -> Self {
        let Change { what, before, after, owner, file, line, verdict, .. } = change;
        let verdict = verdict.as_str().into();
        Self { what, before: Json(before), after: Json(after), owner, file, line, verdict }
    }
}

// A difference of seconds is never NaN.
impl Hash for PyChange {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.what, &self.owner, &self.file, self.line).hash(state);
    }
}

#[pymethods]
impl PyChange {
    fn __repr__(&self) -> PyResult<String> {
        let words = |amount| serde_json::to_string(amount).map_err(not_held);
        let owner = self.owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
        let (before, after) = (words(&self.before)?, words(&self.after)?);
        Ok(format!("<Change {}{owner}: {before} to {after}, {}>", self.what, self.verdict.0))
    }
}

/// One of two programs that are compared; sizes are in bytes, on one device.
///
/// Examples:
///     >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
///     >>> report.diff(report).before
///     <ComparedProgram text: 409600000 bytes>
#[pyclass(frozen, eq, get_all, module = "tilewise", name = "ComparedProgram")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PyComparedProgram {
    /// Where its text came from; empty if a lock has it.
    source: String,
    /// The TPU generation that it is for.
    tpu: Option<String>,
    /// The slice that it is for.
    topology: Option<String>,
    /// The arguments of its factory.
    settings: Typed<Json<Map<String, Value>>, Settings>,
    /// Bytes of its arguments.
    argument_bytes: u64,
    /// Bytes of its results.
    output_bytes: u64,
    /// Bytes of the results that lie in donated arguments.
    alias_bytes: u64,
    /// Bytes of its constants.
    constant_bytes: u64,
    /// Bytes of its temporaries.
    temporary_bytes: u64,
    /// Their sum; results that lie in donated arguments count once.
    peak_bytes: u64,
    /// Padding of all that is alive at the peak.
    peak_padding_bytes: u64,
    /// The memory that it has to fit, if known.
    hbm_limit: Option<u64>,
    /// The buffers alive at the peak, the largest first.
    owners: Tuple<PyOwner>,
    /// How many instructions the compiler computes twice to save memory.
    recomputed: u64,
    /// How long a run takes, estimated from the compiler's own cycle counts, not measured; `None` where its text has none.
    estimate_seconds: Option<f64>,
}

impl PyComparedProgram {
    fn of(program: ComparedProgram) -> Self {
        let bytes = program.bytes;
        Self {
            source: program.source,
            tpu: program.tpu,
            topology: program.topology,
            settings: Typed::new(Json(program.settings)),
            argument_bytes: bytes.argument,
            output_bytes: bytes.output,
            alias_bytes: bytes.alias,
            constant_bytes: bytes.constant,
            temporary_bytes: bytes.temporary,
            peak_bytes: bytes.total,
            peak_padding_bytes: bytes.padding,
            hbm_limit: bytes.limit,
            owners: PyOwner::all(program.owners),
            recomputed: program.recomputed,
            estimate_seconds: program.time.map(|time| time.estimate_seconds),
        }
    }
}

#[pymethods]
impl PyComparedProgram {
    fn __repr__(&self) -> String {
        format!("<ComparedProgram {}: {} bytes>", self.source, self.peak_bytes)
    }
}

/// The differences between two programs; false if there are none. `str` lists them.
///
/// Returned by `Report.diff` and `check_fix`. Two buffers are the same if the framework's name of their operation, their
/// opcode, shape and memory space are: compilers number instructions anew, and a comment moves all lines. As a table, it
/// has a row for each change.
///
/// Examples:
///     >>> before = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
///     >>> after = audit("x = f32[50000,12]{1,0:T(8,128)} parameter(0)")
///     >>> difference = before.diff(after)
///     >>> [(owner.bytes, owner.shape) for owner in (*difference.removed, *difference.added)]
///     [(204800000, 'f32[400000,12]{1,0:T(8,128)}'), (25600000, 'f32[50000,12]{1,0:T(8,128)}')]
#[pyclass(frozen, eq, hash, get_all, extends = PyTabular, module = "tilewise", name = "Comparison")]
pub(crate) struct PyComparison {
    /// All of it, as the JSON that `tilewise audit --against` prints.
    text: String,
    /// The program's name, without the `jit_` of its framework.
    program: String,
    /// The totals and their difference, in words.
    headline: String,
    /// `'same'`, `'better'`, `'worse'`, or `'other compiler'`, whose plan isn't comparable. Worse is: a larger total, or
    /// more bytes of copies or collectives, by more than 1 % and a MiB; more that the compiler recomputes; or that it no
    /// longer fits.
    verdict: Typed<String, Outcome>,
    /// The first program.
    before: PyComparedProgram,
    /// The second program.
    after: PyComparedProgram,
    /// The differences: the program's numbers, its owners, its copies; the largest difference first.
    changes: Tuple<PyChange>,
    /// The buffers that only the first program has, the largest first.
    removed: Tuple<PyOwner>,
    /// The buffers that only the second program has, the largest first.
    added: Tuple<PyOwner>,
    /// The first change to try, if it is worse.
    advice: Option<String>,
}

impl PyComparison {
    pub(crate) fn of(py: Python<'_>, compared: Comparison) -> PyResult<Bound<'_, Self>> {
        let comparison = Self {
            text: serde_json::to_string(&compared).map_err(not_held)?,
            program: compared.program,
            headline: compared.headline,
            verdict: compared.verdict.as_str().into(),
            before: PyComparedProgram::of(compared.before),
            after: PyComparedProgram::of(compared.after),
            changes: compared.changes.into_iter().map(PyChange::of).collect(),
            removed: PyOwner::all(compared.removed),
            added: PyOwner::all(compared.added),
            advice: compared.advice,
        };
        Bound::new(py, (comparison, PyTabular))
    }

    /// Its value, to be put in words.
    pub(crate) fn compared(&self) -> PyResult<Comparison> {
        parsed(&self.text)
    }
}

impl PartialEq for PyComparison {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Hash for PyComparison {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

#[pymethods]
impl PyComparison {
    /// By how much the program's bytes fall; negative if they rise.
    #[getter]
    fn peak_bytes_saved(&self) -> i128 {
        i128::from(self.before.peak_bytes) - i128::from(self.after.peak_bytes)
    }

    /// Markdown for a pull request: a table, and below it the largest buffers that are new.
    ///
    /// Examples:
    ///     >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
    ///     >>> print(report.diff(report).to_markdown().splitlines()[0])
    ///     | program | total before | after | left | verdict |
    fn to_markdown(&self) -> PyResult<String> {
        Ok(Comparison::to_markdown(&[self.compared()?]))
    }

    /// All of it as JSON, which `from_json` reads.
    ///
    /// Examples:
    ///     >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
    ///     >>> report.diff(report).to_json()[:11]
    ///     '{"schema":1'
    fn to_json(&self) -> PyResult<String> {
        to_json(&self.compared()?)
    }

    /// Read the JSON that `to_json` wrote.
    ///
    /// Raises:
    ///     ValueError: the text isn't such JSON.
    ///
    /// Examples:
    ///     >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
    ///     >>> bool(Comparison.from_json(report.diff(report).to_json()))
    ///     False
    #[staticmethod]
    #[pyo3(signature = (text, /), text_signature = "(text, /)")]
    fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, Self>> {
        Self::of(py, parsed(text).map_err(|error| not_one("Comparison", &error))?)
    }

    #[pyo3(signature = () -> "list[dict[str, Any]]")]
    fn _rows(&self) -> Json<&Tuple<PyChange>> {
        Json(&self.changes)
    }

    fn __bool__(&self) -> PyResult<bool> {
        Ok(self.compared()?.differs())
    }

    fn __str__(&self) -> PyResult<String> {
        Ok(self.compared()?.to_string())
    }

    fn __repr__(&self) -> String {
        format!("<Comparison {}: {}, {}>", self.program, self.verdict.0, self.headline)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), &slf.get().compared()?)
    }
}
