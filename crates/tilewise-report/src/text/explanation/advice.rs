//! What to do, best first.

use super::budget::write_wrapped;
use crate::style::{FAINT, STRONG, bytes, styled};
use std::io::{self, Write};
use tilewise_audit::MessageAdvice;

pub(super) fn write(
    advice: &[MessageAdvice],
    missing_bytes: Option<u64>,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    if advice.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", styled(STRONG, "What to do"))?;
    for piece in advice {
        let lead = match piece.bytes_saved {
            Some(saved) if piece.is_bound => format!("frees up to {}: ", bytes(saved)),
            Some(saved) => format!("frees {}: ", bytes(saved)),
            None => String::new(),
        };
        let options = textwrap::Options::new(width).initial_indent("  → ").subsequent_indent("    ");
        for (number, line) in textwrap::wrap(&format!("{lead}{}", piece.sentence), options).into_iter().enumerate() {
            let line = if number == 0 { line.replacen(&lead, &styled(STRONG, &lead), 1) } else { line.into_owned() };
            writeln!(out, "{line}")?;
        }
        for line in piece.imports.into_iter().chain(piece.code.as_deref()).flat_map(str::lines) {
            writeln!(out, "      {}", styled(FAINT, line))?;
        }
    }
    let together = advice.iter().filter_map(|piece| piece.bytes_saved).fold(0, u64::saturating_add);
    if let Some(missing) = missing_bytes.filter(|missing| together > 0 && together < *missing) {
        let words = format!("All of it frees at most {} of the {} that is missing.", bytes(together), bytes(missing));
        write_wrapped(&words, "  ", width, out)?;
    }
    Ok(())
}
