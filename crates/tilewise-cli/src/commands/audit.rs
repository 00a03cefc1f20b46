//! `tilewise audit`: the padding waste of compiled programs.

mod json;
mod table;

use crate::{
    cli::AuditArgs,
    failure::Failure,
    output::{Output, Status},
};
use std::{
    io::{self, Read},
    path::Path,
};
use tilewise_audit::{BufferRow, Report};
use tilewise_hlo::Module;

pub(crate) fn run(args: &AuditArgs, output: &mut Output) -> io::Result<()> {
    for path in &args.paths {
        let source = path.to_string_lossy();
        let report = read(path).and_then(|text| Ok(tilewise_audit::audit(&Module::parse(text)?)));
        if let Ok(report) = &report {
            for warning in &report.warnings {
                anstream::eprintln!("warning: {source}: {}", warning.message);
            }
            if args.fail_above.is_some_and(|limit| limit.is_exceeded_by(report.memory_space(0))) {
                output.raise(Status::Flagged);
            }
        }
        let audited = report.map(|report| Audited { source: source.clone().into_owned(), report, all: args.all });
        output.item(&source, audited, Audited::write)?;
    }
    Ok(())
}

/// A report, where it came from, and how much of it is asked for.
struct Audited {
    source: String,
    report: Report,
    all: bool,
}

impl Audited {
    /// Without `--all`, this many buffers are listed.
    const LISTED: usize = 20;

    /// The buffers to list: all in the order of the text, or those with the most padding.
    fn listed(&self, at_most: usize) -> Vec<&BufferRow> {
        if self.all {
            self.report.buffers.iter().collect()
        } else {
            self.report.largest_padding().take(at_most).collect()
        }
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    if path.as_os_str() != "-" {
        return Ok(tilewise_hlo::read(path)?);
    }
    let mut bytes = Vec::new();
    let failed = |error| Failure::new("io", format!("can't read standard input: {error}"));
    io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
    Ok(tilewise_hlo::decode(bytes, tilewise_hlo::DECOMPRESSION_LIMIT)?)
}
