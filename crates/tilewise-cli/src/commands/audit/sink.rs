//! The destination and the format of audits, chosen once from the arguments.

use super::{Args, AuditFormat};
use crate::{
    commands::draw,
    output::{Output, file, terminal::terminal},
};
use std::{
    borrow::Cow,
    io::{self, Write},
    path::Path,
};
use tilewise_audit::Failure;
use tilewise_draw::Options;
#[cfg(feature = "parquet")]
use tilewise_report::Parquet;
use tilewise_report::{
    AuditOutput, Csv, Exporter, Github, Html, Json, Markdown, MemoryViz, Picture, ProgramLines, Sarif, Text, Trace,
};

/// A format and its destination: standard output or a file.
pub(super) struct Sink<'a> {
    exporter: Box<dyn Exporter>,
    destination: Destination<'a>,
    /// Whether the output has a headline for each program, with its verdict.
    has_headlines: bool,
}

enum Destination<'a> {
    /// Standard output, for people or as JSON: errors, and plans without programs, have lines of their own there.
    Items,
    /// Standard output, bytes as they are.
    Raw,
    File(&'a Path),
}

impl<'a> Sink<'a> {
    /// The sink that the arguments choose, for these files.
    pub(super) fn of(args: &'a Args, sources: &[Cow<'_, str>]) -> Result<Self, Failure> {
        let inputs = sources.len();
        let is_page = args.out.as_ref().is_some_and(|path| path.extension() == Some("html".as_ref()));
        let destination = match &args.out {
            Some(path) => Destination::File(path),
            None if matches!(args.format, AuditFormat::Human | AuditFormat::Json) => Destination::Items,
            None => Destination::Raw,
        };
        let exporter: Box<dyn Exporter> = match (args.format, &args.out) {
            (AuditFormat::Html, _) => Box::new(Html),
            (_, Some(_)) if is_page => Box::new(Html),
            (_, Some(path)) => Box::new(Picture {
                memory_space: args.memory_space,
                options: Options::new().with_theme(args.theme.into()),
                format: draw::picture_format(path, draw::SCALE)?,
            }),
            // Without --all, several programs are a line each.
            (AuditFormat::Human, None) if inputs > 1 && !args.all => {
                Box::new(ProgramLines::new(&terminal(), sources.iter().map(|source| &**source)))
            }
            (AuditFormat::Human, None) => Box::new(Text(terminal())),
            (AuditFormat::Json, None) => Box::new(Json),
            (AuditFormat::Csv, None) => Box::new(Csv),
            #[cfg(feature = "parquet")]
            (AuditFormat::Parquet, None) => {
                Box::new(Parquet::new().map_err(|error| Failure::new("io", error.to_string()))?)
            }
            (AuditFormat::Markdown, None) => Box::new(Markdown),
            (AuditFormat::Sarif, None) => Box::<Sarif>::default(),
            (AuditFormat::Github, None) => Box::new(Github),
            (AuditFormat::Trace, None) => Box::new(Trace),
            (AuditFormat::MemoryViz, None) => Box::new(MemoryViz),
        };
        let is_of_one = args.out.is_some()
            || matches!(args.format, AuditFormat::Html | AuditFormat::Trace | AuditFormat::MemoryViz);
        if is_of_one && inputs > 1 {
            return Err(Failure::new("usage", format!("this output is of one program, not of {inputs}")));
        }
        let is_text = matches!((args.format, &args.out), (AuditFormat::Human, None));
        let has_headlines = is_text && !args.time && (inputs <= 1 || args.all);
        Ok(Self { exporter, destination, has_headlines })
    }

    /// Whether the output has a headline for each program, with its verdict.
    pub(super) fn has_headlines(&self) -> bool {
        self.has_headlines
    }

    /// Whether a plan without its program can be shown.
    pub(super) fn takes_plans(&self) -> bool {
        matches!(self.destination, Destination::Items)
    }

    pub(super) fn begin(&mut self, output: &mut Output) -> io::Result<()> {
        self.run(output, |exporter, out| exporter.begin(out))
    }

    pub(super) fn end(&mut self, output: &mut Output) -> io::Result<()> {
        self.run(output, |exporter, out| exporter.end(out))
    }

    /// Writes an audit, or the failure if the format doesn't accept it.
    pub(super) fn write(&mut self, audited: &AuditOutput, output: &mut Output) -> io::Result<()> {
        if let Err(failure) = self.exporter.accepts(audited) {
            return output.failure(&audited.report.source, failure);
        }
        let Destination::File(path) = self.destination else {
            return self.run(output, |exporter, out| exporter.write(audited, out));
        };
        let mut bytes = Vec::new();
        self.exporter.write(audited, &mut bytes)?;
        written(path, &bytes, &audited.report.source, output)
    }

    fn run(
        &mut self,
        output: &mut Output,
        write: impl FnOnce(&mut dyn Exporter, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let exporter = &mut *self.exporter;
        match self.destination {
            Destination::Items => output.styled(|out| write(exporter, out)),
            Destination::Raw => output.raw(|out| write(exporter, out)),
            Destination::File(_) => Ok(()),
        }
    }
}

/// Writes a file and a note with its path; a failure names `source`.
pub(super) fn written(path: &Path, bytes: &[u8], source: &str, output: &mut Output) -> io::Result<()> {
    match file::write(path, bytes) {
        Ok(()) => output.note(&format!("wrote {}", path.display())),
        Err(error) => {
            let failure = Failure::new("io", format!("can't write {}: {error}", path.display()));
            output.failure(source, failure)
        }
    }
}
