//! Programs: from the bytes of a file to the audit that the command line prints.

use crate::answer::{Answer, json, thrown};
use tilewise_audit::dump::{self, FileKind};
use tilewise_audit::{AuditOptions, Content, Failure, JsonLine, Machine, Report, ReportView, ViewOptions};
use tilewise_hlo::Document;
use tilewise_report::{Comparison, Summary};
use wasm_bindgen::prelude::*;

/// A WebAssembly memory has 4 GiB, and a program's text is there twice while it is read.
const DECOMPRESSION_LIMIT: u64 = 1 << 30;

/// What a file or a pasted text is, by its first bytes, decompressed: the [name](FileKind::as_str) of its kind.
#[wasm_bindgen]
#[must_use]
pub fn recognise(head: &[u8]) -> String {
    FileKind::of(head).as_str().to_owned()
}

/// Of a dump's files, by path and by the name of their kind, the final programs and what may be their plans, and what is
/// left, as JSON: `programs[]` {`file`, `plans[]`} by their indices, `left[]` [what, how many].
///
/// # Errors
/// None that is known.
#[wasm_bindgen]
pub fn select(paths: Vec<String>, kinds: Vec<String>) -> Answer {
    let kinds = kinds.iter().map(|kind| FileKind::named(kind).unwrap_or(FileKind::Other));
    json(&dump::select(&paths.into_iter().zip(kinds).collect::<Vec<_>>()))
}

/// The machines that programs are compiled for, as JSON: `tpu:v5e` and other generations, `gpu:h100`, `cpu`, …
///
/// # Errors
/// None that is known.
#[wasm_bindgen]
pub fn machines() -> Answer {
    json(&Machine::all().map(|machine| machine.to_string()).collect::<Vec<_>>())
}

/// A program with its audit.
#[wasm_bindgen]
pub struct Program {
    name: String,
    report: Report,
    options: ViewOptions,
}

/// The programs in a file: text, proto or profile, gzip or not. What could not be read of several is left out; if nothing
/// could, that is the error. `machine` is that of [`machines`] which is to run them, where it is known.
///
/// # Errors
/// Those of [`Content::read`], such as `truncated` for a text that is cut off, and a program of another machine.
#[wasm_bindgen]
pub fn programs(name: &str, bytes: Vec<u8>, machine: Option<String>) -> Result<Vec<Program>, JsValue> {
    read(name, bytes, machine).map_err(|failure| thrown(&failure))
}

fn read(name: &str, bytes: Vec<u8>, machine: Option<String>) -> Result<Vec<Program>, Failure> {
    let machine: Option<Machine> = machine.and_then(|machine| machine.parse().ok());
    let options = AuditOptions::of_file(name, machine, None);
    let mut programs = Vec::new();
    let mut failure = None;
    for content in Content::read(bytes) {
        match content {
            Ok(Content::Program(program)) => {
                if let Some(Err(error)) = machine.map(|machine| program.for_machine(machine)) {
                    failure = Some(error);
                    continue;
                }
                let report = program.audit(options);
                let options = ViewOptions { hbm_limit: options.hbm_limit, most_buffers: None };
                programs.push(Program { name: name.to_owned(), report, options });
            }
            Ok(_) => {
                let message = "a buffer assignment has no shapes, source lines or padding; give its program, too";
                failure = Some(Failure::new("no_program", message));
            }
            Err(error) => failure = Some(error),
        }
    }
    match failure.filter(|_| programs.is_empty()) {
        Some(failure) => Err(failure),
        None => Ok(programs),
    }
}

#[wasm_bindgen]
impl Program {
    /// Takes the compiler's own plan from another file of the dump, text or proto, if it is of this program. Whether it
    /// is.
    #[wasm_bindgen(js_name = takePlan)]
    pub fn take_plan(&mut self, bytes: Vec<u8>) -> bool {
        let plan = Document::decode(bytes, DECOMPRESSION_LIMIT).map_err(Failure::from).and_then(dump::plan_in);
        plan.ok().flatten().is_some_and(|plan| self.report.take_plan(&plan))
    }

    /// The line that `tilewise audit --format json` prints, with `all` that of `--all`.
    ///
    /// # Errors
    /// None that is known.
    pub fn json(&self, all: bool) -> Answer {
        let options = ViewOptions { most_buffers: (!all).then_some(ViewOptions::LISTED), ..self.options };
        json(&JsonLine::of(&self.name, self.report.view(&self.name, options)))
    }

    /// Its HLO text; of a proto, as it is printed.
    #[must_use]
    pub fn text(&self) -> String {
        self.report.text().to_owned()
    }

    /// What lies in a memory space over the program's order, as JSON; `null` without a plan.
    ///
    /// # Errors
    /// None that is known.
    pub fn timeline(&self, memory_space: u8) -> Answer {
        json(&self.report.timeline(memory_space))
    }

    /// What differs from the program as it was before, as JSON: a [`Comparison`].
    ///
    /// # Errors
    /// None that is known.
    pub fn compare(&self, before: &Program) -> Answer {
        json(&Comparison::of(&before.view(), &self.view()))
    }

    /// What is said of it first, as JSON: a [`Summary`].
    ///
    /// # Errors
    /// None that is known.
    pub fn summary(&self) -> Answer {
        json(&Summary::of(&self.view()))
    }
}

impl Program {
    fn view(&self) -> ReportView<'_> {
        self.report.view(&self.name, self.options)
    }
}
