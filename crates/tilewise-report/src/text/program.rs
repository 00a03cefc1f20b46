//! A report for people: the summary, the arrays alive at the peak, and all buffers or those with the most padding.

use super::{
    SHOWN, Terminal,
    advice::write_in_full,
    array_row::{Row, name, who, write_header},
    kernels::{write_bodies, write_boundaries, write_vmem},
    screen::Screen,
    summary::{write_copies, write_held, write_remarks},
    time::write_time,
};
use crate::{
    AuditOutput, ReportView, WriteText,
    export::sparkline,
    style::{FAINT, STRONG, bytes, percent, styled, waste_style},
    summary::of_all_arrays,
};
use std::io::{self, Write};
use tilewise_audit::{BufferRow, PeakRow, Report, Role, SpacePeak};

/// Columns of the line of memory's rise and fall.
const SPARKLINE: usize = 64;

impl WriteText for AuditOutput {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let (report, summary, all) = (&self.report, self.summary(), self.all);
        if self.of_time {
            writeln!(out, "{}  {}\n", styled(STRONG, summary.title), styled(FAINT, &summary.origin))?;
            write_held(&summary, terminal.width, out)?;
            return write_time(&summary, report, all, terminal, out);
        }
        let is_folded = summary.headline.is_comfortable && !all;
        let shown = Screen::of_program(&summary, is_folded, terminal).write(out)?;
        writeln!(out, "\n{}", styled(STRONG, "In detail"))?;
        if report.plan().is_err() {
            write_totals(report, terminal, out)?;
        }
        write_held(&summary, terminal.width, out)?;
        write_remarks(&summary.peak, terminal, out)?;
        let peak = report.memory_space(0).and_then(|hbm| hbm.peak.as_ref()).filter(|peak| !peak.rows.is_empty());
        if peak.is_some_and(SpacePeak::has_temporaries) {
            let lines = sparkline(report, &terminal.options(), terminal.width.saturating_sub(2).min(SPARKLINE));
            lines.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        }
        write_remarks(&summary.time, terminal, out)?;
        if report.plan().is_ok() {
            write_remarks(&summary.notes, terminal, out)?;
        }
        if let Some(peak) = peak {
            if !is_folded {
                write_in_full(&summary.changes, shown.code, terminal.width, out)?;
            }
            write_peak(peak, all, terminal.width, out)?;
        }
        if let Some(copies) = &summary.copies {
            write_copies(copies, all, terminal, out)?;
        }
        let kernels = report.kernels();
        write_vmem(&kernels, all, terminal.width, out)?;
        write_boundaries(&kernels, report.moved_bytes(), all, terminal.width, out)?;
        write_bodies(&kernels, terminal.width, out)?;
        writeln!(out)?;
        match report.plan() {
            Ok(_) if !all => return Ok(()),
            Ok(_) => {
                write_totals(report, terminal, out)?;
                writeln!(out)?;
            }
            Err(_) => {}
        }
        write_buffers(&self.view_of(SHOWN), terminal.width, out)
    }
}

/// The arrays alive at the peak.
fn write_peak(peak: &SpacePeak, all: bool, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let title = if peak.has_temporaries() { "What is alive at the peak" } else { "What it holds" };
    writeln!(out, "\n{}", styled(STRONG, title))?;
    write_header(out)?;
    let (shown, left) = peak.rows.split_at(if all { peak.rows.len() } else { SHOWN.min(peak.rows.len()) });
    for row in shown {
        peak_row(row).write(width, out)?;
    }
    if !left.is_empty() {
        let bytes_left = left.iter().map(|row| row.bytes).fold(0, u64::saturating_add);
        let arrays = left.iter().map(|row| row.count).sum::<usize>();
        let plural = if arrays == 1 { "array" } else { "arrays" };
        writeln!(out, "  {arrays} more {plural} with {}; --all lists all", bytes(bytes_left))?;
    }
    Ok(())
}

fn peak_row(row: &PeakRow) -> Row<'_> {
    let role = match row.role {
        Role::Argument => "argument  ",
        Role::Output => "result  ",
        Role::Constant => "constant  ",
        Role::Table => "table of a tuple  ",
        _ => "",
    };
    let times = if row.count > 1 { format!("{} × ", row.count) } else { String::new() };
    let who = who(row.source.as_ref(), &name(&row.instruction, &row.shape_index));
    Row {
        padding: Some(row.padding_bytes),
        takes: bytes(row.bytes),
        expansion: row.expansion(),
        shape: format!("{times}{}", row.shape),
        who: format!("{role}{who}"),
        op_name: row.op_name.as_deref(),
        causes: &row.causes,
    }
}

/// Every buffer, or those with the most padding.
fn write_buffers(view: &ReportView<'_>, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let (padded, padding) = view.report.padded();
    if view.report.memory_spaces.is_empty() {
        let words = "No instruction here takes memory: `bitcast`, `tuple`, `get-tuple-element` and their like hand on what others took.";
        return writeln!(out, "{words}\n");
    }
    if padded == 0 {
        return writeln!(out, "No buffer is padded.\n");
    }
    let lists_all = view.most_buffers.is_none();
    writeln!(out, "{}", styled(STRONG, if lists_all { "Every buffer" } else { "Most padding" }))?;
    write_header(out)?;
    let rows: Vec<_> = view.buffers().collect();
    for row in &rows {
        buffer_row(row).write(width, out)?;
    }
    if !lists_all && padded > rows.len() {
        let shown = rows.iter().map(|row| row.sizes.padding_bytes()).fold(0, u64::saturating_add);
        let left = padding.saturating_sub(shown);
        let left_out = padded - rows.len();
        writeln!(out, "  {left_out} more padded buffers with {} of padding; --all lists every buffer", bytes(left))?;
    }
    writeln!(out)
}

fn buffer_row(buffer: &BufferRow) -> Row<'_> {
    let name = name(&buffer.instruction, &buffer.shape_index);
    Row {
        padding: Some(buffer.sizes.padding_bytes()),
        takes: bytes(buffer.sizes.physical_bytes),
        expansion: buffer.sizes.expansion(),
        shape: buffer.shape.to_string(),
        who: who(buffer.source.as_ref(), &name),
        op_name: buffer.op_name.as_deref(),
        causes: &buffer.causes,
    }
}

/// The sums are over everything the program defines, as if no two buffers shared memory.
fn write_totals(report: &Report, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let header = format!("  {:<10}{:>8}{:>13}{:>13}{:>13}", "memory", "buffers", "data", "takes", "padding");
    writeln!(out, "{}", styled(FAINT, header))?;
    for total in &report.memory_spaces {
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
    if let Some(remark) = of_all_arrays(report) {
        writeln!(out)?;
        write_remarks([&remark], terminal, out)?;
    }
    let note = "Sums over all buffers; those that are never live at the same time share memory.";
    writeln!(out, "{}", styled(FAINT, note))
}
