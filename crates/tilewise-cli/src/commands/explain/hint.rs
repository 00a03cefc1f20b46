//! What a piece of advice is.

use serde::Serialize;

/// A piece of advice.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Hint {
    /// What sort of change it is, such as `order` or `chunk`.
    pub(super) kind: &'static str,
    /// What is changed: `argument`, `result`, `upstream`, `value`, `kernel`, `compiler`, `process`.
    pub(super) target: &'static str,
    /// The array it is about.
    pub(super) shape: Option<String>,
    /// What it frees, where that is known.
    pub(super) bytes_saved: Option<u64>,
    /// Whether that is the most it can free.
    pub(super) is_bound: bool,
    /// What to do, without a full stop.
    pub(super) sentence: String,
    /// The code that does it.
    pub(super) code: Option<String>,
    /// What that code imports.
    pub(super) imports: Option<&'static str>,
}

impl Hint {
    pub(super) fn new(kind: &'static str, target: &'static str, sentence: impl Into<String>) -> Self {
        Self { kind, target, sentence: sentence.into(), ..Self::default() }
    }

    /// At most so many bytes.
    pub(super) fn up_to(mut self, saved: u64) -> Self {
        (self.bytes_saved, self.is_bound) = (Some(saved), true);
        self
    }

    pub(super) fn with_code(mut self, imports: &'static str, code: impl Into<String>) -> Self {
        (self.imports, self.code) = (Some(imports), Some(code.into()));
        self
    }
}
