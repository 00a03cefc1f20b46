//! The contents of the memory, a line each.

use crate::{
    style::{FAINT, STRONG, bytes, percent, share, styled},
    summary::BudgetStack,
};
use std::io::{self, Write};

pub(super) fn write(stack: &BudgetStack, out: &mut dyn Write) -> io::Result<()> {
    // A requested piece fills no memory yet.
    let is_piece = stack.parts.iter().any(|part| part.kind == "asked");
    let title = if is_piece { "What is free" } else { "What fills the memory" };
    writeln!(out, "\n{}", styled(STRONG, title))?;
    let parts = stack.parts.iter().map(|part| ("", part));
    for (of_it, part) in parts.chain(stack.within.iter().map(|part| ("of it ", part))) {
        let share = if is_piece { String::new() } else { percent(share(part.bytes, stack.total_bytes)) };
        writeln!(out, "  {:>11}  {share:>7}  {of_it}{}", bytes(part.bytes), part.name)?;
    }
    for part in &stack.room {
        writeln!(out, "{}", styled(FAINT, format!("  {:>11}  {:>7}  {}", bytes(part.bytes), "", part.name)))?;
    }
    Ok(())
}
