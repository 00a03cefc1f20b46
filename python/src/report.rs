//! `Report`, the audit of a compiled program, and what it lists: buffers, copies, totals and warnings.

use crate::{
    builtins::tuple,
    errors::Result,
    html,
    row::{PyRow, PySourceLine},
    shape::PyShape,
    table::{Column, Columns, PyTable, Tabular},
    tpu::generation,
};
use pyo3::{
    prelude::*,
    types::{PyString, PyTuple},
};
use std::sync::Arc;
use tilewise::tpu::Generation;
use tilewise_audit::{AuditOptions, BufferRow, BufferView, CopyRow, SpaceTotal, Warning, audit_with};
use tilewise_cli::Audited;
use tilewise_hlo::Module;

/// Audits HLO text.
#[pyfunction]
pub(crate) fn audit_text<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyString>,
    source: String,
    tpu: Option<&Bound<'py, PyAny>>,
    hbm_limit: Option<u64>,
) -> Result<Bound<'py, PyReport>> {
    let tpu = tpu.map(generation).transpose()?;
    // Lone surrogates in names and comments are replaced: they are no reason to refuse a program.
    let text = text.to_string_lossy().into_owned();
    let limit = hbm_limit.or(tpu.map(Generation::hbm_bytes));
    let options = AuditOptions::default().with_tpu(tpu).with_hbm_limit(limit);
    let report = py.detach(|| Ok::<_, tilewise_hlo::Error>(audit_with(&Module::parse(text)?, options)))?;
    let audited = Arc::new(Audited { source, report, all: false, tpu, limit });
    Ok(Bound::new(py, PyTable::of(audited.clone(), PyReport(audited)))?)
}

/// The audit of one program: every buffer it defines, its data and its padding. Sizes are in bytes.
///
/// Returned by `audit`. `str` is the report that the command line prints. As a `Table`, it has one row for each buffer.
///
/// Examples:
///     >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
///     <Report of text: 1 buffers, 185600000 bytes of padding in HBM>
#[pyclass(frozen, extends = PyTable, module = "tilewise", name = "Report")]
pub(crate) struct PyReport(Arc<Audited>);

#[pymethods]
impl PyReport {
    /// The name of the module.
    #[getter]
    fn module(&self) -> &str {
        &self.0.report.module
    }

    /// Where the text came from: a path, or the type of the object.
    #[getter]
    fn source(&self) -> &str {
        &self.0.source
    }

    /// The name of the entry computation.
    #[getter]
    fn entry(&self) -> Option<&str> {
        self.0.report.entry.as_deref()
    }

    /// Whether the text declares the module scheduled.
    #[getter]
    fn is_scheduled(&self) -> bool {
        self.0.report.is_scheduled
    }

    /// Totals of the buffers in each memory space, in the order of the spaces' numbers.
    #[getter]
    fn memory_spaces(&self) -> Vec<PySpaceTotal> {
        self.0.report.memory_spaces.iter().map(PySpaceTotal::of).collect()
    }

    /// Every buffer, in the order of the text.
    #[getter]
    fn buffers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBuffer>>> {
        self.0.report.buffers().map(|buffer| PyBuffer::new(py, buffer, self.0.tpu)).collect()
    }

    /// Every `copy` between two layouts, in the order of the text.
    #[getter]
    fn copies(&self) -> Vec<PyCopy> {
        self.0.report.copies.iter().map(PyCopy::of).collect()
    }

    /// The parts of the program that could not be read or sized.
    #[getter]
    fn warnings(&self) -> Vec<PyReportWarning> {
        self.0.report.warnings.iter().map(PyReportWarning::of).collect()
    }

    /// Padding of all buffers in HBM. Buffers that are never live at the same time share memory, but each is counted.
    #[getter]
    fn padding_bytes(&self) -> u64 {
        self.0.report.memory_space(0).map_or(0, SpaceTotal::padding_bytes)
    }

    /// Padding as a fraction of the bytes that all buffers in HBM take, 0 … 1.
    #[getter]
    fn padding_share(&self) -> f64 {
        self.0.report.memory_space(0).map_or(0.0, SpaceTotal::padding_share)
    }

    /// Bytes of the entry computation's arguments in HBM.
    #[getter]
    fn argument_bytes(&self) -> u64 {
        self.0.report.memory_bounds.argument_bytes
    }

    /// Bytes of the entry computation's results in HBM.
    #[getter]
    fn output_bytes(&self) -> u64 {
        self.0.report.memory_bounds.output_bytes
    }

    /// Bytes of the results that reuse the memory of donated arguments.
    #[getter]
    fn alias_bytes(&self) -> u64 {
        self.0.report.memory_bounds.alias_bytes
    }

    /// Bytes of temporaries in HBM, as the compiler reports them (`temp_size_in_bytes` of `memory_analysis()`); `None` for
    /// a program that isn't scheduled.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).temporary_bytes
    ///     310476800
    #[getter]
    fn temporary_bytes(&self) -> Option<u64> {
        self.0.report.memory_bounds.temporary_bytes
    }

    /// The least HBM the program can need, in bytes: its arguments, its results, and temporaries where they are known.
    #[getter]
    fn at_least_bytes(&self) -> u64 {
        self.0.report.memory_bounds.at_least_bytes()
    }

    /// The HBM the program needs, in bytes; if it isn't scheduled, as if no two buffers shared memory.
    #[getter]
    fn at_most_bytes(&self) -> u64 {
        self.0.report.memory_bounds.at_most_bytes
    }

    /// The HBM it has to fit into, in bytes: `hbm_limit` of `audit`, or that of `tpu`.
    #[getter]
    fn hbm_limit(&self) -> Option<u64> {
        self.0.limit
    }

    /// Whether it fits into `hbm_limit`; `None` without a limit, or if it depends on how temporaries share memory.
    #[getter]
    fn fits(&self) -> Option<bool> {
        self.0.report.memory_bounds.fits(self.0.limit?)
    }

    /// The buffers with padding, the most padding first.
    ///
    /// Args:
    ///     count: the number of buffers to return at most; `None` for all.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> report = audit(pathlib.Path("../examples/gnn_large.v5e.hlo"))
    ///     >>> [buffer.instruction for buffer in report.largest_padding(2)]
    ///     ['fusion.6', 'gather_fusion']
    #[pyo3(signature = (count = None))]
    fn largest_padding<'py>(&self, py: Python<'py>, count: Option<usize>) -> PyResult<Vec<Bound<'py, PyBuffer>>> {
        let largest = self.0.report.largest_padding().take(count.unwrap_or(usize::MAX));
        largest.map(|buffer| PyBuffer::new(py, buffer, self.0.tpu)).collect()
    }

    /// The report as text, as the command line prints it.
    ///
    /// Args:
    ///     all: whether to list every buffer, not only those with the most padding.
    ///     width: the number of columns to fit into, where words can be cut or wrapped.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> print(audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).table(width=80))
    ///     jit_f  ../examples/gnn_large.v5e.hlo, entry main.2
    ///     ...
    #[pyo3(signature = (*, all = false, width = 100))]
    fn table(&self, py: Python<'_>, all: bool, width: usize) -> String {
        py.detach(|| Audited { all, ..(*self.0).clone() }.to_text(width))
    }

    /// For notebooks: the report, and pictures of the arrays with the most padding.
    fn _repr_html_(&self) -> String {
        html::report(&self.0)
    }

    fn __str__(&self, py: Python<'_>) -> String {
        self.table(py, false, 100)
    }

    fn __repr__(&self) -> String {
        let Audited { report, source, .. } = &*self.0;
        let name = if report.module.is_empty() { source } else { &report.module };
        let (buffers, padding) = (report.buffer_count(), self.padding_bytes());
        format!("<Report of {name}: {buffers} buffers, {padding} bytes of padding in HBM>")
    }
}

/// One buffer of a program: an array that an instruction defines. Sizes are in bytes.
///
/// Examples:
///     >>> buffer = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").largest_padding()[0]
///     >>> buffer.instruction, buffer.shape, buffer.fix.jax
///     ('x', Shape('f32[400000,12]{1,0:T(8,128)}'), 'x = with_layout_constraint(x, Layout(major_to_minor=(1, 0)))...')
#[pyclass(frozen, extends = PyRow, module = "tilewise", name = "Buffer")]
pub(crate) struct PyBuffer(Arc<BufferRow>);

impl PyBuffer {
    /// The buffer of a report whose fixes are for `tpu`.
    fn new<'py>(py: Python<'py>, buffer: BufferRow, tpu: Option<Generation>) -> PyResult<Bound<'py, Self>> {
        let buffer = Arc::new(buffer);
        let row = PyRow {
            padding_bytes: buffer.sizes.padding_bytes(),
            expansion: buffer.sizes.expansion(),
            causes: buffer.causes.clone(),
            op_name: buffer.op_name.clone(),
            source: buffer.source.as_ref().map(PySourceLine::of),
            advice: Box::new({
                let buffer = buffer.clone();
                move || buffer.advice(tpu)
            }),
        };
        Bound::new(py, PyClassInitializer::from(row).add_subclass(Self(buffer)))
    }
}

#[pymethods]
impl PyBuffer {
    /// The name of the instruction that defines it.
    #[getter]
    fn instruction(&self) -> &str {
        &self.0.instruction
    }

    /// The name of the computation that contains the instruction.
    #[getter]
    fn computation(&self) -> &str {
        &self.0.computation
    }

    /// The instruction's opcode.
    #[getter]
    fn opcode(&self) -> &str {
        &self.0.opcode
    }

    /// The shape of the array.
    #[getter]
    fn shape(&self) -> PyShape {
        PyShape::new(self.0.shape.clone())
    }

    /// The array's index in the instruction's result; `()` if the result is not a tuple.
    #[getter]
    fn shape_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple(py, &self.0.shape_index)
    }

    /// The memory space's number, 0 for HBM.
    #[getter]
    fn memory_space(&self) -> u8 {
        self.0.memory_space
    }

    /// Bytes of data.
    #[getter]
    fn logical_bytes(&self) -> u64 {
        self.0.sizes.logical_bytes
    }

    /// Bytes taken.
    #[getter]
    fn physical_bytes(&self) -> u64 {
        self.0.sizes.physical_bytes
    }

    fn __repr__(&self) -> String {
        let BufferRow { instruction, shape, sizes, .. } = &*self.0;
        format!("<Buffer {instruction} {shape}: {} bytes of padding>", sizes.padding_bytes())
    }
}

/// Totals of the buffers in one memory space. Sizes are in bytes.
///
/// Examples:
///     >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").memory_spaces
///     [<SpaceTotal hbm: 185600000 of 204800000 bytes are padding>]
#[pyclass(frozen, get_all, module = "tilewise", name = "SpaceTotal")]
pub(crate) struct PySpaceTotal {
    /// The memory space's number, 0 for HBM.
    memory_space: u8,
    /// The memory space's name on a TPU, such as `'hbm'`.
    name: String,
    /// The number of buffers.
    buffers: usize,
    /// Bytes of data.
    logical_bytes: u64,
    /// Bytes taken.
    physical_bytes: u64,
    /// Bytes of padding.
    padding_bytes: u64,
    /// Padding as a fraction of the bytes taken, 0 … 1.
    padding_share: f64,
}

impl PySpaceTotal {
    pub(crate) fn of(total: &SpaceTotal) -> Self {
        Self {
            memory_space: total.memory_space,
            name: total.memory_space_name().into_owned(),
            buffers: total.buffers,
            logical_bytes: total.logical_bytes,
            physical_bytes: total.physical_bytes,
            padding_bytes: total.padding_bytes(),
            padding_share: total.padding_share(),
        }
    }
}

#[pymethods]
impl PySpaceTotal {
    fn __repr__(&self) -> String {
        let Self { name, padding_bytes, physical_bytes, .. } = self;
        format!("<SpaceTotal {name}: {padding_bytes} of {physical_bytes} bytes are padding>")
    }
}

/// One `copy` instruction. Sizes are in bytes.
///
/// Examples:
///     >>> report = audit('''
///     ...   x = f32[256,512]{1,0:T(8,128)} parameter(0)
///     ...   y = f32[256,512]{0,1:T(8,128)} copy(x)''')
///     >>> report.copies
///     [<Copy y: f32[256,512]{1,0:T(8,128)} to f32[256,512]{0,1:T(8,128)}>]
#[pyclass(frozen, get_all, module = "tilewise", name = "Copy")]
pub(crate) struct PyCopy {
    /// The name of the instruction.
    instruction: String,
    /// The name of the computation that contains it.
    computation: String,
    /// The operand's shape.
    from_shape: PyShape,
    /// The result's shape.
    to_shape: PyShape,
    /// Bytes that the operand takes.
    read_bytes: u64,
    /// Bytes that the result takes.
    written_bytes: u64,
    /// The framework's name of the operation.
    op_name: Option<String>,
    /// The line of the user's program.
    source: Option<PySourceLine>,
}

impl PyCopy {
    pub(crate) fn of(copy: &CopyRow) -> Self {
        Self {
            instruction: copy.instruction.clone(),
            computation: copy.computation.clone(),
            from_shape: PyShape::new(copy.from.clone()),
            to_shape: PyShape::new(copy.to.clone()),
            read_bytes: copy.read_bytes,
            written_bytes: copy.written_bytes,
            op_name: copy.op_name.clone(),
            source: copy.source.as_ref().map(PySourceLine::of),
        }
    }
}

#[pymethods]
impl PyCopy {
    fn __repr__(&self) -> String {
        format!("<Copy {}: {} to {}>", self.instruction, self.from_shape, self.to_shape)
    }
}

/// A part of a program's text that could not be read or sized.
///
/// Examples:
///     >>> audit("x = b16[3] parameter(0)").warnings
///     [<ReportWarning shape: the shape of `x` isn't valid: `b16` is not an element type ...>]
#[pyclass(frozen, get_all, module = "tilewise", name = "ReportWarning")]
pub(crate) struct PyReportWarning {
    /// A stable name in snake case.
    kind: &'static str,
    /// The warning, as a sentence.
    message: String,
}

impl PyReportWarning {
    pub(crate) fn of(warning: &Warning) -> Self {
        Self { kind: warning.kind, message: warning.message.clone() }
    }
}

#[pymethods]
impl PyReportWarning {
    fn __str__(&self) -> &str {
        &self.message
    }

    fn __repr__(&self) -> String {
        format!("<ReportWarning {}: {}>", self.kind, self.message)
    }
}

impl Tabular for Audited {
    /// The columns of `tilewise audit --format csv`.
    fn columns(&self) -> Columns {
        let rows = self.report.buffer_count();
        let same = |text: &str| Column::Text(vec![Some(text.to_owned()); rows]);
        let mut columns = vec![("source", same(&self.source)), ("module", same(&self.report.module))];
        columns.extend(Columns::of::<BufferView, _>(self.report.buffers().map(|row| row.view(self.tpu))).0);
        Columns(columns)
    }
}
