//! Programs: from the bytes of a file to the audit that the command line prints.

use crate::answer::{Answer, json, thrown};
use serde::Serialize;
use tilewise::tpu::Generation;
use tilewise_audit::{AuditOptions, Content, Failure, JsonLine, Report, ViewOptions, generation_in_name};
use tilewise_hlo::{BufferAssignment, Document};
use wasm_bindgen::prelude::*;

/// A WebAssembly memory has 4 GiB, and a program's text is there twice while it is read.
const DECOMPRESSION_LIMIT: u64 = 1 << 30;

/// What a file or a pasted text is, by its first bytes, decompressed: `program`, `assignment` (a compiler's own plan),
/// `report` (a JSON of ours), else `live ranges`, `values of assignments`, and if it is no message, `memory-usage
/// reports`, `part` (of a program), `shape` or `other files`.
#[wasm_bindgen]
#[must_use]
pub fn recognise(head: &[u8]) -> String {
    if tilewise_hlo::is_proto(head) {
        return "program".to_owned();
    }
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let kind = match text {
        _ if BufferAssignment::is_text(text) => "assignment",
        _ if text.starts_with("HloLiveRange") => "live ranges",
        _ if text.starts_with("Total bytes used:") => "values of assignments",
        _ if text.starts_with('{') => "report",
        _ if text.lines().any(|line| line.starts_with("HloModule ")) => "program",
        _ if text.contains("used_by_n_values") => "memory-usage reports",
        _ if text.lines().any(|line| line.starts_with("ENTRY ")) => "part",
        _ if text.trim_end().lines().count() <= 2 && text.contains(['[', '(']) => "shape",
        _ => "other files",
    };
    kind.to_owned()
}

/// A program with its audit.
#[wasm_bindgen]
pub struct Program {
    name: String,
    report: Report,
    options: ViewOptions,
}

/// The programs in a file: its text or proto, gzip or not, and of a dump the compiler's own plan of the same program.
/// What could not be read of several is left out; if nothing could, that is the error.
///
/// # Errors
/// Those of [`Content::of`], such as `truncated` for a text that is cut off.
#[wasm_bindgen]
pub fn programs(
    name: &str,
    bytes: Vec<u8>,
    plan: Option<Vec<u8>>,
    tpu: Option<String>,
    limit: Option<u64>,
) -> Result<Vec<Program>, JsValue> {
    read(name, bytes, plan, tpu, limit).map_err(|failure| thrown(&failure))
}

fn read(
    name: &str,
    bytes: Vec<u8>,
    plan: Option<Vec<u8>>,
    tpu: Option<String>,
    limit: Option<u64>,
) -> Result<Vec<Program>, Failure> {
    let mut document = Document::decode(bytes, DECOMPRESSION_LIMIT)?;
    if let Some(plan) = plan {
        let Document { text, buffer_assignment, .. } = Document::decode(plan, DECOMPRESSION_LIMIT)?;
        let is_text = BufferAssignment::is_text(&text);
        document.buffer_assignment = if is_text { Some(BufferAssignment::parse(&text)?) } else { buffer_assignment };
    }
    let tpu: Option<Generation> = tpu.and_then(|tpu| tpu.parse().ok());
    let limit = limit.or(tpu.map(Generation::hbm_bytes));
    let generation = tpu.or_else(|| generation_in_name(name.rsplit('/').next()?));
    let options = AuditOptions::default().with_tpu(generation).with_hbm_limit(limit);
    let mut programs = Vec::new();
    let mut failure = None;
    for content in Content::of(document) {
        match content {
            Ok(Content::Program(program)) => {
                let report = program.audit(options);
                let options = ViewOptions { tpu, hbm_limit: limit, most_buffers: None };
                programs.push(Program { name: name.to_owned(), report, options });
            }
            Ok(_) => {
                let message = "a buffer assignment alone tells no shapes, lines or padding; give its program, too";
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
    /// The line that `tilewise audit --format json` prints, with `all` that of `--all`.
    ///
    /// # Errors
    /// None that is known.
    pub fn json(&self, all: bool) -> Answer {
        let options = ViewOptions { most_buffers: (!all).then_some(ViewOptions::LISTED), ..self.options };
        json(&JsonLine::of(&self.name, self.report.view(&self.name, options)))
    }

    /// What lies in a memory space over the program's order, as JSON; `null` without a plan.
    ///
    /// # Errors
    /// None that is known.
    pub fn timeline(&self, memory_space: u8) -> Answer {
        json(&self.report.timeline(memory_space))
    }

    /// Beside the report: how much memory there is of each kind, and what the program is compiled for.
    ///
    /// # Errors
    /// None that is known.
    pub fn facts(&self) -> Answer {
        #[derive(Serialize)]
        struct Facts {
            generation: &'static str,
            hbm_bytes: u64,
        }
        let generation = self.report.generation;
        json(&Facts { generation: generation.name(), hbm_bytes: generation.hbm_bytes() })
    }
}
