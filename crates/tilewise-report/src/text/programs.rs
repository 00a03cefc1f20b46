//! Text for people: of one program its report, of several a line each.

use crate::{
    AuditOutput, Exporter, Terminal, WriteText,
    style::{FAINT, STRONG, bytes, cut, percent, styled},
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

/// Of each program what it holds in HBM at most, what of that is padding, and the line of its peak; then their sum.
#[derive(Debug)]
pub struct ProgramLines {
    width: usize,
    programs: usize,
    without_plan: usize,
    held: u64,
    padding: u64,
}

impl ProgramLines {
    /// Lines for a terminal.
    #[must_use]
    pub fn new(terminal: &Terminal) -> Self {
        Self { width: terminal.width, programs: 0, without_plan: 0, held: 0, padding: 0 }
    }
}

impl Exporter for ProgramLines {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", styled(FAINT, format!("  {:>10}  {:>10}  {:>6}  program", "holds", "padding", "share")))
    }

    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        self.programs += 1;
        let report = &output.report;
        let peak = report.memory_space(0).and_then(|total| total.peak.as_ref());
        let (numbers, place) = match &report.plan {
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
        writeln!(out, "{numbers}  {}", cut(&format!("{}{place}", visible(&output.source)), room))
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

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn numbers(held: u64, padding: u64) -> String {
    let share = if held == 0 { 0.0 } else { padding as f64 / held as f64 };
    format!("  {:>10}  {:>10}  {:>6}", bytes(held), bytes(padding), percent(share))
}
