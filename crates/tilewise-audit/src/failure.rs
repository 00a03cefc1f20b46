//! The error of an input.

use std::{fmt, ops::Range, path::Path};

/// The error of an input, from any crate. With the `serde` feature it serialises as the `error` of a `JsonLine` of
/// `tilewise-report`.
///
/// ```
/// use tilewise_audit::Failure;
///
/// let failure = Failure::from("f32[2".parse::<tilewise::Shape>().unwrap_err());
/// assert_eq!((failure.kind, failure.span), ("syntax", Some(5..5)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// A stable name in snake case.
    pub kind: &'static str,
    /// The error in words.
    pub message: String,
    /// The erroneous bytes of the input; `None` if the input is a file.
    pub span: Option<Range<usize>>,
    /// How to fix it.
    pub help: Option<String>,
}

impl Failure {
    /// A failure without a span or help.
    #[must_use]
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), span: None, help: None }
    }

    /// Sets the span, in bytes of the input.
    #[must_use]
    pub fn at(self, span: Range<usize>) -> Self {
        Self { span: Some(span), ..self }
    }

    /// Sets the help: how to fix it.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Shifts the span to the place of its text, `whole`, in the input; without a span, sets it to `whole`.
    #[must_use]
    pub fn within(self, whole: Range<usize>) -> Self {
        let moved = |at: usize| whole.start.saturating_add(at);
        let span = self.span.clone().map_or(whole.clone(), |span| moved(span.start)..moved(span.end));
        self.at(span)
    }

    /// Puts `what` and `text` before the message and drops the span: the text isn't the echoed input.
    #[must_use]
    pub fn about(self, what: &str, text: &str) -> Self {
        Self { message: format!("{what} `{text}`: {}", self.message), span: None, ..self }
    }

    /// Puts the file's path before the message; `-` is standard input.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        let file = if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() };
        Self { message: format!("{file}: {}", self.message), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<tilewise::Error> for Failure {
    fn from(error: tilewise::Error) -> Self {
        Self {
            kind: error.kind().as_str(),
            message: error.to_string(),
            span: error.span(),
            help: error.help().map(str::to_owned),
        }
    }
}

impl From<tilewise_hlo::Error> for Failure {
    fn from(error: tilewise_hlo::Error) -> Self {
        // The span is in bytes of the file, which is not echoed; the message has the position.
        Self::new(error.kind().as_str(), error.to_string())
    }
}

impl From<tilewise_oom::Error> for Failure {
    fn from(error: tilewise_oom::Error) -> Self {
        let failure = Self::new(error.as_str(), error.to_string());
        if error.is_about_another() {
            return failure;
        }
        failure
            .with_help(
            "paste the error's own lines, from `RESOURCE_EXHAUSTED`, `Ran out of memory` or `Killed` on, with the list below them; without \
             any, dump the program (`XLA_FLAGS=\"--xla_dump_to=dump --xla_dump_hlo_as_text\"`) and run `tilewise audit dump`",
        )
    }
}
