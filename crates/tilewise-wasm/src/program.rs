//! Programs: from the bytes of a file to the audit that the command line prints.

use crate::{
    answer::{Answer, json, thrown},
    theme::themed,
};
use serde::Serialize;
use tilewise_audit::dump::{self, FileKind};
use tilewise_audit::{
    AssignmentReport, Audit, BufferRow, Content, Failure, Machine, Member, ReportWarning, SpaceTotal, Together,
};
use tilewise_hlo::{Document, Profile, decompressed, is_profile};
use tilewise_report::{
    AsJson, AuditOutput, ComparisonPage, JsonLine, LISTED, ProgramSet, ReportView, Summary, in_span,
};
use wasm_bindgen::prelude::*;

/// A WebAssembly memory has 4 GiB, and a program's text is there twice while it is read.
const DECOMPRESSION_LIMIT: u64 = 1 << 30;

/// The [name](FileKind::as_str) of the kind of a file or a pasted text, by its first bytes, decompressed.
#[wasm_bindgen]
#[must_use]
pub fn recognise(head: &[u8]) -> String {
    FileKind::of(head).as_str().to_owned()
}

/// Selects the final programs and their possible plans from a dump's files, given by path and by the name of their
/// kind, as JSON: `programs[]` {`file`, `plans[]`} by their indices, and for the other files `left[]` [what, how many].
///
/// # Errors
/// None known.
#[wasm_bindgen]
pub fn select(paths: Vec<String>, kinds: Vec<String>) -> Answer {
    let kinds = kinds.iter().map(|kind| FileKind::named(kind).unwrap_or(FileKind::Other));
    json(&AsJson(&dump::select(&paths.into_iter().zip(kinds).collect::<Vec<_>>())))
}

/// The machines that programs are compiled for, as JSON: `tpu:v5e` and other generations, `gpu:h100`, `cpu`, …
///
/// # Errors
/// None known.
#[wasm_bindgen]
pub fn machines() -> Answer {
    json(&Machine::all().map(|machine| machine.to_string()).collect::<Vec<_>>())
}

/// The compiler's own plan, given without its program, as the line that `tilewise audit --format json` prints.
///
/// # Errors
/// Those of [`Document::decode`], and bytes that aren't a plan.
#[wasm_bindgen]
pub fn assignment(name: &str, bytes: Vec<u8>) -> Answer {
    let plan = Document::decode(bytes, DECOMPRESSION_LIMIT).map_err(Failure::from).and_then(dump::plan_in);
    let plan = plan.and_then(|plan| plan.ok_or_else(|| Failure::new("no_plan", "no compiler's plan is in this file")));
    let plan = plan.map_err(|failure| thrown(&failure))?;
    json(&JsonLine::of(name, AsJson(&AssignmentReport::of(&plan, name, None))))
}

/// The memory of programs that are loaded on one device at once, as JSON: `headline`, the picture as `svg`, and
/// `together` as `tilewise audit --together --json` prints it.
///
/// # Errors
/// Programs of different machines, and one without a plan.
#[wasm_bindgen]
pub fn together(programs: Vec<Program>, theme: &str) -> Answer {
    #[derive(Serialize)]
    struct Shown<'a> {
        headline: String,
        svg: String,
        #[serde(flatten)]
        set: &'a ProgramSet,
    }
    let members: Vec<Member<'_>> = programs.iter().map(|program| Member::new(&program.0.report)).collect();
    let limit = programs.first().and_then(|program| program.0.report.machine.program_bytes());
    let set = Together::of(&members, limit, None).map_err(|failure| thrown(&failure))?;
    let set = ProgramSet(set);
    let svg = set.picture().to_svg(&themed(theme));
    json(&Shown { headline: set.verdict_in_words(), svg, set: &set })
}

/// A program with its audit.
#[wasm_bindgen]
pub struct Program(AuditOutput);

/// The programs in a file: text, proto or profile, gzip or not. Unreadable ones are left out; if all are, the last
/// error is thrown. `machine` is the one of [`machines`] that will run them, if known.
///
/// # Errors
/// Those of [`Document::decode`] and [`Content::of`], such as `truncated` for a text that is cut off, and a program of another machine.
#[wasm_bindgen]
pub fn programs(name: &str, bytes: Vec<u8>, machine: Option<String>) -> Result<Vec<Program>, JsValue> {
    read(name, bytes, machine).map_err(|failure| thrown(&failure))
}

fn read(file: &str, bytes: Vec<u8>, machine: Option<String>) -> Result<Vec<Program>, Failure> {
    let machine: Option<Machine> = machine.and_then(|machine| machine.parse().ok());
    let bytes = decompressed(bytes, DECOMPRESSION_LIMIT)?;
    if !is_profile(&bytes) {
        let found = programs_of(file, Document::decode(bytes, DECOMPRESSION_LIMIT)?, machine);
        return whole(found);
    }
    let profile = Profile::decode(bytes, DECOMPRESSION_LIMIT)?;
    let programs = profile.iter().flat_map(|profile| &profile.programs);
    // As if the profile were a folder.
    let found = programs.flat_map(|program| match program.document() {
        Ok(document) => programs_of(&format!("{file}/{}", program.name()), document, machine),
        Err(error) => vec![Err(error.into())],
    });
    whole(found.collect())
}

/// The readable programs, or the last error if there are none.
fn whole(found: Vec<Result<Program, Failure>>) -> Result<Vec<Program>, Failure> {
    let (programs, mut failures): (Vec<_>, Vec<_>) = found.into_iter().partition(Result::is_ok);
    match failures.pop().filter(|_| programs.is_empty()) {
        Some(Err(failure)) => Err(failure),
        _ => Ok(programs.into_iter().flatten().collect()),
    }
}

/// The programs in a document, audited.
fn programs_of(name: &str, document: Document, machine: Option<Machine>) -> Vec<Result<Program, Failure>> {
    let program = |content: Result<Content, Failure>| {
        let Content::Program(program) = content? else {
            let message = "a buffer assignment has no shapes, source lines or padding; give its program, too";
            return Err(Failure::new("no_program", message));
        };
        machine.map_or(Ok(()), |machine| program.for_machine(machine))?;
        let report = Audit::new(&program).machine(machine).source(name).run();
        // A program of a TPU that its text doesn't show is judged all the same, for the TPU that is assumed.
        let is_judged = !report.is_machine_shown() && report.plan().is_ok() && !report.memory_bounds.is_assumed;
        let assumed = report.machine.program_bytes().filter(|_| is_judged);
        let report = if assumed.is_some() { report.with_limit(assumed) } else { report };
        Ok(Program(AuditOutput { all: true, ..AuditOutput::new(report) }))
    };
    Content::of(document).into_iter().map(program).collect()
}

#[wasm_bindgen]
impl Program {
    /// Takes the compiler's own plan from another file of the dump, text or proto; false if it isn't of this program.
    #[wasm_bindgen(js_name = takePlan)]
    pub fn take_plan(&mut self, bytes: Vec<u8>) -> bool {
        let plan = Document::decode(bytes, DECOMPRESSION_LIMIT).map_err(Failure::from).and_then(dump::plan_in);
        plan.ok().flatten().is_some_and(|plan| self.0.report.take_plan(&plan))
    }

    /// The line that `tilewise audit --format json` prints, with `all` that of `--all`.
    ///
    /// # Errors
    /// None known.
    pub fn json(&self, all: bool) -> Answer {
        let report = &self.0.report;
        if report.is_machine_shown() {
            return json(&JsonLine::of(&report.source, AsJson(&self.view(all))));
        }
        // The command line doesn't judge for a TPU that is assumed.
        let output = AuditOutput { all: true, ..AuditOutput::new(report.clone().with_limit(None)) };
        let view = ReportView { most_buffers: (!all).then_some(LISTED), ..output.view() };
        json(&JsonLine::of(&output.report.source, AsJson(&view)))
    }

    /// The part that is shown at once, as JSON: `report`, the part of [`json`](Self::json) that needs no further plan,
    /// and `summary`, [that part](Summary::at_once) of the [summary](Self::summary).
    ///
    /// # Errors
    /// None known.
    pub fn story(&self) -> Answer {
        #[derive(Serialize)]
        struct Story<'a> {
            report: Numbers<'a>,
            summary: Summary<'a>,
        }
        #[derive(Serialize)]
        struct Numbers<'a> {
            input: &'a str,
            module: &'a str,
            machine: String,
            memory_spaces: Vec<AsJson<'a, SpaceTotal>>,
            buffers: Vec<AsJson<'a, BufferRow>>,
            at_most_bytes: u64,
            hbm_limit_bytes: Option<u64>,
            warnings: Vec<AsJson<'a, ReportWarning>>,
        }
        let report = &self.0.report;
        let buffers: Vec<BufferRow> = self.view(false).buffers().collect();
        let numbers = Numbers {
            input: &report.source,
            module: &report.module_name,
            machine: report.machine.to_string(),
            memory_spaces: report.memory_spaces.iter().map(AsJson).collect(),
            buffers: buffers.iter().map(AsJson).collect(),
            at_most_bytes: report.memory_bounds.at_most_bytes,
            hbm_limit_bytes: report.available_bytes(),
            warnings: report.warnings.iter().map(AsJson).collect(),
        };
        json(&Story { report: numbers, summary: Summary::at_once(report) })
    }

    /// A title that differs from others of its file: its name in a profile, else its module's.
    #[must_use]
    pub fn title(&self, file: &str) -> String {
        let within = self.0.report.source.strip_prefix(file).and_then(|name| name.strip_prefix('/'));
        within.unwrap_or(&self.0.report.module_name).to_owned()
    }

    /// The most bytes that it holds, for comparison with others.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a number of JavaScript's")]
    pub fn holds(&self) -> f64 {
        self.0.report.memory_bounds.at_most_bytes as f64
    }

    /// The Python calls that led to an instruction, the innermost first, as JSON: `file`, `line`, `function` of each.
    ///
    /// # Errors
    /// None known.
    #[wasm_bindgen(js_name = callStack)]
    pub fn call_stack(&self, instruction: &str) -> Answer {
        json(&self.0.report.call_stack(instruction).iter().map(AsJson).collect::<Vec<_>>())
    }

    /// The instructions within three steps of one, as JSON; `null` for one that doesn't run.
    ///
    /// # Errors
    /// None known.
    pub fn neighbours(&self, instruction: &str) -> Answer {
        json(&self.0.report.neighbours(instruction, 3).as_ref().map(AsJson))
    }

    /// The events in a memory space between two moments, both included, as JSON: the sentences of [`in_span`].
    ///
    /// # Errors
    /// None known.
    pub fn span(&self, memory_space: u8, first: usize, last: usize) -> Answer {
        let timeline = self.0.report.timeline(memory_space);
        json(&timeline.map_or_else(Vec::new, |timeline| in_span(&timeline, &timeline.span(first, last))))
    }

    /// Its HLO text, printed if it is a proto.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.report.text().to_owned()
    }

    /// The timeline of a memory space over the program's order, as JSON; `null` without a plan.
    ///
    /// # Errors
    /// None known.
    pub fn timeline(&self, memory_space: u8) -> Answer {
        json(&self.0.report.timeline(memory_space).as_ref().map(AsJson))
    }

    /// Its kernels, their operands and results, as the report's JSON has them, as JSON.
    ///
    /// # Errors
    /// None known.
    pub fn kernels(&self) -> Answer {
        let kernels = self.0.report.kernels();
        json(&kernels.iter().map(AsJson).collect::<Vec<_>>())
    }

    /// The differences from the earlier program, as JSON: a [`ComparisonPage`].
    ///
    /// # Errors
    /// None known.
    pub fn compare(&self, before: &Program) -> Answer {
        json(&ComparisonPage::of(&before.0.report, &self.0.report))
    }

    /// Its summary, as JSON: a [`Summary`].
    ///
    /// # Errors
    /// None known.
    pub fn summary(&self) -> Answer {
        json(&self.0.summary())
    }
}

impl Program {
    fn view(&self, all: bool) -> ReportView<'_> {
        ReportView { most_buffers: (!all).then_some(LISTED), ..self.0.view() }
    }
}
