//! `Report.to_json` and `Report.from_json`: the JSON, with the program, from which the report is restored.

use crate::{
    audit::audit_text,
    errors::{Class, Error, Result},
    report::PyReport,
};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyString};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tilewise::tpu::Generation;
use tilewise_report::{AsJson, JsonLine, ReportView};

/// The inputs of an audit.
#[derive(Serialize, Deserialize)]
struct Program<'a> {
    text: Cow<'a, str>,
    tpu: Option<Cow<'a, str>>,
    hbm_limit: Option<u64>,
    #[serde(default)]
    machine: Option<String>,
    #[serde(default)]
    libtpu: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buffer_assignment: Option<Cow<'a, str>>,
}

#[pymethods]
impl PyReport {
    /// The report as the JSON object that `tilewise audit --all --format json` prints; `docs/json.md` lists its fields.
    ///
    /// Args:
    ///     program: whether to add the field `program`, {`text`, `tpu`, `hbm_limit`, `machine`, `libtpu`,
    ///         `buffer_assignment`}, from which `from_json` restores the report.
    ///
    /// Examples:
    ///     >>> import json
    ///     >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
    ///     >>> json.loads(report.to_json())["buffers"][0]["padding_bytes"]
    ///     185600000
    #[pyo3(signature = (*, program = true))]
    fn to_json(&self, py: Python<'_>, program: bool) -> PyResult<String> {
        #[derive(Serialize)]
        struct WithProgram<'a> {
            #[serde(flatten)]
            report: AsJson<'a, ReportView<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            program: Option<Program<'a>>,
        }
        let (text, source, tpu, hbm_limit, machine) = self.made_of();
        let program = program.then(|| Program {
            text: text.into(),
            tpu: tpu.map(|tpu| Generation::name(tpu).into()),
            hbm_limit,
            machine: machine.map(|machine| machine.to_string()),
            libtpu: self.report().libtpu.map(|libtpu| libtpu.to_string()),
            buffer_assignment: self.buffer_assignment().map(Cow::from),
        });
        let view = ReportView { report: self.report(), source, most_buffers: None, quotes: None };
        let line = JsonLine::of(source, WithProgram { report: AsJson(&view), program });
        py.detach(|| serde_json::to_string(&line)).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The report that `to_json` wrote: the program in it is audited again, so that nothing is lost.
    ///
    /// Raises:
    ///     HloError: the text is not such JSON, or was written without its program.
    ///
    /// Examples:
    ///     >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
    ///     >>> Report.from_json(report.to_json()) == report
    ///     True
    #[staticmethod]
    #[pyo3(signature = (json, /), text_signature = "(json, /)")]
    fn from_json<'py>(py: Python<'py>, json: &str) -> Result<Bound<'py, Self>> {
        #[derive(Deserialize)]
        struct Item {
            source: String,
            program: Option<Program<'static>>,
        }
        let item: Item = serde_json::from_str(json)
            .map_err(|error| Error::new(Class::Hlo, "not_json", format!("this is not a report in JSON: {error}")))?;
        let Some(Program { text, tpu, hbm_limit, machine, libtpu, buffer_assignment }) = item.program else {
            let message = "this JSON does not hold the program that the report is of";
            return Err(Error::new(Class::Hlo, "no_program", message).with_help("`Report.to_json` writes it"));
        };
        let tpu = tpu.map(|name| PyString::new(py, &name).into_any());
        let text = PyString::new(py, &text);
        let (libtpu, buffer_assignment) = (libtpu.as_deref(), buffer_assignment.map(Cow::into_owned));
        audit_text(py, &text, item.source, tpu.as_ref(), hbm_limit, machine.as_deref(), libtpu, buffer_assignment)
    }
}
