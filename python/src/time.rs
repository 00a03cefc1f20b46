//! `Time`, the estimated time of a program's run, with its `TimeGroup` and `TimeRow`.

use crate::{
    tabular::PyTabular,
    travel::{Json, Reduced, not_one, parsed, reduced, to_json},
    typed::Tuple,
};
use pyo3::prelude::*;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::hash::{Hash, Hasher};

/// An instruction's time. All executions together, in seconds.
///
/// Examples:
///     >>> import pathlib
///     >>> row = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time.rows[0]
///     >>> row.instruction, row.basis, row.roof
///     ('fusion.6', 'cycles', 'memory')
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "TimeRow")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PyTimeRow {
    /// Its name.
    instruction: String,
    /// The name of its computation.
    computation: String,
    /// `'matmul'`, `'elementwise'`, `'copy'` and so on, as the command line's JSON has it.
    kind: String,
    /// `'cycles'` (the compiler's), `'bound'` (bytes and operations at full rate: a lower bound), `'unknown'` (likewise,
    /// where the compiler marks its cycles as unknown) or `'wait'` (for work beside the core).
    basis: String,
    /// How often it runs.
    executions: u64,
    /// How long, by the compiler's figure, corrected where it charges narrow types like 4-byte ones.
    estimate_seconds: f64,
    /// How long at full rates.
    floor_seconds: f64,
    /// How long by the compiler's cycles.
    compiler_seconds: f64,
    /// The bytes that one execution reads and writes in HBM.
    bytes: u64,
    /// The padding in them.
    padding_bytes: u64,
    /// Operations of the matrix multiplications and convolutions in it, for one execution.
    flops: u64,
    /// Its bound, `'memory'` or `'compute'`; `None` if unknown.
    roof: Option<String>,
    /// The framework's name of the operation.
    op_name: Option<String>,
    /// The file it is written in.
    #[serde(default)]
    file: Option<String>,
    /// The line there, from 1.
    #[serde(default)]
    line: Option<u32>,
}

impl Hash for PyTimeRow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.computation, &self.instruction, self.executions, self.bytes).hash(state);
    }
}

#[pymethods]
impl PyTimeRow {
    fn __repr__(&self) -> String {
        format!("<TimeRow {}: {:?} s>", self.instruction, self.estimate_seconds)
    }
}

/// The time of operations that have something in common.
///
/// Examples:
///     >>> import pathlib
///     >>> group = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time.unpriced[0]
///     >>> group.name, group.seconds == group.bound_seconds
///     ('gather_scatter_sort', True)
#[pyclass(frozen, eq, hash, module = "tilewise", name = "TimeGroup")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PyTimeGroup {
    /// The common kind, line (`model.py:439`) or module of the network; empty without one.
    #[pyo3(get)]
    #[serde(alias = "kind", alias = "source", alias = "module", deserialize_with = "named")]
    name: String,
    /// How many.
    #[pyo3(get)]
    operations: usize,
    /// How long they take.
    #[pyo3(get)]
    seconds: f64,
    bound_seconds: Option<f64>,
}

impl Hash for PyTimeGroup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.name, self.operations).hash(state);
    }
}

#[pymethods]
impl PyTimeGroup {
    /// The part of it that is only a lower bound.
    #[getter]
    fn bound_seconds(&self) -> f64 {
        // Operations without cycle counts have only a bound.
        self.bound_seconds.unwrap_or(self.seconds)
    }

    fn __repr__(&self) -> String {
        format!("<TimeGroup {}: {:?} s>", self.name, self.seconds)
    }
}

/// The time of a run, by instruction: the compiler's own estimate, not a measurement. `str` is a table of it.
///
/// Returned by `Report.time`. As a table, it has a row for each instruction that takes time. docs/time.md says how far
/// off the figures are.
///
/// Examples:
///     >>> import pathlib
///     >>> time = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time
///     >>> time
///     <Time: at least 0.00086 s a run, estimated, not measured>
///     >>> time.is_at_least, [each.name for each in time.unpriced]
///     (True, ['gather_scatter_sort'])
#[pyclass(frozen, eq, hash, get_all, extends = PyTabular, module = "tilewise", name = "Time")]
#[derive(Deserialize)]
pub(crate) struct PyTime {
    /// All of it, as the `time` of the command line's JSON.
    #[serde(skip)]
    text: String,
    /// The table that `tilewise audit --time` prints.
    #[serde(skip)]
    words: String,
    /// How long a run takes: the compiler's figure, corrected where it charges narrow types like 4-byte ones.
    estimate_seconds: f64,
    /// The estimate with every operation at the memory's full rate or at the peak of the matrix unit.
    floor_seconds: f64,
    /// The compiler's cycles at the core's clock.
    compiler_seconds: f64,
    /// The compiler's cycles of a run, loops times their trips.
    cycles: u64,
    /// Whether a run takes longer: operations without cycle counts, or a loop of unknown trip count, are in it.
    is_at_least: bool,
    /// The part of the estimate that is only a lower bound, 0 … 1.
    bound_share: f64,
    /// The time of padding in the operations that memory bounds.
    padding_seconds: f64,
    /// The cores that it is compiled for, of a chip whose two cores can be one device (v4, v5p); else `None`.
    cores: Option<u8>,
    /// The operations without cycle counts, by kind, with their time in the estimate.
    unpriced: Tuple<PyTimeGroup>,
    /// The time by kind of operation, the longest first.
    kinds: Tuple<PyTimeGroup>,
    /// The time by line of the program, the longest first.
    lines: Tuple<PyTimeGroup>,
    /// The time by module of the network, the longest first.
    modules: Tuple<PyTimeGroup>,
    /// Every instruction that takes time, the longest first.
    #[serde(deserialize_with = "placed")]
    rows: Tuple<PyTimeRow>,
}

/// A line of the program, in the JSON.
#[derive(Deserialize)]
struct Place {
    file: String,
    line: u32,
}

/// The name of a group of a kind, a module or a line.
fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Of {
        Name(String),
        Line(Place),
    }
    Ok(match Option::deserialize(deserializer)? {
        Some(Of::Name(name)) => name,
        Some(Of::Line(Place { file, line })) => format!("{file}:{line}"),
        None => String::new(),
    })
}

/// Rows with the parts of their `source`.
fn placed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tuple<PyTimeRow>, D::Error> {
    #[derive(Deserialize)]
    struct Placed {
        source: Option<Place>,
        #[serde(flatten)]
        row: PyTimeRow,
    }
    let row = |Placed { source, row }| match source {
        Some(Place { file, line }) => PyTimeRow { file: Some(file), line: Some(line), ..row },
        None => row,
    };
    Ok(Vec::deserialize(deserializer)?.into_iter().map(row).collect())
}

impl PyTime {
    /// The time of this JSON and its table.
    pub(crate) fn of<'py>(py: Python<'py>, (text, words): (String, String)) -> PyResult<Bound<'py, Self>> {
        let time = Self { words, ..parsed(&text)? };
        Bound::new(py, (Self { text, ..time }, PyTabular))
    }
}

impl PartialEq for PyTime {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.words) == (&other.text, &other.words)
    }
}

impl Hash for PyTime {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.text, &self.words).hash(state);
    }
}

/// The JSON of a [`PyTime`].
#[derive(Serialize, Deserialize)]
struct Held<'a> {
    #[serde(borrow)]
    time: &'a RawValue,
    words: String,
}

#[pymethods]
impl PyTime {
    /// All of it as JSON, which `from_json` reads.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time.to_json()[:11]
    ///     '{"schema":1'
    fn to_json(&self) -> PyResult<String> {
        to_json(&Held { time: parsed(&self.text)?, words: self.words.clone() })
    }

    /// Read the JSON that `to_json` wrote.
    ///
    /// Raises:
    ///     ValueError: the text isn't such JSON.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> time = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time
    ///     >>> Time.from_json(time.to_json()) == time
    ///     True
    #[staticmethod]
    #[pyo3(signature = (text, /), text_signature = "(text, /)")]
    fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, Self>> {
        let held =
            parsed::<Held<'_>>(text).and_then(|Held { time, words }| Self::of(py, (time.get().to_owned(), words)));
        held.map_err(|error| not_one("Time", &error))
    }

    #[pyo3(signature = () -> "list[dict[str, Any]]")]
    fn _rows(&self) -> Json<&Tuple<PyTimeRow>> {
        Json(&self.rows)
    }

    fn __str__(&self) -> &str {
        &self.words
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let seconds = self.estimate_seconds.into_pyobject(py)?.call_method1("__format__", (".2g",))?;
        let at_least = if self.is_at_least { "at least " } else { "" };
        Ok(format!("<Time: {at_least}{seconds} s a run, estimated, not measured>"))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let held = slf.get();
        reduced::<Self>(slf.py(), &(&held.text, &held.words))
    }
}
