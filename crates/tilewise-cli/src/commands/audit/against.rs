//! `tilewise audit AFTER --against BEFORE -o PAGE.html`: two programs on one page.

use super::{Args, Found, Limits, Request, dump, judge, sink::written};
use crate::output::Output;
use std::{io, path::Path};
use tilewise_audit::Failure;
use tilewise_report::{AuditOutput, Comparison};

pub(super) fn run(before: &Path, args: &Args, output: &mut Output) -> io::Result<()> {
    let [after] = &args.paths[..] else {
        let message = format!("one program is compared with another, not {}", args.paths.len());
        return output.failure("", Failure::new("usage", message));
    };
    let request = Request { args, takes_plans: false };
    let programs = program(&request, before).and_then(|before| Ok((before, program(&request, after)?)));
    let (before, after) = match programs {
        Ok(programs) => programs,
        Err((source, failure)) => return output.failure(&source, failure),
    };
    judge(&after, args, output);
    let page = Comparison::of(&before.report, &after.report).to_html();
    match &args.out {
        Some(path) => written(path, page.as_bytes(), &after.report.source, output),
        None => output.raw(|out| out.write_all(page.as_bytes())),
    }
}

/// The one program in a file.
fn program(request: &Request<'_>, path: &Path) -> Result<AuditOutput, (String, Failure)> {
    let source = path.display().to_string();
    let mut programs = dump::inputs(&[path.to_owned()], request.args.module.as_deref(), Limits::NONE)
        .iter()
        .flat_map(|input| request.answer(input).1)
        .collect::<Vec<_>>();
    match (programs.pop(), programs.len()) {
        (Some(Ok(Found::Program(program))), 0) => Ok(*program),
        (Some(Err(failure)), 0) => Err((source, failure)),
        (_, others) => {
            let message =
                format!("one program is compared with another: here are {}", if others > 0 { others + 1 } else { 0 });
            Err((source, Failure::new("usage", message)))
        }
    }
}
