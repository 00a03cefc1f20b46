//! Codes and messages: how Rust's errors reach C.

use std::{
    ffi::c_char,
    panic::{AssertUnwindSafe, catch_unwind},
};
use tilewise::ErrorKind;

/// The code that a function returns. New codes may be added.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tw_code {
    /// Done.
    TW_OK = 0,
    /// A pointer is NULL or not aligned, buffers overlap, a text is no UTF-8, or a name is unknown.
    TW_INVALID_ARGUMENT = 1,
    /// The text, the message or the parts are no layout: what is wrong is in the message, and where in `start` and `end`.
    TW_INVALID_LAYOUT = 2,
    /// A legal layout that the question has no answer for: a tuple, a missing layout, a dimension without a bound.
    TW_UNSUPPORTED = 3,
    /// A size above 2^63 - 1.
    TW_OVERFLOW = 4,
    /// An index, an offset or a slice outside the array.
    TW_OUT_OF_RANGE = 5,
    /// Two layouts are of different arrays.
    TW_MISMATCH = 6,
    /// A buffer has another length than its layout takes.
    TW_BUFFER_LENGTH = 7,
    /// A defect of this library.
    TW_INTERNAL = 8,
}

use tw_code::{
    TW_BUFFER_LENGTH, TW_INTERNAL, TW_INVALID_ARGUMENT, TW_INVALID_LAYOUT, TW_MISMATCH, TW_OK, TW_OUT_OF_RANGE,
    TW_OVERFLOW, TW_UNSUPPORTED,
};

/// An error: its code, its place in a text, and its message.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tw_error {
    /// The function's answer, too.
    pub code: i32,
    /// Where the bytes of the text begin that are wrong; 0 where no text is.
    pub start: u32,
    /// Where they end.
    pub end: u32,
    /// The problem and its remedy: UTF-8, NUL-terminated, cut off at a character where it is longer.
    pub message: [c_char; 256],
}

const MESSAGE_BYTES: usize = 256;

/// An error on its way to C.
#[derive(Debug)]
pub(crate) struct Failure {
    code: tw_code,
    span: (usize, usize),
    message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: tw_code, message: impl Into<String>) -> Self {
        Self { code, span: (0, 0), message: message.into() }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(TW_INVALID_ARGUMENT, message)
    }

    pub(crate) fn at(self, start: usize, end: usize) -> Self {
        Self { span: (start, end), ..self }
    }

    fn of(code: tw_code, span: Option<std::ops::Range<usize>>, message: &dyn ToString, help: Option<&str>) -> Self {
        let mut message = message.to_string();
        if let Some(help) = help {
            message.push_str(": ");
            message.push_str(help);
        }
        let span = span.map_or((0, 0), |span| (span.start, span.end));
        Self { code, span, message }
    }
}

impl From<tilewise::Error> for Failure {
    fn from(error: tilewise::Error) -> Self {
        Self::of(code_of(error.kind()), error.span(), &error, error.help())
    }
}

impl From<tilewise_relayout::Error> for Failure {
    fn from(error: tilewise_relayout::Error) -> Self {
        use tilewise_relayout::ErrorKind as Kind;
        let code = match error.kind() {
            Kind::ShapeMismatch => TW_MISMATCH,
            Kind::BufferLengthMismatch => TW_BUFFER_LENGTH,
            Kind::Layout(kind) => code_of(kind),
            _ => TW_UNSUPPORTED,
        };
        Self::of(code, None, &error, None)
    }
}

/// The code of an error kind; kinds that callers handle alike share one.
fn code_of(kind: ErrorKind) -> tw_code {
    match kind {
        ErrorKind::Overflow => TW_OVERFLOW,
        ErrorKind::IndexOutOfBounds | ErrorKind::OffsetOutOfRange => TW_OUT_OF_RANGE,
        ErrorKind::IndexRankMismatch
        | ErrorKind::UnknownGeneration
        | ErrorKind::UnknownElementType
        | ErrorKind::InvalidSharding
        | ErrorKind::BufferLengthMismatch => TW_INVALID_ARGUMENT,
        ErrorKind::UnboundedDimension
        | ErrorKind::NotAnArray
        | ErrorKind::MissingLayout
        | ErrorKind::Undecided
        | ErrorKind::UnsupportedElementType
        | ErrorKind::NotExpressible => TW_UNSUPPORTED,
        _ => TW_INVALID_LAYOUT,
    }
}

/// Runs a function's body and returns its code. A panic becomes `TW_INTERNAL`: C can't unwind it.
pub(crate) fn answer(error: *mut tw_error, body: impl FnOnce() -> Result<()>) -> i32 {
    let done = catch_unwind(AssertUnwindSafe(body));
    let failure = match done {
        Ok(Ok(())) => return TW_OK as i32,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(TW_INTERNAL, "a defect of tilewise: please report what you called"),
    };
    if !error.is_null() && error.is_aligned() {
        // SAFETY: The caller points to a `tw_error` that it may write, or gives NULL (the interface's contract).
        unsafe { error.write(tw_error::of(&failure)) };
    }
    failure.code as i32
}

/// Runs the body of a query that can't fail; a panic returns `otherwise`.
pub(crate) fn look<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

impl tw_error {
    fn of(failure: &Failure) -> Self {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut message = [0; MESSAGE_BYTES];
        let mut length = failure.message.len().min(MESSAGE_BYTES - 1);
        while !failure.message.is_char_boundary(length) {
            length -= 1;
        }
        // A NUL inside would end the message early; texts can have one.
        let bytes = failure.message.as_bytes()[..length].iter().map(|&byte| if byte == 0 { b'?' } else { byte });
        for (place, byte) in message.iter_mut().zip(bytes) {
            *place = c_char::from_ne_bytes([byte]);
        }
        Self { code: failure.code as i32, start: place(failure.span.0), end: place(failure.span.1), message }
    }
}
