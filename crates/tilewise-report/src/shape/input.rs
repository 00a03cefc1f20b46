//! Shapes, pairs of them and indices as they are written, with errors that point into the text.

use std::ops::Range;
use tilewise::{Shape, Tiled};
use tilewise_audit::Failure;

/// A shape in XLA's notation, alone or as `SHAPE@NAME` with a tile format; or a ShapeProto as `proto:` and its bytes in
/// hex.
///
/// # Errors
/// Those of parsing, with the span.
pub fn parse_shape(input: &str) -> Result<Shape, Failure> {
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
#[derive(Clone, Debug)]
pub struct Pair {
    /// The first and the second.
    pub shapes: [Shape; 2],
    spans: [Range<usize>; 2],
}

impl Pair {
    /// The shapes of a line.
    ///
    /// # Errors
    /// Those of parsing, with the span in the line.
    pub fn parse(line: &str) -> Result<Self, Failure> {
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

/// An index given as an option of its own, such as `2,3`.
///
/// # Errors
/// What is no number, or too large; the message quotes it.
pub fn parse_index(text: &str) -> Result<Vec<u64>, Failure> {
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
