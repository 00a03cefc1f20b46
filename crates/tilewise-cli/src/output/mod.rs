//! Where results go: standard output for people or as JSON Lines; errors go to standard error.

pub(crate) mod file;
pub(crate) mod human;
pub(crate) mod progress;
pub(crate) mod rows;

use crate::failure::Failure;
use anstream::AutoStream;
use clap::ValueEnum;
use serde::Serialize;
use std::io::{self, BufWriter, StdoutLock, Write};

/// The output format.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    #[default]
    Human,
    /// JSON Lines: one object per item
    Json,
}

/// How a run ended; of several, the greatest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    #[default]
    Fine,
    /// The work ran and found what the user asked to flag.
    Flagged,
    /// Bad usage or bad input.
    BadInput,
}

impl Status {
    /// The exit status.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Flagged => 1,
            Self::BadInput => 2,
        }
    }
}

/// One item's JSON object as text, without a run.
pub(crate) fn json_text<T: Serialize>(input: &str, result: &Result<T, Failure>) -> serde_json::Result<String> {
    match result {
        Ok(body) => serde_json::to_string(&Item { schema: 1, input, body }),
        Err(error) => serde_json::to_string(&Item { schema: 1, input, body: Failed { error } }),
    }
}

/// The two streams of one run, and its status so far.
pub(crate) struct Output {
    format: Format,
    stdout: BufWriter<AutoStream<StdoutLock<'static>>>,
    status: Status,
}

/// The envelope of a JSON object: `schema` and the echoed input, then the verb's own fields.
#[derive(Serialize)]
struct Item<'a, T> {
    schema: u8,
    input: &'a str,
    #[serde(flatten)]
    body: T,
}

#[derive(Serialize)]
struct Failed<'a> {
    error: &'a Failure,
}

impl Output {
    /// Opens standard output for the run of one verb, and closes it with everything written.
    pub(crate) fn run(format: Format, verb: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<Status> {
        let stdout = BufWriter::with_capacity(1 << 16, AutoStream::auto(io::stdout().lock()));
        let mut output = Self { format, stdout, status: Status::Fine };
        verb(&mut output)?;
        output.stdout.flush()?;
        Ok(output.status)
    }

    /// Writes one item's result: as JSON, or for people as `human` writes it.
    pub(crate) fn item<T: Serialize>(
        &mut self,
        input: &str,
        result: Result<T, Failure>,
        human: impl FnOnce(&T, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        match (result, self.format) {
            (Ok(body), Format::Json) => self.json(input, &body),
            (Ok(body), Format::Human) => human(&body, &mut self.stdout),
            (Err(failure), format) => {
                self.raise(Status::BadInput);
                if format == Format::Json {
                    return self.json(input, &Failed { error: &failure });
                }
                self.stdout.flush()?;
                anstream::eprintln!("{}", failure.render(input));
                Ok(())
            }
        }
    }

    /// Whether people read the output.
    pub(crate) fn is_for_people(&self) -> bool {
        self.format == Format::Human
    }

    /// Writes a line to standard error.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        self.stdout.flush()?;
        anstream::eprintln!("{text}");
        Ok(())
    }

    /// Writes text that only people need.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        if self.format == Format::Human { self.stdout.write_all(text.as_bytes()) } else { Ok(()) }
    }

    /// Writes bytes that are no text, as they are.
    pub(crate) fn raw(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        self.stdout.flush()?;
        let mut raw = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write(&mut raw)?;
        raw.flush()
    }

    fn json(&mut self, input: &str, body: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.stdout, &Item { schema: 1, input, body })?;
        self.stdout.write_all(b"\n")
    }

    /// Makes the status at least this.
    pub(crate) fn raise(&mut self, status: Status) {
        self.status = self.status.max(status);
    }
}

/// What `write` writes, as text without styles.
pub(crate) fn plain(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut styled = Vec::new();
    // Writing to memory can't fail.
    let _ = write(&mut styled);
    anstream::adapter::strip_bytes(&styled).into_vec().try_into().unwrap_or_default()
}
