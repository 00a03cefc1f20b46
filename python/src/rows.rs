//! `Row`: a buffer of a `Report`, an allocation of an `Explanation`.

use crate::{fix::PyFix, layout::tuple, records::PySourceLine, shape::PyShape};
use pyo3::{prelude::*, types::PyTuple};
use std::sync::Arc;
use tilewise_audit::fix::Advice;
use tilewise_cli::{Audited, Explained};
use tilewise_oom::PrintedSize;

/// Something that takes memory, what of it is padding, why, and what to change: a `Buffer` or an `Allocation`. Sizes are in bytes.
///
/// Examples:
///     >>> row = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").buffers[0]
///     >>> row.padding_bytes, row.causes
///     (185600000, ['dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used'])
#[pyclass(frozen, subclass, module = "tilewise", name = "Row")]
pub(crate) struct PyRow {
    /// Bytes that hold no data; 0 where they can't be computed.
    #[pyo3(get)]
    padding_bytes: u64,
    /// How many times its data the array takes; 1 where that can't be computed.
    #[pyo3(get)]
    expansion: f64,
    /// What makes the padding, in words, the largest cause first.
    #[pyo3(get)]
    causes: Vec<String>,
    /// The framework's name of the operation, such as `'jit(f)/dot_general'`.
    #[pyo3(get)]
    op_name: Option<String>,
    /// The line of the user's program.
    #[pyo3(get)]
    source: Option<PySourceLine>,
    /// Searched for when first asked for: a program has many buffers.
    advice: Box<dyn Fn() -> Option<Advice> + Send + Sync>,
}

#[pymethods]
impl PyRow {
    /// What to change so that it takes less, the best first.
    #[getter]
    fn fixes(&self) -> Vec<PyFix> {
        (self.advice)().map_or(Vec::new(), |advice| advice.fixes.iter().map(PyFix::of).collect())
    }

    /// The best fix, if there is one.
    #[getter]
    fn fix(&self) -> Option<PyFix> {
        (self.advice)()?.best().map(PyFix::of)
    }
}

/// One buffer of a program: an array that an instruction defines. Sizes are in bytes.
///
/// Examples:
///     >>> buffer = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").largest_padding()[0]
///     >>> buffer.instruction, buffer.shape, buffer.fix.jax
///     ('x', Shape('f32[400000,12]{1,0:T(8,128)}'), 'x = with_layout_constraint(x, Layout(major_to_minor=(1, 0)))  # ...')
#[pyclass(frozen, get_all, extends = PyRow, module = "tilewise", name = "Buffer")]
pub(crate) struct PyBuffer {
    /// The instruction that defines it.
    instruction: String,
    /// The computation the instruction is in.
    computation: String,
    /// The instruction's opcode.
    opcode: String,
    /// The array.
    shape: PyShape,
    /// The array's place in the instruction's result; `()` if that is no tuple.
    shape_index: Py<PyTuple>,
    /// The memory space's number, 0 for HBM.
    memory_space: u8,
    /// Bytes of data.
    logical_bytes: u64,
    /// Bytes taken.
    physical_bytes: u64,
}

impl PyBuffer {
    /// The buffer of that number in the report.
    pub(crate) fn new<'py>(py: Python<'py>, audited: &Arc<Audited>, number: usize) -> PyResult<Bound<'py, Self>> {
        let buffer = &audited.report.buffers[number];
        let row = PyRow {
            padding_bytes: buffer.sizes.padding_bytes(),
            expansion: buffer.sizes.expansion(),
            causes: buffer.causes.clone(),
            op_name: buffer.op_name.clone(),
            source: buffer.source.as_ref().map(PySourceLine::of),
            advice: Box::new({
                let audited = audited.clone();
                move || audited.report.buffers[number].advice(audited.tpu)
            }),
        };
        let buffer = Self {
            instruction: buffer.instruction.clone(),
            computation: buffer.computation.clone(),
            opcode: buffer.opcode.clone(),
            shape: PyShape::new(buffer.shape.clone()),
            shape_index: tuple(py, &buffer.shape_index)?.unbind(),
            memory_space: buffer.memory_space,
            logical_bytes: buffer.sizes.logical_bytes,
            physical_bytes: buffer.sizes.physical_bytes,
        };
        Bound::new(py, PyClassInitializer::from(row).add_subclass(buffer))
    }
}

#[pymethods]
impl PyBuffer {
    fn __repr__(slf: PyRef<'_, Self>) -> String {
        format!("<Buffer {} {}: {} bytes of padding>", slf.instruction, slf.shape, slf.as_super().padding_bytes)
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
