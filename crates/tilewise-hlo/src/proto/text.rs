//! The text that a proto is printed to.

use std::fmt::{self, Display, Write};

use crate::error::{Error, ErrorKind};

/// Bytes of text that a byte of a proto may become. A proto names an operand in two or three bytes, a text in full.
const GROWTH: usize = 64;

/// A text that refuses to grow without bound: a small proto may name a long name many times.
pub(super) struct Text {
    text: String,
    limit: usize,
}

impl Text {
    /// An empty text for a proto of `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let limit = bytes.saturating_mul(GROWTH).saturating_add(1 << 20);
        Self { text: String::new(), limit: limit.min(u32::MAX as usize) }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.text.len() + part.len() > self.limit {
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

// Writing to a `Text` fails only at its limit.
impl From<fmt::Error> for Error {
    fn from(_: fmt::Error) -> Self {
        Self::new(ErrorKind::TooLarge, None, "the proto's names make an unreasonably long text")
    }
}

/// A list as XLA writes it in braces: `{1,0}`.
pub(super) struct Braced<'a, T>(pub(super) &'a [T]);

impl<T: Display> Display for Braced<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, number) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{number}")?;
        }
        f.write_str("}")
    }
}

/// A string in quotes, with the escapes of `absl::CEscape`.
pub(super) struct Quoted<'a>(pub(super) &'a [u8]);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for byte in self.0 {
            match byte {
                b'\n' => f.write_str("\\n")?,
                b'\r' => f.write_str("\\r")?,
                b'\t' => f.write_str("\\t")?,
                b'"' | b'\'' | b'\\' => write!(f, "\\{}", char::from(*byte))?,
                b' '..=b'~' => f.write_char(char::from(*byte))?,
                other => write!(f, "\\{other:03o}")?,
            }
        }
        f.write_str("\"")
    }
}
