//! `Explanation`, of an out-of-memory message, and its allocations.

use crate::{
    builtins::in_python,
    errors::{Class, Error, Result},
    recommendation::PyRecommendation,
    row::{PyRow, PySourceLine, Taken},
    screen::{PyCause, PyHeadline, PyPlannedChange},
    shape::PyShape,
    table::{Column, Columns, Framed, PyTable, Tabular},
    tpu::generation,
    travel::{Reduced, native, reduced},
    typed::{Items, Section, Typed},
    whole::whole,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyString,
};
use serde::{Deserialize, Serialize};
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};
use tilewise::tpu::Generation;
use tilewise_audit::{Allocation, Explanation, explain};
use tilewise_oom::{Message, PrintedSize};
use tilewise_report::{AsJson, JsonLine, MessageSummary, WriteText, causes_in_words, notebook};

/// Explains the out-of-memory message in a text.
#[pyfunction]
#[pyo3(signature = (text: "str", tpu: "Tpu | None"))]
pub(crate) fn explain_text<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyAny>,
    tpu: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyExplanation>> {
    let tpu = tpu.map(generation).transpose()?;
    let Ok(text) = text.cast::<PyString>() else {
        let message = format!("explain takes a message, an exception or a path, not {}", text.get_type().name()?);
        return Err(PyTypeError::new_err(message).into());
    };
    let text = text.to_string_lossy().into_owned();
    let explained = py.detach(|| Ok::<_, Error>(explain(Message::parse(&text)?, tpu)))?;
    let explained = Arc::new(explained);
    Ok(Bound::new(py, PyTable::of(explained.clone(), PyExplanation { explained, text, tpu }))?)
}

/// The explanation of an out-of-memory message. Sizes are in bytes, as exact as the message prints them.
///
/// Returned by `explain`. `str` is the text that the command line prints. As a `Table`, it has one row for each
/// allocation; `len` and iteration are over the allocations. Two are equal if they have the same text and TPU.
///
/// Examples:
///     >>> import pathlib
///     >>> explained = explain(pathlib.Path("../examples/out_of_memory.txt"))
///     >>> explained.memory_space_name, explained.exceeded_bytes
///     ('hbm', 488960)
#[pyclass(frozen, eq, hash, extends = PyTable, module = "tilewise", name = "Explanation")]
pub(crate) struct PyExplanation {
    explained: Arc<Explanation>,
    /// The text with the message: with the program's generation, all inputs of the explanation.
    text: String,
    tpu: Option<Generation>,
}

impl PartialEq for PyExplanation {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.tpu) == (&other.text, other.tpu)
    }
}

impl Hash for PyExplanation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.text, self.tpu).hash(state);
    }
}

/// The inputs of an explanation, in JSON.
#[derive(Serialize, Deserialize)]
struct Made<T> {
    text: T,
    tpu: Option<T>,
}

impl PyExplanation {
    fn message(&self) -> &Message {
        &self.explained.message
    }

    fn summary(&self) -> MessageSummary<'_> {
        MessageSummary::of(&self.explained)
    }
}

#[pymethods]
impl PyExplanation {
    /// The cause: `'padding'`, `'arguments'`, `'size'`, `'fragmentation'`, `'reservation'`, `'kernel_memory'`,
    /// `'spills'`, `'not_tpu'` or `'unknown'`.
    #[getter]
    fn verdict(&self) -> &'static str {
        self.message().verdict().as_str()
    }

    /// The form of the message: `'assignment'`, `'bound'`, `'scoped'`, `'allocation'`, `'early_abort'`, `'run_time'`,
    /// `'cores'`, `'sparse_core'`, `'excerpt'`, `'other'` or `'not_tpu'`.
    #[getter]
    fn form(&self) -> &'static str {
        self.message().form.as_str()
    }

    /// XLA's error code, such as `'E1000'`.
    #[getter]
    fn code(&self) -> Option<&str> {
        self.message().code.as_deref()
    }

    /// The name of the HLO module.
    #[getter]
    fn module(&self) -> Option<&str> {
        self.message().module.as_deref()
    }

    /// The name of the memory that ran out, such as `'hbm'`.
    #[getter]
    fn memory_space_name(&self) -> Option<&str> {
        self.message().memory_space.as_deref()
    }

    /// Bytes that the program needs.
    #[getter]
    fn used_bytes(&self) -> Option<u64> {
        self.message().used.as_ref().map(PrintedSize::bytes)
    }

    /// Bytes that the memory has.
    #[getter]
    fn limit_bytes(&self) -> Option<u64> {
        self.message().limit.as_ref().map(PrintedSize::bytes)
    }

    /// Bytes by which the need exceeds the memory: as printed, or the difference.
    #[getter]
    fn exceeded_bytes(&self) -> Option<u64> {
        self.explained.shortfall_bytes()
    }

    /// Padding of all the arrays that the message lists.
    #[getter]
    fn padding_bytes(&self) -> u64 {
        self.explained.padding_bytes()
    }

    /// Whether parts of the message are missing.
    #[getter]
    fn truncated(&self) -> bool {
        self.message().truncated
    }

    /// The entries of the message, in its order.
    #[getter]
    fn allocations<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAllocation>>> {
        self.explained.allocations.iter().map(|allocation| PyAllocation::new(allocation).into_python(py)).collect()
    }

    /// The memory that ran out, and by how much; its `verdict` is that of the explanation.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> print(explain(pathlib.Path("../examples/out_of_memory.txt")).headline)
    ///     Out of memory in hbm: 314.47 MiB needed, 314.00 MiB available, 477.5 KiB over.
    #[getter]
    fn headline(&self) -> PyHeadline {
        PyHeadline::of(&self.summary().headline)
    }

    /// The largest arrays that the message lists, equal ones together, three at most.
    #[getter]
    fn causes(&self) -> Vec<PyCause> {
        self.summary().causes.iter().map(PyCause::of).collect()
    }

    /// The changes to make, the best first, each with the need after it. `advice` has more about each.
    #[getter]
    fn changes(&self) -> Vec<PyPlannedChange> {
        self.summary().changes.iter().map(PyPlannedChange::of).collect()
    }

    /// The file and the line of the user's own program in the text's traceback; `None` without one.
    #[getter]
    fn raised_at(&self) -> Option<(&str, u32)> {
        self.message().raised_at.as_ref().map(|frame| (frame.file.as_str(), frame.line))
    }

    /// The recommended changes, the best first.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> first = explain(pathlib.Path("../examples/out_of_memory.txt")).advice[0]
    ///     >>> first.kind, first.target, first.is_bound
    ///     ('split', 'upstream', True)
    #[getter]
    fn advice(&self, py: Python<'_>) -> Vec<PyRecommendation> {
        py.detach(|| self.explained.advice.iter().map(PyRecommendation::of).collect())
    }

    /// The explanation as text, as the command line prints it.
    ///
    /// Args:
    ///     width: the number of columns to fit into, where words can be cut or wrapped.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> print(explain(pathlib.Path("../examples/out_of_memory.txt")).table())
    ///     Out of memory in hbm: 314.47 MiB needed, 314.00 MiB available, 477.5 KiB over.
    ///     ...
    #[pyo3(signature = (*, width: "int" = 100))]
    fn table(&self, #[pyo3(from_py_with = whole)] width: usize) -> String {
        in_python(&self.explained.to_text(width))
    }

    /// The explanation as JSON: the object that the command line prints, and in `message` the explanation's text and
    /// TPU, from which `from_json` restores it.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> explained = explain(pathlib.Path("../examples/out_of_memory.txt"))
    ///     >>> Explanation.from_json(explained.to_json()) == explained
    ///     True
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        #[derive(Serialize)]
        struct Item<'a> {
            #[serde(flatten)]
            explanation: AsJson<'a, Explanation>,
            message: Made<&'a str>,
        }
        let message = Made { text: self.text.as_str(), tpu: self.tpu.map(Generation::name) };
        let line = JsonLine::of("text", Item { explanation: AsJson(&self.explained), message });
        py.detach(|| serde_json::to_string(&line)).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The explanation that `to_json` wrote.
    ///
    /// Raises:
    ///     MessageError: the text is not such JSON.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> text = explain(pathlib.Path("../examples/out_of_memory.txt")).to_json()
    ///     >>> Explanation.from_json(text).verdict
    ///     'padding'
    #[staticmethod]
    #[pyo3(signature = (json, /), text_signature = "(json, /)")]
    fn from_json<'py>(py: Python<'py>, json: &str) -> Result<Bound<'py, Self>> {
        #[derive(Deserialize)]
        struct Item {
            message: Made<String>,
        }
        let Item { message: Made { text, tpu } } = serde_json::from_str(json).map_err(|error| {
            Error::new(Class::Message, "not_json", format!("this is not an explanation in JSON: {error}"))
        })?;
        let tpu = tpu.map(|name| PyString::new(py, &name).into_any());
        explain_text(py, &PyString::new(py, &text).into_any(), tpu.as_ref())
    }

    /// For notebooks: the explanation, and pictures of the arrays with the most padding.
    fn _repr_html_(&self) -> String {
        notebook::explanation(&self.explained, &self.table(100))
    }

    fn __len__(&self) -> usize {
        self.explained.allocations.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Items<'py, Bound<'py, PyAllocation>>> {
        Items::of(py, self.allocations(py)?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py, (String, Option<&'static str>)>> {
        let Self { text, tpu, .. } = slf.get();
        Ok((native(slf.py(), "explain_text")?, (text.clone(), tpu.map(Generation::name))))
    }

    fn __str__(&self) -> String {
        self.table(100)
    }

    fn __repr__(&self) -> String {
        let (count, padding) = (self.explained.allocations.len(), self.padding_bytes());
        format!("<Explanation of {count} allocations: {padding} bytes of padding>")
    }
}

/// One entry of an out-of-memory message: an allocation, an argument or an output. Sizes are in bytes.
///
/// Examples:
///     >>> import pathlib
///     >>> worst = explain(pathlib.Path("../examples/out_of_memory.txt")).allocations[0]
///     >>> worst.instruction, worst.reported_bytes, worst.logical_bytes
///     ('fusion.6', 204797379, 19200000)
#[pyclass(frozen, eq, hash, extends = PyRow, module = "tilewise", name = "Allocation")]
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyAllocation {
    #[serde(flatten)]
    row: Arc<Taken>,
    /// The list that contains it: `'allocations'` or `'arguments_and_outputs'`.
    #[pyo3(get)]
    section: Typed<String, Section>,
    /// The name of the instruction; `None` if the message does not name it.
    #[pyo3(get)]
    instruction: Option<String>,
    /// The compiler's label, as printed; `None` without one.
    #[pyo3(get)]
    label: Option<String>,
    /// The shape, as printed; `None` without one.
    #[pyo3(get)]
    shape_text: Option<String>,
    /// The shape of the array. If the message prints no tiles, they are inferred from the printed size; `None` without
    /// a readable shape.
    #[pyo3(get)]
    shape: Option<PyShape>,
}

impl PyAllocation {
    fn new(allocation: &Allocation) -> Self {
        let entry = &allocation.entry;
        Self {
            row: Arc::new(Taken {
                reported_bytes: entry.size.as_ref().map(PrintedSize::bytes),
                logical_bytes: allocation.sizes.map(|sizes| sizes.logical_bytes),
                physical_bytes: allocation.sizes.map(|sizes| sizes.physical_bytes),
                causes: causes_in_words(&allocation.causes),
                op_name: entry.operator.as_ref().and_then(|operator| operator.op_name()).map(str::to_owned),
                source: allocation.source.as_ref().map(PySourceLine::of),
            }),
            section: entry.section.as_str().into(),
            instruction: entry.instruction().map(|(name, _)| name.to_owned()),
            label: entry.label.clone(),
            shape_text: entry.shape.as_ref().map(|shape| shape.text.clone()),
            shape: allocation.shape.clone().map(PyShape::new),
        }
    }

    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, Self>> {
        Bound::new(py, PyClassInitializer::from(PyRow(self.row.clone())).add_subclass(self))
    }
}

#[pymethods]
impl PyAllocation {
    /// The printed size, in bytes.
    #[getter]
    fn reported_bytes(&self) -> Option<u64> {
        self.row.reported_bytes
    }

    fn __repr__(&self) -> String {
        let name = self.shape_text.as_deref().or(self.label.as_deref()).unwrap_or("without a label");
        format!("<Allocation {name}: {} bytes of padding>", PyRow(self.row.clone()).padding_bytes())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced::<Self>(slf.py(), slf.get())
    }
}

impl Tabular for Explanation {
    fn columns(&self) -> Columns {
        Columns::of::<Allocation, _>(self.allocations.iter())
    }
}

impl Framed for Allocation {
    fn more() -> Vec<(&'static str, Column)> {
        vec![
            ("opcode", Column::Text(Vec::new())),
            ("label", Column::Text(Vec::new())),
            ("allocation_type", Column::Text(Vec::new())),
            ("tag", Column::Text(Vec::new())),
            ("window", Column::Text(Vec::new())),
            ("block", Column::Text(Vec::new())),
            ("buffers", Column::MaybeCount(Vec::new())),
            ("memory_space", Column::MaybeCount(Vec::new())),
            ("memory_space_name", Column::Text(Vec::new())),
            ("reported_unpadded_bytes", Column::MaybeCount(Vec::new())),
            ("agrees", Column::Flag(Vec::new())),
            ("function", Column::Text(Vec::new())),
        ]
    }
}
