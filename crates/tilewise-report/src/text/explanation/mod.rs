//! What is known about a pasted out-of-memory message, and what to do about it.

mod allocations;
mod budget;

use crate::{
    Terminal, WriteText,
    style::{FAINT, STRONG, bytes, styled},
    text::advice::write_of_message,
};
use budget::write_wrapped;
use std::io::{self, Write};
use tilewise_audit::Explanation;

/// ```
/// use tilewise_report::WriteText;
///
/// let text = "Ran out of memory in memory space hbm. Used 294.50M of 250.00M hbm. Exceeded hbm capacity by 44.50M.
///   Largest program allocations in hbm:
///   1. Size: 195.31M
///      Shape: f32[400000,12]{1,0:T(8,128)}
///      ==========================";
/// let explanation = tilewise_audit::explain(tilewise_oom::Message::parse(text)?, None);
/// assert!(explanation.to_text(80).contains("Padding is the cause"));
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
impl WriteText for Explanation {
    fn write_text(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let width = terminal.width;
        let budget = self.message.budget();
        writeln!(out, "{}", styled(STRONG, self.headline()))?;
        write_wrapped(&self.verdict_in_words(), "", width, out)?;
        if let Some(stack) = self.budget_stack() {
            budget::write(&stack, out)?;
        }
        let advice = self.advice();
        write_of_message(&advice, width, out)?;
        let together = advice.iter().filter_map(|advice| advice.saving.bytes()).fold(0, u64::saturating_add);
        if let Some(missing) = budget.missing_bytes.filter(|missing| together > 0 && together < *missing) {
            let (frees, missing) = (bytes(together), bytes(missing));
            let words = format!("All of it frees at most {frees} of the {missing} that is missing.");
            write_wrapped(&words, "  ", width, out)?;
        }
        allocations::write(self, width, out)?;
        if budget.unread > 0 {
            let arrays = if budget.unread == 1 { "array" } else { "arrays" };
            let words = format!(
                "The shape of {} listed {arrays} could not be read; padding there counts only in totals that the message \
                 prints.",
                budget.unread
            );
            write_wrapped(&words, "", width, out)?;
        }
        if self.message.truncated {
            writeln!(out, "{}", styled(FAINT, "The message is truncated: only what it contains is explained."))?;
        }
        writeln!(out)
    }
}
