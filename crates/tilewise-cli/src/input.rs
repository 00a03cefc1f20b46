//! Items from arguments, or from standard input one a line.

use crate::output::Output;
use std::{
    fs,
    io::{self, BufRead, Read},
    path::Path,
};
use tilewise_audit::Failure;
use tilewise_report::Pair;

/// Calls `each` with the two arguments as a line, or with every line of standard input where the first is `-`.
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

/// Longer lines are errors, and are not kept in memory.
const LONGEST_LINE: u64 = 4 << 20;

/// Calls `each` with every argument, or, where one is `-`, with every line of standard input in its place.
///
/// Lines are never trimmed. One that is not text, or too long, is an error of its own.
pub(crate) fn each_item(
    arguments: &[String],
    mut each: impl FnMut(&str, Result<(), Failure>) -> io::Result<()>,
) -> io::Result<()> {
    for argument in arguments {
        if argument != "-" {
            each(argument, Ok(()))?;
            continue;
        }
        let mut lines = io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            if lines.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let complete = line.pop_if(|last| *last == b'\n').is_some();
            if !complete && line.len() as u64 > LONGEST_LINE {
                skip_line(&mut lines)?;
                let start = String::from_utf8_lossy(&line[..80]).into_owned();
                each(&start, Err(Failure::new("line_too_long", "the line is longer than 4 MiB")))?;
                continue;
            }
            match std::str::from_utf8(&line) {
                Ok(text) => each(text, Ok(()))?,
                Err(error) => {
                    let lossy = String::from_utf8_lossy(&line);
                    let at = error.valid_up_to();
                    let failure = Failure::new("not_utf8", "the line is not UTF-8 text").at(at..at);
                    each(&lossy, Err(failure))?;
                }
            }
        }
    }
    Ok(())
}

/// Reads on to the end of the line without keeping it.
fn skip_line(lines: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = lines.fill_buf()?;
        let length = buffer.len();
        match buffer.iter().position(|&byte| byte == b'\n') {
            Some(at) => {
                lines.consume(at + 1);
                return Ok(());
            }
            None if length == 0 => return Ok(()),
            None => lines.consume(length),
        }
    }
}

/// The bytes of a file; `-` is standard input.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    read.map_err(|error| Failure::new("io", format!("can't be read: {error}")).in_file(path))
}
