//! Rows of padded arrays for people, two to four lines each: sizes, source line and causes.

use crate::style::{FAINT, bytes, cut, listed, shortened, styled, times, waste_style};
use std::io::{self, Write};
use tilewise_audit::SourceLine;

/// One array, as `audit` and `explain` print it.
pub(crate) struct Row<'a> {
    /// `None` where the array can't be sized.
    pub(crate) padding: Option<u64>,
    /// What it takes, as text: computed bytes, or a printed size.
    pub(crate) takes: String,
    pub(crate) expansion: f64,
    pub(crate) shape: String,
    pub(crate) who: String,
    pub(crate) causes: &'a [String],
}

const INDENT: usize = 6;

pub(crate) fn write_header(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", styled(FAINT, format!("  {:>10}  {:>10}  {:>6}  shape", "padding", "takes", "times")))
}

impl Row<'_> {
    pub(crate) fn write(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let padding = self.padding.map_or_else(|| "-".to_owned(), bytes);
        let expansion = self.padding.map_or_else(|| "-".to_owned(), |_| times(self.expansion));
        let numbers = format!("  {padding:>10}  {:>10}  {expansion:>6}", self.takes);
        let room = width.saturating_sub(numbers.chars().count() + 2);
        writeln!(out, "{}  {}", styled(waste_style(self.expansion), numbers), cut(&self.shape, room))?;
        if !self.who.is_empty() {
            writeln!(out, "      {}", cut(&self.who, width.saturating_sub(INDENT)))?;
        }
        for cause in self.causes {
            writeln!(out, "      {}", styled(FAINT, cut(cause, width.saturating_sub(INDENT))))?;
        }
        Ok(())
    }
}

/// `model.py:439  fusion.6  jit(f)/dot_general`.
pub(crate) fn who(source: Option<&SourceLine>, name: &str, op_name: Option<&str>) -> String {
    let line = source.map(|source| format!("{}:{}", shortened(&source.file), source.line));
    let parts = [line.as_deref(), Some(name).filter(|name| !name.is_empty()), op_name];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// An instruction with the place in its result, `fusion.6{0,1}`.
pub(crate) fn name(instruction: &str, shape_index: &[usize]) -> String {
    match shape_index {
        [] => instruction.to_owned(),
        path => format!("{instruction}{{{}}}", listed(path)),
    }
}
