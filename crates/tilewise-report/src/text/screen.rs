//! The first screen of a program: whether it fits, why it needs so much, and the change that costs least.

use super::{Terminal, write_wrapped};
use crate::{
    PlannedChange, Summary,
    findings::words,
    style::{FAINT, STRONG, bytes, cut, style_of, styled},
    summary::PeakCause,
};
use std::io::{self, Write};
use tilewise::visible;

/// Lines of the first screen: what a terminal shows without scrolling.
const LINES: usize = 24;
/// Columns before what a cause is.
const CAUSE: usize = 25;
/// Columns before a change.
const CHANGE: usize = 8;
/// Cells of the strip that shows how much of a row is padding.
const CELLS: u64 = 64;

/// What is said first of a program, in at most a screen.
pub(super) struct Screen<'a> {
    pub(super) summary: &'a Summary<'a>,
    /// Whether nothing needs to change, and what could be saved all the same is only named.
    pub(super) is_folded: bool,
    pub(super) terminal: &'a Terminal,
}

impl Screen<'_> {
    /// Writes it; whether the first change stands there with its code.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<bool> {
        let (summary, width) = (self.summary, self.terminal.width);
        let mut lines = Vec::new();
        let headline = &summary.headline;
        write_wrapped(&headline.sentence, style_of(headline.tone).bold(), ["", "  "], width, &mut lines)?;
        writeln!(lines, "{}", styled(FAINT, format!("{}  {}", summary.title, summary.origin)))?;
        if headline.is_comfortable {
            write_wrapped(&comfort(summary), anstyle::Style::new(), ["", "  "], width, &mut lines)?;
        }
        for (at, cause) in summary.causes.iter().enumerate() {
            if at == 0 {
                writeln!(lines)?;
            }
            let label = match at {
                0 if headline.is_comfortable => "Holds",
                0 => "Why",
                _ => "",
            };
            self.write_cause(label, cause, &mut lines)?;
        }
        if !summary.changes.is_empty() {
            writeln!(lines)?;
        }
        let (mut left_out, mut has_code) = (0, false);
        for (at, change) in summary.changes.iter().enumerate() {
            let mut own = Vec::new();
            let label = match at {
                0 if headline.verdict == "fits" => "Smaller",
                0 => "Change",
                _ => "Then",
            };
            if at == 0 && !self.is_folded {
                self.write_change(label, change, true, &mut own)?;
                has_code = count(&lines) + count(&own) <= LINES;
            }
            if !has_code || at > 0 {
                own.clear();
                self.write_change(label, change, false, &mut own)?;
            }
            if at > 0 && count(&lines) + count(&own) >= LINES {
                left_out += 1;
            } else {
                lines.extend(own);
            }
        }
        match left_out {
            0 if self.is_folded && !summary.changes.is_empty() => {
                writeln!(lines, "{}", styled(FAINT, "        optional; --all shows how"))?;
            }
            0 => {}
            count => writeln!(lines, "{}", styled(FAINT, format!("        {count} more below")))?,
        }
        if !has_code && !self.is_folded && !summary.changes.is_empty() {
            writeln!(lines, "{}", styled(FAINT, "        code below"))?;
        }
        out.write_all(&lines)?;
        Ok(has_code)
    }

    fn write_cause(&self, label: &str, cause: &PeakCause, out: &mut dyn Write) -> io::Result<()> {
        let numbers = format!("{:>3.0} %  {:>10}  ", cause.share * 100.0, bytes(cause.bytes));
        let label = format!("{label:<6}");
        let indent = " ".repeat(CAUSE);
        let room = self.terminal.width.saturating_sub(CAUSE).max(1);
        let place = &cause.place;
        let beside = room.saturating_sub(place.chars().count() + 2);
        let said = textwrap::wrap(&cause.sentence, if beside >= 32 { beside } else { room });
        for (at, line) in said.iter().enumerate() {
            let (head, gap) = match at {
                0 => (format!("{}{numbers}", styled(STRONG, &label)), beside + 2),
                _ => (indent.clone(), 0),
            };
            let place = if at == 0 && beside >= 32 { place.as_str() } else { "" };
            let line = if place.is_empty() { line.to_string() } else { format!("{line:<gap$}") };
            writeln!(out, "{head}{line}{}", styled(FAINT, place))?;
        }
        if beside < 32 && !place.is_empty() {
            writeln!(out, "{indent}{}", styled(FAINT, place))?;
        }
        let line = cause.source.as_ref().map_or(0, |source| source.line);
        if let Some(quote) = &cause.quote {
            self.write_quote(line, quote, CAUSE, out)?;
        }
        match cause.filled {
            Some([filled, places]) if places > filled => writeln!(out, "{indent}{}", self.strip(filled, places)),
            _ => Ok(()),
        }
    }

    /// `106 │ loss = cross_entropy(logits, labels)`
    fn write_quote(&self, line: u32, quote: &str, indent: usize, out: &mut dyn Write) -> io::Result<()> {
        let bar = if self.terminal.is_ascii { "|" } else { "│" };
        let head = format!("{:indent$}{line} {bar} ", "");
        let room = self.terminal.width.saturating_sub(head.chars().count());
        writeln!(out, "{}{}", styled(FAINT, &head), cut(&visible(quote), room))
    }

    /// `■■□□□□  4 of 128 places hold data`
    fn strip(&self, filled: u64, places: u64) -> String {
        let room = u64::try_from(self.terminal.width.saturating_sub(CAUSE)).unwrap_or(CELLS);
        let note = format!("{filled} of {places} hold data");
        let cells = places.min(CELLS).min(room.saturating_sub(note.len() as u64 + 2)).max(1);
        let full = filled.saturating_mul(cells).div_ceil(places.max(1)).min(cells);
        let [one, other] = if self.terminal.is_ascii { ["#", "."] } else { ["■", "□"] };
        let repeat = |cell: &str, count: u64| cell.repeat(usize::try_from(count).unwrap_or_default());
        format!("{}{}  {}", repeat(one, full), repeat(other, cells - full), styled(FAINT, note))
    }

    fn write_change(
        &self,
        label: &str,
        change: &PlannedChange<'_>,
        with_code: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let width = self.terminal.width;
        let effect = if self.is_folded { String::new() } else { format!("  {}", change.effect) };
        let lead = format!("{}{effect}", change.lead);
        let line = format!("{label:<CHANGE$}{lead}  {}", change.task);
        let head = styled(STRONG, format!("{label:<CHANGE$}{}", change.lead));
        let indent = " ".repeat(CHANGE);
        if line.chars().count() <= width {
            writeln!(out, "{head}{effect}  {}", change.task)?;
        } else {
            writeln!(out, "{head}{effect}")?;
            write_wrapped(&change.task, anstyle::Style::new(), [&indent; 2], width, out)?;
        }
        if !with_code {
            return Ok(());
        }
        let is_told = |quote: &String| self.summary.causes.iter().any(|cause| cause.quote.as_ref() == Some(quote));
        let source = change.recommendation.array.as_ref().and_then(|array| array.source.as_ref());
        if let (Some(quote), Some(source)) = (change.quote.as_ref().filter(|quote| !is_told(quote)), source) {
            self.write_quote(source.line, quote, CHANGE, out)?;
        }
        if let Some(caveat) = &change.caveat {
            write_wrapped(&format!("({caveat})"), FAINT, [&indent; 2], width, out)?;
        }
        let said = words(change.recommendation);
        let code = change.plain_code.as_deref().or(said.code.as_deref()).unwrap_or_default();
        code.lines().try_for_each(|line| writeln!(out, "{indent}  {}", styled(FAINT, line)))
    }
}

fn count(lines: &[u8]) -> usize {
    lines.iter().filter(|byte| **byte == b'\n').count()
}

/// That nothing needs to change, and what it means if the program died all the same.
fn comfort(summary: &Summary<'_>) -> String {
    let headline = &summary.headline;
    let left = headline.limit_bytes.zip(headline.needed_bytes).map(|(limit, needed)| limit.saturating_sub(needed));
    let left = left.map(bytes).unwrap_or_default();
    format!("Nothing needs to change. If it ran out of memory all the same, something else held more than {left}.")
}
