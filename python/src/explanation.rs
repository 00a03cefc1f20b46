//! `Explanation`, of an out-of-memory message, and its allocations.

use crate::{
    errors::{Error, Result},
    fix::PyFix,
    html,
    row::{PyRow, PySourceLine},
    shape::PyShape,
    table::{Columns, PyTable, Tabular},
    tpu::generation,
};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyString};
use std::sync::Arc;
use tilewise_audit::Allocation;
use tilewise_cli::Explained;
use tilewise_oom::{Message, PrintedSize};

/// Explains the out-of-memory message in a text.
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

/// The explanation of an out-of-memory message. Sizes are in bytes; those that the message prints are as exact as it
/// prints them.
///
/// Returned by `explain`. `str` is the text that the command line prints. As a `Table`, it has one row for each
/// allocation.
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
    /// The form of the message: `'assignment'`, `'bound'`, `'scoped'`, `'allocation'`, `'early_abort'`, `'run_time'` or
    /// `'excerpt'`.
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
    fn shortfall_bytes(&self) -> Option<u64> {
        self.0.0.shortfall_bytes()
    }

    /// Padding of all the arrays that the message lists.
    #[getter]
    fn padding_bytes(&self) -> u64 {
        self.0.0.padding_bytes()
    }

    /// Whether parts of the message are missing.
    #[getter]
    fn truncated(&self) -> bool {
        self.message().truncated
    }

    /// The entries of the message, in its order.
    #[getter]
    fn allocations<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAllocation>>> {
        (0..self.0.0.allocations.len()).map(|number| PyAllocation::new(py, &self.0, number)).collect()
    }

    /// The fix that frees the most memory, as an (allocation, fix) pair; `None` if there is no fix.
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
    ///     width: the number of columns to fit into, where words can be cut or wrapped.
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

    /// For notebooks: the explanation, and pictures of the arrays with the most padding.
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
    /// The list that contains it: `'allocations'` or `'arguments_and_outputs'`.
    section: &'static str,
    /// The name of the instruction; `None` if the message does not name it.
    instruction: Option<String>,
    /// The compiler's label, as printed; `None` if there is none.
    label: Option<String>,
    /// The shape, as printed; `None` if there is none.
    shape_text: Option<String>,
    /// The shape of the array. If the message prints no tiles, they are inferred from the printed size; `None` if there
    /// is no shape that can be read.
    shape: Option<PyShape>,
    /// The printed size, in bytes.
    reported_bytes: Option<u64>,
    /// Bytes of data, computed from the shape.
    logical_bytes: Option<u64>,
    /// Bytes taken, computed from the shape.
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

impl Tabular for Explained {
    fn columns(&self) -> Columns {
        Columns::of::<Allocation, _>(self.0.allocations.iter())
    }
}
