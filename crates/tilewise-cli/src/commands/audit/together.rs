//! `tilewise audit --together A B C`: programs that are loaded on one device at once.

use super::{Args, AuditFormat, Found, Limits, Request, dump};
use crate::{
    commands::draw,
    output::{Output, Status, say},
};
use std::{
    io::{self, Write},
    path::Path,
};
use tilewise_audit::{Failure, Machine, Member, Together};
use tilewise_draw::Options;
use tilewise_report::{AuditOutput, ProgramSet, Verdict, memory_of};

pub(super) fn run(args: &Args, output: &mut Output) -> io::Result<()> {
    match summed(args) {
        Ok(together) => {
            let input = args.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ");
            if let Some(limit) = together.limit.filter(|_| together.fits() == Some(false)) {
                let missing = together.total_bytes.saturating_sub(limit);
                let verdict = Verdict::DoesNotFit { missing }.sentence(&memory_of(together.machine, limit));
                say(format!("{input}: {verdict}"));
                output.raise(Status::Flagged);
            }
            let set = ProgramSet(together);
            match &args.out {
                Some(path) => match write(&set, args, path) {
                    Ok(()) => output.note(&format!("wrote {}", path.display())),
                    Err(failure) => output.failure(&input, failure),
                },
                None if args.format == AuditFormat::Html => io::stdout().write_all(set.to_html().as_bytes()),
                None => output.item(&input, Ok(set)),
            }
        }
        Err((source, failure)) => output.failure(&source, failure),
    }
}

/// Writes the picture or the page.
fn write(set: &ProgramSet, args: &Args, path: &Path) -> Result<(), Failure> {
    if path.extension().is_some_and(|end| end == "html") {
        return draw::write(path, set.to_html().as_bytes());
    }
    draw::write_budget(&set.picture(), &Options::new().with_theme(args.theme.into()), path)
}

fn summed(args: &Args) -> Result<Together, (String, Failure)> {
    let usage = |message: &str| Err((String::new(), Failure::new("usage", message)));
    if !matches!(args.format, AuditFormat::Human | AuditFormat::Json | AuditFormat::Html) {
        return usage(
            "programs together are printed for people, as json or html, or written to FILE.svg, .png or .html",
        );
    }
    if args.judges_programs() || args.all || args.time {
        return usage("--all, --time, --fail-above and --fail-on-copies are of one program, not of programs together");
    }
    let request = Request { args, tpu: args.tpu, takes_plans: false };
    let mut programs: Vec<Box<AuditOutput>> = Vec::new();
    for input in dump::inputs(&args.paths, args.module.as_deref(), Limits::NONE) {
        let (source, found) = request.answer(&input);
        for found in found {
            match found {
                Ok(Found::Program(program)) => programs.push(program),
                Ok(Found::Plan(_)) => {}
                Err(failure) => return Err((source, failure)),
            }
        }
    }
    let members: Vec<Member<'_>> = programs.iter().map(|program| Member::new(&program.report)).collect();
    let of_machine = || args.machine.or(args.tpu.map(Machine::Tpu)).and_then(Machine::program_bytes);
    let limit = args.hbm_limit.or_else(of_machine);
    Together::of(&members, limit, args.pages.as_ref()).map_err(|failure| (String::new(), failure))
}
