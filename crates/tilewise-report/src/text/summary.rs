//! The summary for people.

use super::{SHOWN, Terminal, advice::write_recommendation, array_row::who, write_wrapped};
use crate::{
    Remark, Summary,
    style::{FAINT, STRONG, bytes, cut, duration, percent, style_of, styled},
    summary::{CopiesOfLine, CopySummary},
};
use anstyle::Style;
use std::io::{self, Write};

/// The memory of the program, and its parts.
pub(super) fn write_held(summary: &Summary<'_>, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let parts: Vec<&str> = summary.parts.iter().map(|part| &*part.words).collect();
    if parts.is_empty() {
        return Ok(());
    }
    write_wrapped(&format!("{}:", summary.held), Style::new(), ["", "  "], width, out)?;
    write_wrapped(&format!("{}.", parts.join(", ")), Style::new(), ["  "; 2], width, out)
}

/// Remarks, a paragraph each.
pub(super) fn write_remarks<'a>(
    remarks: impl IntoIterator<Item = &'a Remark>,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> io::Result<()> {
    let write = |remark: &Remark| write_wrapped(&remark.words, style_of(remark.tone), ["", "  "], terminal.width, out);
    remarks.into_iter().try_for_each(write)
}

/// The lines whose copies cost, all or as many as a screen holds, and the changes that make copies needless.
pub(super) fn write_copies(
    copies: &CopySummary<'_>,
    lists_all: bool,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> io::Result<()> {
    let title = format!("Copies, of {} that the program moves", bytes(copies.moved_bytes));
    writeln!(out, "\n{}", styled(STRONG, title))?;
    let time = if copies.lines.iter().any(|line| line.seconds.is_some()) {
        format!("  {:>9}", "est. time")
    } else {
        String::new()
    };
    let header = format!("  {:>10}  {:>6}{time}  {:>6}  what for", "moves", "share", "copies");
    writeln!(out, "{}", styled(FAINT, header))?;
    let shown = copies.lines.iter().take(if lists_all { usize::MAX } else { SHOWN });
    for line in shown.clone() {
        write_line(line, terminal.width, out)?;
    }
    if shown.clone().any(|line| line.is_lower_bound) {
        writeln!(out, "{}", styled(FAINT, "  + loops of unknown trip count, counted once"))?;
    }
    if copies.lines.len() > shown.len() {
        writeln!(out, "  {} more lines with copies; --all lists every one", copies.lines.len() - shown.len())?;
    }
    if copies.needless.is_empty() {
        return Ok(());
    }
    let order = match (copies.needless.len(), copies.are_times_known) {
        (0 | 1, _) => "",
        (_, true) => ", by estimated time",
        (_, false) => ", by bytes",
    };
    writeln!(out, "\n{}", styled(STRONG, format!("Copies that another layout makes needless{order}")))?;
    for needless in copies.needless.iter().take(SHOWN) {
        // A change that also frees memory stands above, with its code.
        let (lead, with_code) = (format!("{}: ", needless.lead), !needless.is_repeated);
        write_recommendation(needless.recommendation, "  ", &lead, with_code, terminal.width, out)?;
    }
    Ok(())
}

fn write_line(line: &CopiesOfLine, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let more = if line.is_lower_bound { "+" } else { " " };
    let time = line.seconds.map(|seconds| format!("  {:>9}", duration(seconds))).unwrap_or_default();
    let numbers =
        format!("  {:>10}{more} {:>6}{time}  {:>6}", bytes(line.moved_bytes), percent(line.share), line.copies);
    writeln!(out, "{numbers}  {}", cut(line.purpose, width.saturating_sub(numbers.chars().count() + 2)))?;
    let who = who(line.source.as_ref(), &line.instruction);
    writeln!(out, "      {}", cut(&who, width.saturating_sub(6)))?;
    match &line.why {
        Some(why) => write_wrapped(why, FAINT, ["      "; 2], width, out),
        None => Ok(()),
    }
}
