//! A report for people: totals by memory space, then the buffers with the most padding, each with its source line and cause.

use super::Audited;
use crate::output::human::{FAINT, STRONG, bytes, bytes_both, cut, percent, screen_width, styled, times, waste_style};
use std::io::{self, Write};
use tilewise_audit::{BufferRow, SpaceTotal};

/// Buffers shown without `--all`: what one screen holds.
const SHOWN: usize = 8;

impl Audited {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let report = &self.report;
        let width = screen_width();
        let entry =
            report.entry.as_deref().filter(|entry| !entry.is_empty()).map_or(String::new(), |e| format!(", entry {e}"));
        let module = if report.module.is_empty() { "HLO without a module" } else { &report.module };
        writeln!(out, "{}  {}", styled(STRONG, module), styled(FAINT, format!("{}{entry}", self.source)))?;
        writeln!(out)?;
        self.write_totals(out)?;

        let rows = self.listed(SHOWN);
        let padded = report.buffers.iter().filter(|buffer| buffer.padding_bytes() > 0).count();
        writeln!(out)?;
        if padded == 0 {
            return writeln!(out, "No buffer is padded.\n");
        }
        writeln!(out, "{}", styled(STRONG, if self.all { "Every buffer" } else { "Most padding" }))?;
        writeln!(out, "{}", styled(FAINT, format!("  {:>10}  {:>10}  {:>6}  shape", "padding", "takes", "times")))?;
        for row in &rows {
            write_row(row, width, out)?;
        }
        if !self.all && padded > rows.len() {
            let left: u64 = report.largest_padding().skip(rows.len()).map(BufferRow::padding_bytes).sum();
            let left_out = padded - rows.len();
            writeln!(
                out,
                "  {left_out} more padded buffers with {} of padding; --all lists every buffer",
                bytes(left)
            )?;
        }
        writeln!(out)
    }

    /// The sums are over everything the program defines: buffers that never live together share memory.
    fn write_totals(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = format!("  {:<10}{:>8}{:>13}{:>13}{:>13}", "memory", "buffers", "data", "takes", "padding");
        writeln!(out, "{}", styled(FAINT, header))?;
        for total in &self.report.memory_spaces {
            let expansion = 1.0 / (1.0 - total.padding_share()).max(f64::EPSILON);
            let padding = format!("{:>13} {:>7}", bytes(total.padding_bytes()), percent(total.padding_share()));
            writeln!(
                out,
                "  {:<10}{:>8}{:>13}{:>13}{}",
                total.memory_space_name(),
                total.buffers,
                bytes(total.logical_bytes),
                bytes(total.physical_bytes),
                styled(waste_style(expansion), padding),
            )?;
        }
        if let Some(hbm) = self.report.memory_space(0).filter(|hbm| hbm.padding_bytes() > 0) {
            writeln!(out)?;
            writeln!(out, "{}", headline(hbm))?;
        }
        let note = "Sums of all buffers the program defines; those that never live at once share memory.";
        writeln!(out, "{}", styled(FAINT, note))
    }
}

fn headline(hbm: &SpaceTotal) -> String {
    let share = percent(hbm.padding_share());
    let padding = bytes_both(hbm.padding_bytes());
    format!("{padding} in HBM is padding, {share} of the {} its arrays take.", bytes_both(hbm.physical_bytes))
}

/// Two or three lines: what it costs and its shape; who makes it and where; why.
fn write_row(row: &BufferRow, width: usize, out: &mut dyn Write) -> io::Result<()> {
    const INDENT: usize = 34;
    let numbers = format!(
        "  {:>10}  {:>10}  {:>6}",
        bytes(row.padding_bytes()),
        bytes(row.physical_bytes),
        times(row.expansion())
    );
    let shape = row.shape.to_string();
    writeln!(out, "{}  {}", styled(waste_style(row.expansion()), numbers), cut(&shape, width.saturating_sub(INDENT)))?;
    let place: Vec<String> = row.shape_index.iter().map(usize::to_string).collect();
    let place = if place.is_empty() { String::new() } else { format!("{{{}}}", place.join(",")) };
    let mut who = format!("{}{place}", row.instruction);
    if let Some(source) = &row.source {
        who = format!("{}:{}  {who}", source.file, source.line);
    }
    if let Some(op_name) = &row.op_name {
        who = format!("{who}  {op_name}");
    }
    writeln!(out, "      {}", cut(&who, width.saturating_sub(6)))?;
    for cause in &row.causes {
        writeln!(out, "      {}", styled(FAINT, cut(cause, width.saturating_sub(6))))?;
    }
    Ok(())
}
