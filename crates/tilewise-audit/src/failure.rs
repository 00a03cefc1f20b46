//! Why an input could not be done.

use std::{fmt, ops::Range, path::Path};

/// Why an input could not be done, of whichever crate the error is. With the `serde` feature it serialises as the
/// `error` of a `JsonLine` of `tilewise-report`.
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
    /// What went wrong.
    pub message: String,
    /// The bytes of the input that are wrong; `None` where the input is a file.
    pub span: Option<Range<usize>>,
    /// What to do instead.
    pub help: Option<String>,
}

impl Failure {
    /// A failure without a span or help.
    #[must_use]
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), span: None, help: None }
    }

    /// The failure of these bytes of the input.
    #[must_use]
    pub fn at(self, span: Range<usize>) -> Self {
        Self { span: Some(span), ..self }
    }

    /// The failure with what to do instead.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The failure with its span moved to where its text is in the input, `whole`; without a span, it gets all of
    /// `whole`.
    #[must_use]
    pub fn within(self, whole: Range<usize>) -> Self {
        let moved = |at: usize| whole.start.saturating_add(at);
        let span = self.span.clone().map_or(whole.clone(), |span| moved(span.start)..moved(span.end));
        self.at(span)
    }

    /// The failure of a text that is not the echoed input.
    #[must_use]
    pub fn about(self, what: &str, text: &str) -> Self {
        Self { message: format!("{what} `{text}`: {}", self.message), span: None, ..self }
    }

    /// The failure of a file, which the message names first; `-` is standard input.
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
        // The span is in bytes of the file, which is not echoed; the message says where.
        Self::new(error.kind().as_str(), error.to_string())
    }
}

impl From<tilewise_oom::Error> for Failure {
    fn from(error: tilewise_oom::Error) -> Self {
        Self::new(error.as_str(), error.to_string())
            .with_help("paste the whole text of the error that begins with RESOURCE_EXHAUSTED")
    }
}
