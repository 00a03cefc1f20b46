//! `Report`: the padding of a compiled program.

use crate::{
    arguments::generation,
    columns::{Column, Columns, PyTable, Rows},
    errors::Result,
    html,
    records::{PyCopy, PyReportWarning, PySpaceTotal},
    rows::PyBuffer,
};
use pyo3::{exceptions::PyOSError, prelude::*, types::PyString};
use std::{path::PathBuf, sync::Arc};
use tilewise_audit::{BufferView, SpaceTotal};
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
    // A program is read whatever odd characters its names have.
    let text = text.to_string_lossy().into_owned();
    let report = py.detach(|| Ok::<_, tilewise_hlo::Error>(tilewise_audit::audit(&Module::parse(text)?)))?;
    let limit = hbm_limit.or(tpu.map(tilewise::tpu::Generation::hbm_bytes));
    let audited = Arc::new(Audited { source, report, all: false, tpu, limit });
    Ok(Bound::new(py, PyTable::of(audited.clone(), PyReport(audited)))?)
}

/// A file's text, plain or gzip.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, path: PathBuf) -> Result<String> {
    match py.detach(|| tilewise_hlo::read_text(&path)) {
        Ok(text) => Ok(text),
        Err(error) => match system_error(&error) {
            Some(number) => {
                let words = py.import("os")?.call_method1("strerror", (number,))?.unbind();
                Err(PyOSError::new_err((number, words, path.into_os_string())).into())
            }
            None => Err(error.into()),
        },
    }
}

/// Bytes as text, plain or gzip.
#[pyfunction]
pub(crate) fn decode(py: Python<'_>, bytes: Vec<u8>) -> Result<String> {
    Ok(py.detach(|| tilewise_hlo::decode(bytes, tilewise_hlo::DECOMPRESSION_LIMIT))?)
}

/// The system's number of what went wrong, if that was it.
fn system_error(error: &tilewise_hlo::Error) -> Option<i32> {
    std::error::Error::source(error)?.downcast_ref::<std::io::Error>()?.raw_os_error()
}

/// The audit of one program: every buffer it defines, with what it holds and takes. Sizes are in bytes.
///
/// Made by `audit`. `str` is the table that the command line prints. A `Table` of its buffers.
///
/// Examples:
///     >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
///     <Report of text: 1 buffers, 185600000 bytes of padding in HBM>
#[pyclass(frozen, extends = PyTable, module = "tilewise", name = "Report")]
pub(crate) struct PyReport(Arc<Audited>);

#[pymethods]
impl PyReport {
    /// The module's name.
    #[getter]
    fn module(&self) -> &str {
        &self.0.report.module
    }

    /// Where the text came from: a path, or the kind of object.
    #[getter]
    fn source(&self) -> &str {
        &self.0.source
    }

    /// The entry computation's name.
    #[getter]
    fn entry(&self) -> Option<&str> {
        self.0.report.entry.as_deref()
    }

    /// Whether the text says the module is scheduled.
    #[getter]
    fn is_scheduled(&self) -> bool {
        self.0.report.is_scheduled
    }

    /// Totals of the buffers in each memory space, by rising number.
    #[getter]
    fn memory_spaces(&self) -> Vec<PySpaceTotal> {
        self.0.report.memory_spaces.iter().map(PySpaceTotal::of).collect()
    }

    /// Every buffer, in the order of the text.
    #[getter]
    fn buffers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBuffer>>> {
        (0..self.0.report.buffers.len()).map(|number| PyBuffer::new(py, &self.0, number)).collect()
    }

    /// Every `copy` between two layouts, in the order of the text.
    #[getter]
    fn copies(&self) -> Vec<PyCopy> {
        self.0.report.copies.iter().map(PyCopy::of).collect()
    }

    /// What could not be read or sized.
    #[getter]
    fn warnings(&self) -> Vec<PyReportWarning> {
        self.0.report.warnings.iter().map(PyReportWarning::of).collect()
    }

    /// Bytes of all buffers in HBM that hold no data. Buffers that never live at once share memory, and are counted each.
    #[getter]
    fn padding_bytes(&self) -> u64 {
        self.0.report.memory_space(0).map_or(0, SpaceTotal::padding_bytes)
    }

    /// Padding as a share of the bytes all buffers in HBM take, 0 … 1.
    #[getter]
    fn padding_share(&self) -> f64 {
        self.0.report.memory_space(0).map_or(0.0, SpaceTotal::padding_share)
    }

    /// Bytes of the entry's arguments in HBM.
    #[getter]
    fn argument_bytes(&self) -> u64 {
        self.0.report.memory_bounds.argument_bytes
    }

    /// Bytes of its results.
    #[getter]
    fn output_bytes(&self) -> u64 {
        self.0.report.memory_bounds.output_bytes
    }

    /// Bytes of the results that donated arguments provide.
    #[getter]
    fn alias_bytes(&self) -> u64 {
        self.0.report.memory_bounds.alias_bytes
    }

    /// Bytes of HBM the program holds at the least: arguments and results.
    #[getter]
    fn at_least_bytes(&self) -> u64 {
        self.0.report.memory_bounds.at_least_bytes()
    }

    /// Bytes of HBM the program holds if no two buffers share memory.
    #[getter]
    fn at_most_bytes(&self) -> u64 {
        self.0.report.memory_bounds.at_most_bytes
    }

    /// The HBM it was asked to fit, in bytes.
    #[getter]
    fn hbm_limit(&self) -> Option<u64> {
        self.0.limit
    }

    /// Whether it fits; `None` if no limit was given, or if that depends on how temporaries share memory.
    #[getter]
    fn fits(&self) -> Option<bool> {
        self.0.report.memory_bounds.fits(self.0.limit?)
    }

    /// The buffers with padding, those with the most of it first.
    ///
    /// Args:
    ///     count: how many at most; all where it is `None`.
    ///
    /// Examples:
    ///     >>> import pathlib
    ///     >>> report = audit(pathlib.Path("../examples/gnn_large.v5e.hlo"))
    ///     >>> [buffer.instruction for buffer in report.largest_padding(2)]
    ///     ['fusion.6', 'gather_fusion']
    #[pyo3(signature = (count = None))]
    fn largest_padding<'py>(&self, py: Python<'py>, count: Option<usize>) -> PyResult<Vec<Bound<'py, PyBuffer>>> {
        let buffers = &self.0.report.buffers;
        let mut numbers: Vec<usize> = (0..buffers.len()).filter(|&n| buffers[n].sizes.padding_bytes() > 0).collect();
        numbers.sort_by_key(|&number| std::cmp::Reverse(buffers[number].sizes.padding_bytes()));
        numbers.truncate(count.unwrap_or(usize::MAX));
        numbers.into_iter().map(|number| PyBuffer::new(py, &self.0, number)).collect()
    }

    /// The report as text, as the command line prints it.
    ///
    /// Args:
    ///     all: every buffer, not only those with the most padding.
    ///     width: columns to keep to where words can be cut or wrapped.
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

    /// For notebooks: the totals, and the buffers with the most padding, each with its picture.
    fn _repr_html_(&self) -> String {
        html::report(&self.0)
    }

    fn __str__(&self, py: Python<'_>) -> String {
        self.table(py, false, 100)
    }

    fn __repr__(&self) -> String {
        let Audited { report, source, .. } = &*self.0;
        let name = if report.module.is_empty() { source } else { &report.module };
        let (buffers, padding) = (report.buffers.len(), self.padding_bytes());
        format!("<Report of {name}: {buffers} buffers, {padding} bytes of padding in HBM>")
    }
}

impl Rows for Audited {
    /// The columns of `tilewise audit --format csv`.
    fn columns(&self) -> Columns {
        let rows = &self.report.buffers;
        let same = |text: &str| Column::Text(vec![Some(text.to_owned()); rows.len()]);
        let mut columns = vec![("source", same(&self.source)), ("module", same(&self.report.module))];
        columns.extend(Columns::of::<BufferView<'_>, _>(rows.iter().map(|row| row.view(self.tpu))).0);
        Columns(columns)
    }
}
