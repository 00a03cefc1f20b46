//! What a program holds when it holds the most: how much, when, and which lines own it.

use super::{
    SHOWN, Terminal,
    advice::write_of_program,
    array_row::{Row, shortened, who, write_header},
};
use crate::{
    export::sparkline,
    style::{FAINT, STRONG, bytes, bytes_both, percent, styled, waste_style},
};
use std::io::{self, Write};
use tilewise_audit::{MemoryPlan, PeakRow, Report, ReportView, Role, SpacePeak};

/// Memory spaces that hold less aren't worth a line.
const WORTH_A_LINE: u64 = 4096;

/// Columns of the line of memory's rise and fall.
const SPARKLINE: usize = 64;

/// When the most is held, what of it is wasted, and whose it is.
pub(super) fn write(
    view: &ReportView<'_>,
    plan: &MemoryPlan,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = terminal.width;
    let report = view.report;
    let hbm = report.memory_space(0).and_then(|total| total.peak.as_ref());
    if let Some(peak) = hbm {
        write_peak(plan, peak, width, out)?;
        if peak.has_temporaries() {
            for line in sparkline(report, &terminal.options(), width.min(SPARKLINE)) {
                writeln!(out, "  {line}")?;
            }
        }
    }
    for total in report.memory_spaces.iter().filter(|total| total.memory_space != 0) {
        let Some(peak) = total.peak.as_ref().filter(|peak| peak.live_bytes >= WORTH_A_LINE) else { continue };
        let padding = match peak.padding_bytes {
            0 => String::new(),
            padding => format!(", {} of it padding", bytes(padding)),
        };
        let words = format!("In {}: {} at most{padding}.", total.memory_space_name(), bytes(peak.live_bytes));
        writeln!(out, "{}", styled(FAINT, words))?;
    }
    if let Some((_, other)) = plan.other_packing {
        let (kept, other) = (bytes(plan.temporary_bytes()), bytes(other));
        let words = format!(
            "So near the limit the compiler lays temporaries out in two ways and keeps the lower: {kept}, not {other}."
        );
        writeln!(out, "{words}")?;
    }
    write_agreement(report, out)?;
    match hbm.filter(|peak| !peak.rows.is_empty()) {
        Some(peak) => {
            write_of_program(report, width, out)?;
            write_rows(view, peak, width, out)
        }
        None => Ok(()),
    }
}

/// How the plan compares with the compiler's own.
fn write_agreement(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let compared = report.compiler_plan.as_ref().filter(|agreement| agreement.values > 0);
    let Some(agreement) = compared else { return Ok(()) };
    let values = agreement.values;
    let Some(first) = agreement.differences.first() else {
        let words = format!("The dump's own plan agrees: {values} temporaries lie where the compiler put them.");
        return writeln!(out, "{}", styled(FAINT, words));
    };
    let count = agreement.differences.len();
    writeln!(out, "The dump's own plan differs in {count} of {values} temporaries: {first}.")
}

/// `Holds 311.42 MiB of HBM at most: 9.20 MiB of arguments, …`
pub(super) fn write_total(report: &Report, plan: &MemoryPlan, out: &mut dyn Write) -> io::Result<()> {
    let per_device =
        if report.partitions > 1 { format!(" on each of {} devices", report.partitions) } else { String::new() };
    let mut parts = vec![format!("{} arguments", bytes(plan.argument_bytes))];
    let results = plan.output_bytes.saturating_sub(plan.alias_bytes);
    if plan.alias_bytes > 0 {
        parts.push(format!("{} results beside {} in donated arguments", bytes(results), bytes(plan.alias_bytes)));
    } else {
        parts.push(format!("{} results", bytes(results)));
    }
    parts.push(format!("{} temporaries", bytes(plan.temporary_bytes())));
    let total = bytes_both(plan.total_bytes());
    let lead = styled(STRONG, format!("Holds {total} of HBM at most{per_device}"));
    writeln!(out, "{lead}:\n  {}.", parts.join(", "))
}

fn write_peak(plan: &MemoryPlan, peak: &SpacePeak, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let alive = peak.live_bytes;
    if peak.padding_bytes > 0 {
        let share = peak.padding_share();
        let words = format!("{} of it is padding, {}.", bytes(peak.padding_bytes), percent(share));
        writeln!(out, "{}", styled(waste_style(1.0 / (1.0 - share).max(f64::EPSILON)), words))?;
    } else {
        writeln!(out, "Nothing of it is padding.")?;
    }
    if peak.fragmentation_bytes > alive / 50 {
        let gaps = bytes(peak.fragmentation_bytes);
        writeln!(out, "{gaps} of the temporaries' memory is gaps between them at that moment.")?;
    }
    if !peak.has_temporaries() {
        return Ok(());
    }
    let line =
        peak.source.as_ref().map(|source| format!("{}:{}, ", shortened(&source.file), source.line)).unwrap_or_default();
    let operation = peak.op_name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let step = format!("step {} of {}", peak.moment + 1, plan.order().len());
    let when = format!("The peak: {line}while {} runs{operation}, {step}.", peak.instruction);
    for line in textwrap::wrap(&when, textwrap::Options::new(width).subsequent_indent("  ")) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn write_rows(view: &ReportView<'_>, peak: &SpacePeak, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let shown = if view.options.most_buffers.is_none() { usize::MAX } else { SHOWN };
    let title = if peak.has_temporaries() { "What is alive at the peak" } else { "What it holds" };
    writeln!(out, "\n{}", styled(STRONG, title))?;
    write_header(out)?;
    for row in peak.rows.iter().take(shown) {
        write_row(row, width, out)?;
    }
    let left: Vec<&PeakRow> = peak.rows.iter().skip(shown).collect();
    if !left.is_empty() {
        let bytes_left = left.iter().map(|row| row.bytes).fold(0, u64::saturating_add);
        let arrays = left.iter().map(|row| row.count).sum::<usize>();
        let plural = if arrays == 1 { "array" } else { "arrays" };
        writeln!(out, "  {arrays} more {plural} with {}; --all lists all", bytes(bytes_left))?;
    }
    Ok(())
}

fn write_row(row: &PeakRow, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let times = if row.count > 1 { format!("{} × ", row.count) } else { String::new() };
    let role = match row.role {
        Role::Argument => "argument",
        Role::Output => "result",
        Role::Constant => "constant",
        Role::Table => "table of a tuple",
        _ => "",
    };
    let path: Vec<String> = row.shape_index.iter().map(usize::to_string).collect();
    let place = if path.is_empty() { String::new() } else { format!("{{{}}}", path.join(",")) };
    let name = format!("{}{place}", row.instruction);
    let who = who(row.source.as_ref(), &name, row.op_name.as_deref());
    let row = Row {
        padding: Some(row.padding_bytes),
        takes: bytes(row.bytes),
        expansion: row.expansion(),
        shape: format!("{times}{}", row.shape),
        who: if role.is_empty() { who } else { format!("{role}  {who}") },
        causes: &row.causes,
    };
    row.write(width, out)
}
