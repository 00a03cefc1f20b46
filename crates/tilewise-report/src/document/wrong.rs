//! Errors in equations.

use crate::plain::Plain;
use std::ops::Range;
use tilewise_audit::Failure;

/// An error, in bytes of the plain text.
pub(super) struct Wrong {
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) span: Range<usize>,
    pub(super) help: Option<String>,
}

/// The form of the document's equations.
const HELP: &str = "such as `linear_index_with_tile((2,3), (3,5), (2,2)) = 17`: the element, the bounds, the tile; or `linear_index((2,3), (3,5))`";

impl Wrong {
    pub(super) fn new(kind: &'static str, message: impl Into<String>, span: Range<usize>) -> Self {
        Self { kind, message: message.into(), span, help: None }
    }

    pub(super) fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The error in bytes of the source.
    pub(super) fn of(self, plain: &Plain) -> Failure {
        let failure = Failure::new(self.kind, self.message).at(plain.source(self.span));
        failure.with_help(self.help.unwrap_or_else(|| HELP.to_owned()))
    }
}
