//! Where results go: standard output for people or as JSON Lines; errors go to standard error.

pub(crate) mod file;
pub(crate) mod progress;
pub(crate) mod terminal;

use anstream::{AutoStream, ColorChoice};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::{
    fmt,
    io::{self, BufWriter, StdoutLock, Write},
};
use terminal::terminal;
use tilewise::visible;
use tilewise_audit::Failure;
use tilewise_report::{JsonLine, Reader, Terminal, WriteText, failure_text, to_visible_json};

/// Writes a line for people to standard error. Control characters, such as those of a file's name, are made visible.
pub(crate) fn say(words: impl AsRef<str>) {
    anstream::eprintln!("{}", visible(words.as_ref()));
}

/// The output format.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    #[default]
    Human,
    /// JSON Lines: one object per item
    Json,
}

/// `--format`, of most verbs.
#[derive(Args)]
pub(crate) struct FormatArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: Format,
}

/// How a run ended; of several, the greatest counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    #[default]
    Fine,
    /// The work ran and found what the user asked to flag.
    Flagged,
    /// The two programs compared were made by different compilers.
    OtherCompiler,
    /// Bad usage or bad input.
    BadInput,
}

impl Status {
    /// The exit status.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Flagged => 1,
            Self::OtherCompiler => 3,
            Self::BadInput => 2,
        }
    }
}

/// The error of a batch with too many failed items: the rest isn't read.
#[derive(Debug)]
struct NoBatch;

impl std::error::Error for NoBatch {}

impl fmt::Display for NoBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {MOST_FAILED} items have no answer: the rest is not read")
    }
}

/// The two streams of one run, and its status so far.
pub(crate) struct Output {
    format: Format,
    /// Asked once: a batch has many items.
    terminal: Terminal,
    stdout: BufWriter<AutoStream<StdoutLock<'static>>>,
    status: Status,
    /// Items without an answer, less [`FAILED_FOR_ANSWER`] for each that had one.
    failed: usize,
}

/// Items without an answer after which the input counts as another kind of file, not as a batch of shapes.
const MOST_FAILED: usize = 20_000;

/// Failed items that one answer offsets: even in noise, one line in many thousands is a shape.
const FAILED_FOR_ANSWER: usize = 1000;

impl Output {
    /// Opens standard output for the run of one verb, and closes it with everything written.
    pub(crate) fn run(format: Format, verb: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<Status> {
        let stdout = io::stdout();
        // JSON has no styles to remove, and may be megabytes.
        let choice = if format == Format::Json { ColorChoice::AlwaysAnsi } else { AutoStream::choice(&stdout) };
        let stdout = BufWriter::with_capacity(1 << 16, AutoStream::new(stdout.lock(), choice));
        let mut output = Self { format, terminal: terminal(), stdout, status: Status::Fine, failed: 0 };
        match verb(&mut output) {
            Err(error) if error.get_ref().is_some_and(|error| error.is::<NoBatch>()) => {
                output.stdout.flush()?;
                say(format!("error: {error}"));
            }
            done => done?,
        }
        output.stdout.flush()?;
        Ok(output.status)
    }

    /// Writes one item's result.
    pub(crate) fn item<T: Serialize + WriteText>(&mut self, input: &str, result: Result<T, Failure>) -> io::Result<()> {
        let terminal = self.terminal;
        self.item_as(input, result, |body, out| body.write_text(&terminal, out))
    }

    /// Writes the error of an item.
    pub(crate) fn failure(&mut self, input: &str, failure: Failure) -> io::Result<()> {
        self.item_as(input, Err::<(), _>(failure), |(), _| Ok(()))
    }

    /// Writes the error of an item; in JSON with `part`, the item's meaning if a person typed it.
    pub(crate) fn refused<T: Serialize>(&mut self, input: &str, failure: &Failure, part: &T) -> io::Result<()> {
        if self.is_for_people() {
            return self.failure(input, failure.clone());
        }
        self.raise(Status::BadInput);
        to_visible_json(&mut self.stdout, &JsonLine::refused(input, failure, part))?;
        self.stdout.write_all(b"\n")
    }

    /// Writes one item's result: as JSON, or for people as `human` writes it.
    pub(crate) fn item_as<T: Serialize>(
        &mut self,
        input: &str,
        result: Result<T, Failure>,
        human: impl FnOnce(&T, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        self.failed = if result.is_ok() { self.failed.saturating_sub(FAILED_FOR_ANSWER) } else { self.failed + 1 };
        if result.is_err() {
            self.raise(Status::BadInput);
        }
        if self.failed > MOST_FAILED {
            return Err(io::Error::other(NoBatch));
        }
        match (result, self.format) {
            (result, Format::Json) => {
                to_visible_json(&mut self.stdout, &JsonLine::of_result(input, &result))?;
                self.stdout.write_all(b"\n")
            }
            (Ok(body), Format::Human) => human(&body, &mut self.stdout),
            (Err(failure), Format::Human) => {
                self.stdout.flush()?;
                anstream::eprintln!("{}", failure_text(&failure, input));
                Ok(())
            }
        }
    }

    /// Whether people read the output.
    pub(crate) fn is_for_people(&self) -> bool {
        self.format == Format::Human
    }

    /// A reader of shapes, which takes notes on its readings if people read the output.
    pub(crate) fn reader(&self) -> Reader {
        if self.is_for_people() { Reader::with_notes() } else { Reader::without_notes() }
    }

    /// Writes the notes on how an item's texts were read, then its result.
    pub(crate) fn item_read<T: Serialize + WriteText>(
        &mut self,
        input: &str,
        mut reader: Reader,
        result: Result<T, Failure>,
    ) -> io::Result<()> {
        self.notes(&mut reader)?;
        self.item(input, result)
    }

    /// Writes the notes on how texts were read to standard error.
    pub(crate) fn notes(&mut self, reader: &mut Reader) -> io::Result<()> {
        reader.take_notes().iter().try_for_each(|note| self.note(note))
    }

    /// Writes a line to standard error.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        self.stdout.flush()?;
        say(text);
        Ok(())
    }

    /// Writes text that is only for people.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        if self.format == Format::Human { self.stdout.write_all(text.as_bytes()) } else { Ok(()) }
    }

    /// Writes text; its styles are removed where the stream shows none.
    pub(crate) fn styled(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        write(&mut self.stdout)
    }

    /// Writes bytes that aren't text, unchanged.
    pub(crate) fn raw(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        self.stdout.flush()?;
        let mut raw = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        write(&mut raw)?;
        raw.flush()
    }

    /// Makes the status at least this.
    pub(crate) fn raise(&mut self, status: Status) {
        self.status = self.status.max(status);
    }
}
