//! `audit_text`, which makes a `Report` of HLO text.

use crate::{
    errors::{Class, Error, Result},
    report::PyReport,
    threads::interruptible,
    tpu::{generation, machine_named},
    whole::whole,
};
use pyo3::{prelude::*, types::PyString};
use std::sync::Arc;
use tilewise::tpu::Libtpu;
use tilewise_audit::{Audit, Machine, dump};
use tilewise_hlo::BufferAssignment;
use tilewise_report::AuditOutput;

/// Audits HLO text, with the compiler's own buffer assignment if given.
#[pyfunction]
#[pyo3(signature = (text, source, tpu: "Tpu | None" = None, hbm_limit: "int | None" = None, machine = None,
                    libtpu = None, buffer_assignment = None))]
#[expect(clippy::too_many_arguments, reason = "each is one in Python")]
pub(crate) fn audit_text<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyString>,
    source: String,
    tpu: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = whole)] hbm_limit: Option<u64>,
    machine: Option<&str>,
    libtpu: Option<&str>,
    buffer_assignment: Option<String>,
) -> Result<Bound<'py, PyReport>> {
    let libtpu = libtpu.map(str::parse::<Libtpu>).transpose()?;
    let machine = machine.map(machine_named).transpose()?;
    let tpu = tpu.map(generation).transpose()?.or(machine.and_then(Machine::generation));
    let machine = machine.filter(|machine| machine.generation().is_none());
    // Lone surrogates in names and comments are replaced: they are no reason to refuse a program.
    let text = text.to_string_lossy().into_owned();
    let audited = interruptible(py, move || {
        let mut program = tilewise_audit::Program::parse(text)?;
        // A plan in another version's syntax is ignored, as `audit FOLDER` does. The compiler that this process started
        // has finished it.
        let assignment = buffer_assignment.as_deref().and_then(|text| BufferAssignment::parse(text).ok());
        let assignment = assignment.map(BufferAssignment::known_whole);
        program.buffer_assignment = assignment.filter(|assignment| dump::is_plan_of(assignment, &program.module));
        if tpu.is_some() && !program.module.has_tiles() {
            return Err(not_a_tpu_program(program.module.is_scheduled()));
        }
        if let Some(machine) = machine {
            program.for_machine(machine)?;
        }
        let asked = Audit::new(&program).machine(machine.or(tpu.map(Machine::Tpu))).source(&source).libtpu(libtpu);
        let report = hbm_limit.map_or(asked, |limit| asked.limit(limit)).run();
        Ok((Arc::new(AuditOutput::new(report)), program.module, buffer_assignment))
    })?;
    let (audited, module, buffer_assignment) = audited?;
    Ok(PyReport::of(py, audited, module, buffer_assignment)?)
}

/// The error of a program whose arrays have no tiles: its sizes aren't those on a TPU.
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
