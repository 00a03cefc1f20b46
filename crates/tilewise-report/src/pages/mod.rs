//! What the pages in `docs/errors` and `docs/advice.md` say first: one for each of XLA's error codes and for messages without
//! one, and one for each kind of change that frees memory.

mod advice;
mod errors;

use crate::{
    Terminal, WriteText,
    style::{STRONG, styled},
    text::write_wrapped,
};
use anstyle::Style;
use serde::Serialize;
use std::io::{self, Write};

/// The beginning of a page about messages of one kind, or about one kind of change; the page itself, with what to paste
/// and an example, is [`file`](Self::file).
///
/// ```
/// use tilewise_report::Page;
///
/// let page = Page::named("e1001").expect("there is a page for each code");
/// assert_eq!(page.title, "E1001: one kernel needs more VMEM or SMEM than it may have");
/// assert_eq!(Page::named("E1002").map(|page| page.name), Some("E1000"));
/// assert_eq!(Page::named("donate").map(|page| page.file()).as_deref(), Some("docs/advice.md"));
/// assert!(Page::named("E9999").is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Page {
    /// XLA's code, or a word: what a message's [`page`](tilewise_oom::Message::page) is, or a
    /// [`Change`](tilewise_audit::recommendation::Change).
    pub name: &'static str,
    /// What it is about, in a line.
    pub title: &'static str,
    /// Of a message: what happened, and what to do. Of a change: what it is, and when it helps. A paragraph each.
    pub paragraphs: [&'static str; 2],
}

impl Page {
    /// The page of this name or code, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        // The page of this code was folded into that of the other one.
        let name = if name.eq_ignore_ascii_case("E1002") { "E1000" } else { name };
        Self::errors().iter().chain(Self::advice()).copied().find(|page| page.name.eq_ignore_ascii_case(name))
    }

    /// Those about messages, those of codes first.
    #[must_use]
    pub fn errors() -> &'static [Self] {
        errors::PAGES
    }

    /// Those about changes.
    #[must_use]
    pub fn advice() -> &'static [Self] {
        advice::PAGES
    }

    /// Where the page is in the repository.
    #[must_use]
    pub fn file(&self) -> String {
        if advice::PAGES.contains(self) { "docs/advice.md".to_owned() } else { format!("docs/errors/{}.md", self.name) }
    }
}

impl WriteText for Page {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", styled(STRONG, self.title))?;
        for paragraph in self.paragraphs {
            writeln!(out)?;
            write_wrapped(paragraph, Style::new(), [""; 2], terminal.width, out)?;
        }
        let paste = if advice::PAGES.contains(self) { "" } else { " Paste the message itself for its figures." };
        writeln!(out, "\nThe page, with an example: {}.{paste}", self.file())
    }
}
