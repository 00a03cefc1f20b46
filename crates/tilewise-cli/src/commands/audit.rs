//! `tilewise audit`: the padding waste of compiled programs.

mod dump;
mod parallel;
mod programs;

use crate::{
    cli::{AuditArgs, AuditFormat},
    commands::draw::{self, Picture},
    output::{Output, Status, file, terminal::terminal},
};
use programs::Input;
use std::{
    io::{self, Write},
    path::Path,
};
use tilewise::tpu::Generation;
use tilewise_audit::{AssignmentReport, AuditOptions, Content, Failure, Report, ViewOptions, generation_in_name};
use tilewise_draw::{MemoryPicture, Options};
#[cfg(feature = "parquet")]
use tilewise_report::export::parquet;
use tilewise_report::{
    AuditOutput, Total,
    export::{csv, memory_viz, trace},
    write_assignment,
};

pub(crate) fn run(args: &AuditArgs, output: &mut Output) -> io::Result<()> {
    if args.format == AuditFormat::Csv {
        output.text(&csv::header())?;
    }
    let is_page = args.format == AuditFormat::Html
        || args.out.as_ref().is_some_and(|path| path.extension() == Some("html".as_ref()));
    let is_one_file =
        args.out.is_some() || is_page || matches!(args.format, AuditFormat::Trace | AuditFormat::MemoryViz);
    let inputs = dump::inputs(&args.paths);
    if is_one_file && inputs.len() > 1 {
        let failure = Failure::new("usage", format!("this output is of one program, not of {}", inputs.len()));
        return output.item("", Err::<AuditOutput, _>(failure), |_, _| Ok(()));
    }
    // Without --all, several programs are a line each.
    let is_summary = args.format == AuditFormat::Human && inputs.len() > 1 && !args.all;
    let mut total = Total::default();
    if is_summary {
        output.for_people(|out| Total::write_header(out))?;
    }
    #[cfg(feature = "parquet")]
    let mut file = parquet::File::new()?;
    let limit = args.hbm_limit.or(args.tpu.map(Generation::hbm_bytes));
    let must_be_tpu = args.tpu.is_some() || args.fail_above.is_some();
    let tells_sizes_alone = matches!(args.format, AuditFormat::Human | AuditFormat::Json)
        && args.out.is_none()
        && args.fail_above.is_none();
    let audit = |input: &Result<Input, (String, Failure)>| -> Vec<(String, Result<Found, Failure>)> {
        let input = match input {
            Ok(input) => input,
            Err((source, failure)) => return vec![(source.clone(), Err(failure.clone()))],
        };
        let named = || generation_in_name(input.path.file_name()?.to_str()?);
        let options = AuditOptions::default().with_tpu(args.tpu.or_else(named)).with_hbm_limit(limit);
        let source = input.path.to_string_lossy();
        let found = |content| match content {
            Content::Program(program) => {
                if must_be_tpu {
                    program.for_tpu().map_err(|failure| failure.in_file(&input.path))?;
                }
                let (source, report) = (source.clone().into_owned(), program.audit(options));
                Ok(Found::Program(Box::new(AuditOutput { source, report, all: args.all, tpu: args.tpu, limit })))
            }
            Content::BufferAssignment(assignment) if tells_sizes_alone => {
                let most = (!args.all).then_some(ViewOptions::LISTED);
                Ok(Found::Assignment(AssignmentReport::of(&assignment, &source, most)))
            }
            _ => {
                let message = "a buffer assignment alone tells no shapes, lines or padding; give its program";
                Err(Failure::new("no_program", message).in_file(&input.path))
            }
        };
        let contents = input.contents().into_iter();
        contents.map(|content| (source.clone().into_owned(), content.and_then(found))).collect()
    };
    let mut show = |source: &str, found: Result<Found, Failure>| {
        let audited = match found {
            Ok(Found::Program(audited)) => Ok(*audited),
            Ok(Found::Assignment(report)) => {
                return output.item(source, Ok(report), |report, out| write_assignment(report, out));
            }
            Err(failure) => Err(failure),
        };
        if let Ok(AuditOutput { report, .. }) = &audited {
            for warning in &report.warnings {
                anstream::eprintln!("warning: {source}: {}", warning.message);
            }
            if let Some(excess) = args.fail_above.and_then(|limit| limit.excess(report.memory_space(0))) {
                anstream::eprintln!("{source}: {excess}");
                output.raise(Status::Flagged);
            }
        }
        if let (true, Ok(audited)) = (is_page, &audited) {
            let page = audited.to_html();
            return match &args.out {
                None => output.raw(|out| out.write_all(page.as_bytes())),
                Some(path) => match file::write(path, page.as_bytes()) {
                    Ok(()) => output.note(&format!("wrote {}", path.display())),
                    Err(error) => {
                        let failure = Failure::new("io", format!("can't write {}: {error}", path.display()));
                        output.item(source, Err::<AuditOutput, _>(failure), |_, _| Ok(()))
                    }
                },
            };
        }
        if let (Some(path), Ok(audited)) = (&args.out, &audited) {
            let options = Options::new().with_theme(args.theme.into());
            return match write_picture(audited, args.memory_space, path, &options) {
                Ok(()) => output.note(&format!("wrote {}", path.display())),
                Err(failure) => output.item(source, Err::<AuditOutput, _>(failure), |_, _| Ok(())),
            };
        }
        match args.format {
            AuditFormat::Csv => output.item(source, audited, |audited, out| csv::write(&audited.view(), out)),
            #[cfg(feature = "parquet")]
            AuditFormat::Parquet => match audited {
                Ok(audited) => file.add(&audited.view()),
                Err(_) => output.item(source, audited, |_, _| Ok(())),
            },
            AuditFormat::Trace => export(source, audited, output, trace::write),
            AuditFormat::MemoryViz => export(source, audited, output, memory_viz::write),
            _ if is_summary => {
                output.item(source, audited, |audited, out| total.write_line(audited, terminal().width, out))
            }
            _ => output.item(source, audited, |audited, out| audited.write_text(&terminal(), out)),
        }
    };
    let size = |input: &Result<Input, _>| input.as_ref().map_or(0, Input::size);
    parallel::each(&inputs, size, audit, |_, programs| {
        programs.into_iter().try_for_each(|(source, found)| show(&source, found))
    })?;
    #[cfg(feature = "parquet")]
    if args.format == AuditFormat::Parquet {
        return output.raw(|out| file.write(out));
    }
    if is_summary { output.for_people(|out| total.write(out)) } else { Ok(()) }
}

/// What was found in a file.
enum Found {
    Program(Box<AuditOutput>),
    Assignment(AssignmentReport),
}

/// Writes a report's plan as a file of another program's.
fn export(
    source: &str,
    audited: Result<AuditOutput, Failure>,
    output: &mut Output,
    write: impl FnOnce(&Report, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let planned = audited.and_then(|audited| match &audited.report.plan {
        Ok(_) => Ok(audited),
        Err(error) => Err(Failure::new("no_plan", format!("{source}: no memory plan: {error}"))),
    });
    match planned {
        Ok(audited) => output.raw(|out| write(&audited.report, out)),
        Err(failure) => output.item(source, Err::<AuditOutput, _>(failure), |_, _| Ok(())),
    }
}

/// Draws the plan of a memory space to a file, as its name says.
fn write_picture(audited: &AuditOutput, memory_space: u8, path: &Path, options: &Options) -> Result<(), Failure> {
    if let Err(error) = &audited.report.plan {
        return Err(Failure::new("no_plan", format!("{}: no memory plan to draw: {error}", audited.source)));
    }
    draw::write_picture(&Memory { picture: &audited.picture(memory_space), options }, path)
}

struct Memory<'a> {
    picture: &'a MemoryPicture<'a>,
    options: &'a Options,
}

impl Picture for Memory<'_> {
    fn svg(&self) -> String {
        self.picture.to_svg(self.options)
    }

    #[cfg(feature = "png")]
    fn png(&self, scale: f32) -> Result<Vec<u8>, tilewise_draw::Error> {
        self.picture.to_png(self.options, scale)
    }
}
