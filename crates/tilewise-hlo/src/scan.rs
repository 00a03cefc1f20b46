//! Finds the ends of identifiers, brackets, strings and values.
//!
//! Everything here is a loop with a counter, never recursion, so that no text can exhaust the stack.

use memchr::{memchr, memchr2, memchr3};

const IDENTIFIER: u8 = 1;
/// Bytes at which a scan for the end of a bracket stops.
const STOP: u8 = 2;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        #[allow(clippy::cast_possible_truncation)] // below 128
        let character = byte as u8;
        table[byte] = match character {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' => IDENTIFIER,
            b'(' | b'[' | b'{' | b')' | b']' | b'}' | b'"' | b'/' | b'\n' => STOP,
            _ => 0,
        };
        byte += 1;
    }
    table
}

fn class(byte: u8) -> u8 {
    CLASS[usize::from(byte)]
}

/// The byte at `at`, or 0 past the end.
pub(crate) fn peek(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

pub(crate) fn is_identifier(byte: u8) -> bool {
    class(byte) & IDENTIFIER != 0
}

/// The end of the identifier that starts at `at`; `at` itself if none does.
pub(crate) fn identifier_end(bytes: &[u8], mut at: usize) -> usize {
    if !matches!(peek(bytes, at), b'A'..=b'Z' | b'a'..=b'z' | b'_') {
        // Printed names may start with a digit (`%0.1`), never with a dot or a dash.
        if !peek(bytes, at).is_ascii_digit() {
            return at;
        }
    }
    while at < bytes.len() && class(bytes[at]) & IDENTIFIER != 0 {
        at += 1;
    }
    at
}

/// Skips spaces, tabs and carriage returns, not line feeds.
pub(crate) fn skip_blank(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && matches!(bytes[at], b' ' | b'\t' | b'\r') {
        at += 1;
    }
    at
}

/// Skips white space, line feeds and comments.
pub(crate) fn skip_trivia(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'/' => match comment_end(bytes, at) {
                Some(end) => at = end,
                None => return at,
            },
            _ => return at,
        }
    }
    at
}

/// The end of the line that holds `at`: its line feed, or the end of the text.
pub(crate) fn line_end(bytes: &[u8], at: usize) -> usize {
    memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |offset| at + offset)
}

/// The end of the comment that starts at `at`, if one does. One that is left open ends before the next line that looks
/// like an instruction.
pub(crate) fn comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    match peek(bytes, at + 1) {
        b'/' => Some(line_end(bytes, at)),
        b'*' => {
            let mut from = at + 2;
            while let Some(offset) = memchr2(b'*', b'\n', bytes.get(from..).unwrap_or(&[])) {
                let found = from + offset;
                match bytes[found] {
                    b'*' if peek(bytes, found + 1) == b'/' => return Some(found + 2),
                    b'\n' if looks_like_instruction(bytes, found + 1) => return Some(found),
                    _ => from = found + 1,
                }
            }
            Some(bytes.len())
        }
        _ => None,
    }
}

/// The position after the closing quote of the string that opens at `at`; `Err` with the end of an unsuccessful search.
pub(crate) fn string_end(bytes: &[u8], at: usize, guarded: bool) -> Result<usize, usize> {
    let mut from = at + 1;
    loop {
        let Some(offset) = memchr3(b'"', b'\\', b'\n', bytes.get(from..).unwrap_or(&[])) else {
            return Err(bytes.len());
        };
        let found = from + offset;
        match bytes[found] {
            b'"' => return Ok(found + 1),
            b'\\' => from = found + 2,
            _ if guarded && looks_like_instruction(bytes, found + 1) => return Err(found),
            _ => from = found + 1,
        }
    }
}

/// The position after the bracket that closes the one at `at`; brackets of other kinds within it are ignored, as by
/// XLA's lexer in a `backend_config`.
///
/// `Err(stop)` if the text ends before it or, if `guarded`, a line comes first that looks like an instruction. That
/// guard keeps one bad line from swallowing the rest, and the whole reading linear.
pub(crate) fn balanced_end(bytes: &[u8], mut at: usize, guarded: bool) -> Result<usize, usize> {
    let opening = peek(bytes, at);
    let closing = match opening {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    };
    let mut depth = 0_usize;
    loop {
        while at < bytes.len() && class(bytes[at]) & STOP == 0 {
            at += 1;
        }
        if at >= bytes.len() {
            return Err(bytes.len());
        }
        match bytes[at] {
            byte if byte == opening => depth += 1,
            byte if byte == closing => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            b'"' => {
                at = string_end(bytes, at, guarded)?;
                continue;
            }
            b'/' => {
                if let Some(end) = comment_end(bytes, at) {
                    at = end;
                    continue;
                }
            }
            _ if guarded && looks_like_instruction(bytes, at + 1) => return Err(at),
            _ => {}
        }
        at += 1;
    }
}

/// Whether the line at `at` reads `[ROOT] name = shape…`. An attribute on a line of its own (`calls=f`) doesn't.
pub(crate) fn looks_like_instruction(bytes: &[u8], at: usize) -> bool {
    let mut at = skip_blank(bytes, at);
    if bytes[at.min(bytes.len())..].starts_with(b"ROOT") && matches!(peek(bytes, at + 4), b' ' | b'\t' | b'%') {
        at = skip_blank(bytes, at + 4);
    }
    if peek(bytes, at) == b'%' {
        at += 1;
    }
    let end = identifier_end(bytes, at);
    let equals = skip_blank(bytes, end);
    if end == at || peek(bytes, equals) != b'=' {
        return false;
    }
    let shape = skip_blank(bytes, equals + 1);
    let word = identifier_end(bytes, shape);
    match peek(bytes, skip_blank(bytes, word)) {
        b'(' => true,
        b'[' => word > shape,
        _ => false,
    }
}

/// The end of the value that starts at `at`: the first comma (or, if `blank_ends`, white space) outside brackets and
/// strings.
pub(crate) fn value_end(bytes: &[u8], mut at: usize, blank_ends: bool) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => at = balanced_end(bytes, at, false).unwrap_or(bytes.len()),
            b'"' => at = string_end(bytes, at, false).unwrap_or_else(|stop| stop),
            b',' => return at,
            b' ' | b'\t' | b'\r' | b'\n' if blank_ends => return at,
            b'/' if peek(bytes, at + 1) == b'/' => return at,
            b'/' => at = comment_end(bytes, at).unwrap_or(at + 1),
            _ => at += 1,
        }
    }
    at.min(bytes.len())
}

/// The end of the shape that starts at `at`.
///
/// After an array's `]`, `{` starts a layout only if an integer or `:` follows: XLA's rule
/// (`HloParserImpl::ParseShape` in xla/hlo/parser/hlo_parser.cc), so that `-> f32[42] {` opens a computation.
pub(crate) fn shape_end(bytes: &[u8], at: usize) -> Result<usize, usize> {
    if peek(bytes, at) == b'(' {
        return balanced_end(bytes, at, true);
    }
    let word = identifier_end(bytes, at);
    if word == at {
        return Err(at);
    }
    let bracket = skip_blank(bytes, word);
    match peek(bytes, bracket) {
        b'(' if &bytes[at..word] == b"b" => return balanced_end(bytes, bracket, true),
        b'[' => {}
        _ => return Err(bracket),
    }
    let end = balanced_end(bytes, bracket, true)?;
    let brace = skip_blank(bytes, end);
    if peek(bytes, brace) != b'{' {
        return Ok(end);
    }
    let inside = skip_trivia(bytes, brace + 1);
    match peek(bytes, inside) {
        b'0'..=b'9' | b'-' | b':' => balanced_end(bytes, brace, true),
        _ => Ok(end),
    }
}

/// Whether a shape begins here: a tuple, `b(…)`, or a word and a bracket.
pub(crate) fn is_shape(bytes: &[u8], at: usize) -> bool {
    let word = identifier_end(bytes, at);
    match peek(bytes, word) {
        b'(' => word == at || &bytes[at..word] == b"b",
        b'[' => word > at,
        b' ' | b'\t' => word > at && peek(bytes, skip_blank(bytes, word)) == b'[',
        _ => false,
    }
}

/// `text` without white space and comments in front of it and white space behind it.
pub(crate) fn trim(text: &str) -> &str {
    let start = skip_trivia(text.as_bytes(), 0);
    text[start..].trim_ascii_end()
}

/// `name` without the sigil.
pub(crate) fn bare(name: &str) -> &str {
    name.strip_prefix('%').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> &str {
        &text[..shape_end(text.as_bytes(), 0).unwrap()]
    }

    #[test]
    fn shapes_end_where_xla_ends_them() {
        assert_eq!(shape("f32[42] {"), "f32[42]");
        assert_eq!(shape("f32[42] {0} add("), "f32[42] {0}");
        assert_eq!(shape("f32[]{:T(128)} add("), "f32[]{:T(128)}");
        assert_eq!(shape("s8[2]{0:T(8)P(s8[4]{0})} x("), "s8[2]{0:T(8)P(s8[4]{0})}");
        assert_eq!(shape("(f32[2], (token[], /*)*/b(f32[1]))) t("), "(f32[2], (token[], /*)*/b(f32[1])))");
        assert_eq!(shape("b(f32[1]{0}) t("), "b(f32[1]{0})");
        assert_eq!(shape("opaque[] t("), "opaque[]");
        assert!(shape_end(b"(f32[", 0).is_err());
        assert!(shape_end(b"f32 add(", 0).is_err());
        assert!(shape_end(b"", 0).is_err());
    }

    #[test]
    fn a_guard_stops_at_the_next_instruction() {
        let text = b"(a\n b, \"\n c = \"x\n  ROOT %d = f32[] add(";
        assert_eq!(balanced_end(text, 0, true), Err(16));
        assert!(looks_like_instruction(text, 17));
        for line in ["metadata = {", "calls=f", "  to_apply=%add, kind=kLoop", "dimensions={0}", "k=\"v\""] {
            assert!(!looks_like_instruction(line.as_bytes(), 0), "{line}");
        }
        assert!(!looks_like_instruction(b"}", 0));
        assert!(!looks_like_instruction(b"", 0));
    }

    #[test]
    fn comments_end_before_instructions() {
        assert_eq!(comment_end(b"/*index=5*/x", 0), Some(11));
        assert_eq!(comment_end(b"/***/x", 0), Some(5));
        assert_eq!(comment_end(b"/* \n */", 0), Some(7));
        assert_eq!(comment_end(b"/* \n a = f32[] add() */", 0), Some(3));
        assert_eq!(comment_end(b"/*", 0), Some(2));
        assert_eq!(comment_end(b"// a\nb", 0), Some(4));
        assert_eq!(comment_end(b"/", 0), None);
    }
}
