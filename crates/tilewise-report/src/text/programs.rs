//! Several programs, a line each.

use crate::{
    AuditOutput,
    style::{FAINT, STRONG, bytes, cut, percent, styled},
};
use std::io::{self, Write};

/// What several programs hold together.
#[derive(Debug, Default)]
pub struct Total {
    programs: usize,
    without_plan: usize,
    held: u64,
    padding: u64,
}

impl Total {
    /// Writes the names of the columns.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_header(out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", styled(FAINT, format!("  {:>10}  {:>10}  {:>6}  program", "holds", "padding", "share")))
    }

    /// Writes one program's line: what it holds in HBM at most, what of that is padding, and at which line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_line(&mut self, audited: &AuditOutput, width: usize, out: &mut dyn Write) -> io::Result<()> {
        self.programs += 1;
        let report = &audited.report;
        let peak = report.memory_space(0).and_then(|total| total.peak.as_ref());
        let (numbers, place) = match (&report.plan, peak) {
            (Ok(plan), _) => {
                let (held, padding) = (plan.total_bytes(), peak.map_or(0, |peak| peak.padding_bytes));
                self.held = self.held.saturating_add(held);
                self.padding = self.padding.saturating_add(padding);
                let source = peak.and_then(|peak| peak.source.as_ref());
                let place = source.map_or(String::new(), |source| format!("  peak at {}:{}", source.file, source.line));
                (numbers(held, padding), place)
            }
            (Err(error), _) => {
                self.without_plan += 1;
                (format!("  {:>10}  {:>10}  {:>6}", "-", "-", "-"), format!("  no memory plan: {error}"))
            }
        };
        let room = width.saturating_sub(numbers.chars().count() + 2);
        writeln!(out, "{numbers}  {}", cut(&format!("{}{place}", audited.source), room))
    }

    /// Writes the last line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
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
