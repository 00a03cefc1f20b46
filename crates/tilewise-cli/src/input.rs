//! Items from arguments, or from standard input one a line.

use crate::{output::Output, values::parse_size};
use std::{
    fs::File,
    io::{self, BufRead, Read},
    path::Path,
};
use tilewise_audit::Failure;
use tilewise_hlo::ErrorKind;
use tilewise_report::{LinesOfItem, Pair};

/// Calls `each` with the two arguments as a line, or, if the first is `-`, with every line of standard input.
pub(crate) fn each_pair(
    first: &str,
    second: Option<&str>,
    output: &mut Output,
    mut each: impl FnMut(&mut Output, &str, Result<Pair, Failure>) -> io::Result<()>,
) -> io::Result<()> {
    let mut read = |output: &mut Output, line: &str, readable: Result<(), Failure>| {
        let mut reader = output.reader();
        let pair = readable.and_then(|()| Pair::read(line, &mut reader));
        output.notes(&mut reader)?;
        each(output, line, pair)
    };
    match (first, second) {
        ("-", None) => each_item(&["-".to_owned()], |line, readable| read(output, line, readable)),
        (_, Some(second)) => read(output, &format!("{first}\t{second}"), Ok(())),
        (_, None) => {
            let missing = Failure::new("malformed_batch_line", "a second shape is needed, or `-` for lines of two");
            read(output, first, Err(missing))
        }
    }
}

/// Longer lines are errors and aren't kept in memory.
const LONGEST_LINE: u64 = 4 << 20;

/// A line longer than this ends the input: a stream without line ends may be endless.
const ENDLESS_LINE: u64 = 256 << 20;

/// Calls `each` with every argument; `-` stands for the lines of standard input.
///
/// Lines are never trimmed. A line that isn't text, or is too long, is an error of its own. Operations, protos and
/// equations over several lines are one item each ([`LinesOfItem`]); a proto's bytes are read as `proto:` and hex.
pub(crate) fn each_item(
    arguments: &[String],
    mut each: impl FnMut(&str, Result<(), Failure>) -> io::Result<()>,
) -> io::Result<()> {
    for argument in arguments {
        if argument != "-" {
            each(argument, Ok(()))?;
            continue;
        }
        let mut lines = Lines { input: io::stdin().lock(), next: None, is_endless: false };
        if lines.is_message()? {
            let (text, readable) = lines.message()?;
            each(&text, readable)?;
            continue;
        }
        while let Some(line) = lines.next()? {
            if !line.is_good() {
                each(&line.text, line.readable)?;
                continue;
            }
            let mut item = LinesOfItem::new(line.text);
            while item.may_go_on() && item.text().len() as u64 <= LONGEST_LINE {
                let next = lines.next()?;
                let Some(line) = &next else { break };
                if !line.is_good() || !item.push(&line.text) {
                    lines.next = next;
                    break;
                }
            }
            each(item.text(), Ok(()))?;
        }
    }
    Ok(())
}

/// A line of standard input; an unreadable one is shortened or decoded lossily, to be shown.
struct Line {
    text: String,
    readable: Result<(), Failure>,
}

impl Line {
    fn is_good(&self) -> bool {
        self.readable.is_ok() && self.text.len() as u64 <= LONGEST_LINE
    }
}

struct Lines<R> {
    input: R,
    /// A line that was read ahead.
    next: Option<Line>,
    /// Whether the last line was longer than [`ENDLESS_LINE`]: nothing more is read.
    is_endless: bool,
}

impl<R: BufRead> Lines<R> {
    /// Whether the input is a proto, not text: a `ShapeProto` begins with its field 2, a `LayoutProto` with the length
    /// of its field 1.
    fn is_message(&mut self) -> io::Result<bool> {
        let bytes = self.input.fill_buf()?;
        Ok(bytes.first() == Some(&0x10)
            || bytes.first() == Some(&0x0a) && bytes.get(1).is_some_and(|length| *length < 9))
    }

    /// The bytes of a proto in hex.
    fn message(&mut self) -> io::Result<(String, Result<(), Failure>)> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(LONGEST_LINE + 1).read_to_end(&mut bytes)?;
        let is_short = bytes.len() as u64 <= LONGEST_LINE;
        let shown = if is_short { &bytes[..] } else { &bytes[..80] };
        let hex: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        let too_long = || Failure::new("line_too_long", "the proto is longer than 4 MiB");
        Ok((format!("proto:{hex}"), if is_short { Ok(()) } else { Err(too_long()) }))
    }

    fn next(&mut self) -> io::Result<Option<Line>> {
        if let Some(line) = self.next.take() {
            return Ok(Some(line));
        }
        let mut line = Vec::new();
        if self.is_endless {
            return Ok(None);
        }
        if self.input.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let complete = line.pop_if(|last| *last == b'\n').is_some();
        if !complete && line.len() as u64 > LONGEST_LINE {
            self.is_endless = !skip_line(&mut self.input)?;
            let text = String::from_utf8_lossy(&line[..80]).into_owned();
            return Ok(Some(Line {
                text,
                readable: Err(Failure::new("line_too_long", "the line is longer than 4 MiB")),
            }));
        }
        Ok(Some(match String::from_utf8(line) {
            Ok(text) => Line { text, readable: Ok(()) },
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let failure = Failure::new("not_utf8", "the line is not UTF-8 text").at(at..at);
                Line { text: String::from_utf8_lossy(error.as_bytes()).into_owned(), readable: Err(failure) }
            }
        }))
    }
}

/// Skips to the end of the line; returns `false` if that isn't within [`ENDLESS_LINE`] bytes.
fn skip_line(lines: &mut impl BufRead) -> io::Result<bool> {
    let mut skipped = 0_u64;
    while skipped < ENDLESS_LINE {
        let buffer = lines.fill_buf()?;
        let length = buffer.len();
        match buffer.iter().position(|&byte| byte == b'\n') {
            Some(at) => {
                lines.consume(at + 1);
                return Ok(true);
            }
            None if length == 0 => return Ok(true),
            None => lines.consume(length),
        }
        skipped += length as u64;
    }
    Ok(false)
}

/// The bytes of a file, at most `limit`; `-` is standard input.
pub(crate) fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let read = if path.as_os_str() == "-" {
        tilewise_hlo::read_bytes(io::stdin().lock(), limit)
    } else {
        let file =
            File::open(path).map_err(|error| Failure::new("io", format!("can't be read: {error}")).in_file(path))?;
        tilewise_hlo::read_bytes(file, limit)
    };
    read.map_err(|error| match error.kind() {
        ErrorKind::TooLarge => Failure::from(error).with_help("`--max-input SIZE` reads more").in_file(path),
        _ => Failure::from(error).in_file(path),
    })
}

/// `--max-input`, of verbs that read programs, messages and logs.
#[derive(clap::Args)]
pub(crate) struct InputArgs {
    /// Maximum bytes that are read of an input, decompressed
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub(crate) max_input: u64,
}
