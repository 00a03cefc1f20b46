//! A cursor over the bytes of a shape's text.

use crate::{Error, ErrorKind};
use alloc::{format, string::String};
use core::ops::Range;

/// Hands out tokens on demand, skipping white space and comments in front of each.
pub(super) struct Lexer<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
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

    /// Consumes the byte, or says that it was expected.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8, what: &str) -> Result<(), Error> {
        if self.eat(byte)? { Ok(()) } else { Err(self.expected(what)) }
    }

    /// Consumes `*`, or the documents' `∗` (U+2217).
    pub(super) fn eat_star(&mut self) -> Result<bool, Error> {
        self.peek()?;
        let rest = &self.text.as_bytes()[self.position..];
        let length = if rest.starts_with(b"*") {
            1
        } else if rest.starts_with("∗".as_bytes()) {
            "∗".len()
        } else {
            0
        };
        self.position += length;
        Ok(length > 0)
    }

    /// Consumes an identifier `[A-Za-z_][A-Za-z0-9_.-]*`, the longest there is.
    pub(super) fn identifier(&mut self) -> Result<Option<(&'a str, Range<usize>)>, Error> {
        if !matches!(self.peek()?, Some(b'A'..=b'Z' | b'a'..=b'z' | b'_')) {
            return Ok(None);
        }
        let start = self.position;
        self.position += self.text.as_bytes()[start..].iter().take_while(|&&b| continues_identifier(b)).count();
        Ok(Some((&self.text[start..self.position], start..self.position)))
    }

    /// Consumes an INT, `[-]DIGIT{DIGIT}`; `what` says what it would have been.
    #[inline]
    pub(super) fn int(&mut self, what: &str) -> Result<(i64, Range<usize>), Error> {
        self.peek()?;
        let start = self.position;
        let bytes = self.text.as_bytes();
        let negative = bytes.get(start) == Some(&b'-');
        let digits = start + usize::from(negative);
        let mut end = digits;
        // Sums stay negative: that side holds −2^63 as well.
        let mut value = Some(0i64);
        while let Some(digit @ b'0'..=b'9') = bytes.get(end) {
            value = value.and_then(|v| v.checked_mul(10)).and_then(|v| v.checked_sub(i64::from(digit - b'0')));
            end += 1;
        }
        if end == digits {
            return Err(self.expected(what));
        }
        if bytes.get(end).is_some_and(|&b| continues_identifier(b)) {
            end += bytes[end..].iter().take_while(|&&b| continues_identifier(b)).count();
            let text = &self.text[start..end];
            return Err(self.error(ErrorKind::Syntax, start..end, format!("`{text}` is not an integer")));
        }
        self.position = end;
        let value = if negative { value } else { value.and_then(i64::checked_neg) };
        match value {
            Some(value) => Ok((value, start..end)),
            None => Err(self.error(ErrorKind::Overflow, start..end, "this number does not fit in 64 bits with a sign")),
        }
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
            Some(c) if c.is_control() => format!("there is U+{:04X}", u32::from(c)),
            Some(c) => format!("there is `{c}`"),
        };
        self.error(ErrorKind::Syntax, self.position..end, format!("expected {what}, but {found}"))
    }
}

fn continues_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}
