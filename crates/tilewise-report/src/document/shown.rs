//! Answers to texts in place of a shape or an index.

use super::{Equation, PartOfShape};
use crate::{
    JsonLine, Terminal, WriteText,
    shape::{Located, Reader, ShapeSummary, printed_shape},
};
use serde::Serialize;
use std::io::{self, Write};
use tilewise_audit::Failure;

/// The answer of `tilewise show` to a text: a shape's summary, an equation worked out; for people also the meaning of a
/// part alone, which isn't a shape for a program.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Shown {
    /// A shape, or the result of an operation.
    Shape(Box<ShapeSummary>),
    /// An equation of the document.
    Equation(Box<Equation>),
    /// A layout or another part alone.
    Part(Box<PartOfShape>),
}

impl Shown {
    /// The answer to a text.
    ///
    /// # Errors
    /// Those of [`ShapeSummary::read`] and [`Equation::read`], with the span.
    pub fn read(text: &str, reader: &mut Reader) -> Result<Self, Failure> {
        if Equation::begins(text) && printed_shape(text).is_err() {
            match Equation::read(text) {
                Ok(equation) => {
                    reader.note_all(equation.notes());
                    return Ok(Self::Equation(Box::new(equation)));
                }
                // A function's name alone has a meaning.
                Err(failure) => return part(text, reader).ok_or(failure),
            }
        }
        match ShapeSummary::read(text, reader) {
            Ok(summary) => Ok(Self::Shape(Box::new(summary))),
            Err(failure) => part(text, reader).ok_or(failure),
        }
    }
}

/// The meaning of a part, for people.
fn part(text: &str, reader: &Reader) -> Option<Shown> {
    reader.is_for_people().then(|| PartOfShape::read(text).map(|part| Shown::Part(Box::new(part))))?
}

impl WriteText for Shown {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Shape(summary) => summary.write_text(terminal, out),
            Self::Equation(equation) => equation.write_text(terminal, out),
            Self::Part(part) => part.write_text(terminal, out),
        }
    }
}

/// The answer of `tilewise index` to a line: the place of an element, or an equation worked out.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// An element and its place.
    Located(Box<Located>),
    /// An equation of the document.
    Equation(Box<Equation>),
}

impl Answer {
    /// The answer to a line, `SHAPE<TAB>2,3`, `SHAPE<TAB>@17` or an equation; `is_explained` asks for the document's formula worked out.
    ///
    /// # Errors
    /// Those of [`Located::read`] and [`Equation::read`], with the span in the line.
    pub fn read(line: &str, is_explained: bool, reader: &mut Reader) -> Result<Self, Failure> {
        if !line.contains('\t') && Equation::begins(line) {
            let equation = Equation::read(line)?;
            reader.note_all(equation.notes());
            return Ok(Self::Equation(Box::new(equation)));
        }
        let located = if is_explained { Located::explained(line, reader) } else { Located::read(line, reader) };
        Ok(Self::Located(Box::new(located?)))
    }

    /// Whether an equation has a member that differs from the first.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        matches!(self, Self::Equation(equation) if !equation.holds())
    }
}

impl WriteText for Answer {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Located(located) => located.write_text(terminal, out),
            Self::Equation(equation) => equation.write_text(terminal, out),
        }
    }
}

/// The JSON object that `tilewise index -` answers to one line, `SHAPE<TAB>2,3` or `SHAPE<TAB>@17`.
///
/// # Errors
/// None that a line can cause: the object has the line's error.
///
/// ```
/// let answer = tilewise_report::answer_line("f32[3,5]{1,0:T(2,2)}\t2,3")?;
/// assert!(answer.contains(r#""linear_index":17"#));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn answer_line(line: &str) -> serde_json::Result<String> {
    serde_json::to_string(&JsonLine::of_result(line, &Answer::read(line, false, &mut Reader::without_notes())))
}
