//! Comparisons and plan locks, passed to and from Python as JSON.

use crate::{
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

/// The differences between two reports, under this name or the second's. `Report.diff` calls it.
#[pyfunction]
#[pyo3(signature = (before, after, name, *, tolerance, exact, any_compiler))]
pub(crate) fn compare_reports(
    py: Python<'_>,
    before: &Bound<'_, PyReport>,
    after: &Bound<'_, PyReport>,
    name: Option<String>,
    tolerance: f64,
    exact: bool,
    any_compiler: bool,
) -> PyResult<String> {
    let (before, after) = (before.get(), after.get());
    let allowed = Allowed { tolerance, exact, any_compiler };
    let compare = || {
        let mut compared = Comparison::of_reports(before.report(), after.report(), allowed).advised(after.report());
        compared.program = name.unwrap_or(compared.program);
        serde_json::to_string(&compared)
    };
    py.detach(compare).map_err(not_held)
}

/// The differences between two programs, each as `compared_program` returns it; `report` is the second's.
#[pyfunction]
#[pyo3(signature = (name, before, after, report, *, tolerance, exact, any_compiler))]
#[expect(clippy::too_many_arguments, reason = "named ones")]
pub(crate) fn compare_programs(
    py: Python<'_>,
    name: &str,
    before: &str,
    after: &str,
    report: Option<&Bound<'_, PyReport>>,
    tolerance: f64,
    exact: bool,
    any_compiler: bool,
) -> PyResult<String> {
    let allowed = Allowed { tolerance, exact, any_compiler };
    let comparison = Comparison::of(name, parsed(before)?, parsed(after)?, allowed);
    let report = report.map(|report| report.get());
    let advised = py.detach(|| match report {
        Some(report) => comparison.advised(report.report()),
        None => comparison,
    });
    serde_json::to_string(&advised).map_err(not_held)
}

/// Comparisons in words: `human`, `markdown` or `github`.
#[pyfunction]
#[pyo3(signature = (held: "Sequence[str]", format))]
pub(crate) fn comparison_words(held: Vec<String>, format: &str) -> PyResult<String> {
    let compared = held.iter().map(|held| parsed::<Comparison>(held)).collect::<PyResult<Vec<_>>>()?;
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
