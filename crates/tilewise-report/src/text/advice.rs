//! Recommendations, each with what it frees and its code.

use crate::{
    findings::words,
    style::{FAINT, STRONG, freed, styled},
};
use std::io::{self, Write};
use tilewise_audit::Recommendation;

/// The advice on a message: what each piece frees.
pub(super) fn write_of_message(advice: &[Recommendation], width: usize, out: &mut dyn Write) -> io::Result<()> {
    if advice.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", styled(STRONG, "What to do"))?;
    for advice in advice {
        let lead = freed(advice.saving).map_or_else(String::new, |freed| format!("Frees {freed}: "));
        write_recommendation(advice, "  → ", &lead, true, width, out)?;
    }
    Ok(())
}

/// Writes what a change brings (`lead`) and what it is, wrapped; then its code, whole, to be copied.
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
    let mut code = said.lines().filter(|_| with_code);
    code.try_for_each(|line| writeln!(out, "      {}", styled(FAINT, line)))
}
