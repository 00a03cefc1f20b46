//! `audit_text`, which makes a `Report` of HLO text.

use crate::{
    errors::{Class, Error, Result},
    report::PyReport,
    threads::interruptible,
    tpu::{generation, machine_named},
};
use pyo3::{prelude::*, types::PyString};
use std::sync::Arc;
use tilewise::tpu::Libtpu;
use tilewise_audit::{Audit, Machine};
use tilewise_report::AuditOutput;

/// Audits HLO text.
#[pyfunction]
#[pyo3(signature = (text, source, tpu = None, hbm_limit = None, machine = None, libtpu = None))]
pub(crate) fn audit_text<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyString>,
    source: String,
    tpu: Option<&Bound<'py, PyAny>>,
    hbm_limit: Option<u64>,
    machine: Option<&str>,
    libtpu: Option<&str>,
) -> Result<Bound<'py, PyReport>> {
    let libtpu = libtpu.map(str::parse::<Libtpu>).transpose()?;
    let machine = machine.map(machine_named).transpose()?;
    let tpu = tpu.map(generation).transpose()?.or(machine.and_then(Machine::generation));
    let machine = machine.filter(|machine| machine.generation().is_none());
    // Lone surrogates in names and comments are replaced: they are no reason to refuse a program.
    let text = text.to_string_lossy().into_owned();
    let audited = interruptible(py, move || {
        let program = tilewise_audit::Program::parse(text)?;
        if tpu.is_some() && !program.module.has_tiles() {
            return Err(not_a_tpu_program(program.module.is_scheduled()));
        }
        if let Some(machine) = machine {
            program.for_machine(machine)?;
        }
        let asked = Audit::new(&program).machine(machine.or(tpu.map(Machine::Tpu))).source(&source).libtpu(libtpu);
        let report = hbm_limit.map_or(asked, |limit| asked.limit(limit)).run();
        Ok((Arc::new(AuditOutput::new(report)), program.module))
    })?;
    let (audited, module) = audited?;
    Ok(PyReport::of(py, audited, module)?)
}

/// A program whose arrays lie in no tiles: what is said of it is not what a TPU would hold.
fn not_a_tpu_program(is_scheduled: bool) -> Error {
    let state = if is_scheduled {
        "it was compiled for a CPU or a GPU"
    } else {
        "it is only lowered, or was compiled for another machine"
    };
    let message = format!("not compiled for a TPU: no array lies in tiles, so {state}, and sizes on a TPU differ");
    Error::new(Class::NotATpuProgram, "not_tpu", message)
        .with_help("`audit(f, *args, tpu=…)` compiles the function for that TPU, and needs none")
}
