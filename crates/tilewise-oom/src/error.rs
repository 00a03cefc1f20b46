//! The error for a text without a message.

use std::fmt;

/// The text holds no TPU out-of-memory message.
///
/// `Display` names the wordings that are looked for and, if known, the kind of text found instead.
///
/// ```
/// use tilewise_oom::Message;
///
/// let error = Message::parse("Segmentation fault").unwrap_err();
/// assert_eq!(error.as_str(), "not_an_oom_message");
/// assert!(error.to_string().contains("Ran out of memory in memory space"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub(crate) found: Option<&'static str>,
}

impl Error {
    /// A stable name in snake case, for machines.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        "not_an_oom_message"
    }

    /// The error for a text, with its kind if known.
    pub(crate) fn of(text: &str) -> Self {
        let is_program = text.contains("HloModule ").then_some("this looks like HLO text; audit it instead");
        Self { found: is_program.or(text.trim().is_empty().then_some("the text is empty")) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no TPU out-of-memory message found; looked for `Ran out of memory in memory space …`, `Ran out of memory \
             on HBM`, `Allocation (size=…) would exceed memory`, `unlikely to have enough memory`, `That was not \
             possible. There are … free`, or a list `Largest program allocations in …`; paste the message from \
             `RESOURCE_EXHAUSTED:` on",
        )?;
        self.found.map_or(Ok(()), |found| write!(f, " ({found})"))
    }
}

impl std::error::Error for Error {}
