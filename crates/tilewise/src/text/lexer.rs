//! A cursor over the bytes of a shape's text.

use crate::{Error, ErrorKind};
use alloc::{format, string::String};
use core::ops::Range;

/// Hands out tokens on demand, skipping white space and comments in front of each.
pub(super) struct Lexer<'a> {
    text: &'a str,
    position: usize,
    /// Start and end of the last identifier or INT.
    token: (usize, usize),
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0, token: (0, 0) }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// The byte at which the next character will be read.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn rewind(&mut self, position: usize) {
        self.position = position;
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    /// The next byte that is neither white space nor part of a comment; it is not consumed.
    ///
    /// XLA's lexer knows four white-space characters and no others: vertical tab, form feed, NBSP and BOM are errors.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Error> {
        match self.byte() {
            Some(b' ' | b'\t' | b'\n' | b'\r' | b'/') => self.skip_trivia(),
            other => Ok(other),
        }
    }

    fn skip_trivia(&mut self) -> Result<Option<u8>, Error> {
        loop {
            let rest = &self.text[self.position..];
            match rest.as_bytes() {
                [b' ' | b'\t' | b'\n' | b'\r', ..] => self.position += 1,
                [b'/', b'*', ..] => match rest[2..].find("*/") {
                    Some(length) => self.position += 2 + length + 2,
                    None => {
                        return Err(self
                            .error(ErrorKind::Syntax, self.position..self.text.len(), "this comment is never closed")
                            .with_help("end it with `*/`"));
                    }
                },
                [b'/', b'/', ..] => self.position += rest.find('\n').unwrap_or(rest.len()),
                bytes => return Ok(bytes.first().copied()),
            }
        }
    }

    /// Consumes the byte if it comes next.
    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> Result<bool, Error> {
        let found = self.peek()? == Some(byte);
        self.position += usize::from(found);
        Ok(found)
    }

    /// Consumes the byte, or fails with the error that `what` was expected.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8, what: &str) -> Result<(), Error> {
        if self.eat(byte)? { Ok(()) } else { Err(self.expected(what)) }
    }

    /// Consumes the separator behind an item of a list: `,` gives false, the closing bracket true.
    #[inline]
    pub(super) fn list_ends(&mut self, close: u8, what: &str) -> Result<bool, Error> {
        let next = self.peek()?;
        if next != Some(b',') && next != Some(close) {
            let error = self.expected(what);
            let is_times = self.text[self.position..].starts_with(['x', 'X', '×', '*', '∗']);
            return Err(if is_times { error.with_help(SEPARATE) } else { error });
        }
        self.position += 1;
        Ok(next == Some(close))
    }

    /// Consumes `*`, or the documents' `∗` (U+2217).
    #[inline]
    pub(super) fn eat_star(&mut self) -> Result<bool, Error> {
        let length = match self.peek()? {
            Some(b'*') => 1,
            Some(0x80..) if self.text.as_bytes()[self.position..].starts_with("∗".as_bytes()) => "∗".len(),
            _ => 0,
        };
        self.position += length;
        Ok(length > 0)
    }

    /// The bytes of the last identifier or INT that was consumed.
    pub(super) fn token(&self) -> Range<usize> {
        self.token.0..self.token.1
    }

    /// Consumes an identifier `[A-Za-z_][A-Za-z0-9_.-]*`, the longest there is.
    #[inline]
    pub(super) fn identifier(&mut self) -> Result<Option<&'a str>, Error> {
        if !matches!(self.peek()?, Some(b'A'..=b'Z' | b'a'..=b'z' | b'_')) {
            return Ok(None);
        }
        let start = self.position;
        self.position = self.end_of_identifier(start);
        self.token = (start, self.position);
        Ok(Some(&self.text[start..self.position]))
    }

    #[inline]
    fn end_of_identifier(&self, start: usize) -> usize {
        let rest = &self.text.as_bytes()[start..];
        start + rest.iter().position(|&byte| !continues_identifier(byte)).unwrap_or(rest.len())
    }

    /// Consumes an INT, `[-]DIGIT{DIGIT}`; `what` names it in errors.
    #[inline(always)]
    pub(super) fn int(&mut self, what: &str) -> Result<i64, Error> {
        // Most numbers in layouts have one digit.
        let start = self.position;
        let bytes = self.text.as_bytes();
        match (bytes.get(start), bytes.get(start + 1)) {
            (Some(digit @ b'0'..=b'9'), Some(&next)) if !continues_identifier(next) => {
                self.position = start + 1;
                self.token = (start, start + 1);
                Ok(i64::from(digit - b'0'))
            }
            _ => self.any_int(what),
        }
    }

    fn any_int(&mut self, what: &str) -> Result<i64, Error> {
        /// Any number of at most these digits fits.
        const SAFE_DIGITS: usize = 18;
        self.peek()?;
        let start = self.position;
        let rest = &self.text.as_bytes()[start..];
        let negative = rest.first() == Some(&b'-');
        let mut value = 0i64;
        let mut length = usize::from(negative);
        while let Some(digit @ b'0'..=b'9') = rest.get(length) {
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            length += 1;
        }
        let digits = length - usize::from(negative);
        let ends_well = !rest.get(length).is_some_and(|&byte| continues_identifier(byte));
        if digits == 0 || digits > SAFE_DIGITS || !ends_well {
            return self.unusual_int(digits, ends_well, start..start + length, what);
        }
        self.position = start + length;
        self.token = (start, self.position);
        Ok(if negative { -value } else { value })
    }

    #[cold]
    fn unusual_int(&mut self, digits: usize, ends_well: bool, span: Range<usize>, what: &str) -> Result<i64, Error> {
        if digits == 0 {
            return Err(self.expected(what));
        }
        if !ends_well {
            let span = span.start..self.end_of_identifier(span.end);
            let text = &self.text[span.clone()];
            let is_product = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'x');
            let error = self.error(ErrorKind::Syntax, span, format!("`{text}` is not an integer"));
            return Err(if is_product { error.with_help(SEPARATE) } else { error });
        }
        self.position = span.end;
        self.token = (span.start, span.end);
        self.text[span.clone()]
            .parse()
            .map_err(|_| self.error(ErrorKind::Overflow, span, "this number does not fit in a signed 64-bit integer"))
    }

    pub(super) fn error(&self, kind: ErrorKind, span: Range<usize>, message: impl Into<String>) -> Error {
        Error::new(kind, message).at(span)
    }

    /// A syntax error at the cursor: this was expected, that was found.
    #[cold]
    pub(super) fn expected(&self, what: &str) -> Error {
        let rest = &self.text[self.position..];
        let end = self.position + rest.chars().next().map_or(0, char::len_utf8);
        let found = match rest.chars().next() {
            None => String::from("the text ends"),
            Some(c) if is_unseen(c) => format!("there is U+{:04X}", u32::from(c)),
            Some(c) => format!("there is `{c}`"),
        };
        self.error(ErrorKind::Syntax, self.position..end, format!("expected {what}, but {found}"))
    }
}

/// Whether a character is invisible, so that its number names it: control characters, blanks but ASCII's, and marks of
/// no width.
fn is_unseen(c: char) -> bool {
    let has_no_width =
        matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
    c.is_control() || c.is_whitespace() && c != ' ' || has_no_width || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

const SEPARATE: &str = "separate sizes by commas, such as `2,3`";

#[inline]
fn continues_identifier(byte: u8) -> bool {
    const TABLE: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 128u8 {
            table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
            byte += 1;
        }
        table
    };
    TABLE[usize::from(byte)]
}
