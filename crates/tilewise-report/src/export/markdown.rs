//! Markdown: a job's summary, or a comment on a change.

use super::Exporter;
use crate::findings::words;
use crate::{
    AuditOutput, RemedyWords,
    style::{Tone, bytes, percent, share},
    summary::PlannedChange,
};
use std::{
    cmp::Reverse,
    io::{self, Write},
};
use tilewise::visible;
use tilewise_audit::{KernelRow, PeakRow, SourceLine};

/// Rows of the arrays alive at the peak.
const ROWS: usize = 5;

/// A section for each program: its memory, whether that fits, changes, and the arrays alive at the peak.
#[derive(Clone, Copy, Debug, Default)]
pub struct Markdown;

impl Exporter for Markdown {
    fn write(&mut self, output: &AuditOutput, out: &mut dyn Write) -> io::Result<()> {
        let summary = output.summary();
        writeln!(out, "### {}\n", code(summary.title))?;
        let headline = &summary.headline;
        let sign = match headline.tone {
            Tone::Bad => "❌ ",
            Tone::Warning => "⚠️ ",
            _ if headline.limit_bytes.is_some() => "✅ ",
            _ => "",
        };
        let comfort = headline.comfort.as_ref().map(|comfort| format!(" {}", text(comfort))).unwrap_or_default();
        writeln!(out, "{sign}**{}**{comfort}\n", text(&headline.sentence))?;
        for cause in &summary.causes {
            let place = if cause.place.is_empty() { String::new() } else { format!(", {}", code(&cause.place)) };
            writeln!(out, "- {}: {}{place}", cause.takes(), text(&cause.sentence))?;
        }
        writeln!(out)?;
        for (at, change) in summary.changes.iter().enumerate() {
            write_change(at + 1, change, out)?;
        }
        for remedy in &summary.remedies {
            writeln!(out, "- {}\n", text(remedy))?;
        }
        write_copies(&output.report.kernels(), out)?;
        let peak = output.report.memory_space(0).and_then(|hbm| hbm.peak.as_ref());
        match peak.filter(|peak| !peak.rows.is_empty()) {
            Some(peak) => write_rows(&peak.rows, out),
            None => Ok(()),
        }
    }
}

fn write_change(number: usize, change: &PlannedChange<'_>, out: &mut dyn Write) -> io::Result<()> {
    let said = words(change.recommendation);
    writeln!(out, "{number}. **{}**, {}: {}\n", text(&change.lead), text(&change.effect), text(&said.sentence))?;
    if said.code.is_none() {
        return Ok(());
    }
    writeln!(out, "   ```python")?;
    for line in said.lines() {
        writeln!(out, "   {line}")?;
    }
    writeln!(out, "   ```\n")
}

/// XLA's copies at kernels, with their remedies.
fn write_copies(kernels: &[KernelRow], out: &mut dyn Write) -> io::Result<()> {
    let arrays = kernels.iter().flat_map(|kernel| kernel.arrays().map(move |array| (kernel, array)));
    let mut rows: Vec<_> = arrays.filter_map(|(kernel, array)| Some((kernel, array, array.ends()?))).collect();
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(_, array, _)| Reverse(array.copied_bytes()));
    writeln!(out, "| copied at kernels | array | from | to | what spares it |\n| ---: | --- | --- | --- | --- |")?;
    for (kernel, array, [from, to]) in rows.iter().take(ROWS) {
        let place = kernel.source.as_ref().map_or_else(|| visible(&kernel.instruction).into_owned(), line);
        let spared = RemedyWords::of(array).map_or_else(String::new, |words| text(&words.sentence));
        let moved = bytes(array.copied_bytes());
        let (side, index) = (array.side.as_str(), array.index);
        let (from, to) = (code(&from.to_string()), code(&to.to_string()));
        writeln!(out, "| {moved} | {side} {index} of {} | {from} | {to} | {spared} |", code(&place))?;
    }
    if rows.len() > ROWS {
        let rest = rows.iter().skip(ROWS).map(|(_, array, _)| array.copied_bytes()).fold(0, u64::saturating_add);
        writeln!(out, "| {} | the others | | | |", bytes(rest))?;
    }
    writeln!(out)
}

fn write_rows(rows: &[PeakRow], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "| takes | of it padding | array | where |\n| ---: | ---: | --- | --- |")?;
    let (shown, left) = rows.split_at(ROWS.min(rows.len()));
    for row in shown {
        let times = if row.count > 1 { format!("{} × ", row.count) } else { String::new() };
        let padding = percent(share(row.padding_bytes, row.bytes));
        let place = row.source.as_ref().map_or_else(|| visible(&row.instruction).into_owned(), line);
        let (takes, shape) = (bytes(row.bytes), row.shape.to_string());
        writeln!(out, "| {takes} | {padding} | {times}{} | {} |", code(&shape), code(&place))?;
    }
    if !left.is_empty() {
        let rest = left.iter().map(|row| row.bytes).fold(0, u64::saturating_add);
        writeln!(out, "| {} | | the others | |", bytes(rest))?;
    }
    writeln!(out)
}

fn line(source: &SourceLine) -> String {
    format!("{}:{}", visible(&source.file), source.line)
}

/// A table of words, the first row its header: text and nothing else, but for the code in them.
///
/// ```
/// let rows = [["program", "verdict"], ["a|b", "`a|b` fits"]].map(|row| row.map(str::to_owned).to_vec());
/// let table = tilewise_report::markdown_table(&rows);
/// assert_eq!(table.lines().last(), Some(r"| a\|b | `a\|b` fits |"));
/// ```
#[must_use]
pub fn table(rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines: Vec<String> = rows.iter().map(|row| line(row.iter().map(|words| cell(words)).collect())).collect();
    if let Some(header) = rows.first() {
        lines.insert(1, line(vec!["---".to_owned(); header.len()]));
    }
    lines.join("\n")
}

/// Words as text and nothing else, but for the code in them: names in them are the program's, and neither call people nor load
/// pictures.
#[must_use]
pub fn text(words: &str) -> String {
    shown(words, "|")
}

/// Words in a table, where a bar ends a cell within code, too.
fn cell(words: &str) -> String {
    shown(words, "\\|")
}

/// Words with this in place of bars in code.
fn shown(words: &str, bar: &str) -> String {
    let words = visible(words);
    let mut parts = words.split('`');
    let mut text = plain(parts.next().unwrap_or_default());
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(after) => text.extend(["`", &code.replace('|', bar), "`", &plain(after)]),
            // A backtick that isn't closed.
            None => text.extend(["\\`", &plain(code)]),
        }
    }
    text
}

/// Text without any mark-up. Code hosts look for `@name` and `#1` in the text as shown: an invisible character keeps them apart.
fn plain(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '@' | '#' => text.extend([letter, '\u{200b}']),
            '[' | ']' | '*' | '|' | '\\' | '!' => text.extend(['\\', letter]),
            _ => text.push(letter),
        }
    }
    text
}

/// A name as code.
fn code(name: &str) -> String {
    format!("`{}`", visible(name).replace('`', "'").replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn names_neither_call_people_nor_load_pictures() {
        for (words, shown) in [
            ("Pass `params['w']` as [4,8] <b>", "Pass `params['w']` as \\[4,8\\] &lt;b>"),
            ("ask @team about #1", "ask @\u{200b}team about #\u{200b}1"),
            ("![x](http://e)", "\\!\\[x\\](http://e)"),
            // The text behind a backtick inside a name.
            ("Pass `x` @team` in", "Pass `x` @\u{200b}team\\` in"),
            ("Pass ``@team` in `b", "Pass ``@\u{200b}team` in `b"),
            ("a\nb", "a\\\\nb"),
        ] {
            assert_eq!(text(words), shown, "{words}");
        }
    }
}
