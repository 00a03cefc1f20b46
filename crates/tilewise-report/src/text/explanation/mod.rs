//! What is known about a pasted out-of-memory message, and what to do about it.

mod allocations;
mod budget;

use crate::{
    MessageSummary, Terminal, WriteText,
    style::{STRONG, style_of, styled},
    text::{advice::write_of_message, write_wrapped},
};
use anstyle::Style;
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
        let summary = MessageSummary::of(self);
        writeln!(out, "{}", styled(STRONG, summary.headline))?;
        write_wrapped(&summary.verdict, Style::new(), [""; 2], terminal.width, out)?;
        if let Some(stack) = &summary.stack {
            budget::write(stack, out)?;
        }
        write_of_message(&self.advice, terminal.width, out)?;
        if let Some(shortfall) = &summary.shortfall {
            write_wrapped(&shortfall.words, style_of(shortfall.tone), ["  "; 2], terminal.width, out)?;
        }
        allocations::write(self, terminal.width, out)?;
        for note in &summary.notes {
            write_wrapped(&note.words, style_of(note.tone), [""; 2], terminal.width, out)?;
        }
        writeln!(out)
    }
}
