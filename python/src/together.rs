//! `Together`, programs that are loaded at once, with its `LoadedProgram`, `ResidentArray`, `PageArrays` and
//! `Alternative`.

use crate::{
    errors::Result,
    report::PyReport,
    travel::{Reduced, not_held, parsed, reduced},
    typed::{SetChange, Tuple, Typed},
    whole::whole,
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use tilewise_audit::{Member, PagesOf, Together};
use tilewise_report::{AsJson, ProgramSet, WriteText};

/// The width of the text, in columns.
const WIDTH: usize = 120;

/// The memory that a program adds to its set; sizes are in bytes, on one device.
///
/// Examples:
///     >>> server.programs[0]
///     <LoadedProgram tanh: frees 8388608 bytes>
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "LoadedProgram")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyLoadedProgram {
    /// Its name in the set.
    name: String,
    /// The module's name.
    module: String,
    /// Bytes of its arguments, as `memory_analysis()` has them.
    argument_bytes: u64,
    /// Bytes of its results, likewise.
    output_bytes: u64,
    /// Bytes of the results that lie in donated arguments, likewise.
    alias_bytes: u64,
    /// Bytes of its temporaries, likewise.
    temporary_bytes: u64,
    /// The bytes of its temporaries that are unused at its peak.
    fragmentation_bytes: u64,
    /// Its constants.
    constant_bytes: u64,
    /// Its code; `None` where it is known from its text alone.
    code_bytes: Option<u64>,
    /// Inputs and new results that a call of it holds beside the resident arrays.
    call_bytes: u64,
    /// New results that could take the place of arrays it is given.
    undonated_bytes: u64,
    /// By how much its temporaries and results grow with a page of the cache.
    bytes_per_page: u64,
    /// Whether its temporaries, inputs and new results together are the largest.
    decides: bool,
    /// The bytes that the set saves without it.
    freed_bytes: u64,
    /// How many pages more fit without it; `None` without pages, a limit or other programs.
    costs_pages: Option<u64>,
}

#[pymethods]
impl PyLoadedProgram {
    fn __repr__(&self) -> String {
        format!("<LoadedProgram {}: frees {} bytes>", self.name, self.freed_bytes)
    }
}

/// An array that is held whichever program runs.
///
/// Examples:
///     >>> server.residents[0]
///     <ResidentArray : f32[1024,1024]{1,0:T(8,128)} in 4194304 bytes>
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "ResidentArray")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyResidentArray {
    /// The argument's name, such as `params['w']`.
    name: String,
    /// Its shape and layout.
    shape: String,
    /// Its size.
    bytes: u64,
    /// The padding in it.
    padding_bytes: u64,
    /// Names of the programs that have it.
    programs: Tuple<String>,
    /// Those of them that it is donated to.
    donated_to: Tuple<String>,
    /// Whether it is a part of the cache.
    is_pages: bool,
    /// Whether other programs have it in another layout: it is held in each.
    is_laid_out_otherwise: bool,
}

#[pymethods]
impl PyResidentArray {
    fn __repr__(&self) -> String {
        format!("<ResidentArray {}: {} in {} bytes>", self.name, self.shape, self.bytes)
    }
}

/// The pages of a set's cache.
///
/// Examples:
///     >>> print(server.pages)
///     None
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "PageArrays")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyPageArrays {
    /// How many arrays there are, such as one a layer.
    arrays: usize,
    /// The name of the first.
    name: String,
    /// The shape of the first.
    shape: String,
    /// Which of its dimensions counts pages.
    dimension: usize,
    /// How many pages the programs were compiled for.
    count: u64,
    /// The bytes of a page in all arrays.
    page_bytes: u64,
    /// The padding in them.
    page_padding_bytes: u64,
    /// How many pages fit; `None` without a limit.
    fitting: Option<u64>,
    /// The program that then holds the most beside the resident arrays.
    decided_by: Option<String>,
}

#[pymethods]
impl PyPageArrays {
    fn __repr__(&self) -> String {
        let Self { name, count, page_bytes, .. } = self;
        format!("<PageArrays {name}: {count} pages of {page_bytes} bytes>")
    }
}

/// A change of the set. `str` gives it in words.
///
/// Examples:
///     >>> server.options[0].kind, server.options[0].freed_bytes
///     ('donate', 4194304)
#[pyclass(frozen, eq, hash, get_all, module = "tilewise", name = "Alternative")]
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyAlternative {
    /// `'donate'` arrays that it returns again, `'drop'` a program, `'narrow'` pages to int8, or pages in a `'layout'`
    /// without padding.
    kind: Typed<String, SetChange>,
    /// The program that it is about.
    program: Option<String>,
    /// The change in words.
    sentence: String,
    /// The bytes that the set saves.
    freed_bytes: u64,
    /// Whether it may be less.
    is_bound: bool,
    /// How many pages fit then.
    pages: Option<u64>,
}

#[pymethods]
impl PyAlternative {
    fn __str__(&self) -> &str {
        &self.sentence
    }

    fn __repr__(&self) -> String {
        format!("<Alternative {}: {}, frees {} bytes>", self.kind.0, self.sentence, self.freed_bytes)
    }
}

/// The memory of programs that are loaded on one device at once; it prints as text.
///
/// Examples:
///     >>> server.resident_bytes
///     4194304
#[pyclass(frozen, eq, hash, module = "tilewise", name = "Together")]
#[derive(PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct PyTogether {
    /// The machine that all are compiled for, such as `tpu:v6e`.
    #[pyo3(get)]
    machine: String,
    /// Arrays that are held whichever program runs, each once.
    #[pyo3(get)]
    resident_bytes: u64,
    /// Temporaries of the largest program, which the runtime reserves while it is loaded.
    #[pyo3(get)]
    largest_temporaries: u64,
    /// Inputs and new results of the largest call.
    #[pyo3(get)]
    call_bytes: u64,
    /// Constants of all programs.
    #[pyo3(get)]
    constant_bytes: u64,
    /// Code of all programs; `None` where one's isn't known.
    #[pyo3(get)]
    code_bytes: Option<u64>,
    /// All of it.
    #[pyo3(get)]
    total_bytes: u64,
    /// The HBM that there is.
    #[pyo3(get)]
    limit_bytes: Option<u64>,
    /// Whether it fits; `None` without a limit, or where code decides that isn't known.
    #[pyo3(get)]
    fits: Option<bool>,
    /// The part of each program.
    #[pyo3(get)]
    programs: Tuple<PyLoadedProgram>,
    /// The arrays that are held whichever program runs.
    #[pyo3(get)]
    residents: Tuple<PyResidentArray>,
    /// The pages of the cache; `None` if no argument is one.
    #[pyo3(get)]
    pages: Option<PyPageArrays>,
    /// Changes that free memory or make room for pages, the most first.
    #[pyo3(get)]
    options: Tuple<PyAlternative>,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    page: String,
}

impl PyTogether {
    /// The set of this JSON, with its text and its page.
    pub(crate) fn of((json, text, page): (String, String, String)) -> PyResult<Self> {
        Ok(Self { text, page, ..parsed(&json)? })
    }
}

#[pymethods]
impl PyTogether {
    /// All of it as JSON: the `Together` of docs/json.md.
    ///
    /// Examples:
    ///     >>> import json
    ///     >>> json.loads(server.to_json())["machine"]
    ///     'tpu:v5e'
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(self).map_err(not_held)
    }

    /// A page in one file: a bar of the held memory, each program beneath, and all of the printed text.
    ///
    /// Examples:
    ///     >>> server.to_html()[:15]
    ///     '<!doctype html>'
    fn to_html(&self) -> &str {
        &self.page
    }

    fn _repr_html_(&self) -> &str {
        &self.page
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Together of {} programs: {} bytes>", self.programs.0.len(), self.total_bytes)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let held = slf.get();
        reduced::<Self>(slf.py(), &(held.to_json()?, &held.text, &held.page))
    }
}

/// The memory of programs, each with its name and the bytes of its code, when all are loaded.
#[pyfunction]
#[pyo3(signature = (programs: "Sequence[tuple[Report, str | None, int | None]]", limit: "int | None", pages))]
pub(crate) fn sum_together(
    py: Python<'_>,
    programs: Vec<(Py<PyReport>, Option<String>, Option<u64>)>,
    #[pyo3(from_py_with = whole)] limit: Option<u64>,
    pages: Option<&str>,
) -> Result<PyTogether> {
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
    Ok(PyTogether::of((json, set.to_text(WIDTH), set.to_html()))?)
}
