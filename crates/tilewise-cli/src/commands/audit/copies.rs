//! Copies that cost: the lines of the user's program, what the copies are for, what they move.

use super::SHOWN;
use crate::output::{
    human::{FAINT, STRONG, bytes, cut, percent, styled},
    rows::who,
};
use std::io::{self, Write};
use tilewise_audit::{CopyClass, CopyLine, ReportView, copies_by_line};

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
    let shown = view.options.most_buffers.map_or(lines.len(), |_| SHOWN);
    for line in lines.iter().take(shown) {
        write_line(line, width, out)?;
    }
    if lines.iter().take(shown).any(|line| line.is_lower_bound) {
        let words = "  + once, in loops that run an unknown number of times";
        writeln!(out, "{}", styled(FAINT, words))?;
    }
    if lines.len() > shown {
        writeln!(out, "  {} more lines with copies; --all lists every one", lines.len() - shown)?;
    }
    Ok(())
}

fn write_line(line: &CopyLine, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let more = if line.is_lower_bound { "+" } else { " " };
    let numbers = format!("  {:>10}{more} {:>6}  {:>6}", bytes(line.moved_bytes), percent(line.share), line.copies);
    writeln!(out, "{numbers}  {}", cut(purpose(line.class), width.saturating_sub(numbers.chars().count() + 2)))?;
    let who = who(line.source.as_ref(), &line.instruction, None);
    writeln!(out, "      {}", cut(&who, width.saturating_sub(6)))
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
