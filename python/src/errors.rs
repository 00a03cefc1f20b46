//! Errors, and the Python exceptions they become.

use pyo3::{prelude::*, types::PyDict};
use std::ops::Range;

/// An error on its way to Python: one of ours, or one that Python raised.
#[derive(Debug)]
pub(crate) enum Error {
    Tilewise(Box<Detail>),
    Python(PyErr),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// The classes of `tilewise._base.errors`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    Parse,
    Shape,
    OutOfRange,
    Hlo,
    NotATpuProgram,
    Message,
    Relayout,
    Draw,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Self::Parse => "ParseError",
            Self::Shape => "ShapeError",
            Self::OutOfRange => "OutOfRangeError",
            Self::Hlo => "HloError",
            Self::NotATpuProgram => "NotATpuProgram",
            Self::Message => "MessageError",
            Self::Relayout => "RelayoutError",
            Self::Draw => "DrawError",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Detail {
    class: Class,
    kind: &'static str,
    message: String,
    help: Option<String>,
    text: Option<String>,
    /// In bytes of the text.
    span: Option<Range<usize>>,
}

impl Error {
    pub(crate) fn new(class: Class, kind: &'static str, message: impl Into<String>) -> Self {
        Self::Tilewise(Box::new(Detail { class, kind, message: message.into(), help: None, text: None, span: None }))
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        if let Self::Tilewise(detail) = &mut self {
            detail.help = Some(help.into());
        }
        self
    }

    /// A `str` with a lone surrogate, which has no UTF-8.
    pub(crate) fn not_unicode() -> Self {
        Self::new(Class::Parse, "not_unicode", "the text has a lone surrogate, which cannot be encoded as UTF-8")
    }

    /// An error of parsing a longer text that ends with `text`, behind `before` bytes; its span is shifted to `text`.
    pub(crate) fn in_part(error: tilewise::Error, text: &str, before: usize) -> Self {
        let mut of_text = Self::from(error);
        if let Self::Tilewise(detail) = &mut of_text {
            detail.class = Class::Parse;
            detail.text = Some(text.to_owned());
            let whole = detail.span.take().unwrap_or(before..before + text.len());
            detail.span = Some(whole.start.saturating_sub(before)..whole.end.saturating_sub(before));
        }
        of_text
    }

    /// An error in a text that isn't a shape.
    pub(crate) fn of_unread(failure: tilewise_audit::Failure, text: &str) -> Self {
        Self::Tilewise(Box::new(Detail {
            class: Class::Parse,
            kind: failure.kind,
            message: failure.message,
            help: failure.help,
            text: Some(text.to_owned()),
            span: Some(failure.span.unwrap_or(0..text.len())),
        }))
    }

    /// An error of parsing this text. Without a span of its own it covers the whole text.
    pub(crate) fn in_text(error: tilewise::Error, text: &str) -> Self {
        Self::in_part(error, text, 0)
    }
}

impl From<tilewise::Error> for Error {
    fn from(error: tilewise::Error) -> Self {
        use tilewise::ErrorKind::{IndexOutOfBounds, OffsetOutOfRange};
        let class = match error.kind() {
            IndexOutOfBounds | OffsetOutOfRange => Class::OutOfRange,
            _ => Class::Shape,
        };
        Self::Tilewise(Box::new(Detail {
            class,
            kind: error.kind().as_str(),
            message: error.to_string(),
            help: error.help().map(str::to_owned),
            text: None,
            span: error.span(),
        }))
    }
}

impl From<tilewise_hlo::Error> for Error {
    fn from(error: tilewise_hlo::Error) -> Self {
        // The message names the line: an excerpt of a whole program would not help.
        Self::new(Class::Hlo, error.kind().as_str(), error.to_string())
    }
}

impl From<tilewise_audit::Failure> for Error {
    /// The error of an unreadable program.
    fn from(failure: tilewise_audit::Failure) -> Self {
        let error = Self::new(Class::Hlo, failure.kind, failure.message);
        match failure.help {
            Some(help) => error.with_help(help),
            None => error,
        }
    }
}

impl From<tilewise_oom::Error> for Error {
    fn from(error: tilewise_oom::Error) -> Self {
        Self::new(Class::Message, error.as_str(), error.to_string())
    }
}

impl From<tilewise_relayout::Error> for Error {
    fn from(error: tilewise_relayout::Error) -> Self {
        Self::new(Class::Relayout, error.kind().as_str(), error.to_string())
    }
}

impl From<tilewise_draw::Error> for Error {
    fn from(error: tilewise_draw::Error) -> Self {
        let class = match error.kind() {
            tilewise_draw::ErrorKind::IndexOutOfBounds => Class::OutOfRange,
            _ => Class::Draw,
        };
        Self::new(class, error.kind().as_str(), error.to_string())
    }
}

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Python(error) => error,
            Error::Tilewise(detail) => Python::attach(|py| detail.exception(py).unwrap_or_else(|failed| failed)),
        }
    }
}

impl Detail {
    fn exception(&self, py: Python<'_>) -> PyResult<PyErr> {
        let class = py.import("tilewise._base.errors")?.getattr(self.class.name())?;
        let values = PyDict::new(py);
        values.set_item("kind", self.kind)?;
        values.set_item("help", self.help.as_deref())?;
        values.set_item("text", self.text.as_deref())?;
        if let (Some(text), Some(span)) = (&self.text, &self.span) {
            // Python indexes a `str` by characters, not bytes.
            let characters = |end: usize| text.get(..end).map(|part| part.chars().count());
            values.set_item("span", characters(span.start).zip(characters(span.end)))?;
            values.set_item("excerpt", pointed(text, span))?;
        }
        // Control characters of quoted text must neither move the cursor nor break the line.
        let message: String = self.message.chars().map(visible).collect();
        Ok(PyErr::from_value(class.call((message,), Some(&values))?))
    }
}

/// The line of the text that the error is about, with carets under the span.
fn pointed(text: &str, span: &Range<usize>) -> Option<String> {
    let (line, span) = tilewise_report::excerpt(text, [span.start, span.end])?;
    let shown: String = line.chars().map(visible).collect();
    let before: String = line[..span.start].chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
    let carets = "^".repeat(line[span].chars().count().max(1));
    Some(format!("{shown}\n{before}{carets}"))
}

fn visible(c: char) -> char {
    if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }
}
