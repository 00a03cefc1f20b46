//! What to change, best first, with what each brings the peak down to.

use crate::style::{FAINT, STRONG, bytes, styled};
use std::io::{self, Write};
use tilewise_audit::{Advice, AdviceKind, Report};

pub(super) fn write_advice(report: &Report, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let list = report.advice();
    if list.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", styled(STRONG, "What to change"))?;
    let mut held = report.memory_bounds.at_most_bytes;
    for advice in list {
        let before = held;
        held = held.saturating_sub(advice.peak_bytes_saved);
        write_one(advice, before, held, width, out)?;
    }
    Ok(())
}

fn write_one(advice: &Advice, before: u64, after: u64, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let lead = match advice.kind {
        AdviceKind::None => String::new(),
        _ if advice.is_bound => format!("{} → {} at best: ", bytes(before), bytes(after)),
        _ => format!("{} → {}: ", bytes(before), bytes(after)),
    };
    let options = textwrap::Options::new(width).initial_indent("  ").subsequent_indent("    ");
    for (number, line) in textwrap::wrap(&format!("{lead}{}", advice.sentence), options).into_iter().enumerate() {
        let line = if number == 0 { line.replacen(&lead, &styled(STRONG, &lead), 1) } else { line.into_owned() };
        writeln!(out, "{line}")?;
    }
    let mut code = advice.imports.iter().chain(&advice.code).flat_map(|code| code.lines());
    code.try_for_each(|line| writeln!(out, "      {}", styled(FAINT, line)))
}
