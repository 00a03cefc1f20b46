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
    let explained = py.detach(|| Ok::<_, Error>(Explained::of(Message::parse(&text)?, tpu)))?;
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
    /// What is the matter: `'padding'`, `'arguments'`, `'size'`, `'fragmentation'`, `'reservation'`, `'kernel_memory'`,
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
        self.0.0.allocations.iter().map(|allocation| PyAllocation::new(py, allocation)).collect()
    }

    /// The fix that frees the most memory, of an argument or output, as an (allocation, fix) pair; `None` if there is no
    /// fix. Arrays inside the program have none: the compiler undoes layouts and reshapes that are asked for there.
    #[getter]
    fn first_fix<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAllocation>, PyFix)>> {
        let first = self.0.0.first_fix();
        first.map(|(allocation, fix)| Ok((PyAllocation::new(py, allocation)?, PyFix::of(fix)))).transpose()
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
#[pyclass(frozen, extends = PyRow, module = "tilewise", name = "Allocation")]
pub(crate) struct PyAllocation(Arc<Allocation>);

impl PyAllocation {
    fn new<'py>(py: Python<'py>, allocation: &Allocation) -> PyResult<Bound<'py, Self>> {
        let allocation = Arc::new(allocation.clone());
        let operator = allocation.entry.operator.as_ref();
        let row = PyRow {
            padding_bytes: allocation.padding_bytes(),
            expansion: allocation.expansion(),
            causes: allocation.causes.clone(),
            op_name: operator.and_then(|operator| operator.op_name()).map(str::to_owned),
            source: allocation.source.as_ref().map(PySourceLine::of),
            advice: Box::new({
                let allocation = allocation.clone();
                move || allocation.advice.clone()
            }),
        };
        Bound::new(py, PyClassInitializer::from(row).add_subclass(Self(allocation)))
    }
}

#[pymethods]
impl PyAllocation {
    /// The list that contains it: `'allocations'` or `'arguments_and_outputs'`.
    #[getter]
    fn section(&self) -> &'static str {
        self.0.entry.section.as_str()
    }

    /// The name of the instruction; `None` if the message does not name it.
    #[getter]
    fn instruction(&self) -> Option<&str> {
        self.0.entry.instruction().map(|(name, _)| name)
    }

    /// The compiler's label, as printed; `None` if there is none.
    #[getter]
    fn label(&self) -> Option<&str> {
        self.0.entry.label.as_deref()
    }

    /// The shape, as printed; `None` if there is none.
    #[getter]
    fn shape_text(&self) -> Option<&str> {
        self.0.entry.shape.as_ref().map(|shape| shape.text.as_str())
    }

    /// The shape of the array. If the message prints no tiles, they are inferred from the printed size; `None` if there
    /// is no shape that can be read.
    #[getter]
    fn shape(&self) -> Option<PyShape> {
        self.0.shape.clone().map(PyShape::new)
    }

    /// The printed size, in bytes.
    #[getter]
    fn reported_bytes(&self) -> Option<u64> {
        self.0.entry.size.as_ref().map(PrintedSize::bytes)
    }

    /// Bytes of data, computed from the shape.
    #[getter]
    fn logical_bytes(&self) -> Option<u64> {
        self.0.sizes.map(|sizes| sizes.logical_bytes)
    }

    /// Bytes taken, computed from the shape.
    #[getter]
    fn physical_bytes(&self) -> Option<u64> {
        self.0.sizes.map(|sizes| sizes.physical_bytes)
    }

    fn __repr__(&self) -> String {
        let name = self.shape_text().or(self.label()).unwrap_or("without a label");
        format!("<Allocation {name}: {} bytes of padding>", self.0.padding_bytes())
    }
}

impl Tabular for Explained {
    fn columns(&self) -> Columns {
        Columns::of::<Allocation, _>(self.0.allocations.iter())
    }
}
