//! `sum_together`: programs that are loaded at once, passed to Python as JSON, as text and as a page.

use crate::{errors::Result, report::PyReport, travel::not_held, whole::whole};
use pyo3::prelude::*;
use tilewise_audit::{Member, PagesOf, Together};
use tilewise_report::{AsJson, ProgramSet, WriteText};

/// The width of the text, in columns.
const WIDTH: usize = 120;

/// The sum of programs, each with its name and the bytes of its code: its JSON, its text and its page.
#[pyfunction]
#[pyo3(signature = (programs: "Sequence[tuple[Report, str | None, int | None]]", limit: "int | None", pages))]
pub(crate) fn sum_together(
    py: Python<'_>,
    programs: Vec<(Py<PyReport>, Option<String>, Option<u64>)>,
    #[pyo3(from_py_with = whole)] limit: Option<u64>,
    pages: Option<&str>,
) -> Result<(String, String, String)> {
    let pages = pages.map(str::parse::<PagesOf>).transpose()?;
    let members = programs.iter().map(|(report, name, code_bytes)| Member {
        report: report.get().report(),
        name: name.as_deref(),
        code_bytes: *code_bytes,
    });
    let members: Vec<Member<'_>> = members.collect();
    let together = py.detach(|| Together::of(&members, limit, pages.as_ref()))?;
    let json = serde_json::to_string(&AsJson(&together)).map_err(not_held)?;
    let set = ProgramSet(together);
    Ok((json, set.to_text(WIDTH), set.to_html()))
}
