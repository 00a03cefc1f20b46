//! Lines with labels, as `show` prints them.

use crate::Terminal;
use std::io::{self, Write};

/// Lines with a label each on the left, wrapped beside it.
pub(crate) struct Labelled<'a> {
    pub(crate) to: &'a mut dyn Write,
    width: usize,
}

impl<'a> Labelled<'a> {
    pub(crate) fn new(terminal: &Terminal, to: &'a mut dyn Write) -> Self {
        Self { to, width: terminal.width }
    }

    /// Shapes are never cut, nor a number and its percent sign.
    pub(crate) fn line(&mut self, label: &str, words: &str) -> io::Result<()> {
        if label.chars().count() > LONGEST {
            writeln!(self.to, "  {label}")?;
            return self.line("", words);
        }
        let label = format!("  {label:<LABEL$}{}", if label.chars().count() >= LABEL { " " } else { "" });
        let options = textwrap::Options::new(self.width)
            .initial_indent(&label)
            .subsequent_indent(BESIDE)
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .break_words(false);
        let words = words.replace(" %", "\u{a0}%");
        textwrap::wrap(&words, options)
            .into_iter()
            .try_for_each(|line| writeln!(self.to, "{}", line.replace('\u{a0}', " ")))
    }
}

/// The width of the labels.
const LABEL: usize = 16;

/// A longer label has a line of its own.
const LONGEST: usize = 24;

/// As wide as a label with the blanks before it.
const BESIDE: &str = "                  ";
