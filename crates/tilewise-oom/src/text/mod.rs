//! Texts as people paste them, and their parts: what surrounds a message is removed once, before anything is read.

pub(crate) mod clean;
mod escapes;
pub(crate) mod instruction;
mod json_lines;
mod line;
pub(crate) mod reader;
pub(crate) mod size;
pub(crate) mod word;

/// The last bytes of a text, from a whole character on: a log ends near its error.
pub(crate) fn tail(text: &str, bytes: usize) -> &str {
    let from = (text.len().saturating_sub(bytes)..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[from.unwrap_or(text.len())..]
}
