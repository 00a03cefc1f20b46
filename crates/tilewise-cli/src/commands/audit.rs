//! `tilewise audit`: what compiled programs hold at their peak.

mod dump;
mod parallel;
mod programs;
mod sink;

use crate::{
    cli::AuditArgs,
    output::{Output, Status},
};
use programs::Input;
use sink::Sink;
use std::io;
use tilewise::tpu::Generation;
use tilewise_audit::{AssignmentReport, AuditOptions, Content, Failure, ViewOptions, generation_in_name};
use tilewise_report::AuditOutput;

pub(crate) fn run(args: &AuditArgs, output: &mut Output) -> io::Result<()> {
    let inputs = dump::inputs(&args.paths);
    let mut sink = match Sink::of(args, inputs.len()) {
        Ok(sink) => sink,
        Err(failure) => return output.failure("", failure),
    };
    let request = Request { args, takes_plans: sink.takes_plans() && args.fail_above.is_none() };
    sink.begin(output)?;
    parallel::each(
        &inputs,
        |input| input.as_ref().map_or(0, Input::size),
        |input| request.answer(input),
        |_, (source, found)| found.into_iter().try_for_each(|found| show(&source, found, args, &mut sink, output)),
    )?;
    sink.end(output)
}

/// What was found in a file.
enum Found {
    Program(Box<AuditOutput>),
    /// A plan without its program.
    Plan(AssignmentReport),
}

/// What is asked of each file.
struct Request<'a> {
    args: &'a AuditArgs,
    /// Whether there is something to say of a plan without its program.
    takes_plans: bool,
}

impl Request<'_> {
    /// The file's name, and each program in it.
    fn answer(&self, input: &Result<Input, (String, Failure)>) -> (String, Vec<Result<Found, Failure>>) {
        match input {
            Ok(input) => {
                let contents = input.contents().into_iter();
                let found = contents.map(|content| content.and_then(|content| self.audit(content, input)));
                (input.path.to_string_lossy().into_owned(), found.collect())
            }
            Err((source, failure)) => (source.clone(), vec![Err(failure.clone())]),
        }
    }

    fn audit(&self, content: Content, input: &Input) -> Result<Found, Failure> {
        let &AuditArgs { tpu, all, hbm_limit, fail_above, .. } = self.args;
        let source = input.path.to_string_lossy();
        match content {
            Content::Program(program) => {
                if tpu.is_some() || fail_above.is_some() {
                    program.for_tpu().map_err(|failure| failure.in_file(&input.path))?;
                }
                let named = || generation_in_name(input.path.file_name()?.to_str()?);
                let limit = hbm_limit.or(tpu.map(Generation::hbm_bytes));
                let options = AuditOptions::default().with_tpu(tpu.or_else(named)).with_hbm_limit(limit);
                let report = program.audit(options);
                Ok(Found::Program(Box::new(AuditOutput { source: source.into_owned(), report, all, tpu, limit })))
            }
            Content::BufferAssignment(assignment) if self.takes_plans => {
                let most = (!all).then_some(ViewOptions::LISTED);
                Ok(Found::Plan(AssignmentReport::of(&assignment, &source, most)))
            }
            _ => {
                let message = "a buffer assignment alone tells no shapes, lines or padding; give its program";
                Err(Failure::new("no_program", message).in_file(&input.path))
            }
        }
    }
}

/// Shows what was found, with what is to be said of it on standard error.
fn show(
    source: &str,
    found: Result<Found, Failure>,
    args: &AuditArgs,
    sink: &mut Sink<'_>,
    output: &mut Output,
) -> io::Result<()> {
    let audited = match found {
        Ok(Found::Program(audited)) => audited,
        Ok(Found::Plan(report)) => return output.item(source, Ok(report)),
        Err(failure) => return output.failure(source, failure),
    };
    for warning in &audited.report.warnings {
        anstream::eprintln!("warning: {source}: {}", warning.message);
    }
    if let Some(excess) = args.fail_above.and_then(|limit| limit.excess(audited.report.memory_space(0))) {
        anstream::eprintln!("{source}: {excess}");
        output.raise(Status::Flagged);
    }
    sink.write(&audited, output)
}
