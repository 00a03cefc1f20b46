//! The first screen of a program or a message: whether it fits, why, and the change that costs least.

use super::{Terminal, write_wrapped};
use crate::{
    Headline, LineEdit, MessageSummary, PlannedChange, Quote, Remark, Summary,
    findings::only_looks,
    style::{FAINT, STRONG, bytes, cut, file_name, style_of, styled},
    summary::PeakCause,
};
use anstyle::Style;
use std::{
    borrow::Cow,
    io::{self, Write},
};
use tilewise::visible;

/// Lines of the first screen, which a terminal shows without scrolling.
const LINES: usize = 24;
/// Lines of code, at most, below a message's later steps: none of them is sure to be the one that helps.
const FEW_LINES: usize = 5;
/// Columns before the description of a cause.
const CAUSE: usize = 25;
/// Columns before a change.
const CHANGE: usize = 8;
/// The label of a step that looks for the cause, and changes nothing yet.
const LOOK: &str = "Look";
/// Behind a change that has no room for its bytes.
const BELOW: &str = "  (below)";
/// Cells of the strip that shows how much of a row is padding.
const CELLS: u64 = 64;

/// The first text of a report or a message, in at most a screen.
pub(super) struct Screen<'a> {
    headline: &'a Headline,
    /// The program or the message, and its source.
    origin: String,
    /// The text before the causes.
    cause: Option<String>,
    causes: &'a [PeakCause],
    changes: &'a [PlannedChange<'a>],
    /// Changes without a price.
    remedies: &'a [Cow<'static, str>],
    /// The remark behind the changes.
    remark: Option<&'a Remark>,
    /// The message itself.
    quote: Option<&'a Quote>,
    /// The labels of the first cause, of the first change, and of the other changes.
    labels: [&'static str; 3],
    /// Whether no change is needed, and possible savings are only named.
    is_folded: bool,
    /// Whether a step may look for the cause: a message may not tell it.
    may_look: bool,
    terminal: &'a Terminal,
}

/// The parts of the first screen that had room.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    /// The first change's code.
    pub(super) code: bool,
    /// The message itself.
    pub(super) quote: bool,
}

impl<'a> Screen<'a> {
    pub(super) fn of_program(summary: &'a Summary<'a>, is_folded: bool, terminal: &'a Terminal) -> Self {
        let headline = &summary.headline;
        let cause = if headline.is_comfortable { "Holds" } else { "Why" };
        let change = if headline.verdict == "fits" { "Smaller" } else { "Change" };
        Self {
            headline,
            origin: format!("{}  {}", summary.title, summary.origin),
            cause: headline.comfort.clone(),
            causes: &summary.causes,
            changes: summary.changes_to_show(),
            remedies: if is_folded { &[] } else { &summary.remedies },
            remark: summary.shortfall.as_ref(),
            quote: None,
            labels: [cause, change, if summary.is_first_enough() { "Further" } else { "Then" }],
            is_folded,
            may_look: false,
            terminal,
        }
    }

    pub(super) fn of_message(summary: &'a MessageSummary<'a>, terminal: &'a Terminal) -> Self {
        let raised_at = summary.raised_at.as_ref().map(|frame| {
            let code = frame.code.as_ref().map(|code| format!("  {}", visible(code))).unwrap_or_default();
            // Operations of PyTorch/XLA wait until a value is read.
            let lazy = if summary.is_lazy { "  (runs the work queued before it)" } else { "" };
            format!("{}:{}{code}{lazy}", visible(file_name(&frame.file)), frame.line)
        });
        Self {
            headline: &summary.headline,
            origin: raised_at.unwrap_or_default(),
            cause: Some(summary.verdict.clone()),
            causes: &summary.causes,
            changes: &summary.changes,
            remedies: &[],
            remark: summary.shortfall.as_ref(),
            quote: summary.quote.as_ref(),
            // Each is priced alone.
            labels: ["Why", "Change", "Or"],
            is_folded: false,
            may_look: true,
            terminal,
        }
    }

    /// Writes it, and returns the parts that had room: code before quotes of lines that make arrays, and before strips.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<Shown> {
        let (mut lines, mut shown) = self.lines(true)?;
        let first = self.changes.first();
        let has_code = first.is_some_and(|change| change.code().is_some() && (!self.is_folded || is_short(change)));
        if has_code && !shown.code {
            let (fewer, with_code) = self.lines(false)?;
            if with_code.code {
                (lines, shown) = (fewer, with_code);
            }
        }
        out.write_all(&lines)?;
        Ok(shown)
    }

    fn lines(&self, is_illustrated: bool) -> io::Result<(Vec<u8>, Shown)> {
        let (headline, width) = (self.headline, self.terminal.width);
        let mut lines = Vec::new();
        write_wrapped(&headline.sentence, style_of(headline.tone).bold(), ["", "  "], width, &mut lines)?;
        if !self.origin.is_empty() {
            writeln!(lines, "{}", styled(FAINT, cut(&self.origin, width)))?;
        }
        if let Some(cause) = &self.cause {
            write_wrapped(cause, Style::new(), ["", "  "], width, &mut lines)?;
        }
        // Other arrays say least, and give way to code.
        let mut rest = Vec::new();
        for (at, (cause, percent)) in
            self.causes.iter().zip(percents(self.causes.iter().map(|cause| cause.share))).enumerate()
        {
            if at == 0 {
                writeln!(lines)?;
            }
            let lines = if cause.is_rest() { &mut rest } else { &mut lines };
            let label = if at == 0 { self.labels[0] } else { "" };
            self.write_cause(label, percent, cause, is_illustrated, lines)?;
        }
        let behind_causes = lines.len();
        if !self.changes.is_empty() || !self.remedies.is_empty() {
            writeln!(lines)?;
        }
        // All that stands below the changes.
        let mut below = Vec::new();
        for (at, remedy) in self.remedies.iter().enumerate() {
            // Changes that aren't enough need another one.
            let beside = if self.remark.is_some() { "And" } else { "Or" };
            let label = if at == 0 && self.changes.is_empty() { self.labels[1] } else { beside };
            self.write_task(label, remedy, &mut below)?;
        }
        if let Some(Remark { words, tone }) = self.remark {
            write_wrapped(words, style_of(*tone), ["        "; 2], width, &mut below)?;
        }
        let room = LINES - count(&below).min(LINES);
        let is_needed = |at: usize| self.changes[..at].iter().all(|before| before.fits == Some(false));
        // All that is needed to fit comes before code.
        let mut needed = Vec::new();
        for at in (1..self.changes.len()).filter(|at| is_needed(*at)) {
            self.write_change(self.labels[2], &self.changes[at], false, &mut needed)?;
        }
        let (mut left_out, mut code) = (Vec::new(), false);
        for (at, change) in self.changes.iter().enumerate() {
            let mut own = Vec::new();
            let label =
                if self.may_look && only_looks(change.recommendation) { LOOK } else { self.labels[at.min(1) + 1] };
            // A change that isn't needed is shown in full where that is short, and by its place else.
            if at == 0 && (!self.is_folded || is_short(change)) {
                self.write_change(label, change, true, &mut own)?;
                code = count(&lines) + count(&own) + count(&needed) <= room;
            }
            // Later changes of few lines are written in full, too, and those that are needed.
            let is_few = is_short(change) || self.may_look && has_lines(change, FEW_LINES);
            let is_brief = at > 0 && !self.is_folded && (is_few || is_needed(at));
            if is_brief {
                self.write_change(label, change, true, &mut own)?;
            }
            // A line stays for the number of those that have no room.
            let reserved = usize::from(at + 1 < self.changes.len());
            if at == 0 && !code || at > 0 && (!is_brief || count(&lines) + count(&own) + reserved > room) {
                own.clear();
                self.write_change(label, change, false, &mut own)?;
                if at == 0 && (self.is_folded || change.code().is_some()) {
                    let mut place = Vec::new();
                    self.write_place(change, &mut place)?;
                    let has_room = count(&lines) + count(&own) + count(&place) + count(&needed) < room;
                    own.extend(place.into_iter().filter(|_| has_room));
                }
                if at == 0 && !self.is_folded && change.code().is_some() {
                    writeln!(own, "{}", styled(FAINT, "        code below, under \"The changes in full\""))?;
                }
            }
            if at > 0 && count(&lines) + count(&own) + reserved > room {
                left_out.push((label, change));
            } else {
                lines.extend(own);
            }
        }
        match &left_out[..] {
            [] if self.is_folded && !self.changes.is_empty() => {
                let how = if code && self.changes.len() == 1 { "optional" } else { "optional; --all shows how" };
                writeln!(lines, "{:CHANGE$}{}", "", styled(FAINT, how))?;
            }
            [] => {}
            [(label, change)] => {
                let task = cut(&change.task, width.saturating_sub(CHANGE + BELOW.len()));
                writeln!(lines, "{}{task}{}", styled(STRONG, format!("{label:<CHANGE$}")), styled(FAINT, BELOW))?;
            }
            more => writeln!(lines, "{}", styled(FAINT, format!("        {} more below", more.len())))?,
        }
        lines.extend(below);
        if count(&lines) + count(&rest) <= LINES {
            lines.splice(behind_causes..behind_causes, rest);
        }
        let mut own = Vec::new();
        if let Some(quote) = self.quote {
            writeln!(own)?;
            write_marked(quote, self.terminal, &mut own)?;
        }
        let quote = count(&lines) + count(&own) <= LINES;
        lines.extend(own.into_iter().filter(|_| quote));
        Ok((lines, Shown { code, quote }))
    }

    fn write_cause(
        &self,
        label: &str,
        percent: Option<f64>,
        cause: &PeakCause,
        is_illustrated: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let share = percent.map_or_else(String::new, |percent| format!("{percent:>3.0} %"));
        let numbers = format!("{share:5}  {:>10}  ", bytes(cause.bytes));
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
        if let Some(quote) = cause.quote.as_ref().filter(|_| is_illustrated) {
            self.write_quote(line, quote, CAUSE, out)?;
        }
        match cause.filled {
            Some([filled, places]) if places > filled && is_illustrated => {
                writeln!(out, "{indent}{}", self.strip(filled, places))
            }
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
        let is_plain = self.is_folded || change.effect.is_empty();
        let effect = if is_plain { String::new() } else { format!("  {}", change.effect) };
        let indent = " ".repeat(CHANGE);
        if change.lead.is_empty() {
            self.write_task(label, &change.task, out)?;
            return if with_code { self.write_code(change, out) } else { Ok(()) };
        }
        let lead = format!("{}{effect}", change.lead);
        let line = format!("{label:<CHANGE$}{lead}  {}", change.task);
        let head = styled(STRONG, format!("{label:<CHANGE$}{}", change.lead));
        let write_below =
            |words: &str, out: &mut dyn Write| write_wrapped(words, anstyle::Style::new(), [&indent; 2], width, out);
        if line.chars().count() <= width {
            writeln!(out, "{head}{effect}  {}", change.task)?;
        } else if CHANGE + lead.chars().count() <= width {
            writeln!(out, "{head}{effect}")?;
            write_below(&change.task, out)?;
        } else {
            writeln!(out, "{head}")?;
            write_below(effect.trim_start(), out)?;
            write_below(&change.task, out)?;
        }
        if with_code { self.write_code(change, out) } else { Ok(()) }
    }

    /// The task of a change, without its bytes.
    fn write_task(&self, label: &str, task: &str, out: &mut dyn Write) -> io::Result<()> {
        let (label, indent) = (format!("{label:<CHANGE$}"), " ".repeat(CHANGE));
        let options = textwrap::Options::new(self.terminal.width).initial_indent(&label).subsequent_indent(&indent);
        for (at, line) in textwrap::wrap(task, options).into_iter().enumerate() {
            let line = if at == 0 { line.replacen(&label, &styled(STRONG, &label), 1) } else { line.into_owned() };
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// The line to change, the caveat, and the code.
    fn write_code(&self, change: &PlannedChange<'_>, out: &mut dyn Write) -> io::Result<()> {
        let (width, indent) = (self.terminal.width, " ".repeat(CHANGE));
        if let Some(edit) = &change.edit {
            write_edit(edit, &indent, out)?;
            self.write_lines(change.plain_code.as_deref().unwrap_or_default(), out)?;
            return match &change.caveat {
                Some(caveat) => write_wrapped(&format!("({caveat})"), FAINT, [&indent; 2], width, out),
                None => Ok(()),
            };
        }
        self.write_place(change, out)?;
        self.write_lines(&change.code().unwrap_or_default(), out)?;
        match &change.caveat {
            Some(caveat) => write_wrapped(&format!("({caveat})"), FAINT, [&indent; 2], width, out),
            None => Ok(()),
        }
    }

    /// The lines to change.
    fn write_place(&self, change: &PlannedChange<'_>, out: &mut dyn Write) -> io::Result<()> {
        if !change.place.is_empty() {
            let place = cut(&format!("at {}", change.place), self.terminal.width);
            writeln!(out, "{:CHANGE$}{}", "", styled(FAINT, place))?;
        }
        // One line needs no second quote.
        let is_told = |text: &String| self.causes.iter().any(|cause| cause.quote.as_ref() == Some(text));
        let quoted = change.lines.iter().filter_map(|line| Some((line.line, line.text.as_ref()?)));
        for (line, text) in quoted.filter(|(_, text)| change.lines.len() > 1 || !is_told(text)) {
            self.write_quote(line, text, CHANGE, out)?;
        }
        Ok(())
    }

    /// Code below a change.
    fn write_lines(&self, code: &str, out: &mut dyn Write) -> io::Result<()> {
        code.lines().try_for_each(|line| writeln!(out, "{:CHANGE$}  {}", "", styled(FAINT, line)))
    }
}

/// Whole percentages of shares, as far as known. They add up to that of all: those with the largest remainders are rounded
/// up.
fn percents(shares: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let shares: Vec<Option<f64>> = shares.map(|share| share.map(|share| share * 100.0)).collect();
    let left = |at: &usize| shares[*at].map_or(0.0, f64::fract);
    let mut by_remainder: Vec<usize> = (0..shares.len()).collect();
    by_remainder.sort_by(|one, other| left(other).total_cmp(&left(one)));
    let missing = by_remainder.iter().map(left).sum::<f64>().round();
    let mut found: Vec<Option<f64>> = shares.iter().map(|share| share.map(f64::floor)).collect();
    for (rank, at) in (0_u32..).zip(by_remainder) {
        found[at] = found[at].map(|floor| if f64::from(rank) < missing { floor + 1.0 } else { floor });
    }
    found
}

/// Whether all there is to type is two lines at most.
fn is_short(change: &PlannedChange<'_>) -> bool {
    change.edit.is_some() || has_lines(change, 2)
}

fn has_lines(change: &PlannedChange<'_>, most: usize) -> bool {
    change.code().is_some_and(|code| code.lines().count() <= most)
}

fn count(lines: &[u8]) -> usize {
    lines.iter().filter(|byte| **byte == b'\n').count()
}

/// `106 - step = jax.jit(step)` and under it what it becomes, to be copied.
fn write_edit(edit: &LineEdit, indent: &str, out: &mut dyn Write) -> io::Result<()> {
    let place = format!("{}:{}", file_name(&edit.file), edit.line);
    writeln!(out, "{indent}{}", styled(FAINT, visible(&place)))?;
    let new = |line: &str| format!("{indent}  + {}", styled(STRONG, visible(line)));
    // A decorator comes above the line that stays.
    if let Some(above) = edit.above() {
        return writeln!(out, "{}\n{indent}    {}", new(above), visible(&edit.before));
    }
    for line in edit.before.lines() {
        writeln!(out, "{indent}  - {}", visible(line))?;
    }
    writeln!(out, "{}", new(&edit.after))
}

/// A text, and under each figure that was read a mark.
///
/// ```text
///   | Used 294.50M of 250.00M hbm.
///   |      ^^^^^^^    ^^^^^^^
/// ```
pub(super) fn write_marked(quote: &Quote, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
    let bar = if terminal.is_ascii { "  | " } else { "  │ " };
    let room = terminal.width.saturating_sub(bar.chars().count()).max(1);
    let letters: Vec<char> = quote.text.chars().collect();
    let mut at = 0;
    for line in textwrap::wrap(&quote.text, room) {
        let length = line.chars().count();
        writeln!(out, "{}{}", styled(FAINT, bar), visible(&line))?;
        let is_marked = |column: usize| quote.marks.iter().any(|[start, end]| (*start..*end).contains(&(at + column)));
        let marks: String = (0..length).map(|column| if is_marked(column) { '^' } else { ' ' }).collect();
        if !marks.trim().is_empty() {
            writeln!(out, "{}{}", styled(FAINT, bar), styled(STRONG, marks.trim_end()))?;
        }
        at += length + usize::from(letters.get(at + length) == Some(&' '));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_add_up() {
        let told =
            |shares: &[f64]| percents(shares.iter().copied().map(Some)).into_iter().flatten().collect::<Vec<f64>>();
        assert_eq!(told(&[0.326, 0.326, 0.348]), [33.0, 32.0, 35.0]);
        assert_eq!(told(&[0.335, 0.335, 0.33]), [34.0, 33.0, 33.0]);
        assert_eq!(told(&[1.0]), [100.0]);
    }
}
