//! What is wrong with an equation.

use crate::plain::Plain;
use std::ops::Range;
use tilewise_audit::Failure;

/// What is wrong, in bytes of the plain text.
pub(super) struct Wrong {
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) span: Range<usize>,
    pub(super) help: Option<String>,
}

/// What an equation of the document is.
const HELP: &str = "such as `linear_index_with_tile((2,3), (3,5), (2,2)) = 17`: the element, the bounds, the tile; or `linear_index((2,3), (3,5))`";

impl Wrong {
    pub(super) fn new(kind: &'static str, message: impl Into<String>, span: Range<usize>) -> Self {
        Self { kind, message: message.into(), span, help: None }
    }

    pub(super) fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The failure of the source.
    pub(super) fn of(self, plain: &Plain) -> Failure {
        let failure = Failure::new(self.kind, self.message).at(plain.source(self.span));
        failure.with_help(self.help.unwrap_or_else(|| HELP.to_owned()))
    }
}
