//! `Report`, the audit of a compiled program.

use crate::{
    buffer::PyBuffer,
    builtins::in_python,
    comparison::PyComparison,
    copy::PyCopy,
    drawing::{MemoryRequest, PyDrawing},
    errors::Result,
    kernel::PyKernelUse,
    recommendation::PyRecommendation,
    screen::{PyCause, PyHeadline, PyPlannedChange},
    space::PySpaceTotal,
    table::{Column, Columns, PyTable, Tabular},
    time::PyTime,
    travel::{Reduced, native, not_held},
    typed::Items,
    warning::PyReportWarning,
    whole::whole,
};
use pyo3::{IntoPyObjectExt, prelude::*, sync::PyOnceLock};
use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};
use tilewise::tpu::Generation;
use tilewise_audit::{BufferRow, Machine, Report};
use tilewise_cli::Sources;
use tilewise_hlo::Module;
use tilewise_report::{Allowed, AuditOutput, Comparison, Headline, Quotes, ReportView, WriteText, notebook};

/// Sets the function that a report is of, for its `check`.
#[pyfunction]
#[pyo3(signature = (report, origin: "object"))]
pub(crate) fn set_origin(report: &Bound<'_, PyReport>, origin: Py<PyAny>) {
    // Only the first function is kept.
    let _ = report.get().origin.set(report.py(), origin);
}

/// The report with lines of source from files below a folder; unchanged if `folder` isn't one.
#[pyfunction]
pub(crate) fn quoting<'py>(report: &Bound<'py, PyReport>, folder: &str) -> PyResult<Bound<'py, PyReport>> {
    let Ok(sources) = Sources::at(folder) else { return Ok(report.clone()) };
    let held = report.get();
    let quoted = report.py().detach(|| {
        let quotes = Quotes::read(&held.audited.report, |file| sources.text(file));
        Arc::new(AuditOutput { quotes, ..(*held.audited).clone() })
    });
    PyReport::of(report.py(), quoted, held.module.clone(), held.buffer_assignment.clone())
}

/// The picture of a report's memory plan. Pickled pictures call it.
#[pyfunction]
#[pyo3(signature = (report, memory_space: "int", theme))]
pub(crate) fn plot(
    report: &Bound<'_, PyReport>,
    #[pyo3(from_py_with = whole)] memory_space: u8,
    theme: &str,
) -> Result<PyDrawing> {
    let audited = report.get().audited.clone();
    PyDrawing::of_memory(MemoryRequest {
        report: report.clone().into_any().unbind(),
        audited,
        memory_space,
        theme: theme.to_owned(),
    })
}

/// A program's floating-point operations, bytes read and written, and bytes of collectives by kind, all times the trip
/// counts of loops; and the number of instructions that the compiler computes twice.
#[pyfunction]
pub(crate) fn work_of(report: &Bound<'_, PyReport>) -> (u64, u64, BTreeMap<&'static str, u64>, u64) {
    let report = &report.get().audited.report;
    let work = report.work();
    let sent = work.collectives.iter().map(|(kind, sent)| (*kind, sent.bytes));
    (work.flops, report.moved_bytes(), sent.collect(), work.recomputed)
}

/// The least seconds of a run of a report's program, at full rates; `None` if unknown.
#[pyfunction]
pub(crate) fn floor_of(py: Python<'_>, report: &Bound<'_, PyReport>) -> Option<f64> {
    let audited = report.get().audited.clone();
    py.detach(|| audited.report.floor_seconds().ok())
}

/// The audit of one program: every buffer it defines, its data and its padding. Sizes are in bytes.
///
/// Returned by `audit`. `str` is the report that the command line prints. As a `Table`, it has one row for each buffer;
/// `len` and iteration are over the buffers. Two are equal if they have the same text, source, machine, limit and
/// buffer assignment.
///
/// Examples:
///     >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
///     <Report of text: 1 buffers, 185600000 bytes of padding in HBM>
#[pyclass(frozen, eq, hash, extends = PyTable, module = "tilewise", name = "Report")]
pub(crate) struct PyReport {
    audited: Arc<AuditOutput>,
    module: Module,
    /// The text of the compiler's own buffer assignment.
    buffer_assignment: Option<String>,
    /// Computed on first use.
    advice: OnceLock<Vec<PyRecommendation>>,
    /// Computed on first use.
    buffers: PyOnceLock<Vec<Py<PyBuffer>>>,
    /// The audited Python function; not part of the report's value.
    origin: PyOnceLock<Py<PyAny>>,
}

impl PyReport {
    pub(crate) fn of(
        py: Python<'_>,
        audited: Arc<AuditOutput>,
        module: Module,
        buffer_assignment: Option<String>,
    ) -> PyResult<Bound<'_, Self>> {
        let report = Self {
            audited: audited.clone(),
            module,
            buffer_assignment,
            advice: OnceLock::new(),
            buffers: PyOnceLock::new(),
            origin: PyOnceLock::new(),
        };
        Bound::new(py, PyTable::of(audited, report))
    }

    pub(crate) fn report(&self) -> &Report {
        &self.audited.report
    }

    /// The differences between this report and another, with its advice if it is worse.
    pub(crate) fn compared(&self, py: Python<'_>, after: &Self, allowed: Allowed) -> Comparison {
        py.detach(|| Comparison::of_reports(self.report(), after.report(), allowed).advised(after.report()))
    }

    /// The inputs of the report: text, source, TPU, limit, and another machine than a TPU.
    pub(crate) fn made_of(&self) -> (&str, &str, Option<Generation>, Option<u64>, Option<Machine>) {
        let report = &self.audited.report;
        let (tpu, machine) = (report.given.and_then(Machine::generation), report.given);
        let machine = machine.filter(|_| tpu.is_none());
        (self.module.source(), &report.source, tpu, report.limit(), machine)
    }
}

impl PartialEq for PyReport {
    fn eq(&self, other: &Self) -> bool {
        self.made_of() == other.made_of() && self.buffer_assignment == other.buffer_assignment
    }
}

impl Hash for PyReport {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.made_of().hash(state);
    }
}

#[pymethods]
impl PyReport {
    /// The name of the module.
    #[getter]
    fn module(&self) -> &str {
        &self.audited.report.module_name
    }

    /// Where the text came from: a path, or the type of the object.
    #[getter]
    fn source(&self) -> &str {
        &self.audited.report.source
    }

    /// The name of the entry computation.
    #[getter]
    fn entry(&self) -> Option<&str> {
        self.audited.report.entry.as_deref()
    }

    /// Whether the text declares the module scheduled.
    #[getter]
    fn is_scheduled(&self) -> bool {
        self.audited.report.is_scheduled
    }

    /// Totals of the buffers in each memory space, in the order of the spaces' numbers.
    #[getter]
    fn memory_spaces(&self) -> Vec<PySpaceTotal> {
        self.audited.report.memory_spaces.iter().map(PySpaceTotal::of).collect()
    }

    /// Every buffer, in the order of the text.
    #[getter]
    fn buffers(&self, py: Python<'_>) -> PyResult<Vec<Py<PyBuffer>>> {
        let buffers = self.buffers.get_or_try_init(py, || {
            let AuditOutput { report, .. } = &*self.audited;
            let values: Vec<_> = py.detach(|| report.buffers().map(PyBuffer::new).collect());
            values.into_iter().map(|value| Ok(value.into_python(py)?.unbind())).collect::<PyResult<Vec<_>>>()
        })?;
        Ok(buffers.iter().map(|buffer| buffer.clone_ref(py)).collect())
    }

    /// Whether it fits, and by how much.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> print(audit(pathlib.Path("../examples/gnn_large.v5e.hlo"), hbm_limit="200MiB").headline)
    ///     Does not fit 200.00 MiB of HBM: needs 309.84 MiB, 109.84 MiB too much.
    #[getter]
    fn headline(&self) -> PyHeadline {
        PyHeadline::of(&Headline::of(&self.audited.report))
    }

    /// The largest parts of the peak, the largest first: as many as make up 80 % of it, three at most.
    #[getter]
    fn causes(&self, py: Python<'_>) -> Vec<PyCause> {
        py.detach(|| self.audited.summary_at_once().causes.iter().map(PyCause::of).collect())
    }

    /// The changes to make, in the order in which to try them: the gentlest that is enough by itself, then those that
    /// free most. `advice` has more about each.
    #[getter]
    fn changes(&self, py: Python<'_>) -> Vec<PyPlannedChange> {
        py.detach(|| self.audited.summary().changes.iter().map(PyPlannedChange::of).collect())
    }

    /// The recommended changes, the best first; each frees its bytes after the ones before it.
    #[getter]
    fn advice(&self, py: Python<'_>) -> Vec<PyRecommendation> {
        let advice = || self.audited.report.advice().iter().map(PyRecommendation::of).collect();
        py.detach(|| self.advice.get_or_init(advice)).clone()
    }

    /// Every `copy` between two layouts, in the order of the text.
    #[getter]
    fn copies(&self) -> Vec<PyCopy> {
        let report = &self.audited.report;
        let reasons = report.copy_reasons();
        report.copies.iter().zip(reasons).map(|(copy, reason)| PyCopy::of(copy, reason)).collect()
    }

    /// The Pallas kernels of a TPU's program, in the order of the text, with the VMEM that each took.
    #[getter]
    fn kernels(&self) -> Vec<PyKernelUse> {
        self.audited.report.kernels().into_iter().map(PyKernelUse::of).collect()
    }

    /// Bytes that the program reads and writes to reorder elements or to duplicate arrays; transfers between memory
    /// spaces don't count.
    #[getter]
    fn copied_bytes(&self) -> u64 {
        self.audited.report.copied_bytes()
    }

    /// Bytes that the program reads and writes: the operands and results of all that runs, times the trip counts of
    /// loops. They include `copied_bytes`.
    #[getter]
    fn moved_bytes(&self) -> u64 {
        self.audited.report.moved_bytes()
    }

    /// The parts of the program that could not be read or sized.
    #[getter]
    fn warnings(&self) -> Vec<PyReportWarning> {
        self.audited.report.warnings.iter().map(PyReportWarning::of).collect()
    }

    /// Where the time of a run goes, estimated from the compiler's own cycle counts, not measured: a `Time`. `None` where
    /// the text has none, for the reason in `no_time`.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time.kinds[0].name
    ///     'matmul'
    ///     >>> print(audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").time)
    ///     None
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTime>>> {
        let AuditOutput { report, .. } = &*self.audited;
        let written = py.detach(|| {
            let view = ReportView { report, source: &report.source, most_buffers: None, quotes: None };
            let Some(time) = view.time() else { return Ok(None) };
            let of_time = AuditOutput { of_time: true, ..(*self.audited).clone() };
            let json = serde_json::to_string(&time).map_err(not_held)?;
            Ok::<_, PyErr>(Some((json, of_time.to_text(100).trim_end().to_owned())))
        })?;
        written.map(|written| PyTime::of(py, written)).transpose()
    }

    /// Why there is no `time`; `None` where there is one.
    #[getter]
    fn no_time(&self) -> Option<String> {
        self.audited.report.time().err().map(|none| none.to_string())
    }

    /// Devices that run the program together; sizes are those of one device.
    #[getter]
    fn partitions(&self) -> u64 {
        self.audited.report.partitions
    }

    /// The text of the compiler's own buffer assignment, if available, as for a function that `audit` compiled. Its
    /// bytes take precedence over the plan's.
    #[getter]
    pub(crate) fn buffer_assignment(&self) -> Option<&str> {
        self.buffer_assignment.as_deref()
    }

    /// The HLO text of the program.
    #[getter]
    fn text(&self) -> &str {
        self.module.source()
    }

    /// The generation that `audit` was given, as `TPU_GENERATIONS` has it; `None` if it was given none.
    #[getter]
    fn tpu(&self) -> Option<&'static str> {
        self.audited.report.given.and_then(Machine::generation).map(Generation::name)
    }

    /// The machine of the plan, such as `'tpu:v5e'`, `'gpu:h100'` or `'cpu'`: the one given to `audit`, or else the one
    /// that the file's name or the text shows. If neither does, there is a warning `assumed_machine`.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> audit(pathlib.Path("../examples/machines/attention.h100.hlo")).machine
    ///     'gpu:h100'
    #[getter]
    fn machine(&self) -> String {
        self.audited.report.machine.to_string()
    }

    /// The memory it has to fit into, in bytes: `hbm_limit` of `audit`, or a program's part of the memory of `tpu` or
    /// `machine`.
    #[getter]
    fn hbm_limit(&self) -> Option<u64> {
        self.audited.report.limit()
    }

    /// Whether it fits into `hbm_limit`; `None` without a limit, or if it depends on how temporaries share memory.
    #[getter]
    fn fits(&self) -> Option<bool> {
        self.audited.report.memory_bounds.fits(self.audited.report.limit()?)
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
    #[pyo3(signature = (count: "int | None" = None))]
    fn largest_padding<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole)] count: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyBuffer>>> {
        let AuditOutput { report, .. } = &*self.audited;
        let largest = report.largest_padding().take(count.unwrap_or(usize::MAX));
        largest.map(|row| PyBuffer::new(row).into_python(py)).collect()
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
    ///     Fits a TPU v5e: needs 311.37 MiB of 15.75 GiB, 15.45 GiB left.
    ///     jit_f  ../examples/gnn_large.v5e.hlo, entry main.2
    ///     ...
    #[pyo3(signature = (*, all = false, width: "int" = 100))]
    fn table(&self, py: Python<'_>, all: bool, #[pyo3(from_py_with = whole)] width: usize) -> String {
        py.detach(|| in_python(&AuditOutput { all, ..(*self.audited).clone() }.to_text(width)))
    }

    /// The memory plan as a picture: the bytes held over the program's order, and when and where each array lies.
    ///
    /// Args:
    ///     memory_space: its number, 0 for HBM.
    ///     theme: `'auto'` follows the viewer's colour scheme; or `'light'`, or `'dark'`.
    ///
    /// Raises:
    ///     DrawError: the program has no memory plan, as one that isn't scheduled.
    ///     ValueError: the theme is unknown.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).plot()
    ///     <Drawing of jit_f: HBM>
    #[pyo3(signature = (*, memory_space: "int" = 0, theme: "Literal['auto', 'light', 'dark']" = "auto"))]
    fn plot(slf: &Bound<'_, Self>, #[pyo3(from_py_with = whole)] memory_space: u8, theme: &str) -> Result<PyDrawing> {
        plot(slf, memory_space, theme)
    }

    /// The report as an HTML page in one file, which opens without network: the program's memory over time, the changes
    /// to make, and pictures of the layouts.
    ///
    /// Examples:
    ///     >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
    ///     >>> report.to_html()[:15]
    ///     '<!doctype html>'
    fn to_html(&self, py: Python<'_>) -> String {
        py.detach(|| self.audited.to_html())
    }

    /// The differences between this report and another, such as that of the program after a change.
    ///
    /// Returns:
    ///     A `Comparison`, which is false if nothing differs.
    ///
    /// Examples:
    ///     >>> before = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
    ///     >>> after = audit("x = f32[400000,12]{0,1:T(8,128)} parameter(0)")
    ///     >>> [(change.what, change.before, change.after) for change in before.diff(after).changes if change.what == "layout"]
    ///     [('layout', '{1,0:T(8,128)}', '{0,1:T(8,128)}')]
    ///     >>> bool(before.diff(before))
    ///     False
    #[pyo3(signature = (other, /), text_signature = "($self, other, /)")]
    fn diff<'py>(&self, py: Python<'py>, other: &Bound<'py, Self>) -> PyResult<Bound<'py, PyComparison>> {
        PyComparison::of(py, self.compared(py, other.get(), Allowed::default()))
    }

    /// Make the changes of the report, one after the other, and ask the compiler what each frees.
    ///
    /// A change of one line of the function's file is made in that line, in memory: the function's module, or the file of
    /// a FILE.py:FACTORY, is imported again. Others are made from outside: arguments are donated, values recomputed, the
    /// batch taken in parts. The rest is not applied.
    ///
    /// Needs JAX and libtpu, and a report of a function: of `audit(f, *args, tpu=…)`.
    ///
    /// Args:
    ///     confirm: compile all in full, which takes longer; only then is the cost of each in time reported.
    ///     until_fits: end at the first change with which the program fits.
    ///
    /// Returns:
    ///     An `AdviceCheck`, which prints the promised bytes beside the freed ones.
    ///
    /// Raises:
    ///     TypeError: the report is not of a function.
    ///
    /// Examples:
    ///     >>> import jax, jax.numpy as jnp
    ///     >>> x = jax.ShapeDtypeStruct((400000, 128), jnp.float32)
    ///     >>> print(audit(lambda x: x + 1, x, tpu="v5e").check())
    ///     promised  freed ...
    #[pyo3(signature = (*, confirm = false, until_fits = false) -> "AdviceCheck")]
    fn check<'py>(slf: &Bound<'py, Self>, confirm: bool, until_fits: bool) -> PyResult<Bound<'py, PyAny>> {
        let origin = slf.get().origin.get(slf.py());
        slf.py().import("tilewise._fit.advice")?.call_method1("check", (slf, origin, confirm, until_fits))
    }

    fn __len__(&self) -> usize {
        self.audited.report.buffer_count()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Items<'py, Py<PyBuffer>>> {
        Items::of(py, self.buffers(py)?)
    }

    /// Always true, even without buffers.
    fn __bool__(&self) -> bool {
        true
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py, Bound<'py, PyAny>>> {
        let (text, source, tpu, limit, machine) = slf.get().made_of();
        let (machine, libtpu) = (machine.map(|machine| machine.to_string()), slf.get().libtpu());
        let tpu = tpu.map(Generation::name);
        let arguments =
            (text, source, tpu, limit, machine, libtpu, slf.get().buffer_assignment()).into_bound_py_any(slf.py())?;
        Ok((native(slf.py(), "audit_text")?, arguments))
    }

    /// For notebooks: the report, and pictures of the arrays with the most padding.
    fn _repr_html_(&self, py: Python<'_>) -> String {
        notebook::report(&self.audited, &self.table(py, false, 100))
    }

    fn __str__(&self, py: Python<'_>) -> String {
        self.table(py, false, 100)
    }

    fn __repr__(&self) -> String {
        let AuditOutput { report, .. } = &*self.audited;
        let source = &report.source;
        let name = if report.module_name.is_empty() { source } else { &report.module_name };
        let (buffers, padding) = (report.buffer_count(), self.padding_bytes());
        match (self.peak_bytes(), self.peak_padding_bytes()) {
            (Some(peak), Some(padding)) => {
                format!("<Report of {name}: peak {peak} bytes, {padding} of them padding; {buffers} buffers>")
            }
            _ => format!("<Report of {name}: {buffers} buffers, {padding} bytes of padding in HBM>"),
        }
    }
}

impl Tabular for AuditOutput {
    /// The columns of `tilewise audit --format csv`.
    fn columns(&self) -> Columns {
        let rows = self.report.buffer_count();
        let same = |text: &str| Column::Text(vec![Some(text.to_owned()); rows]);
        let mut columns = vec![("source", same(&self.report.source)), ("module", same(&self.report.module_name))];
        columns.extend(Columns::of::<BufferRow, _>(self.report.buffers()).0);
        Columns(columns)
    }
}
