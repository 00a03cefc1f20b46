//! Errors, and warnings about a text that could be read.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::span::Span;

/// The reason why a text can't be read.
///
/// It has a [`kind`](Error::kind) and the bytes it is about ([`span`](Error::span)), and prints as a message with the
/// fault, its place and a remedy. Its `source` is the error of the system or of [`tilewise`], if there is one.
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

    /// The kind of error.
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
        // Errors about a module as a whole name the line.
        match &self.span {
            Some(span) if !matches!(self.kind, ErrorKind::Refused(_) | ErrorKind::Truncated) => {
                write!(f, " (bytes {}..{})", span.start, span.end)
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|error| &**error as _)
    }
}

/// Refuses a text whose positions a span can't hold.
pub(crate) fn check_size(source: &str) -> Result<(), Error> {
    if u32::try_from(source.len()).is_err() {
        let message = "HLO text of 4 GiB or more can't be read; split it by module or by computation";
        return Err(Error::new(ErrorKind::TooLarge, None, message));
    }
    Ok(())
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
    /// An invalid proto of a program: a name, an id, a shape or the schedule can't be.
    InvalidProto,
    /// The file is a profile of several programs, where one is wanted; [`Profile`](crate::Profile) has each.
    SeveralPrograms,
    /// The data ends too early, as of a file that is cut off or still being written.
    Truncated,
    /// The text is no program: XLA's own parser refuses it.
    Refused(WarningKind),
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
            Self::SeveralPrograms => "several_programs",
            Self::Truncated => "truncated",
            Self::Refused(kind) => kind.as_str(),
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
    pub(crate) fn new(kind: WarningKind, span: Span) -> Self {
        Self { kind, start: span.start, end: span.end }
    }

    /// The kind of warning.
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
        write!(f, "{} (bytes {}..{})", self.kind.message(), self.start, self.end)
    }
}

/// The kinds of [`Warning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// Lines, or a part of one, that are neither an instruction, nor a computation, nor a table.
    UnreadLines,
    /// A computation without a closing brace.
    UnterminatedComputation,
    /// A comment without its end.
    UnterminatedComment,
    /// A second `HloModule`: reading stopped before it.
    SeveralModules,
    /// Several computations and none marked `ENTRY`: the last is used.
    NoEntry,
    /// A truncated text that lost its entry computation.
    EntryMissing,
    /// A second computation marked `ENTRY`: the first is used.
    SeveralEntries,
    /// A second `ROOT` in a computation: the last is used.
    SeveralRoots,
    /// An instruction or a computation with the name of another.
    DuplicateName,
    /// An operand that its computation doesn't define above.
    UndefinedOperand,
    /// Something behind an operand's name that isn't read: a newer compiler may print it.
    OperandSyntax,
    /// An operand that names an element (`%p#2`) of an array, or of a tuple that is shorter.
    NoElement,
    /// A computation that is called and isn't defined above.
    UndefinedComputation,
    /// Parameters that aren't numbered 0, 1, 2 ….
    ParameterNumbers,
    /// A root whose shape differs from that in the line above its computation.
    RootMismatch,
    /// An entry whose parameters or result differ from those in the header, or in the line above it.
    HeaderMismatch,
    /// An instruction without an attribute that it needs: a `fusion` without `calls`.
    MissingAttribute,
    /// An attribute spelt nearly like one that a plan of memory depends on.
    MisspeltAttribute,
    /// An attribute that is given twice.
    DuplicateAttribute,
    /// An attribute that calls a computation, of an instruction that doesn't take it.
    UnexpectedAttribute,
    /// An unknown attribute of the module, which may matter for its memory.
    UnknownHeaderAttribute,
    /// An attribute of the module with a value that it can't have.
    HeaderValue,
    /// An instruction with more or fewer operands than it takes.
    OperandCount,
    /// An instruction without shape, where none can be inferred.
    NoShape,
    /// An instruction with an unknown opcode.
    UnknownOpcode,
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
            Self::UnterminatedComment => "unterminated_comment",
            Self::SeveralModules => "several_modules",
            Self::NoEntry => "no_entry",
            Self::EntryMissing => "entry_missing",
            Self::SeveralEntries => "several_entries",
            Self::SeveralRoots => "several_roots",
            Self::DuplicateName => "duplicate_name",
            Self::UndefinedOperand => "undefined_operand",
            Self::OperandSyntax => "operand_syntax",
            Self::NoElement => "no_element",
            Self::UndefinedComputation => "undefined_computation",
            Self::ParameterNumbers => "parameter_numbers",
            Self::RootMismatch => "root_mismatch",
            Self::HeaderMismatch => "header_mismatch",
            Self::MissingAttribute => "missing_attribute",
            Self::MisspeltAttribute => "misspelt_attribute",
            Self::DuplicateAttribute => "duplicate_attribute",
            Self::UnexpectedAttribute => "unexpected_attribute",
            Self::UnknownHeaderAttribute => "unknown_header_attribute",
            Self::HeaderValue => "header_value",
            Self::OperandCount => "operand_count",
            Self::NoShape => "no_shape",
            Self::UnknownOpcode => "unknown_opcode",
        }
    }

    /// Whether XLA's own parser refuses such a text. It accepts the others, or they are of a newer compiler.
    #[must_use]
    pub fn is_refused_by_xla(self) -> bool {
        !matches!(
            self,
            Self::SeveralModules
                | Self::NoEntry
                | Self::HeaderMismatch
                | Self::HeaderValue
                | Self::UnknownHeaderAttribute
                | Self::UnknownOpcode
        )
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::UnreadLines => "not read: neither an instruction (`name = shape opcode(operands)`) nor a computation",
            Self::UnterminatedComputation => "the computation has no closing brace; the text may be truncated",
            Self::UnterminatedComment => "the comment is never closed; everything after it was skipped",
            Self::SeveralModules => {
                "another HloModule starts here; only the first was read (`Module::parse_all` reads all)"
            }
            Self::NoEntry => "no computation is marked ENTRY; the last one is used as the entry, as in XLA",
            Self::EntryMissing => {
                "no computation is marked ENTRY and the text is truncated, so there is no entry computation"
            }
            Self::SeveralEntries => "a second computation is marked ENTRY",
            Self::SeveralRoots => "a second instruction of the computation is marked ROOT",
            Self::DuplicateName => "the name is given a second time",
            Self::UndefinedOperand => "the operand isn't defined above",
            Self::OperandSyntax => "the operand's syntax isn't known; a compiler newer than this reader may print it",
            Self::NoElement => "the operand names an element that its tuple doesn't have",
            Self::UndefinedComputation => "the computation isn't defined above",
            Self::ParameterNumbers => "the computation's parameters aren't numbered 0, 1, 2 …",
            Self::RootMismatch => "the root's shape isn't the one that the line above its computation says",
            Self::HeaderMismatch => {
                "the entry's parameters or its result aren't those that the header says, or the line above the entry"
            }
            Self::MissingAttribute => "the instruction lacks an attribute that it can't do without",
            Self::MisspeltAttribute => "the attribute is nearly one that is known",
            Self::DuplicateAttribute => "the attribute is given a second time",
            Self::UnexpectedAttribute => "the instruction takes no such attribute",
            Self::UnknownHeaderAttribute => "the module has an attribute that isn't known",
            Self::HeaderValue => "the module's attribute can't have that value",
            Self::OperandCount => "the instruction takes another number of operands",
            Self::NoShape => "the instruction has no shape, and none can be inferred",
            Self::UnknownOpcode => "the instruction does what isn't known",
        }
    }
}
