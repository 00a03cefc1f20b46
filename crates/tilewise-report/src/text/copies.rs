//! Copies that cost: the lines of the user's program, what the copies are for, what they move.

use super::{SHOWN, advice::write_recommendation, array_row::who};
use crate::style::{FAINT, STRONG, bytes, cut, percent, styled};
use std::{
    cmp::Reverse,
    io::{self, Write},
};
use tilewise_audit::{CopyClass, CopyLine, CopyReason, CopyRow, Recommendation, ReportView, copies_by_line};

/// The lines whose copies move more than a hundredth of what the program moves; nothing where there are none.
pub(super) fn write_copies(view: &ReportView<'_>, width: usize, out: &mut dyn Write) -> io::Result<()> {
    if view.report.copies.is_empty() {
        return Ok(());
    }
    let moved = view.report.moved_bytes();
    let lines = copies_by_line(&view.report.copies, moved);
    if lines.is_empty() {
        return Ok(());
    }
    let title = format!("Copies, of {} that the program moves", bytes(moved));
    writeln!(out, "\n{}", styled(STRONG, title))?;
    writeln!(out, "{}", styled(FAINT, format!("  {:>10}  {:>6}  {:>6}  what for", "moves", "share", "copies")))?;
    let reasons = view.report.copy_reasons();
    let copies: Vec<(&CopyRow, &CopyReason)> = view.report.copies.iter().zip(reasons).collect();
    let shown = view.options.most_buffers.map_or(lines.len(), |_| SHOWN);
    for line in lines.iter().take(shown) {
        write_line(line, &copies, width, out)?;
    }
    if lines.iter().take(shown).any(|line| line.is_lower_bound) {
        let words = "  + once, in loops that run an unknown number of times";
        writeln!(out, "{}", styled(FAINT, words))?;
    }
    if lines.len() > shown {
        writeln!(out, "  {} more lines with copies; --all lists every one", lines.len() - shown)?;
    }
    let advice = view.report.advice();
    let is_said = |fix: &Recommendation| advice.iter().any(|advice| advice.sentence == fix.sentence);
    write_fixes(&copies, moved, is_said, width, out)
}

/// What the caller can change so that copies go, of those that cost more than a hundredth of what the program moves.
fn write_fixes(
    copies: &[(&CopyRow, &CopyReason)],
    moved: u64,
    is_said: impl Fn(&Recommendation) -> bool,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut fixes: Vec<(u64, &CopyRow, &Recommendation)> = Vec::new();
    for (row, fix) in copies.iter().filter_map(|(row, reason)| Some((*row, reason.fix.as_ref()?))) {
        match fixes.iter_mut().find(|(_, _, known)| known.sentence == fix.sentence) {
            Some((bytes, ..)) => *bytes = bytes.saturating_add(row.moved_bytes),
            None => fixes.push((row.moved_bytes, row, fix)),
        }
    }
    fixes.retain(|(bytes, ..)| *bytes > moved / 100);
    fixes.sort_by_key(|(bytes, ..)| Reverse(*bytes));
    if fixes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", styled(STRONG, "Copies that another layout makes needless"))?;
    for (moved, row, fix) in fixes.iter().take(SHOWN) {
        let trips = match row.trips {
            Some(1) => String::new(),
            Some(trips) => format!(" in {trips} turns of a loop"),
            None => " at every turn of a loop".to_owned(),
        };
        // What also frees memory stands above, with its code.
        let lead = format!("{}{trips}: ", bytes(*moved));
        write_recommendation(fix, "  ", &lead, !is_said(fix), width, out)?;
    }
    Ok(())
}

fn write_line(
    line: &CopyLine,
    copies: &[(&CopyRow, &CopyReason)],
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let more = if line.is_lower_bound { "+" } else { " " };
    let numbers = format!("  {:>10}{more} {:>6}  {:>6}", bytes(line.moved_bytes), percent(line.share), line.copies);
    writeln!(out, "{numbers}  {}", cut(purpose(line.class), width.saturating_sub(numbers.chars().count() + 2)))?;
    let who = who(line.source.as_ref(), &line.instruction, None);
    writeln!(out, "      {}", cut(&who, width.saturating_sub(6)))?;
    // A transfer needs no reason.
    let about = copies.iter().find(|(row, _)| row.instruction == line.instruction && row.class != CopyClass::Transfer);
    let Some((_, reason)) = about else { return Ok(()) };
    let options = textwrap::Options::new(width).initial_indent("      ").subsequent_indent("      ");
    for line in textwrap::wrap(&reason.why, options) {
        writeln!(out, "{}", styled(FAINT, line))?;
    }
    Ok(())
}

fn purpose(class: CopyClass) -> &'static str {
    match class {
        CopyClass::Relayout => "relayout: elements into another order or type",
        CopyClass::Transfer => "transfer: the same bytes into another memory",
        CopyClass::Duplicate => "duplicate: the same layout in the same memory",
        CopyClass::Bitcast => "bitcast: every byte stays where it is, no copy is needed",
        _ => "copy",
    }
}
