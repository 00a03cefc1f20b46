//! Errors, and warnings about a text that could be read.

use std::fmt;
use std::ops::Range;
use std::path::Path;

/// Why a text can't be read.
///
/// Ask it for its [`kind`](Error::kind), for the bytes it is about ([`span`](Error::span)), and print it for a
/// message that says what, where and what to do instead. Its `source` is the error of the system or of [`tilewise`]
/// where there is one.
///
/// ```
/// use tilewise_hlo::{ErrorKind, Module};
///
/// let error = Module::parse("module @jit_f {\n}").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotHlo);
/// assert!(error.to_string().contains("StableHLO"));
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    span: Option<Range<usize>>,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, span: Option<Range<usize>>, message: impl Into<String>) -> Self {
        Self { kind, span, message: message.into(), source: None }
    }

    /// The error that this one wraps, and whose text `message` includes.
    pub(crate) fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(source)), ..self }
    }

    /// The error of a file, which the message names first.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self { message: format!("{}: {}", path.display(), self.message), ..self }
    }

    /// What kind of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The bytes of the text that the error is about, where there are any.
    #[must_use]
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.span {
            Some(span) => write!(f, " (bytes {}..{})", span.start, span.end),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|error| &**error as _)
    }
}

/// The kinds of [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text holds no HLO instruction.
    NotHlo,
    /// An attribute isn't written as XLA writes it.
    Syntax,
    /// The text has 4 GiB or more: ranges are kept in 32 bits.
    TooLarge,
    /// A shape isn't valid; the source is [`tilewise`]'s error.
    Shape,
    /// The bytes are neither UTF-8 nor UTF-16 text.
    NotUtf8,
    /// The decompressed text passes the limit, or is out of proportion to the compressed data.
    GzipTooLarge,
    /// The file is gzip, and this build has no `gzip` feature.
    GzipUnsupported,
    /// A proto of a program that is none: a name, an id, a shape or the schedule can't be.
    InvalidProto,
    /// The data ends too early, as of a file that is cut off or still being written.
    Truncated,
    /// The file can't be read.
    Io,
}

impl ErrorKind {
    /// A stable name in snake case, for machines.
    ///
    /// ```
    /// assert_eq!(tilewise_hlo::ErrorKind::NotHlo.as_str(), "not_hlo");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotHlo => "not_hlo",
            Self::Syntax => "syntax",
            Self::TooLarge => "too_large",
            Self::Shape => "shape",
            Self::NotUtf8 => "not_utf8",
            Self::GzipTooLarge => "gzip_too_large",
            Self::GzipUnsupported => "gzip_unsupported",
            Self::InvalidProto => "invalid_proto",
            Self::Truncated => "truncated",
            Self::Io => "io",
        }
    }
}

/// Something in the text that was skipped, or that isn't as XLA writes it.
///
/// ```
/// use tilewise_hlo::{Module, WarningKind};
///
/// let module = Module::parse("f {\n  x = f32[2] parameter(0)\n").unwrap();
/// let warning = &module.warnings()[0];
/// assert_eq!(warning.kind(), WarningKind::UnterminatedComputation);
/// assert_eq!(warning.span(), 0..1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub(crate) kind: WarningKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Warning {
    /// What kind of warning this is.
    #[must_use]
    pub fn kind(&self) -> WarningKind {
        self.kind
    }

    /// The bytes it is about. Neighbouring unread lines are one warning.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match self.kind {
            WarningKind::UnreadLines => {
                "not read: neither an instruction (`name = shape opcode(operands)`) nor a computation"
            }
            WarningKind::UnterminatedComputation => "the computation has no closing brace; the text may be truncated",
            WarningKind::UnterminatedAttributes => "the instruction's attributes have an unclosed bracket or quote",
            WarningKind::UnterminatedComment => "the comment is never closed; everything after it was skipped",
            WarningKind::SeveralModules => {
                "another HloModule starts here; only the first was read (`Module::parse_all` reads all)"
            }
            WarningKind::NoEntry => "no computation is marked ENTRY; the last one is used as the entry, as in XLA",
            WarningKind::EntryMissing => {
                "no computation is marked ENTRY and the text is truncated, so there is no entry computation"
            }
            WarningKind::NestedInstruction => "not read: an instruction within the operands of another; give it a line",
        };
        write!(f, "{message} (bytes {}..{})", self.start, self.end)
    }
}

/// The kinds of [`Warning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// Lines that are neither an instruction, nor a computation, nor a table.
    UnreadLines,
    /// A computation without a closing brace.
    UnterminatedComputation,
    /// An instruction whose attributes open a bracket or a quote that is never closed.
    UnterminatedAttributes,
    /// A comment without its end.
    UnterminatedComment,
    /// A second `HloModule`: reading stopped before it.
    SeveralModules,
    /// Several computations and none marked `ENTRY`: the last is used.
    NoEntry,
    /// A truncated text that lost its entry computation.
    EntryMissing,
    /// An operand that is an instruction itself, as XLA reads but never prints: it was not read.
    NestedInstruction,
}

impl WarningKind {
    /// A stable name in snake case, for machines.
    ///
    /// ```
    /// assert_eq!(tilewise_hlo::WarningKind::UnreadLines.as_str(), "unread_lines");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnreadLines => "unread_lines",
            Self::UnterminatedComputation => "unterminated_computation",
            Self::UnterminatedAttributes => "unterminated_attributes",
            Self::UnterminatedComment => "unterminated_comment",
            Self::SeveralModules => "several_modules",
            Self::NoEntry => "no_entry",
            Self::EntryMissing => "entry_missing",
            Self::NestedInstruction => "nested_instruction",
        }
    }
}
