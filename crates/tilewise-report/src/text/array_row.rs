//! Rows of padded arrays for people, two to five lines each: sizes, source line, causes, and the best fix.

use crate::style::{FAINT, STRONG, bytes, cut, styled, times, waste_style};
use std::io::{self, Write};
use tilewise_audit::{SourceLine, fix::Fix};

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
    pub(crate) fix: Option<&'a Fix>,
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
        match self.fix {
            Some(fix) => write_fix(fix, width, out),
            None => Ok(()),
        }
    }
}

/// Writes what a fix frees and what to change, wrapped; then the line of JAX that does it, whole, to be copied.
///
/// # Errors
/// Those of `out`.
pub fn write_fix(fix: &Fix, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let lead = format!("frees {}:", bytes(fix.bytes_saved()));
    let caution = if fix.changes_values { " (changes values)" } else { "" };
    let words = format!("{lead} {}{caution}", fix.sentence);
    let options = textwrap::Options::new(width).initial_indent("    → ").subsequent_indent("      ");
    for (number, line) in textwrap::wrap(&words, options).into_iter().enumerate() {
        let line = if number == 0 { line.replacen(&lead, &styled(STRONG, &lead), 1) } else { line.into_owned() };
        writeln!(out, "{line}")?;
    }
    fix.imports().lines().chain([fix.jax.as_str()]).try_for_each(|line| writeln!(out, "      {}", styled(FAINT, line)))
}

/// `model.py:439  fusion.6  jit(f)/dot_general`.
pub(crate) fn who(source: Option<&SourceLine>, name: &str, op_name: Option<&str>) -> String {
    let line = source.map(|source| format!("{}:{}", shortened(&source.file), source.line));
    let parts = [line.as_deref(), Some(name).filter(|name| !name.is_empty()), op_name];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// A path without its first folders, where it is long: its end and the line are what people look for.
pub(crate) fn shortened(path: &str) -> String {
    const LONGEST: usize = 32;
    let mut rest = path;
    while rest.chars().count() > LONGEST {
        match rest.trim_start_matches('/').split_once('/') {
            Some((_, shorter)) => rest = shorter,
            None => break,
        }
    }
    if rest.len() == path.len() { path.to_owned() } else { format!("…/{rest}") }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn long_paths_keep_their_end() {
        assert_eq!(shortened("model.py"), "model.py");
        assert_eq!(shortened("/home/someone/projects/network/layers/attention.py"), "…/network/layers/attention.py");
        let name = "a".repeat(80);
        assert_eq!(shortened(&format!("/b/{name}")), format!("…/{name}"));
        assert_eq!(shortened("/".repeat(80).as_str()), "/".repeat(80));
    }
}
