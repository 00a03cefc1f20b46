//! A report for people: totals by memory space, then the buffers with the most padding, each with its source line and
//! cause.

use super::{
    SHOWN, Terminal,
    array_row::{Row, who, write_header},
    copies::write_copies,
    summary,
};
use crate::{
    AuditOutput, WriteText,
    style::{FAINT, STRONG, bytes, bytes_both, percent, styled, waste_style},
};
use std::io::{self, Write};
use tilewise_audit::{BufferRow, ReportView, SpaceTotal};

impl WriteText for AuditOutput {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        write(&self.view_of(SHOWN), terminal, out)
    }
}

fn write(view: &ReportView<'_>, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let width = terminal.width;
    let report = view.report;
    let lists_all = view.options.most_buffers.is_none();
    let entry =
        report.entry.as_deref().filter(|entry| !entry.is_empty()).map_or(String::new(), |e| format!(", entry {e}"));
    let module = if report.module_name.is_empty() { "HLO without a module" } else { &report.module_name };
    writeln!(out, "{}  {}", styled(STRONG, module), styled(FAINT, format!("{}{entry}", view.source)))?;
    writeln!(out)?;
    match &report.plan {
        Ok(plan) => {
            summary::write_total(report, plan, out)?;
            write_fit(view, out)?;
            summary::write(view, plan, terminal, out)?;
            write_copies(view, width, out)?;
            writeln!(out)?;
            if !lists_all {
                return Ok(());
            }
            write_totals(view, out)?;
        }
        Err(error) => {
            writeln!(out, "No memory plan: {error}.")?;
            write_totals(view, out)?;
            write_fit(view, out)?;
            write_copies(view, width, out)?;
        }
    }

    let rows: Vec<_> = view.buffers().collect();
    let (padded, padding) = report.padded();
    writeln!(out)?;
    if padded == 0 {
        return writeln!(out, "No buffer is padded.\n");
    }
    writeln!(out, "{}", styled(STRONG, if lists_all { "Every buffer" } else { "Most padding" }))?;
    write_header(out)?;
    for row in &rows {
        write_row(row, width, out)?;
    }
    if !lists_all && padded > rows.len() {
        let shown = rows.iter().map(|row| row.sizes.padding_bytes()).fold(0, u64::saturating_add);
        let left = padding.saturating_sub(shown);
        let left_out = padded - rows.len();
        writeln!(out, "  {left_out} more padded buffers with {} of padding; --all lists every buffer", bytes(left))?;
    }
    writeln!(out)
}

/// The sums are over everything the program defines, as if no two buffers shared memory.
fn write_totals(view: &ReportView<'_>, out: &mut dyn Write) -> io::Result<()> {
    let header = format!("  {:<10}{:>8}{:>13}{:>13}{:>13}", "memory", "buffers", "data", "takes", "padding");
    writeln!(out, "{}", styled(FAINT, header))?;
    for total in &view.report.memory_spaces {
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
    if let Some(hbm) = view.report.memory_space(0).filter(|hbm| hbm.padding_bytes() > 0) {
        writeln!(out)?;
        writeln!(out, "{}", headline(hbm))?;
    }
    let note = "Sums over all buffers; those that are never live at the same time share memory.";
    writeln!(out, "{}", styled(FAINT, note))
}

/// Whether the program fits the memory it was asked about.
fn write_fit(view: &ReportView<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Some(limit) = view.options.hbm_limit else { return Ok(()) };
    let bounds = view.report.memory_bounds;
    let (least, most) = (bounds.at_least_bytes(), bounds.at_most_bytes);
    let (bad, holds) = (waste_style(f64::INFINITY), bytes(limit));
    let (style, verdict) = match bounds.fits(limit) {
        Some(true) => (STRONG, format!("Fits {holds} of HBM with {} left.", bytes(limit - most))),
        Some(false) if view.report.plan.is_ok() => {
            (bad, format!("Does not fit {holds} of HBM: {} too much.", bytes(least - limit)))
        }
        Some(false) => {
            let short = bytes(least - limit);
            (bad, format!("Does not fit {holds} of HBM: arguments and results alone are {short} too much."))
        }
        None => {
            let (least, most) = (bytes(least), bytes(most));
            let words =
                format!("May or may not fit {holds} of HBM: needs {least} to {most}, as temporaries share memory.");
            (waste_style(2.0), words)
        }
    };
    writeln!(out, "{}", styled(style, verdict))
}

fn write_row(buffer: &BufferRow, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let row = Row {
        padding: Some(buffer.sizes.padding_bytes()),
        takes: bytes(buffer.sizes.physical_bytes),
        expansion: buffer.sizes.expansion(),
        shape: buffer.shape.to_string(),
        who: who_of(buffer),
        causes: &buffer.causes,
    };
    row.write(width, out)
}

fn headline(hbm: &SpaceTotal) -> String {
    let share = percent(hbm.padding_share());
    let padding = bytes_both(hbm.padding_bytes());
    format!("{padding} in HBM is padding, {share} of the {} its arrays take.", bytes_both(hbm.physical_bytes))
}

fn who_of(buffer: &BufferRow) -> String {
    let path: Vec<String> = buffer.shape_index.iter().map(usize::to_string).collect();
    let place = if path.is_empty() { String::new() } else { format!("{{{}}}", path.join(",")) };
    who(buffer.source.as_ref(), &format!("{}{place}", buffer.instruction), buffer.op_name.as_deref())
}
