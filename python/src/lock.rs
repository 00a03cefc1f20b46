//! Comparisons of reports and with plan locks, whose programs are passed to and from Python as JSON.

use crate::{
    comparison::PyComparison,
    report::PyReport,
    travel::{not_held, parsed},
};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::{collections::BTreeMap, path::PathBuf};
use tilewise_audit::Failure;
use tilewise_report::{Allowed, ComparedProgram, Comparison, Compiler, Lock};

/// The compared facts of a program as JSON, as a lock keeps them.
#[pyfunction]
pub(crate) fn compared_program(
    py: Python<'_>,
    report: &Bound<'_, PyReport>,
    root: Option<PathBuf>,
) -> PyResult<String> {
    let report = report.get();
    py.detach(|| serde_json::to_string(&ComparedProgram::of(report.report()).kept(root.as_deref()))).map_err(not_held)
}

/// The differences between two reports, under this name or the second's.
#[pyfunction]
#[pyo3(signature = (before, after, name = None, *, tolerance = 0.01, exact = false, any_compiler = false))]
pub(crate) fn compare_reports<'py>(
    py: Python<'py>,
    before: &Bound<'py, PyReport>,
    after: &Bound<'py, PyReport>,
    name: Option<String>,
    tolerance: f64,
    exact: bool,
    any_compiler: bool,
) -> PyResult<Bound<'py, PyComparison>> {
    let mut compared = before.get().compared(py, after.get(), Allowed { tolerance, exact, any_compiler });
    compared.program = name.unwrap_or(compared.program);
    PyComparison::of(py, compared)
}

/// The differences between two programs, each as `compared_program` returns it; `report` is the second's.
#[pyfunction]
#[pyo3(signature = (name, before, after, report, *, tolerance = 0.01, exact = false, any_compiler = false))]
#[expect(clippy::too_many_arguments, reason = "named ones")]
pub(crate) fn compare_programs<'py>(
    py: Python<'py>,
    name: &str,
    before: &str,
    after: &str,
    report: Option<&Bound<'py, PyReport>>,
    tolerance: f64,
    exact: bool,
    any_compiler: bool,
) -> PyResult<Bound<'py, PyComparison>> {
    let allowed = Allowed { tolerance, exact, any_compiler };
    let comparison = Comparison::of(name, parsed(before)?, parsed(after)?, allowed);
    let report = report.map(|report| report.get());
    let advised = py.detach(|| match report {
        Some(report) => comparison.advised(report.report()),
        None => comparison,
    });
    PyComparison::of(py, advised)
}

/// Comparisons in words: `human`, `markdown` or `github`.
#[pyfunction]
#[pyo3(signature = (compared: "Sequence[Comparison]", format))]
pub(crate) fn comparison_words(compared: Vec<Py<PyComparison>>, format: &str) -> PyResult<String> {
    let compared = compared.iter().map(|each| each.get().compared()).collect::<PyResult<Vec<_>>>()?;
    let each = |words: fn(&Comparison) -> String| compared.iter().map(words).collect::<Vec<_>>().join("\n");
    Ok(match format {
        "markdown" => Comparison::to_markdown(&compared),
        "github" => each(Comparison::to_github),
        _ => each(ToString::to_string),
    })
}

/// The lock in a file, checked: its compiler and its programs.
#[pyfunction]
pub(crate) fn read_lock(file: &[u8]) -> PyResult<(Compiler, BTreeMap<String, String>)> {
    let lock = Lock::parse(file).map_err(|Failure { message, help, .. }| {
        PyValueError::new_err([Some(message), help].into_iter().flatten().collect::<Vec<_>>().join("; "))
    })?;
    let held = |program| serde_json::to_string(program).map_err(not_held);
    let programs = lock.programs.iter().map(|(name, program)| Ok((name.clone(), held(program)?)));
    Ok((lock.compiler, programs.collect::<PyResult<_>>()?))
}

/// The text of a lock of these programs.
#[pyfunction]
#[pyo3(signature = (compiler: "Mapping[str, str]", programs: "Mapping[str, str]"))]
pub(crate) fn lock_text(compiler: Compiler, programs: BTreeMap<String, String>) -> PyResult<String> {
    let programs = programs.into_iter().map(|(name, held)| Ok((name, parsed(&held)?)));
    Ok(Lock::new(compiler, programs.collect::<PyResult<_>>()?).to_string())
}
