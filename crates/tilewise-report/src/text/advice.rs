//! Recommendations, each with what it frees and its code.

use crate::{
    PlannedChange,
    findings::{capitalized, words},
    style::{FAINT, STRONG, styled},
    summary::place,
};
use std::io::{self, Write};
use tilewise_audit::Recommendation;

/// Writes each change that has more than its task: place and reason, and its code unless that is above.
pub(super) fn write_in_full(
    changes: &[PlannedChange<'_>],
    is_code_above: bool,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut is_titled = false;
    for (at, change) in changes.iter().enumerate() {
        let said = words(change.recommendation);
        let is_above = at == 0 && is_code_above;
        let with_code = said.code.is_some() && (!is_above || change.plain_code.is_some());
        if !with_code && said.sentence == change.task {
            continue;
        }
        if !is_titled {
            writeln!(out, "\n{}", styled(STRONG, "The changes in full"))?;
            is_titled = true;
        }
        let lead = if change.lead.is_empty() { String::new() } else { format!("{}: ", capitalized(&change.lead)) };
        write_recommendation(change.recommendation, "  ", &lead, false, width, out)?;
        let lines = place(change.recommendation);
        let at = if lines.is_empty() { "" } else { ", at " };
        let title = format!("# or, in JAX alone{at}{lines}:");
        let plain = change.plain_code.iter().filter(|_| !is_above).flat_map(|code| code.lines());
        let own = said.lines().filter(|_| with_code);
        let between = plain.clone().next().map(|_| "# or, with tilewise:").filter(|_| with_code);
        let sketch = said.sketch.iter().flat_map(|sketch| [&*title].into_iter().chain(sketch.lines()));
        write_code(plain.chain(between).chain(own).chain(sketch), out)?;
    }
    Ok(())
}

/// Writes a change's effect (`lead`) and its sentence, wrapped; then its code, whole, to be copied.
pub(super) fn write_recommendation(
    advice: &Recommendation,
    indent: &str,
    lead: &str,
    with_code: bool,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let said = words(advice);
    let options = textwrap::Options::new(width).initial_indent(indent).subsequent_indent("    ");
    for (number, line) in textwrap::wrap(&format!("{lead}{}", said.sentence), options).into_iter().enumerate() {
        let line = if number == 0 { line.replacen(lead, &styled(STRONG, lead), 1) } else { line.into_owned() };
        writeln!(out, "{line}")?;
    }
    write_code(said.lines().filter(|_| with_code), out)
}

fn write_code<'a>(mut lines: impl Iterator<Item = &'a str>, out: &mut dyn Write) -> io::Result<()> {
    lines.try_for_each(|line| writeln!(out, "      {}", styled(FAINT, line)))
}
