//! The severity of messages.

/// The severity of a message: of several in one text, the most severe comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// A log or statistics: nothing failed.
    Report,
    /// A warning: the program may run.
    Warning,
    /// Something failed.
    Error,
}

impl Level {
    /// A stable name in snake case, for machines.
    ///
    /// ```
    /// assert_eq!(tilewise_oom::Level::Report.as_str(), "report");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
