//! `Explanation` and its rows: why a TPU ran out of memory.

use crate::{
    columns::{Column, Columns},
    errors::{Error, Result},
    fix::PyFix,
    html,
    predict::generation,
    rows::PySourceLine,
    shape::PyShape,
};
use pyo3::{
    prelude::*,
    types::{PyCapsule, PyDict},
};
use std::sync::Arc;
use tilewise_audit::Allocation;
use tilewise_cli::Explained;
use tilewise_hlo::oom::{Message, PrintedSize};

/// Explains the out-of-memory message that a text holds.
#[pyfunction]
pub(crate) fn explain_text(py: Python<'_>, text: &str, tpu: Option<&Bound<'_, PyAny>>) -> Result<PyExplanation> {
    let tpu = tpu.map(generation).transpose()?;
    let explained = py.detach(|| Ok::<_, Error>(Explained(tilewise_audit::explain(Message::parse(text)?, tpu))))?;
    Ok(PyExplanation(Arc::new(explained)))
}

/// An out-of-memory message, read and judged. Sizes are in bytes; those that the message prints are as exact as it prints them.
///
/// Made by `explain`. `str` is what the command line prints. Its rows are a table for pandas, Polars, and whatever speaks the Arrow
/// PyCapsule interface.
#[pyclass(frozen, module = "tilewise", name = "Explanation")]
pub(crate) struct PyExplanation(Arc<Explained>);

impl PyExplanation {
    fn message(&self) -> &Message {
        &self.0.0.message
    }

    fn row(&self, number: usize) -> PyAllocation {
        PyAllocation { of: self.0.clone(), number }
    }

    fn columns(&self) -> Columns {
        let rows = &self.0.0.allocations;
        let text = |of: &dyn Fn(&Allocation) -> Option<String>| Column::Text(rows.iter().map(of).collect());
        let count = |of: &dyn Fn(&Allocation) -> Option<u64>| Column::MaybeCount(rows.iter().map(of).collect());
        let sized = |row: &Allocation| row.physical_bytes.is_some();
        Columns(vec![
            ("section", text(&|row| Some(row.entry.section.as_str().to_owned()))),
            ("instruction", text(&|row| Some(row.entry.instruction()?.0.to_owned()))),
            ("shape", text(&|row| Some(row.entry.shape.as_ref()?.text.clone()))),
            ("reported_bytes", count(&|row| row.entry.size.as_ref().map(PrintedSize::bytes))),
            ("logical_bytes", count(&|row| row.logical_bytes)),
            ("physical_bytes", count(&|row| row.physical_bytes)),
            ("padding_bytes", count(&|row| sized(row).then(|| row.padding_bytes()))),
            ("expansion", Column::Ratio(rows.iter().map(|row| sized(row).then(|| row.expansion())).collect())),
            ("cause", text(&|row| (!row.causes.is_empty()).then(|| row.causes.join("; ")))),
            ("fix", text(&|row| Some(row.best_fix()?.sentence.clone()))),
            ("op_name", text(&|row| Some(row.entry.operator.as_ref()?.op_name()?.to_owned()))),
            ("file", text(&|row| Some(row.source.as_ref()?.file.clone()))),
            ("line", count(&|row| Some(row.source.as_ref()?.line.into()))),
        ])
    }
}

#[pymethods]
impl PyExplanation {
    /// What the message reports: `'assignment'`, `'bound'`, `'scoped'`, `'allocation'`, `'early_abort'`, `'run_time'` or `'excerpt'`.
    #[getter]
    fn form(&self) -> &'static str {
        self.message().form.as_str()
    }

    /// XLA's error code, such as `'E1000'`.
    #[getter]
    fn code(&self) -> Option<&str> {
        self.message().code.as_deref()
    }

    /// The HLO module's name.
    #[getter]
    fn module(&self) -> Option<&str> {
        self.message().module.as_deref()
    }

    /// The name of the memory that ran out, such as `'hbm'`.
    #[getter]
    fn memory_space_name(&self) -> Option<&str> {
        self.message().memory_space.as_deref()
    }

    /// What is needed.
    #[getter]
    fn used_bytes(&self) -> Option<u64> {
        self.message().used.as_ref().map(PrintedSize::bytes)
    }

    /// What there is.
    #[getter]
    fn limit_bytes(&self) -> Option<u64> {
        self.message().limit.as_ref().map(PrintedSize::bytes)
    }

    /// By how much the memory is exceeded: as printed, or the difference.
    #[getter]
    fn shortfall_bytes(&self) -> Option<u64> {
        self.0.0.shortfall_bytes()
    }

    /// Padding of all the arrays the message lists.
    #[getter]
    fn padding_bytes(&self) -> u64 {
        self.0.0.padding_bytes()
    }

    /// Whether parts of the message are missing.
    #[getter]
    fn truncated(&self) -> bool {
        self.message().truncated
    }

    /// One row for each entry of the message, in its order.
    #[getter]
    fn allocations(&self) -> Vec<PyAllocation> {
        (0..self.0.0.allocations.len()).map(|number| self.row(number)).collect()
    }

    /// The one thing to do first: the fix that frees the most, with its allocation.
    #[getter]
    fn first_fix(&self) -> Option<(PyAllocation, PyFix)> {
        let explanation = &self.0.0;
        let (allocation, fix) = explanation.first_fix()?;
        let number = explanation.allocations.iter().position(|other| std::ptr::eq(other, allocation))?;
        Some((self.row(number), PyFix::of(fix)))
    }

    /// The explanation as text, as the command line prints it.
    ///
    /// Args:
    ///     width: columns to keep to where words can be cut or wrapped.
    #[pyo3(signature = (*, width = 100))]
    fn table(&self, width: usize) -> String {
        self.0.to_text(width)
    }

    /// Every allocation as columns: a dict of NumPy arrays, and of lists where values may be missing.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        py.detach(|| self.columns()).into_dict(py)
    }

    /// Every allocation as a row of a `pandas.DataFrame`.
    ///
    /// Raises:
    ///     ImportError: pandas is not installed.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.detach(|| self.columns()).into_pandas(py)
    }

    /// Every allocation as a row of a `polars.DataFrame`.
    ///
    /// Raises:
    ///     ImportError: Polars is not installed.
    fn to_polars<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// Every allocation as a row, by the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyCapsule>> {
        // A wish, which the interface allows to be passed over.
        drop(requested_schema);
        py.detach(|| self.columns()).into_arrow_stream(py)
    }

    /// For notebooks: what is too much, and the allocations, each with its picture.
    fn _repr_html_(&self) -> String {
        html::explanation(&self.0)
    }

    fn __str__(&self) -> String {
        self.0.to_text(100)
    }

    fn __repr__(&self) -> String {
        let (count, padding) = (self.0.0.allocations.len(), self.padding_bytes());
        format!("<Explanation of {count} allocations: {padding} bytes of padding>")
    }
}

/// One entry of a message: an allocation, an argument or an output. Sizes are in bytes.
#[pyclass(frozen, module = "tilewise", name = "Allocation")]
pub(crate) struct PyAllocation {
    of: Arc<Explained>,
    number: usize,
}

impl PyAllocation {
    fn row(&self) -> &Allocation {
        &self.of.0.allocations[self.number]
    }
}

#[pymethods]
impl PyAllocation {
    /// The list that it stands in: `'allocations'` or `'arguments_and_outputs'`.
    #[getter]
    fn section(&self) -> &'static str {
        self.row().entry.section.as_str()
    }

    /// The instruction, where the message names it.
    #[getter]
    fn instruction(&self) -> Option<&str> {
        Some(self.row().entry.instruction()?.0)
    }

    /// The compiler's label, as printed.
    #[getter]
    fn label(&self) -> Option<&str> {
        self.row().entry.label.as_deref()
    }

    /// The shape, as printed.
    #[getter]
    fn shape_text(&self) -> Option<&str> {
        self.row().entry.shape.as_ref().map(|shape| shape.text.as_str())
    }

    /// The array, with the tiles that its printed size tells of where the message prints none; `None` if there is none to be read.
    #[getter]
    fn shape(&self) -> Option<PyShape> {
        self.row().shape.clone().map(PyShape::new)
    }

    /// The size, as printed.
    #[getter]
    fn reported_bytes(&self) -> Option<u64> {
        self.row().entry.size.as_ref().map(PrintedSize::bytes)
    }

    /// Bytes of data, computed.
    #[getter]
    fn logical_bytes(&self) -> Option<u64> {
        self.row().logical_bytes
    }

    /// Bytes taken, computed.
    #[getter]
    fn physical_bytes(&self) -> Option<u64> {
        self.row().physical_bytes
    }

    /// Bytes that hold no data; 0 where they can't be computed.
    #[getter]
    fn padding_bytes(&self) -> u64 {
        self.row().padding_bytes()
    }

    /// How many times its data the array takes; 1 where it can't be computed.
    #[getter]
    fn expansion(&self) -> f64 {
        self.row().expansion()
    }

    /// What makes the padding, in words, the largest cause first.
    #[getter]
    fn causes(&self) -> Vec<String> {
        self.row().causes.clone()
    }

    /// What to change so that it takes less, the best first.
    #[getter]
    fn fixes(&self) -> Vec<PyFix> {
        PyFix::all(self.row().advice.as_ref())
    }

    /// The best fix, if there is one.
    #[getter]
    fn fix(&self) -> Option<PyFix> {
        self.row().best_fix().map(PyFix::of)
    }

    /// The framework's name of the operation.
    #[getter]
    fn op_name(&self) -> Option<&str> {
        self.row().entry.operator.as_ref()?.op_name()
    }

    /// The line of the user's program.
    #[getter]
    fn source(&self) -> Option<PySourceLine> {
        self.row().source.clone().map(PySourceLine)
    }

    fn __repr__(&self) -> String {
        let name = self.shape_text().or(self.label()).unwrap_or("without a label");
        format!("<Allocation {name}: {} bytes of padding>", self.padding_bytes())
    }
}
