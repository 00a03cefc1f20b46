//! What is known about a pasted out-of-memory message, and what to do about it.

mod advice;
mod allocations;
mod budget;

use super::plain;
use crate::style::{FAINT, STRONG, styled};
use budget::write_wrapped;
use std::io::{self, Write};
use tilewise_audit::Explanation;

/// The explanation of a message for people, in lines of so many columns where words can be cut or wrapped.
///
/// ```
/// let text = "Ran out of memory in memory space hbm. Used 294.50M of 250.00M hbm. Exceeded hbm capacity by 44.50M.
///   Largest program allocations in hbm:
///   1. Size: 195.31M
///      Shape: f32[400000,12]{1,0:T(8,128)}
///      ==========================";
/// let explanation = tilewise_audit::explain(tilewise_oom::Message::parse(text)?, None);
/// assert!(tilewise_report::explanation_text(&explanation, 80).contains("Padding is the matter"));
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[must_use]
pub fn explanation_text(explanation: &Explanation, width: usize) -> String {
    plain(|out| write_explanation(explanation, width, out))
}

/// Writes that explanation, with styles.
///
/// # Errors
/// Those of `out`.
pub fn write_explanation(explanation: &Explanation, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let budget = explanation.message.budget();
    writeln!(out, "{}", styled(STRONG, explanation.headline()))?;
    write_wrapped(&explanation.verdict_in_words(), "", width, out)?;
    if let Some(stack) = explanation.budget_stack() {
        budget::write(&stack, out)?;
    }
    advice::write(&explanation.advice(), budget.missing_bytes, width, out)?;
    allocations::write(explanation, width, out)?;
    if budget.unread > 0 {
        let arrays = if budget.unread == 1 { "array" } else { "arrays" };
        let words = format!(
            "The shape of {} listed {arrays} could not be read; padding there counts only in totals that the message \
             prints.",
            budget.unread
        );
        write_wrapped(&words, "", width, out)?;
    }
    if explanation.message.truncated {
        writeln!(out, "{}", styled(FAINT, "The message is truncated: only what it contains is explained."))?;
    }
    writeln!(out)
}
