//! `tilewise audit AFTER --against BEFORE`: a program compared with another one or with its plan lock.

use super::{Args, AuditFormat, Found, Request, dump, judge, sink::written};
use crate::{
    input::read_bytes,
    output::{Output, Status},
};
use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};
use tilewise::visible;
use tilewise_audit::{Failure, Report};
use tilewise_report::{AuditOutput, ComparedProgram, Comparison, ComparisonPage, Lock, Outcome};

pub(super) fn run(before: &Path, args: &Args, output: &mut Output) -> io::Result<()> {
    match compared(before, args) {
        Ok((comparison, after, page)) => {
            judge(&after, args, false, output);
            output.raise(match comparison.verdict {
                Outcome::Worse => Status::Flagged,
                Outcome::OtherCompiler => Status::OtherCompiler,
                _ => Status::Fine,
            });
            match (page, &args.out) {
                (Some(page), Some(path)) => written(path, page.as_bytes(), &after.report.source, output),
                (Some(page), None) => output.raw(|out| out.write_all(page.as_bytes())),
                (None, _) => show(comparison, args.format, output),
            }
        }
        Err((source, failure)) => output.failure(&source, failure),
    }
}

fn show(comparison: Comparison, format: AuditFormat, output: &mut Output) -> io::Result<()> {
    let text = match format {
        AuditFormat::Markdown => Comparison::to_markdown(&[comparison]),
        AuditFormat::Github => comparison.to_github(),
        _ => {
            let source = comparison.after.source.clone();
            return output.item(&source, Ok(comparison));
        }
    };
    output.raw(|out| writeln!(out, "{text}"))
}

type Compared = (Comparison, Box<AuditOutput>, Option<String>);

/// The comparison, the audit of the program after the change, and the page if requested.
fn compared(before: &Path, args: &Args) -> Result<Compared, (String, Failure)> {
    let usage = |message: String| Err((String::new(), Failure::new("usage", message)));
    let is_page = args.out.as_deref().is_some_and(|out| out.extension().is_some_and(|end| end == "html"))
        || args.format == AuditFormat::Html;
    let formats = [AuditFormat::Human, AuditFormat::Json, AuditFormat::Markdown, AuditFormat::Github];
    if !is_page && (args.out.is_some() || !formats.contains(&args.format)) {
        return usage(
            "a comparison is printed for people, as json, markdown, github or html, or written to FILE.html".into(),
        );
    }
    if before.to_str().is_some_and(|before| before.starts_with("libtpu=")) {
        return usage("another libtpu compiles FILE.py:FACTORY; a text is compiled already".into());
    }
    let [after] = &args.paths[..] else {
        return usage(format!("one program is compared with another, not {}", args.paths.len()));
    };
    let allowed = args.comparing.allowed();
    let mut request = Request { args, tpu: args.tpu, takes_plans: false };
    if let Some(lock) = lock(before)? {
        if is_page {
            return usage("a page is of two programs; a lock has only what is compared".into());
        }
        // If all programs of the lock are for one TPU, a program whose text names none is for it, too.
        let tpus: BTreeSet<_> = lock.programs.values().filter_map(|program| program.tpu.as_deref()).collect();
        if let (None, [tpu]) = (request.tpu, &Vec::from_iter(tpus)[..]) {
            request.tpu = tpu.parse().ok();
        }
        let after = program(&request, after)?;
        let is = ComparedProgram::of(&after.report).kept(repository(before).as_deref());
        let name = args.comparing.name.as_deref().unwrap_or_else(|| name(&after.report));
        let Some(was) = lock.program(name) else {
            let message = format!("no program `{name}` in {}, only {}", before.display(), listed(&lock));
            return Err((before.display().to_string(), Failure::new("no_program", message)));
        };
        let comparison = Comparison::of(name, was, is, allowed).advised(&after.report);
        return Ok((comparison, after, None));
    }
    let (before, after) = (program(&request, before)?, program(&request, after)?);
    let mut comparison = Comparison::of_reports(&before.report, &after.report, allowed).advised(&after.report);
    if let Some(name) = &args.comparing.name {
        comparison.program.clone_from(name);
    }
    let page = is_page.then(|| ComparisonPage::of(&before.report, &after.report).to_html());
    Ok((comparison, after, page))
}

fn name(report: &Report) -> &str {
    report.module_name.strip_prefix("jit_").unwrap_or(&report.module_name)
}

/// The first programs of a lock, in words.
fn listed(lock: &Lock) -> String {
    const SHOWN: usize = 10;
    let names: Vec<_> = lock.programs.keys().take(SHOWN).map(|name| visible(name)).collect();
    match lock.programs.len() {
        0 => "none".to_owned(),
        1..=SHOWN => names.join(", "),
        count => format!("{} and {} more", names.join(", "), count - SHOWN),
    }
}

/// The most bytes of a lock, which has about a KiB per program.
const LONGEST_LOCK: u64 = 64 << 20;

/// The lock in a file; `None` for another file, and for a stream that can be read only once.
fn lock(path: &Path) -> Result<Option<Lock>, (String, Failure)> {
    let is_named = path.extension().is_some_and(|end| end == "lock");
    if !is_named && !path.is_file() {
        return Ok(None);
    }
    let failed = |failure: Failure| (path.display().to_string(), failure);
    match read_bytes(path, LONGEST_LOCK) {
        Ok(file) if is_named || Lock::is_lock(&file) => Lock::parse(&file).map(Some).map_err(failed),
        Err(failure) if is_named => Err(failed(failure)),
        _ => Ok(None),
    }
}

/// The repository of a file, or else its folder. Files in a lock are relative to it.
fn repository(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let is_root = |folder: &&Path| [".git", ".hg", "pyproject.toml"].iter().any(|name| folder.join(name).exists());
    path.ancestors().skip(1).find(is_root).or(path.parent()).map(Path::to_path_buf)
}

/// The only program in a file; an error if there are more or none.
fn program(request: &Request<'_>, path: &Path) -> Result<Box<AuditOutput>, (String, Failure)> {
    let source = path.display().to_string();
    let mut programs = dump::inputs(&[path.to_owned()], request.args.module.as_deref(), &request.args.limits())
        .iter()
        .flat_map(|input| request.answer(input).1)
        .collect::<Vec<_>>();
    match (programs.pop(), programs.len()) {
        (Some(Ok(Found::Program(program))), 0) => Ok(program),
        (Some(Err(failure)), 0) => Err((source, failure)),
        (_, others) => {
            let message =
                format!("one program is compared with another: here are {}", if others > 0 { others + 1 } else { 0 });
            Err((source, Failure::new("usage", message)))
        }
    }
}
