//! The text to read: without wrapping, without characters that act on a terminal, and with a line feed behind each
//! line.

use super::wrapping::unwrapped;
use crate::scan::{peek, string_end};
use memchr::memmem;
use std::borrow::Cow;
use tilewise::visible_lines;

/// The text without control characters, which a terminal that prints its names would interpret. XLA prints none.
pub(super) fn shown(source: String) -> String {
    let source = unwrapped(line_breaks(source));
    let (mark, text) = source.split_at(if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 });
    if let Cow::Owned(shown) = visible_lines(text) {
        return format!("{mark}{shown}");
    }
    source
}

/// The text with line feeds for carriage returns on their own, which are white space to XLA's lexer and end its comments
/// (`HloLexer::LexToken` in xla/hlo/parser/hlo_lexer.cc); those in strings stay.
fn line_breaks(source: String) -> String {
    let is_alone = |bytes: &[u8], at: usize| peek(bytes, at + 1) != b'\n';
    if memchr::memchr_iter(b'\r', source.as_bytes()).all(|at| !is_alone(source.as_bytes(), at)) {
        return source;
    }
    let mut text = source.clone().into_bytes();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at = match (byte, peek(&text, at + 1)) {
            (b'"', _) => string_end(&text, at, false).unwrap_or(text.len()),
            (b'/', b'*') => memmem::find(&text[at + 2..], b"*/").map_or(text.len(), |end| at + 2 + end + 2),
            (b'/', b'/') => memchr::memchr2(b'\r', b'\n', &text[at..]).map_or(text.len(), |end| at + end),
            (b'\r', next) if next != b'\n' => {
                text[at] = b'\n';
                at + 1
            }
            _ => at + 1,
        };
    }
    // One ASCII byte replaces another.
    String::from_utf8(text).unwrap_or(source)
}
