//! Explanations of pasted out-of-memory messages, with advice.

mod allocations;
mod budget;

use crate::{
    MessageSummary, Terminal, WriteText,
    style::{STRONG, style_of, styled},
    text::{
        advice::write_in_full,
        screen::{Screen, write_marked},
        write_wrapped,
    },
};
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
        let shown = Screen::of_message(&summary, terminal).write(out)?;
        let mut detail = Vec::new();
        if let Some(quote) = summary.quote.as_ref().filter(|_| !shown.quote) {
            writeln!(detail, "\n{}", styled(STRONG, "The message"))?;
            write_marked(quote, terminal, &mut detail)?;
        }
        if let Some(stack) = &summary.stack {
            budget::write(stack, &mut detail)?;
        }
        write_in_full(&summary.changes, shown.code, terminal.width, &mut detail)?;
        allocations::write(self, terminal.width, &mut detail)?;
        for note in &summary.notes {
            write_wrapped(&note.words, style_of(note.tone), [""; 2], terminal.width, &mut detail)?;
        }
        if !detail.is_empty() {
            writeln!(out, "\n{}", styled(STRONG, "In detail"))?;
            out.write_all(&detail)?;
        }
        writeln!(out)
    }
}
