//! `Explanation` and its rows: why a TPU ran out of memory.

use crate::{
    errors::{Error, Result},
    fix::PyFix,
    html,
    row::{PyRow, PySourceLine},
    shape::PyShape,
    table::{Columns, PyTable, Rows},
    tpu::generation,
};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyString};
use std::sync::Arc;
use tilewise_audit::Allocation;
use tilewise_cli::Explained;
use tilewise_oom::{Message, PrintedSize};

/// Explains the out-of-memory message that a text holds.
#[pyfunction]
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
    let text = text.to_string_lossy();
    let explained = py.detach(|| Ok::<_, Error>(Explained(tilewise_audit::explain(Message::parse(&text)?, tpu))))?;
    let explained = Arc::new(explained);
    Ok(Bound::new(py, PyTable::of(explained.clone(), PyExplanation(explained)))?)
}

/// An out-of-memory message, read and judged. Sizes are in bytes; those that the message prints are as exact as it prints them.
///
/// Made by `explain`. `str` is what the command line prints. A `Table` of its allocations.
///
/// Examples:
///     >>> import pathlib
///     >>> explained = explain(pathlib.Path("../examples/out_of_memory.txt"))
///     >>> explained.memory_space_name, explained.shortfall_bytes
///     ('hbm', 488960)
#[pyclass(frozen, extends = PyTable, module = "tilewise", name = "Explanation")]
pub(crate) struct PyExplanation(Arc<Explained>);

impl PyExplanation {
    fn message(&self) -> &Message {
        &self.0.0.message
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
    fn allocations<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAllocation>>> {
        (0..self.0.0.allocations.len()).map(|number| PyAllocation::new(py, &self.0, number)).collect()
    }

    /// The one thing to do first: the fix that frees the most, with its allocation.
    #[getter]
    fn first_fix<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAllocation>, PyFix)>> {
        let explanation = &self.0.0;
        let Some((allocation, fix)) = explanation.first_fix() else { return Ok(None) };
        let number = explanation.allocations.iter().position(|other| std::ptr::eq(other, allocation));
        number.map(|number| Ok((PyAllocation::new(py, &self.0, number)?, PyFix::of(fix)))).transpose()
    }

    /// The explanation as text, as the command line prints it.
    ///
    /// Args:
    ///     width: columns to keep to where words can be cut or wrapped.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> print(explain(pathlib.Path("../examples/out_of_memory.txt")).table())
    ///     Out of memory in hbm: 314.47M needed, 314.00M available, 477.5K over.
    ///     ...
    #[pyo3(signature = (*, width = 100))]
    fn table(&self, width: usize) -> String {
        self.0.to_text(width)
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

/// One entry of an out-of-memory message: an allocation, an argument or an output. Sizes are in bytes.
///
/// Examples:
///     >>> import pathlib
///     >>> worst = explain(pathlib.Path("../examples/out_of_memory.txt")).allocations[0]
///     >>> worst.instruction, worst.reported_bytes, worst.logical_bytes
///     ('fusion.6', 204797379, 19200000)
#[pyclass(frozen, get_all, extends = PyRow, module = "tilewise", name = "Allocation")]
pub(crate) struct PyAllocation {
    /// The list that it stands in: `'allocations'` or `'arguments_and_outputs'`.
    section: &'static str,
    /// The instruction, where the message names it.
    instruction: Option<String>,
    /// The compiler's label, as printed.
    label: Option<String>,
    /// The shape, as printed.
    shape_text: Option<String>,
    /// The array, with the tiles that its printed size tells of where the message prints none; `None` if there is none to be read.
    shape: Option<PyShape>,
    /// The size, as printed.
    reported_bytes: Option<u64>,
    /// Bytes of data, computed.
    logical_bytes: Option<u64>,
    /// Bytes taken, computed.
    physical_bytes: Option<u64>,
}

impl PyAllocation {
    /// The allocation of that number in the message.
    pub(crate) fn new<'py>(py: Python<'py>, explained: &Arc<Explained>, number: usize) -> PyResult<Bound<'py, Self>> {
        let allocation = &explained.0.allocations[number];
        let entry = &allocation.entry;
        let row = PyRow {
            padding_bytes: allocation.padding_bytes(),
            expansion: allocation.expansion(),
            causes: allocation.causes.clone(),
            op_name: entry.operator.as_ref().and_then(|operator| operator.op_name()).map(str::to_owned),
            source: allocation.source.as_ref().map(PySourceLine::of),
            advice: Box::new({
                let explained = explained.clone();
                move || explained.0.allocations[number].advice.clone()
            }),
        };
        let allocation = Self {
            section: entry.section.as_str(),
            instruction: entry.instruction().map(|(name, _)| name.to_owned()),
            label: entry.label.clone(),
            shape_text: entry.shape.as_ref().map(|shape| shape.text.clone()),
            shape: allocation.shape.clone().map(PyShape::new),
            reported_bytes: entry.size.as_ref().map(PrintedSize::bytes),
            logical_bytes: allocation.sizes.map(|sizes| sizes.logical_bytes),
            physical_bytes: allocation.sizes.map(|sizes| sizes.physical_bytes),
        };
        Bound::new(py, PyClassInitializer::from(row).add_subclass(allocation))
    }
}

#[pymethods]
impl PyAllocation {
    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let name = slf.shape_text.as_deref().or(slf.label.as_deref()).unwrap_or("without a label");
        format!("<Allocation {name}: {} bytes of padding>", slf.as_super().padding_bytes)
    }
}

impl Rows for Explained {
    fn columns(&self) -> Columns {
        Columns::of::<Allocation, _>(self.0.allocations.iter())
    }
}
