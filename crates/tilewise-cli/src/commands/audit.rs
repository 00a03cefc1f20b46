//! `tilewise audit`: the padding waste of compiled programs.

mod assignment;
mod copies;
mod csv;
mod events;
mod many;
mod memory_viz;
#[cfg(feature = "parquet")]
mod parquet;
mod picture;
mod programs;
mod story;
mod table;
mod trace;

use crate::{
    cli::{AuditArgs, AuditFormat},
    failure::Failure,
    output::{Output, Status, human::screen_width, plain},
};
use assignment::AssignmentReport;
use programs::{Input, Program};
use serde::{Serialize, Serializer};
use std::{
    io::{self, Write},
    path::Path,
};
use tilewise::tpu::Generation;
use tilewise_audit::{AuditOptions, Report, ReportView, ViewOptions};
use tilewise_draw::Options;

pub(crate) fn run(args: &AuditArgs, output: &mut Output) -> io::Result<()> {
    if args.format == AuditFormat::Csv {
        output.text(&csv::header())?;
    }
    let is_one_file = args.out.is_some() || matches!(args.format, AuditFormat::Trace | AuditFormat::MemoryViz);
    let (assignments, inputs) = assignment::split(programs::inputs(&args.paths));
    for (source, assignment) in &assignments {
        let most = if args.all { usize::MAX } else { Audited::LISTED };
        let report = AssignmentReport::of(assignment, source.clone(), most);
        output.item(source, Ok(report), |report, out| report.write(out))?;
    }
    if inputs.is_empty() && !assignments.is_empty() {
        return Ok(());
    }
    if is_one_file && inputs.len() > 1 {
        let failure = Failure::new("usage", format!("this output is of one program, not of {}", inputs.len()));
        return output.item("", Err::<Audited, _>(failure), |_, _| Ok(()));
    }
    // Without --all, several programs are a line each.
    let is_summary = args.format == AuditFormat::Human && inputs.len() > 1 && !args.all;
    let mut total = many::Total::default();
    if is_summary {
        output.text(&plain(|out| many::write_header(out)))?;
    }
    #[cfg(feature = "parquet")]
    let mut file = parquet::File::new()?;
    let limit = args.hbm_limit.or(args.tpu.map(Generation::hbm_bytes));
    let must_be_tpu = args.tpu.is_some() || args.fail_above.is_some();
    let audit = |input: &Result<Input, (String, Failure)>| -> Vec<(String, Result<Audited, Failure>)> {
        let input = match input {
            Ok(input) => input,
            Err((source, failure)) => return vec![(source.clone(), Err(failure.clone()))],
        };
        let options = AuditOptions::default().with_tpu(args.tpu.or(generation_in(&input.path))).with_hbm_limit(limit);
        let audited = |program: Program| {
            let mut report = tilewise_audit::audit_with(&program.module, options);
            report.warn_first(program.not_tpu().map(|message| ("not_tpu", message)));
            report.compiler_plan = input.buffer_assignment().and_then(|assignment| report.agreement(&assignment));
            Audited { source: program.source, report, all: args.all, tpu: args.tpu, limit }
        };
        let programs = programs::of(input).into_iter();
        let wanted = programs.map(|(source, program)| {
            let program = program.and_then(|program| if must_be_tpu { program.for_tpu() } else { Ok(program) });
            (source, program.map(audited))
        });
        wanted.collect()
    };
    let mut show = |source: &str, audited: Result<Audited, Failure>| {
        if let Ok(Audited { report, .. }) = &audited {
            for warning in &report.warnings {
                anstream::eprintln!("warning: {source}: {}", warning.message);
            }
            if let Some(excess) = args.fail_above.and_then(|limit| limit.excess(report.memory_space(0))) {
                anstream::eprintln!("{source}: {excess}");
                output.raise(Status::Flagged);
            }
        }
        if let (Some(path), Ok(audited)) = (&args.out, &audited) {
            let options = Options::new().with_theme(args.theme.into());
            return match picture::write(&audited.report, source, args.memory_space, audited.limit, path, &options) {
                Ok(()) => output.note(&format!("wrote {}", path.display())),
                Err(failure) => output.item(source, Err::<Audited, _>(failure), |_, _| Ok(())),
            };
        }
        match args.format {
            AuditFormat::Csv => {
                output.item(source, audited, |audited, out| csv::write(&audited.view(Audited::LISTED), out))
            }
            #[cfg(feature = "parquet")]
            AuditFormat::Parquet => match audited {
                Ok(audited) => file.add(&audited.view(Audited::LISTED)),
                Err(_) => output.item(source, audited, |_, _| Ok(())),
            },
            AuditFormat::Trace => export(source, audited, output, trace::write),
            AuditFormat::MemoryViz => export(source, audited, output, memory_viz::write),
            _ if is_summary => {
                output.item(source, audited, |audited, out| total.write_line(audited, screen_width(), out))
            }
            _ => output.item(source, audited, |audited, out| audited.write(screen_width(), out)),
        }
    };
    let size = |input: &Result<Input, _>| input.as_ref().map_or(0, Input::size);
    many::each(&inputs, size, audit, |_, programs| {
        programs.into_iter().try_for_each(|(source, audited)| show(&source, audited))
    })?;
    #[cfg(feature = "parquet")]
    if args.format == AuditFormat::Parquet {
        return output.raw(|out| file.write(out));
    }
    if is_summary { output.text(&plain(|out| total.write(out))) } else { Ok(()) }
}

/// Writes a report's plan as a file of another program's.
fn export(
    source: &str,
    audited: Result<Audited, Failure>,
    output: &mut Output,
    write: impl FnOnce(&Report, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let planned = audited.and_then(|audited| match &audited.report.plan {
        Ok(_) => Ok(audited),
        Err(error) => Err(Failure::new("no_plan", format!("{source}: no memory plan: {error}"))),
    });
    match planned {
        Ok(audited) => output.raw(|out| write(&audited.report, out)),
        Err(failure) => output.item(source, Err::<Audited, _>(failure), |_, _| Ok(())),
    }
}

/// The generation that a file's name mentions, as in `step.v6e.hlo`: a hint, where no other is given.
fn generation_in(path: &Path) -> Option<Generation> {
    path.file_name()?.to_str()?.split('.').rev().find_map(|part| part.parse().ok())
}

/// A report, where it came from, and how much of it is asked for: what `tilewise audit` prints.
#[derive(Clone, Debug)]
pub struct Audited {
    /// The file, or whatever the text came from.
    pub source: String,
    /// What the audit found.
    pub report: Report,
    /// Whether every buffer is listed, not only those with the most padding.
    pub all: bool,
    /// The generation that prices the fixes; inferred where it is not given.
    pub tpu: Option<Generation>,
    /// Bytes of the memory it should fit.
    pub limit: Option<u64>,
}

impl Audited {
    /// Without `--all`, this many buffers are listed for machines.
    const LISTED: usize = 20;

    /// The report for people, in lines of so many columns where words can be cut or wrapped.
    #[must_use]
    pub fn to_text(&self, width: usize) -> String {
        plain(|out| self.write(width, out))
    }

    fn write(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        table::write(&self.view(table::SHOWN), width, out)
    }

    /// What is shown: every buffer with `--all`, else so many of those with the most padding.
    fn view(&self, most_buffers: usize) -> ReportView<'_> {
        let most_buffers = (!self.all).then_some(most_buffers);
        self.report.view(&self.source, ViewOptions { tpu: self.tpu, hbm_limit: self.limit, most_buffers })
    }
}

impl Serialize for Audited {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.view(Self::LISTED).serialize(serializer)
    }
}
