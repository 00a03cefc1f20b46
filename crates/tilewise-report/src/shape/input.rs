//! Shapes, pairs of them and indices as they are written, with errors that point into the text.

use super::{hex::bytes_of_hex, instead::instead_of, lenient, printed::printed_shape};
use crate::{
    document::Equation,
    document::ONCE_EACH,
    plain::{Plain, bare, is_invisible},
};
use std::ops::Range;
use tilewise::{ArrayShape, Shape, Tiled};
use tilewise_audit::Failure;
use tilewise_hlo::OperationLine;

/// A shape in XLA's notation or as programs print it ([`Shape::parse_any`], [`OperationLine`]); a call of XLA's `ShapeUtil::MakeShape`; a `ShapeProto` as its
/// bytes in hex, with `proto:` in front or without; or a form of another tool that means one shape only. Everything that takes a shape reads it so: the command line, for people and as JSON,
/// Python, the page, and tools for agents.
///
/// # Errors
/// Those of parsing, with the span and a correction: no part of a text is passed over.
///
/// ```
/// use tilewise_report::parse_shape;
///
/// assert_eq!(parse_shape("ShapeUtil::MakeShape(F32, {3, 5})").expect("a shape").to_string(), "f32[3,5]{1,0}");
/// let failure = parse_shape("F32[3,5]{1,0} T(2,2)").expect_err("text behind the shape");
/// assert_eq!(failure.span, Some(14..20));
/// assert_eq!(failure.help.as_deref(), Some("write `f32[3,5]{1,0:T(2,2)}`"));
/// ```
pub fn parse_shape(input: &str) -> Result<Shape, Failure> {
    // Nearly all texts are XLA's.
    input.parse().or_else(|_| Ok(with_layouts(parse_shape_as_written(input)?, input)?))
}

/// As [`parse_shape`], and leaves a missing layout missing.
///
/// # Errors
/// As for [`parse_shape`].
pub fn parse_shape_as_written(input: &str) -> Result<Shape, Failure> {
    if let Some(digits) = input.strip_prefix("proto:") {
        return decoded(digits, input);
    }
    printed_shape(input)
        .or_else(|error| lenient::read(input).or_else(|| printed_proto(input)).ok_or_else(|| unread(error, input)))
}

/// A proto's bytes in hex as `show --format proto` prints them. All digits of 10 would be a number: no array's proto is.
fn printed_proto(input: &str) -> Option<Shape> {
    let has_letter = input.bytes().any(|byte| byte.is_ascii_alphabetic());
    Shape::decode_proto(&bytes_of_hex(input.trim()).filter(|bytes| has_letter && bytes.first() == Some(&0x10))?).ok()
}

fn decoded(digits: &str, input: &str) -> Result<Shape, Failure> {
    let Some(bytes) = bytes_of_hex(digits) else {
        let message = "`proto:` must be followed by pairs of hexadecimal digits";
        return Err(Failure::new("invalid_proto", message).at(0..input.len()));
    };
    let decoded = Shape::decode_proto(&bytes).map_err(|error| Failure::from(error).within(0..input.len()));
    decoded.map_err(|failure| match instead_of(input) {
        Some(help) => failure.with_help(help),
        None => failure,
    })
}

/// The error of a text, with a correction if the intended text can be seen.
fn unread(error: tilewise::Error, input: &str) -> Failure {
    let failure = Failure::from(error);
    match instead_of(input) {
        Some(help) => failure.with_help(help),
        None => failure,
    }
}

/// Reads shapes for a verb ([`parse_shape`]), and notes for people how texts were read.
#[derive(Clone, Debug)]
pub struct Reader {
    /// `None` for programs.
    notes: Option<Vec<String>>,
}

impl Reader {
    /// A reader that takes notes.
    #[must_use]
    pub fn with_notes() -> Self {
        Self { notes: Some(Vec::new()) }
    }

    /// A reader without notes.
    #[must_use]
    pub fn without_notes() -> Self {
        Self { notes: None }
    }

    /// Whether answers are for people: texts as documents print them are read for people only.
    #[must_use]
    pub fn is_for_people(&self) -> bool {
        self.notes.is_some()
    }

    /// Adds notes on how a text was read.
    pub(crate) fn note_all(&mut self, notes: Vec<String>) {
        if let Some(known) = &mut self.notes {
            known.extend(notes);
        }
    }

    /// Takes the notes on how the texts so far were read.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.notes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A shape; a missing layout becomes the default.
    ///
    /// # Errors
    /// Those of [`parse_shape`].
    pub fn shape(&mut self, text: &str) -> Result<Shape, Failure> {
        match self.notes {
            None => parse_shape(text),
            Some(_) => Ok(with_layouts(self.shape_as_written(text)?, text)?),
        }
    }

    /// A shape; a missing layout stays missing.
    ///
    /// # Errors
    /// Those of [`parse_shape`].
    pub fn shape_as_written(&mut self, text: &str) -> Result<Shape, Failure> {
        let shape = parse_shape_as_written(text)
            .or_else(|failure| self.is_for_people().then(|| as_documents_print(text)).flatten().ok_or(failure))?;
        if let Some(notes) = &mut self.notes {
            notes.extend(note(text, &shape));
        }
        Ok(shape)
    }
}

/// The shape of a text with a document's characters, or the array of its equation.
fn as_documents_print(text: &str) -> Option<Shape> {
    let plain = Plain::of(text);
    let written = bare(plain.text());
    let shape = (written != text).then(|| parse_shape_as_written(written).ok()).flatten();
    shape.or_else(|| Equation::begins(text).then(|| Some(Equation::element(text).ok()?.0))?)
}

/// The shape of a text with XLA's default layout where none is written; a message's stays missing.
pub(crate) fn with_layouts(shape: Shape, text: &str) -> Result<Shape, tilewise::Error> {
    let is_complete = shape.as_array().is_some_and(|array| array.layout().is_some());
    let is_message = text.starts_with("proto:") || Shape::begins_like_text_proto(text);
    if is_complete || is_message { Ok(shape) } else { shape.to_string().parse() }
}

/// The note on a text that was read: it is an operation, whose result was taken, or the shape is spelled otherwise.
fn note(text: &str, shape: &Shape) -> Option<String> {
    if let Ok(OperationLine { name, operands, .. }) = text.parse::<OperationLine>() {
        let operands = operands.iter().filter_map(|operand| Some((&operand.name, operand.shape.as_ref()?)));
        let operands: String = operands.map(|(name, shape)| format!("; its operand {name} is {shape}")).collect();
        return Some(format!("note: of the operation {name}, the result is taken, {shape}{operands}"));
    }
    let is_written_otherwise = || {
        // The documents write `F32`. Comments such as XLA's `/*index=5*/` in tuples are no other spelling.
        let plain = |text: &str| -> String {
            text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect()
        };
        !text.contains('/') && plain(&shape.to_string()) != plain(text)
    };
    let is_named = text.starts_with("proto:") || Shape::begins_like_text_proto(text) || text.contains('@');
    let is_otherwise = if Shape::parse_as_written(text).is_ok() { is_written_otherwise() } else { !is_named };
    let invisible: String = text
        .chars()
        .filter(|c| is_invisible(*c))
        .map(|c| format!("; U+{:04X} is passed over", u32::from(c)))
        .take(1)
        .collect();
    is_otherwise.then(|| format!("note: `{text}` is read as {shape}{invisible}"))
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
    pub fn read(line: &str, reader: &mut Reader) -> Result<Self, Failure> {
        let Some(tab) = line.find('\t') else {
            return Err(Failure::new("malformed_batch_line", "a line must be a shape, a TAB, and another shape")
                .at(0..line.len())
                .with_help("such as `f32[8]<TAB>f32[2,4]`"));
        };
        let spans = [0..tab, tab + 1..line.len()];
        let mut read = |span: &Range<usize>| {
            reader.shape(&line[span.clone()]).map_err(|failure| failure.within(span.start..span.end))
        };
        Ok(Self { shapes: [read(&spans[0])?, read(&spans[1])?], spans })
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

/// An index given as an option of its own, such as `2,3`, `(2,3)` or `{2,3}`.
///
/// # Errors
/// A part that isn't a number, or is too large; the message quotes it.
pub fn parse_index(text: &str) -> Result<Vec<u64>, Failure> {
    numbers(text, 0).map_err(|failure| failure.about("the index", text))
}

/// An index of an array: its numbers in order, or each behind the documents' letter of its dimension, `y=2,x=3`.
pub(crate) fn index_of(text: &str, start: usize, array: &ArrayShape) -> Result<Vec<u64>, Failure> {
    if !text.contains('=') {
        return numbers(text, start);
    }
    let letter = |dimension: usize| array.dimension_letter(dimension);
    let named = items(text, start, |part, at| {
        let (name, value) = part.split_once('=').unwrap_or(("", part));
        let dimension = (0..array.rank())
            .find(|&dimension| letter(dimension).is_some_and(|known| name.trim() == known.to_string()));
        let Some(dimension) = dimension else {
            let letters: String = (0..array.rank()).filter_map(letter).map(|letter| format!(" {letter}")).collect();
            let message = format!("`{}` is not the letter of a dimension here", name.trim());
            let failure = Failure::new("syntax", message).at(at..at + part.len());
            return Err(match letters.is_empty() {
                true => failure.with_help("only arrays of 2, 3 and 4 dimensions have letters: yx, zyx, pzyx"),
                false => failure.with_help(format!("the dimensions are{letters}")),
            });
        };
        Ok((dimension, number(value, at + part.len() - value.len())?))
    })?;
    let index: Option<Vec<u64>> =
        (0..array.rank()).map(|dimension| Some(named.iter().find(|(named, _)| *named == dimension)?.1)).collect();
    match index.filter(|index| index.len() == named.len()) {
        Some(index) => Ok(index),
        None => Err(Failure::new("index_rank_mismatch", ONCE_EACH).at(start..start + text.len())),
    }
}

/// Numbers of an array's dimensions, such as `1,0`; negative ones count from the end, −1 being the last.
pub(crate) fn dimension_numbers(text: &str, array: &ArrayShape) -> Result<Vec<usize>, Failure> {
    let number = |part: &str, start: usize| {
        let minus = part.trim_start().starts_with('-');
        let digits = part.trim_start().strip_prefix('-').unwrap_or(part);
        let magnitude = i64::try_from(number(digits, start)?).unwrap_or(i64::MAX);
        Ok(array.dimension_number(if minus { -magnitude } else { magnitude })?)
    };
    items(text, 0, number).map_err(|failure| failure.about("the order", text))
}

/// The comma-separated numbers of an index, in brackets or not; an empty text is the index of a scalar.
pub(crate) fn numbers(text: &str, start: usize) -> Result<Vec<u64>, Failure> {
    items(text, start, number)
}

fn items<T>(text: &str, start: usize, item: impl Fn(&str, usize) -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
    let brackets = [('(', ')'), ('[', ']'), ('{', '}')];
    let inside = brackets.iter().find_map(|&(open, close)| text.trim().strip_prefix(open)?.strip_suffix(close));
    // Python writes the index of a vector as `(2,)`.
    let list = inside.map_or(text, |inside| inside.strip_suffix(',').unwrap_or(inside));
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let mut at = start + inside.map_or(0, |_| text.len() - text.trim_start().len() + 1);
    let parse = |part: &str| {
        let value = item(part, at);
        at += part.len() + 1;
        value
    };
    list.split(',').map(parse).collect()
}

pub(crate) fn number(text: &str, start: usize) -> Result<u64, Failure> {
    let span = start..start + text.len();
    let digits = text.trim_matches([' ', '\r']);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let kind = if digits.starts_with('-') { "index_out_of_bounds" } else { "syntax" };
        let failure = Failure::new(kind, format!("`{text}` is not a non-negative integer")).at(span);
        let is_negative = kind == "index_out_of_bounds";
        return Err(if is_negative {
            failure.with_help("indices and offsets begin at 0; none counts from the end")
        } else {
            failure
        });
    }
    digits.parse().map_err(|_| Failure::new("overflow", format!("`{digits}` does not fit in 64 bits")).at(span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_how_a_text_was_read() {
        for (text, shape, note) in [
            ("F32[3, 5]{1,0:T(2,2)}", "f32[3,5]{1,0:T(2,2)}", None),
            ("f32[3,5]", "f32[3,5]{1,0}", None),
            ("f32[3,5]@tpu-2x128", "f32[3,5]{1,0:T(2,128)}", None),
            ("(f32[2], /*index=1*/f32[])", "(f32[2]{0}, f32[])", None),
            ("f32[3,5]{1,0:(2,2)}", "f32[3,5]{1,0:T(2,2)}", Some("is read as f32[3,5]{1,0:T(2,2)}")),
            ("f32[3,5]{1,0:T(∗,2)}", "f32[3,5]{1,0:T(*,2)}", Some("is read as f32[3,5]{1,0:T(*,2)}")),
            ("f32[3,5]{1,0:T(-1,2)}", "f32[3,5]{1,0:T(*,2)}", Some("is read as f32[3,5]{1,0:T(*,2)}")),
            ("float32 (3,5)", "f32[3,5]{1,0}", Some("is read as f32[3,5]")),
            ("%a.1 = f32[3,5] add(f32[5] %b, %c)", "f32[3,5]{1,0}", Some("its operand b is f32[5]")),
        ] {
            let mut reader = Reader::with_notes();
            assert_eq!(reader.shape(text).map(|shape| shape.to_string()).as_deref(), Ok(shape), "{text}");
            match (note, &reader.take_notes()[..]) {
                (None, []) => {}
                (Some(end), [note]) => assert!(note.ends_with(end), "{note}"),
                (_, notes) => panic!("{text}: {notes:?}"),
            }
        }
    }

    /// The error points at everything unread.
    #[test]
    fn no_text_is_dropped() {
        for (text, unread) in [
            ("F32[4,8] (2,4)(2,1)", "(2,4)(2,1)"),
            ("F32[3,5]{1,0} T(2,2)", "T(2,2)"),
            ("F32[2,3] minor_to_major [0, 1]", "minor_to_major [0, 1]"),
            ("F32[2,3] [0,1]", "[0,1]"),
            ("F32[2,3] {0,1}:T(2,2)", ":T(2,2)"),
            ("f32[16]{0} L(32)", "L(32)"),
            ("F32[2,3]{1,0} S(1)", "S(1)"),
            ("F32[2,3]{1,0:T(2,2)} (2,1)", "(2,1)"),
            ("x = f32[4,8] (2,4)", "(2,4)"),
            ("x = f32[4,8] add(a, b) S(1)", "S(1)"),
            ("f32[2], f32[3]", ", f32[3]"),
        ] {
            let failure = parse_shape(text).expect_err(text);
            assert_eq!(failure.span.map(|span| &text[span]), Some(unread), "{text}");
        }
        let kind = |text: &str| parse_shape(text).expect_err(text).kind;
        assert_eq!((kind(""), kind(" \n")), ("empty_input", "empty_input"));
    }

    #[test]
    fn indices_and_dimensions_as_they_are_written() {
        for (text, index) in [
            ("2,3", &[2, 3][..]),
            ("(2,3)", &[2, 3]),
            ("[ 2, 3 ]", &[2, 3]),
            ("{2,3}", &[2, 3]),
            (" (7,) ", &[7]),
            ("()", &[]),
            ("", &[]),
        ] {
            assert_eq!(parse_index(text).as_deref(), Ok(index), "{text}");
        }
        for wrong in ["(2,3", "2,3]", "2,,3", "(2,3))", "x", "-1"] {
            assert!(parse_index(wrong).is_err(), "{wrong}");
        }
        let failure = numbers("(2,x)", 10).expect_err("no number");
        assert_eq!(failure.span, Some(13..14));
        let shape: Shape = "f32[3,5,7]".parse().expect("a shape");
        let array = shape.as_array().expect("an array");
        assert_eq!(dimension_numbers("(-1, 0,-2)", array), Ok(vec![2, 0, 1]));
        assert_eq!(dimension_numbers("{-1,-2,-3}", array), Ok(vec![2, 1, 0]));
        assert_eq!(index_of("x=6, z=1,y=4", 0, array), Ok(vec![1, 4, 6]));
        for wrong in ["x=6,y=4", "x=6,y=4,z=1,z=1", "p=0,x=6,y=4", "x=6,y=4,1", "x=a,y=4,z=1"] {
            assert!(index_of(wrong, 0, array).is_err(), "{wrong}");
        }
        assert!(dimension_numbers("3", array).is_err() && dimension_numbers("-4", array).is_err());
        assert!(dimension_numbers("-9223372036854775808", array).is_err());
    }
}
