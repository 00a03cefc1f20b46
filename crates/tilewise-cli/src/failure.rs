//! The error of one item, of whichever crate, as text and as JSON.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;
use std::{ops::Range, path::Path};

/// Why an item could not be done: the `error` of its JSON object, or a message with a caret under the text.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Failure {
    kind: &'static str,
    message: String,
    /// In bytes of the echoed input.
    span: Option<[usize; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

/// Bytes of the input shown around the error.
const SHOWN: usize = 160;

impl Failure {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), span: None, help: None }
    }

    #[must_use]
    pub(crate) fn at(mut self, span: Range<usize>) -> Self {
        self.span = Some([span.start, span.end]);
        self
    }

    #[must_use]
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The error with its span moved to where its text is in the input, `whole`; without a span, it gets all of
    /// `whole`.
    #[must_use]
    pub(crate) fn within(mut self, whole: Range<usize>) -> Self {
        self.span = Some(match self.span {
            Some([from, to]) => [whole.start + from, whole.start + to],
            None => [whole.start, whole.end],
        });
        self
    }

    /// The error of a text that is not the echoed input.
    #[must_use]
    pub(crate) fn about(self, what: &str, text: &str) -> Self {
        Self { message: format!("{what} `{text}`: {}", self.message), span: None, ..self }
    }

    /// The error of a file, which the message names first.
    #[must_use]
    pub(crate) fn in_file(self, path: &Path) -> Self {
        let file = if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() };
        Self { message: format!("{file}: {}", self.message), ..self }
    }

    pub(crate) fn has_span(&self) -> bool {
        self.span.is_some()
    }

    /// For people: the message, the text with a caret, what to write instead. Styled; the stream removes styles it
    /// can't show.
    pub(crate) fn render(&self, input: &str) -> String {
        let title = Level::ERROR.primary_title(self.message.as_str()).id(self.kind);
        let mut group = match self.span.and_then(|span| excerpt(input, span)) {
            Some((text, span)) => {
                title.element(Snippet::source(text).fold(false).annotation(AnnotationKind::Primary.span(span)))
            }
            None => Group::with_title(title),
        };
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        Renderer::styled().render(&[group])
    }
}

/// The part of the input around a span, on one line and on character boundaries, and the span within it.
///
/// `None` where the span is not inside the input.
///
/// ```
/// assert_eq!(tilewise_cli::excerpt("f32[2]\nb16[2,3]", [7, 10]), Some(("b16[2,3]", 0..3)));
/// ```
#[must_use]
pub fn excerpt(input: &str, [start, end]: [usize; 2]) -> Option<(&str, Range<usize>)> {
    input.get(start..end)?;
    let line = input[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let from = floor(input, start.saturating_sub(SHOWN / 2).max(line));
    let line_end = input[start..].find('\n').map_or(input.len(), |newline| start + newline);
    let to = floor(input, (from + SHOWN).min(line_end).max(start));
    Some((&input[from..to], start - from..end.clamp(start, to) - from))
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl From<tilewise::Error> for Failure {
    fn from(error: tilewise::Error) -> Self {
        Self {
            kind: error.kind().as_str(),
            message: error.to_string(),
            span: error.span().map(|span| [span.start, span.end]),
            help: error.help().map(str::to_owned),
        }
    }
}

impl From<tilewise_hlo::Error> for Failure {
    fn from(error: tilewise_hlo::Error) -> Self {
        // The span is in bytes of the file, which is not echoed; the message says where.
        Self::new(error.kind().as_str(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_stay_on_the_line_and_on_characters() {
        let long = format!("{}é{}", "x".repeat(300), "y".repeat(300));
        let (text, span) = excerpt(&long, [300, 302]).expect("inside");
        assert_eq!(&text[span], "é");
        assert!(text.len() <= SHOWN);
        let (text, span) = excerpt("ab\ncd\nef", [3, 4]).expect("inside");
        assert_eq!((text, span), ("cd", 0..1));
        assert_eq!(excerpt("ab", [2, 2]).expect("the end"), ("ab", 2..2));
        assert_eq!(excerpt("ab", [1, 9]), None);
    }
}
