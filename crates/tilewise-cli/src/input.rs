//! Items from arguments, or from standard input one a line.

use std::{
    fs,
    io::{self, BufRead, Read},
    ops::Range,
    path::Path,
};
use tilewise::{Shape, Tiled};
use tilewise_audit::Failure;

/// A shape in XLA's notation, alone or as `SHAPE@NAME` with a tile format; or a ShapeProto as `proto:` and its bytes in
/// hex.
pub(crate) fn parse_shape(input: &str) -> Result<Shape, Failure> {
    let Some(hex) = input.strip_prefix("proto:") else { return Ok(Shape::parse_with_tile_format(input)?) };
    let whole = || 0..input.len();
    let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let Some(digits) = digits.filter(|digits| digits.len() % 2 == 0) else {
        return Err(
            Failure::new("invalid_proto", "`proto:` must be followed by pairs of hexadecimal digits").at(whole())
        );
    };
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    Shape::decode_proto(&bytes).map_err(|error| Failure::from(error).within(whole()))
}

/// Two shapes of one line, `A<TAB>B`.
pub(crate) struct PairLine {
    pub(crate) shapes: [Shape; 2],
    spans: [Range<usize>; 2],
}

impl PairLine {
    pub(crate) fn parse(line: &str) -> Result<Self, Failure> {
        let Some(tab) = line.find('\t') else {
            return Err(Failure::new("malformed_batch_line", "a line must be a shape, a TAB, and another shape")
                .at(0..line.len())
                .with_help("such as `f32[8]<TAB>f32[2,4]`"));
        };
        let spans = [0..tab, tab + 1..line.len()];
        let parse = |span: &Range<usize>| {
            parse_shape(&line[span.clone()]).map_err(|failure| failure.within(span.start..span.end))
        };
        Ok(Self { shapes: [parse(&spans[0])?, parse(&spans[1])?], spans })
    }

    /// Bytes of the line.
    pub(crate) fn length(&self) -> usize {
        self.spans[1].end
    }

    /// Both layouts, or an error that points at its shape.
    pub(crate) fn tiled(&self) -> Result<[Tiled; 2], Failure> {
        let tiled = |at: usize| {
            Tiled::new(&self.shapes[at]).map_err(|error| Failure::from(error).within(self.spans[at].clone()))
        };
        Ok([tiled(0)?, tiled(1)?])
    }
}

/// Calls `each` with the two arguments as a line, or with every line of standard input where the first is `-`.
pub(crate) fn each_pair(
    first: &str,
    second: Option<&str>,
    mut each: impl FnMut(&str, Result<PairLine, Failure>) -> io::Result<()>,
) -> io::Result<()> {
    match (first, second) {
        ("-", None) => {
            each_item(&["-".to_owned()], |line, readable| each(line, readable.and_then(|()| PairLine::parse(line))))
        }
        (_, Some(second)) => {
            let line = format!("{first}\t{second}");
            each(&line, PairLine::parse(&line))
        }
        (_, None) => {
            each(first, Err(Failure::new("malformed_batch_line", "a second shape is needed, or `-` for lines of two")))
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

/// An index given as an option of its own.
pub(crate) fn parse_index(text: &str) -> Result<Vec<u64>, Failure> {
    numbers(text, 0).map_err(|failure| failure.about("the index", text))
}

/// The comma-separated numbers of an index; an empty text is the index of a scalar.
pub(crate) fn numbers(text: &str, start: usize) -> Result<Vec<u64>, Failure> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut at = start;
    let parse = |part: &str| {
        let value = number(part, at);
        at += part.len() + 1;
        value
    };
    text.split(',').map(parse).collect()
}

pub(crate) fn number(text: &str, start: usize) -> Result<u64, Failure> {
    let span = start..start + text.len();
    let digits = text.trim_matches([' ', '\r']);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let kind = if digits.starts_with('-') { "index_out_of_bounds" } else { "syntax" };
        return Err(Failure::new(kind, format!("`{text}` is not a non-negative integer")).at(span));
    }
    digits.parse().map_err(|_| Failure::new("overflow", format!("`{digits}` does not fit in 64 bits")).at(span))
}
