//! The beginnings of the pages in `docs/errors` and `docs/advice.md`, which `explain E1001` and `explain donate` print.

use crate::{
    Terminal, WriteText,
    style::{STRONG, styled},
    text::write_wrapped,
};
use anstyle::Style;
use serde::Serialize;
use std::io::{self, Write};

macro_rules! pages {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../docs/errors/", $name, ".md")))),*]
    };
}

/// A page for each of XLA's codes, and for messages without one.
const ERRORS: &[(&str, &str)] = pages! {
    "E0100" "E0101" "E0102" "E0200" "E1000" "E1001" "E1200" "E2001" "E2002" "E2003" "E3000" "E3001"
    "mosaic" "donation" "rematerialization" "resharding" "kv_cache" "statistics" "gpu" "shared_memory" "host"
    "compiler_check" "resource"
};
/// A section for each kind of change, `## donate: …`.
const ADVICE: &str = include_str!("../docs/advice.md");

/// The beginning of a page about messages of one kind, or about one kind of change; the page itself, with what to paste
/// and an example, is [`file`](Self::file).
///
/// ```
/// use tilewise_report::Page;
///
/// let page = Page::named("e1001").expect("there is a page for each code");
/// assert_eq!(page.title, "E1001: one kernel needs more VMEM or SMEM than its limit");
/// assert_eq!(Page::named("E1002").map(|page| page.name), Some("E1000"));
/// assert_eq!(Page::named("donate").map(|page| page.file()).as_deref(), Some("docs/advice.md"));
/// assert!(Page::named("E9999").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Page {
    /// XLA's code, or a word: a message's [`page`](tilewise_oom::Message::page), or a
    /// [`Change`](tilewise_audit::recommendation::Change).
    pub name: &'static str,
    /// Its subject, in a line.
    pub title: &'static str,
    /// For a message: the event and the remedy. For a change: its description, and when it helps.
    pub paragraphs: Vec<String>,
}

impl Page {
    /// The page of this name or code, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        // The page of this code was folded into that of the other one.
        let name = if name.eq_ignore_ascii_case("E1002") { "E1000" } else { name };
        Self::errors().chain(Self::advice()).find(|page| page.name.eq_ignore_ascii_case(name))
    }

    /// The pages about messages, those of codes first.
    pub fn errors() -> impl Iterator<Item = Self> {
        ERRORS.iter().map(|&(name, page)| Self::of(name, page.trim_start_matches("# ")))
    }

    /// The pages about changes.
    pub fn advice() -> impl Iterator<Item = Self> {
        let sections = ADVICE.split("\n## ").skip(1);
        sections.map(|section| Self::of(section.split(':').next().unwrap_or(section), section))
    }

    /// The page of a text that begins with a title: the title, and the paragraphs before the next one.
    fn of(name: &'static str, text: &'static str) -> Self {
        let mut lines = text.lines().map(str::trim);
        let title = lines.next().unwrap_or_default();
        let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
        let paragraphs = lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
        Self { name, title, paragraphs: paragraphs.map(|lines| lines.join(" ")).collect() }
    }

    fn is_error(&self) -> bool {
        ERRORS.iter().any(|(name, _)| *name == self.name)
    }

    /// The path of the page in the repository.
    #[must_use]
    pub fn file(&self) -> String {
        if self.is_error() { format!("docs/errors/{}.md", self.name) } else { "docs/advice.md".to_owned() }
    }
}

impl WriteText for Page {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", styled(STRONG, self.title))?;
        for paragraph in &self.paragraphs {
            writeln!(out)?;
            write_wrapped(paragraph, Style::new(), [""; 2], terminal.width, out)?;
        }
        let paste = if self.is_error() { " Paste the message itself for its figures." } else { "" };
        writeln!(out, "\nThe page, with an example: {}.{paste}", self.file())
    }
}
