//! Where the time of a run goes, as tables for people.

use super::{SHOWN, Terminal, array_row::who, summary::write_remarks, write_wrapped};
use crate::{
    Summary,
    style::{FAINT, STRONG, Tone, cut, duration, line_of, percent, styled},
    summary::kind_name,
};
use anstyle::Style;
use std::io::{self, Write};
use tilewise_audit::{
    Report,
    time::{Basis, Rates, Time, TimeGroup, TimeRow, by_kind, by_line, by_module},
};

/// The time of a program, or why it is unknown.
pub(super) fn write_time(
    summary: &Summary<'_>,
    report: &Report,
    all: bool,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> io::Result<()> {
    let time = match report.time() {
        Ok(time) => time,
        Err(none) => {
            let words = format!("No time estimate: {none}.");
            return write_wrapped(&words, crate::style::style_of(Tone::Warning), ["", "  "], terminal.width, out);
        }
    };
    write_remarks(&summary.time, terminal, out)?;
    let rows = report.time_rows();
    let table = Table { time, most: if all { usize::MAX } else { SHOWN }, width: terminal.width };
    table.groups("By kind", usize::MAX, &by_kind(&rows), |kind| kind_name(*kind).to_owned(), out)?;
    let line = |line: &Option<&_>| line.map_or_else(|| "no line".to_owned(), line_of);
    table.groups("By line", table.most, &by_line(&rows), line, out)?;
    let modules = by_module(&rows);
    if modules.iter().any(|group| !group.of.is_empty()) {
        let module = |module: &String| if module.is_empty() { "no module".to_owned() } else { module.clone() };
        table.groups("By module", table.most, &modules, module, out)?;
    }
    table.operations(&rows, out)?;
    let padding = time.padding_seconds();
    if padding > time.total.estimate / 100.0 {
        let share = percent(padding / time.total.estimate);
        let words = format!("\nPadding's share of memory-bound operations: about {} ({share}).", duration(padding));
        writeln!(out, "{words}")?;
    }
    writeln!(out)
}

struct Table<'a> {
    time: &'a Time,
    most: usize,
    width: usize,
}

impl Table<'_> {
    fn share(&self, seconds: f64) -> String {
        if self.time.total.estimate > 0.0 { percent(seconds / self.time.total.estimate) } else { "-".to_owned() }
    }

    fn groups<T>(
        &self,
        title: &str,
        most: usize,
        groups: &[TimeGroup<T>],
        name: impl Fn(&T) -> String,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        writeln!(out, "\n{}", styled(STRONG, title))?;
        writeln!(out, "{}", styled(FAINT, format!("  {:>8}  {:>7}  {:>10}", "est.", "share", "operations")))?;
        let groups: Vec<_> = groups.iter().filter(|group| group.total.estimate > 0.0).collect();
        for group in groups.iter().take(most) {
            let (seconds, operations) = (group.total.estimate, group.operations);
            let numbers = format!("  {:>8}  {:>7}  {operations:>10}", duration(seconds), self.share(seconds));
            // Mostly lower bounds: the excess over them is unknown.
            let bound = if group.bound_seconds > seconds / 2.0 { "at least  " } else { "" };
            let room = self.width.saturating_sub(numbers.chars().count() + 2);
            let name = end_of(&name(&group.of), room.saturating_sub(bound.len()));
            writeln!(out, "{numbers}  {bound}{name}")?;
        }
        self.left_out(groups.len(), most, out)
    }

    fn operations(&self, rows: &[TimeRow], out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{}", styled(STRONG, "Operations"))?;
        let header = format!(
            "  {:>8}  {:>7}  {:>6}  {:>8}  {:<8}  {:>12}  kind",
            "est.", "share", "times", "each", "from", "of its roof"
        );
        writeln!(out, "{}", styled(FAINT, header))?;
        for TimeRow { instruction, row, op_name, source, .. } in rows.iter().take(self.most) {
            let seconds = row.total().estimate;
            let at_least = if row.is_bound() { "≥" } else { "" };
            let each = format!("{at_least}{}", duration(row.each.estimate));
            let numbers = format!(
                "  {:>8}  {:>7}  {:>6}  {each:>8}  {:<8}  {:>12}  {}",
                duration(seconds),
                self.share(seconds),
                row.executions,
                row.basis.as_str(),
                roof(row, &self.time.rates),
                kind_name(row.kind),
            );
            let style = if row.basis == Basis::Cycles { Style::new() } else { FAINT };
            writeln!(out, "{}", styled(style, numbers))?;
            let operation = op_name.as_ref().map(|name| format!("  {name}")).unwrap_or_default();
            let place = format!("{}{operation}", who(source.as_ref(), instruction));
            writeln!(out, "      {}", cut(&place, self.width.saturating_sub(6)))?;
        }
        self.left_out(rows.len(), self.most, out)
    }

    fn left_out(&self, count: usize, most: usize, out: &mut dyn Write) -> io::Result<()> {
        if count > most { writeln!(out, "  {} more; --all lists all", count - most) } else { Ok(()) }
    }
}

/// The end of a name that is too long: for a line its number, for a module its innermost part.
fn end_of(name: &str, columns: usize) -> String {
    let left_out = name.chars().count().saturating_sub(columns);
    if left_out == 0 {
        return name.to_owned();
    }
    format!("…{}", name.chars().skip(left_out + 1).collect::<String>())
}

/// `memory 78 %`: which full rate bounds it, and how near it comes.
fn roof(row: &tilewise_audit::time::Row, rates: &Rates) -> String {
    let share = row.each.floor / row.each.estimate;
    match row.roof(rates) {
        Some(roof) if share.is_finite() => format!("{} {:.0} %", roof.as_str(), share * 100.0),
        _ => "-".to_owned(),
    }
}
