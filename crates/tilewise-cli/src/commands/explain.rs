//! `tilewise explain`: a pasted out-of-memory message, and what to do about it.

mod advice;
mod budget;
mod table;

use crate::{
    cli::ExplainArgs,
    failure::Failure,
    input::read_bytes,
    output::{
        Output,
        human::{FAINT, STRONG, screen_width, styled},
        plain,
    },
};
use budget::write_wrapped;
use std::{
    io::{self, Write},
    path::Path,
};
use tilewise::tpu::Generation;
use tilewise_audit::{Explanation, decode_log};
use tilewise_oom::Message;

pub(crate) fn run(args: &ExplainArgs, output: &mut Output) -> io::Result<()> {
    for file in &args.files {
        let input = file.to_string_lossy();
        output.item(&input, explanation(file, args.tpu), |explanation, out| {
            if args.files.len() > 1 {
                writeln!(out, "{}", styled(FAINT, &input))?;
            }
            write(explanation, screen_width(), out)
        })?;
    }
    Ok(())
}

fn explanation(file: &Path, tpu: Option<Generation>) -> Result<Explanation, Failure> {
    let text = decode_log(read_bytes(file)?).map_err(|failure| failure.in_file(file))?;
    Ok(tilewise_audit::explain(Message::parse(&text)?, tpu))
}

/// The explanation of a message for people, in lines of so many columns where words can be cut or wrapped.
///
/// ```
/// let text = "Ran out of memory in memory space hbm. Used 294.50M of 250.00M hbm. Exceeded hbm capacity by 44.50M.
///   Largest program allocations in hbm:
///   1. Size: 195.31M
///      Shape: f32[400000,12]{1,0:T(8,128)}
///      ==========================";
/// let explanation = tilewise_audit::explain(tilewise_oom::Message::parse(text)?, None);
/// assert!(tilewise_cli::explanation_text(&explanation, 80).contains("Padding is the matter"));
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[must_use]
pub fn explanation_text(explanation: &Explanation, width: usize) -> String {
    plain(|out| write(explanation, width, out))
}

fn write(explanation: &Explanation, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let budget = explanation.message.budget();
    writeln!(out, "{}", styled(STRONG, explanation.headline()))?;
    write_wrapped(&explanation.verdict_in_words(), "", width, out)?;
    if let Some(stack) = explanation.budget_stack() {
        budget::write(&stack, out)?;
    }
    advice::write(&explanation.advice(), budget.missing_bytes, width, out)?;
    table::write(explanation, width, out)?;
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
