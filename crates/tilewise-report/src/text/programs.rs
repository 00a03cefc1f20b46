//! Text for people: a report of one program, or a line for each of several.

use crate::{
    AuditOutput, Exporter, Terminal, WriteText,
    style::{FAINT, STRONG, bytes, cut, percent, share, styled},
};
use std::io::{self, Write};
use tilewise::visible;

/// Whole reports.
#[derive(Clone, Copy, Debug)]
pub struct Text(pub Terminal);

impl Exporter for Text {
    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        output.write_text(&self.0, out)
    }
}

/// A line for each program: its HBM at most, its padding, and the line of its peak; then their sum.
#[derive(Debug)]
pub struct ProgramLines {
    width: usize,
    common: Common,
    programs: usize,
    without_plan: usize,
    held: u64,
    padding: u64,
}

impl ProgramLines {
    /// Lines for a terminal, of programs in these files: the common part of the names is printed once.
    #[must_use]
    pub fn new<'s>(terminal: &Terminal, sources: impl IntoIterator<Item = &'s str>) -> Self {
        let common = Common::of(sources);
        Self { width: terminal.width, common, programs: 0, without_plan: 0, held: 0, padding: 0 }
    }
}

/// The common parts of paths: the folder in front, and the text behind a dot at the end.
#[derive(Debug, Default)]
struct Common {
    front: String,
    end: String,
}

impl Common {
    fn of<'s>(sources: impl IntoIterator<Item = &'s str>) -> Self {
        let mut sources = sources.into_iter();
        let Some(first) = sources.next() else { return Self::default() };
        let (mut front, mut end, mut differ) = (first.len(), first.len(), false);
        for source in sources {
            let same = |(one, other): &(u8, u8)| one == other;
            front = front.min(first.bytes().zip(source.bytes()).take_while(same).count());
            end = end.min(first.bytes().rev().zip(source.bytes().rev()).take_while(same).count());
            differ |= source != first;
        }
        if !differ {
            return Self::default();
        }
        // A separator is a character of its own, however alike its neighbours are.
        let front = first.bytes().take(front).rposition(|byte| byte == b'/').map_or(0, |slash| slash + 1);
        let end = first.bytes().skip(first.len() - end).position(|byte| byte == b'.').map_or(0, |dot| end - dot);
        let end = end.min(first.len() - front);
        Self { front: first[..front].to_owned(), end: first[first.len() - end..].to_owned() }
    }

    /// The rest of a path.
    fn rest<'s>(&self, source: &'s str) -> &'s str {
        let rest = source.strip_prefix(&self.front).unwrap_or(source);
        rest.strip_suffix(&self.end).filter(|rest| !rest.is_empty()).unwrap_or(rest)
    }
}

impl Exporter for ProgramLines {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Common { front, end } = &self.common;
        let of = if front.is_empty() && end.is_empty() { String::new() } else { format!(" of {front}*{end}") };
        let header = format!("  {:>10}  {:>10}  {:>6}  program{}", "holds", "padding", "share", visible(&of));
        writeln!(out, "{}", styled(FAINT, cut(&header, self.width)))
    }

    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        self.programs += 1;
        let report = &output.report;
        let peak = report.memory_space(0).and_then(|total| total.peak.as_ref());
        let (numbers, place) = match report.plan() {
            Ok(plan) => {
                let (held, padding) = (plan.total_bytes(), peak.map_or(0, |peak| peak.padding_bytes));
                self.held = self.held.saturating_add(held);
                self.padding = self.padding.saturating_add(padding);
                let source = peak.and_then(|peak| peak.source.as_ref());
                let place = source.map_or(String::new(), |source| format!("  peak at {}:{}", source.file, source.line));
                (numbers(held, padding), place)
            }
            Err(error) => {
                self.without_plan += 1;
                (format!("  {:>10}  {:>10}  {:>6}", "-", "-", "-"), format!("  no memory plan: {error}"))
            }
        };
        let room = self.width.saturating_sub(numbers.chars().count() + 2);
        writeln!(
            out,
            "{numbers}  {}",
            cut(&format!("{}{place}", visible(self.common.rest(&output.report.source))), room)
        )
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let without = match self.without_plan {
            0 => String::new(),
            count => format!(", {count} of them without a memory plan"),
        };
        let line = format!("{}  {} programs{without}", numbers(self.held, self.padding), self.programs);
        writeln!(out, "{}", styled(STRONG, line))
    }
}

fn numbers(held: u64, padding: u64) -> String {
    format!("  {:>10}  {:>10}  {:>6}", bytes(held), bytes(padding), percent(share(padding, held)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_distinguishes_them() {
        let rest = |sources: &[&str]| {
            let common = Common::of(sources.iter().copied());
            sources.iter().map(|source| common.rest(source).to_owned()).collect::<Vec<_>>()
        };
        let dump =
            ["d/module_0001.jit_f.cl_7.after_optimizations.txt", "d/module_0004.jit_g.cl_7.after_optimizations.txt"];
        assert_eq!(rest(&dump), ["module_0001.jit_f", "module_0004.jit_g"]);
        assert_eq!(rest(&["a/x.hlo", "b/x.hlo"]), ["a/x", "b/x"]);
        assert_eq!(rest(&["a.hlo", "a.v5e.hlo"]), ["a", "a.v5e"]);
        assert_eq!(rest(&["é/a", "è/a", ""]), ["é/a", "è/a", ""]);
        assert_eq!(rest(&["a/x.hlo", "a/x.hlo"]), ["a/x.hlo", "a/x.hlo"]);
        assert_eq!(rest(&["-"]), ["-"]);
    }
}
