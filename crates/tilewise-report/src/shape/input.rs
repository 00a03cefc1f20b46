//! Shapes, pairs of them and indices as they are written, with errors that point into the text.

use super::lenient::understand;
use std::ops::Range;
use tilewise::{ArrayShape, Layout, OperationLine, Shape, Tiled};
use tilewise_audit::Failure;

/// A shape as programs and documents print it ([`Shape::parse_any`]); or a `ShapeProto` as `proto:` and its bytes in hex.
///
/// # Errors
/// Those of parsing, with the span.
pub fn parse_shape(input: &str) -> Result<Shape, Failure> {
    match input.strip_prefix("proto:") {
        Some(hex) => decoded(hex, input.len()),
        None => Shape::parse_any(input).map_err(|error| unread(error, input)),
    }
}

/// As [`parse_shape`], and leaves a missing layout missing.
///
/// # Errors
/// Those of parsing, with the span.
pub(super) fn parse_shape_as_written(input: &str) -> Result<Shape, Failure> {
    match input.strip_prefix("proto:") {
        Some(hex) => decoded(hex, input.len()),
        None => Shape::parse_any_as_written(input).map_err(|error| unread(error, input)),
    }
}

fn decoded(hex: &str, length: usize) -> Result<Shape, Failure> {
    let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let Some(digits) = digits.filter(|digits| digits.len() % 2 == 0) else {
        let message = "`proto:` must be followed by pairs of hexadecimal digits";
        return Err(Failure::new("invalid_proto", message).at(0..length));
    };
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    Shape::decode_proto(&bytes).map_err(|error| Failure::from(error).within(0..length))
}

/// The error of a text, with what to write where the text is something else that is known.
fn unread(error: tilewise::Error, input: &str) -> Failure {
    let failure = Failure::from(error);
    let help = if input.contains("Util::") {
        Some("docs/documents.md lists what does here what XLA's functions do".to_owned())
    } else if failure.help.is_none() {
        let layout = input.parse::<Layout>().ok();
        layout.map(|layout| {
            let sizes = vec!["…"; layout.minor_to_major().len()].join(",");
            format!("this is a layout; put the element type and the dimensions in front: `f32[{sizes}]{layout}`")
        })
    } else {
        None
    };
    match help {
        Some(help) => failure.with_help(help),
        None => failure,
    }
}

/// Reads shapes for a verb: for programs those of [`parse_shape`], for people also what other tools print, with notes of how a text was
/// read.
#[derive(Clone, Debug)]
pub struct Reader {
    is_for_people: bool,
    notes: Vec<String>,
}

impl Reader {
    /// For programs.
    #[must_use]
    pub fn strict() -> Self {
        Self { is_for_people: false, notes: Vec::new() }
    }

    /// For people.
    #[must_use]
    pub fn for_people() -> Self {
        Self { is_for_people: true, notes: Vec::new() }
    }

    /// How the texts so far were read, where that is not plain.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// A shape; a missing layout becomes the default.
    ///
    /// # Errors
    /// Those of [`parse_shape`].
    pub fn shape(&mut self, text: &str) -> Result<Shape, Failure> {
        if !self.is_for_people {
            return parse_shape(text);
        }
        Ok(with_layouts(self.shape_as_written(text)?, text)?)
    }

    /// A shape; a missing layout stays missing.
    ///
    /// # Errors
    /// Those of [`parse_shape`].
    pub fn shape_as_written(&mut self, text: &str) -> Result<Shape, Failure> {
        let read = parse_shape_as_written(text);
        if !self.is_for_people {
            return read;
        }
        match read {
            Ok(shape) => {
                self.notes.extend(note(text, &shape));
                Ok(shape)
            }
            Err(failure) => {
                let shape = understand(text).ok_or(failure)?;
                self.notes.push(read_as(text, &shape));
                Ok(shape)
            }
        }
    }
}

/// The shape of a text with XLA's default layout where none is written; a message's stays missing.
pub(crate) fn with_layouts(shape: Shape, text: &str) -> Result<Shape, tilewise::Error> {
    let is_complete = shape.as_array().is_some_and(|array| array.layout().is_some());
    let is_message = text.starts_with("proto:") || Shape::begins_like_text_proto(text);
    if is_complete || is_message { Ok(shape) } else { shape.to_string().parse() }
}

fn read_as(text: &str, shape: &Shape) -> String {
    format!("note: `{text}` is read as {shape}")
}

/// What to say of a text that was read: that it is an operation, whose result was taken, or that the shape is spelled otherwise.
fn note(text: &str, shape: &Shape) -> Option<String> {
    if let Ok(OperationLine { name, operands, .. }) = text.parse::<OperationLine>() {
        let operands = operands.iter().filter_map(|operand| Some((&operand.name, operand.shape.as_ref()?)));
        let operands: String = operands.map(|(name, shape)| format!("; its operand {name} is {shape}")).collect();
        return Some(format!("note: of the operation {name}, the result is taken, {shape}{operands}"));
    }
    let is_written_otherwise = || {
        // The documents write `F32`.
        let plain = |text: &str| -> String {
            text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect()
        };
        plain(&shape.to_string()) != plain(text)
    };
    let is_xlas = !text.starts_with("proto:") && Shape::parse_as_written(text).is_ok();
    // Comments such as XLA's `/*index=5*/` in tuples are no other spelling.
    (is_xlas && !text.contains('/') && is_written_otherwise()).then(|| read_as(text, shape))
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

/// An index given as an option of its own, such as `2,3` or `(2,3)`.
///
/// # Errors
/// What is no number, or too large; the message quotes it.
pub fn parse_index(text: &str) -> Result<Vec<u64>, Failure> {
    numbers(text, 0).map_err(|failure| failure.about("the index", text))
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
    let brackets = [('(', ')'), ('[', ']')];
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
        return Err(Failure::new(kind, format!("`{text}` is not a non-negative integer")).at(span));
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
            ("float32[3,5]", "f32[3,5]{1,0}", Some("is read as f32[3,5]")),
            ("%a.1 = f32[3,5] add(f32[5] %b, %c)", "f32[3,5]{1,0}", Some("its operand b is f32[5]")),
        ] {
            let mut reader = Reader::for_people();
            assert_eq!(reader.shape(text).map(|shape| shape.to_string()).as_deref(), Ok(shape), "{text}");
            match (note, &reader.take_notes()[..]) {
                (None, []) => {}
                (Some(end), [note]) => assert!(note.ends_with(end), "{note}"),
                (_, notes) => panic!("{text}: {notes:?}"),
            }
        }
        assert!(Reader::strict().shape("float32[3,5]").is_err());
    }

    #[test]
    fn indices_and_dimensions_as_they_are_written() {
        for (text, index) in
            [("2,3", &[2, 3][..]), ("(2,3)", &[2, 3]), ("[ 2, 3 ]", &[2, 3]), (" (7,) ", &[7]), ("()", &[]), ("", &[])]
        {
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
        assert!(dimension_numbers("3", array).is_err() && dimension_numbers("-4", array).is_err());
        assert!(dimension_numbers("-9223372036854775808", array).is_err());
    }
}
