//! Text for people, in styles that the stream it goes to may remove.

mod advice;
pub(crate) mod array_row;
mod assignment;
mod explanation;
mod kernels;
mod program;
mod programs;
mod screen;
mod summary;
mod time;
mod together;

pub(crate) use assignment::MAY_LACK_ITS_END;
pub use programs::{ProgramLines, Text};

use crate::style::styled;
use anstyle::Style;
use std::io::{self, Write};
use tilewise_draw::{ColorMode, Options};

/// Rows that are shown by default: one screen.
pub(crate) const SHOWN: usize = 5;

/// The terminal or page that text is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terminal {
    /// Columns, into which lines are cut or wrapped.
    pub width: usize,
    /// The colours it shows.
    pub color: ColorMode,
    /// Whether it shows ASCII alone.
    pub is_ascii: bool,
}

impl Terminal {
    /// Text of `width` columns, in Unicode and without colours.
    #[must_use]
    pub fn plain(width: usize) -> Self {
        Self { width, color: ColorMode::None, is_ascii: false }
    }

    /// Sets the colours.
    #[must_use]
    pub fn with_color(self, color: ColorMode) -> Self {
        Self { color, ..self }
    }

    /// Sets whether it shows ASCII alone.
    #[must_use]
    pub fn with_ascii(self, is_ascii: bool) -> Self {
        Self { is_ascii, ..self }
    }

    /// The options of pictures for it.
    #[must_use]
    pub fn options(&self) -> Options {
        Options::new().with_color(self.color).with_ascii(self.is_ascii)
    }
}

/// Text for people.
pub trait WriteText {
    /// Writes it, with styles.
    ///
    /// # Errors
    /// Those of `out`.
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()>;

    /// The text without styles, in lines of `width` columns where words can be cut or wrapped.
    fn to_text(&self, width: usize) -> String {
        plain(|out| self.write_text(&Terminal::plain(width), out))
    }
}

/// The output of `write`, as text without styles.
fn plain(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut styled = Vec::new();
    // Writing to memory can't fail.
    let _ = write(&mut styled);
    anstream::adapter::strip_bytes(&styled).into_vec().try_into().unwrap_or_default()
}

/// Writes words in lines of at most `width` columns, the first behind one indent, the others behind another.
pub(crate) fn write_wrapped(
    words: &str,
    style: Style,
    [first, next]: [&str; 2],
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let options = textwrap::Options::new(width).initial_indent(first).subsequent_indent(next);
    textwrap::wrap(words, options).into_iter().try_for_each(|line| writeln!(out, "{}", styled(style, line)))
}
