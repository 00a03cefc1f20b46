//! Text that a terminal shows and doesn't interpret.

use alloc::{borrow::Cow, string::String};
use core::fmt::Write as _;

/// The text with each character that a terminal or a page would interpret, instead of showing it, written as in Rust:
/// control characters (C0, C1, line ends and tabs among them), line and paragraph separators, and characters that turn
/// the direction of writing (U+202E and the like).
///
/// ```
/// use tilewise::visible;
///
/// assert_eq!(visible("é \u{1b}]0;title\u{7}\u{202e}\n"), r"é \u{1b}]0;title\u{7}\u{202e}\n");
/// ```
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, false)
}

/// As [`visible`], for a text of many lines: its line ends and tabs stay.
///
/// ```
/// assert_eq!(tilewise::visible_lines("a\tb\r\nc\rd\u{9b}1m"), "a\tb\r\nc\\rd\\u{9b}1m");
/// ```
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, true)
}

fn escaped(text: &str, has_lines: bool) -> Cow<'_, str> {
    // Most texts have no such byte: this loop over pieces is vectorised.
    let may_act = |piece: &[u8]| piece.iter().fold(false, |acts, byte| acts | begins_what_acts(*byte, has_lines));
    if !text.as_bytes().chunks(4096).any(may_act) {
        return Cow::Borrowed(text);
    }
    let mut written = String::new();
    let mut start = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| acts(*c)) {
        let end = at + c.len_utf8();
        let ends_line = c == '\n' || c == '\r' && text[end..].starts_with('\n');
        if !(has_lines && (ends_line || c == '\t')) {
            written.push_str(&text[start..at]);
            // Writing to a string can't fail.
            let _ = match c {
                '\n' | '\r' | '\t' => write!(written, "{}", c.escape_default()),
                _ => write!(written, "{}", c.escape_unicode()),
            };
            start = end;
        }
    }
    if start == 0 {
        return Cow::Borrowed(text);
    }
    written.push_str(&text[start..]);
    Cow::Owned(written)
}

/// Whether a byte may begin a character that acts; in a text of lines, line feeds are too frequent to stop at.
fn begins_what_acts(byte: u8, has_lines: bool) -> bool {
    byte < b' ' && !(has_lines && byte == b'\n') || matches!(byte, 0x7f | 0xc2 | 0xd8 | 0xe1 | 0xe2 | 0xef | 0xf3)
}

/// Whether a character moves others, ends lines or is invisible, such as the letters U+E0000 to U+E007F, which can hide
/// text.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn every_character_is_shown_or_stays() {
        for c in '\0'..=char::MAX {
            let text = format!("a{c}b");
            let shown = visible(&text);
            assert_eq!(shown == text, !acts(c), "{c:?}");
            assert!(shown.chars().all(|c| !acts(c)), "{c:?}");
            assert_eq!(visible(&shown), shown, "what is shown is shown again as it is");
            assert_eq!(visible_lines(&text) == text, !acts(c) || matches!(c, '\n' | '\t'), "{c:?}");
        }
    }
}
