//! What is said first of a message: what ran out, what is the cause, and what fills the memory.

use super::{BudgetStack, Remark};
use crate::{
    findings::{answer, printed},
    style::{self, Tone, bytes},
};
use serde::Serialize;
use tilewise_audit::{Explanation, Recommendation, recommendation::Saving};
use tilewise_oom::{Budget, Form, Message, PrintedSize, Verdict, meaning_of_code};

/// What ran out and why, as data: the terminal prints it, the page draws it.
///
/// ```
/// use tilewise_report::MessageSummary;
///
/// let text = "Attempting to reserve 6.48G at the bottom of memory. That was not possible. \
///             There are 6.78G free, 0B reserved, and 3.33G reservable.";
/// let explained = tilewise_audit::explain(tilewise_oom::Message::parse(text)?, None);
/// let sentence = "Enough is free, but not in one piece: 6.48 GiB are asked for, 6.78 GiB are free, the largest piece has 3.33 GiB.";
/// assert_eq!(MessageSummary::of(&explained).verdict, sentence);
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MessageSummary {
    /// What ran out: `Out of memory in hbm: 294.50 MiB needed, 250.00 MiB available, 44.50 MiB over.`
    pub headline: String,
    /// What is the cause: the message's [`verdict`](Message::verdict) with its figures.
    pub verdict: String,
    /// What fills the memory.
    pub stack: Option<BudgetStack>,
    /// Of each piece of advice what it frees, beside what is missing; `None` where that isn't known.
    pub leads: Vec<Option<Remark>>,
    /// How much is missing if all advice is followed; `None` where it may be enough.
    pub shortfall: Option<Remark>,
    /// What else the text has, and what of the message could not be read.
    pub notes: Vec<Remark>,
}

impl MessageSummary {
    /// The summary of an explanation.
    #[must_use]
    pub fn of(explanation: &Explanation) -> Self {
        let message = &explanation.message;
        let budget = message.budget();
        let (headline, verdict) = sentences(explanation, &budget);
        Self {
            headline,
            verdict,
            stack: BudgetStack::of(explanation),
            leads: explanation.advice.iter().map(|advice| lead(advice, explanation, &budget)).collect(),
            shortfall: shortfall(explanation, &budget),
            notes: notes(explanation, &budget),
        }
    }
}

/// What a piece of advice frees. A bound is never said to be enough.
fn lead(advice: &Recommendation, explanation: &Explanation, budget: &Budget) -> Option<Remark> {
    let frees = format!("frees {}", style::freed(advice.saving)?);
    let freed = advice.saving.bytes()?;
    let is_exact = matches!(advice.saving, Saving::Exact(_));
    let exceeded = explanation.message.exceeded.as_ref().map(PrintedSize::bytes);
    let words = match exceeded.or(budget.missing_bytes).filter(|missing| *missing > 0) {
        Some(missing) if freed >= missing && is_exact => format!("{frees}: enough to fit"),
        Some(missing) if freed >= missing => format!("{frees}, more than the {} that is missing", bytes(missing)),
        Some(missing) => format!("{frees} of the {} that is missing", bytes(missing)),
        None => frees,
    };
    Some(Remark { words, tone: Tone::Strong })
}

fn shortfall(explanation: &Explanation, budget: &Budget) -> Option<Remark> {
    let together = explanation.advice.iter().filter_map(|advice| advice.saving.bytes()).fold(0, u64::saturating_add);
    let missing = budget.missing_bytes.filter(|missing| together > 0 && together < *missing)?;
    let (frees, missing) = (bytes(together), bytes(missing));
    // What has no figure, or what a cut message doesn't list, may free more.
    if explanation.message.truncated || explanation.advice.iter().any(|advice| advice.saving.bytes().is_none()) {
        return None;
    }
    let words = format!("All of it frees at most {frees} of the {missing} that is missing.");
    Some(Remark { words, tone: Tone::Plain })
}

/// What ran out, and what is the cause.
fn sentences(explanation: &Explanation, budget: &Budget) -> (String, String) {
    match answer(explanation) {
        Some([headline, cause]) => (headline, cause),
        None => (headline(&explanation.message), verdict(&explanation.message, budget)),
    }
}

/// So many other messages of a text are told of.
const OTHERS: usize = 4;

fn notes(explanation: &Explanation, budget: &Budget) -> Vec<Remark> {
    let message = &explanation.message;
    let mut notes = Vec::new();
    let (own, _) = sentences(explanation, budget);
    for other in message.others.iter().take(OTHERS) {
        let other = tilewise_audit::explain(other.clone(), None);
        let (headline, _) = sentences(&other, &other.message.budget());
        // The same with fewer figures is nothing new.
        if own.starts_with(headline.trim_end_matches('.')) {
            continue;
        }
        notes.push(Remark { words: format!("Also in this text: {headline}"), tone: Tone::Plain });
    }
    if let Some(more) = message.others.len().checked_sub(OTHERS).filter(|more| *more > 0) {
        notes.push(Remark { words: format!("… and {more} more messages."), tone: Tone::Plain });
    }
    notes.extend(kernel_note(explanation));
    if budget.unread > 0 {
        let arrays = if budget.unread == 1 { "array" } else { "arrays" };
        let words = format!(
            "The shape of {} listed {arrays} could not be read; padding there counts only in totals that the message \
             prints.",
            budget.unread
        );
        notes.push(Remark { words, tone: Tone::Plain });
    }
    if message.is_retold {
        let words = "These figures come from a paraphrased message.".to_owned();
        notes.push(Remark { words, tone: Tone::Faint });
    }
    if message.truncated {
        let words = "The message is truncated: only what it contains is explained. Paste it whole for more.".to_owned();
        notes.push(Remark { words, tone: Tone::Faint });
    }
    notes
}

/// What of a kernel's VMEM it declares, and what its body takes.
fn kernel_note(explanation: &Explanation) -> Option<Remark> {
    /// A register: the body takes whole ones.
    const REGISTER: u64 = 4096;
    let message = &explanation.message;
    let words = match explanation.declared_and_body_bytes {
        Some((declared, body)) if body >= REGISTER => format!(
            "{} of it are the windows and scratch that are listed; {} are its body's (spilled registers, values too large \
             for them), or not listed.",
            bytes(declared),
            bytes(body)
        ),
        // Nothing is left for the body.
        Some(_) => return None,
        None if message.form == Form::Scoped
            && message.verdict() == Verdict::KernelMemory
            && message.memory_space.as_deref() == Some("vmem") =>
        {
            "Check what a kernel declares before compiling (`tilewise kernel`, in Python `kernel_budget`); its body \
             takes the rest."
                .to_owned()
        }
        None => return None,
    };
    Some(Remark { words, tone: Tone::Plain })
}

fn headline(message: &Message) -> String {
    if matches!(message.form, Form::Other | Form::CoreHalt)
        && let Some(meaning) = message.code.as_deref().and_then(meaning_of_code)
    {
        let code = message.code.as_deref().unwrap_or_default();
        return format!("{code}: {meaning}.");
    }
    if message.form == Form::CoreHalt {
        return "A core stopped while it ran a program.".to_owned();
    }
    if message.form == Form::Other && message.entries.is_empty() {
        return "Something ran out: RESOURCE_EXHAUSTED, most often memory.".to_owned();
    }
    let place = message.memory_space.as_deref().map_or(String::new(), |space| format!(" in {space}"));
    let mut words = format!("Out of memory{place}");
    let names = match message.form {
        Form::RunTime => ["asked for", "free", "over"],
        _ => ["needed", "available", "over"],
    };
    // A table's total is a lower bound.
    let least = if message.form == Form::Excerpt { "at least " } else { "" };
    let needed = message.used.as_ref().or(message.requirement.as_ref().map(|requirement| &requirement.total));
    let figures = [needed, message.limit.as_ref(), message.exceeded.as_ref()].into_iter().zip(names);
    let figures = figures.filter_map(|(size, what)| Some(format!("{least}{} {what}", printed(size?))));
    let mut figures: Vec<String> = figures.collect();
    figures.extend(message.contiguous.as_ref().map(|piece| format!("{} of it in one piece", printed(piece))));
    if !figures.is_empty() {
        words = format!("{words}: {}", figures.join(", "));
    }
    format!("{words}.")
}

fn verdict(message: &Message, budget: &Budget) -> String {
    let size = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), bytes);
    let missing = budget.missing_bytes.map(|missing| format!("; {} is missing", bytes(missing))).unwrap_or_default();
    match message.verdict() {
        Verdict::Size | Verdict::Padding if message.memory_space.as_deref() == Some("host") => {
            "What the program keeps in the host's memory doesn't fit there: arrays that were offloaded, not those on the device."
                .to_owned()
        }
        Verdict::Padding => {
            let padding = budget.padding_bytes.unwrap_or_default();
            let of = budget.used_bytes.map(|used| format!(" of {}", bytes(used))).unwrap_or_default();
            format!("Padding is the cause: {}{of} holds no data{missing}.", bytes(padding))
        }
        Verdict::Arguments => format!(
            "The arguments alone do not fit: they take {}, and there are {}. No change inside the program helps.",
            size(budget.argument_bytes),
            size(budget.capacity_bytes)
        ),
        Verdict::Size => too_large(message, budget),
        Verdict::Fragmentation if message.form == Form::RunTime => {
            let size = |size: &Option<PrintedSize>| size.as_ref().map_or_else(|| "?".to_owned(), printed);
            let piece = message.contiguous.as_ref();
            let piece = piece.map(|piece| format!(", the largest piece has {}", printed(piece))).unwrap_or_default();
            let (asked, free) = (size(&message.used), size(&message.limit));
            format!("Enough is free, but not in one piece: {asked} are asked for, {free} are free{piece}.")
        }
        Verdict::Fragmentation => format!(
            "Fragmentation takes {}{missing}: what is alive at the peak would fit.",
            size(budget.fragmentation_bytes)
        ),
        Verdict::Reservation => {
            let held = budget.others_bytes.map(|held| format!(": {} are taken", bytes(held))).unwrap_or_default();
            if message.page() == "E0100" {
                return format!(
                    "An array found no room: other arrays and programs held the memory{held}. If a model was being loaded, it \
                     is too large for these devices."
                );
            }
            format!("The program compiled, but when it ran other arrays and programs held the memory{held}.")
        }
        Verdict::KernelMemory => kernel(message),
        Verdict::Spills => {
            "One kernel or fusion keeps more values at once than there are registers: those that don't fit fill VMEM."
                .to_owned()
        }
        Verdict::Unknown if message.code.is_some() || message.form == Form::CoreHalt => {
            "This is not about how much memory the program takes.".to_owned()
        }
        _ if message.form == Form::Other => "The message does not tell what ran out.".to_owned(),
        _ => "The message does not tell what takes the memory.".to_owned(),
    }
}

fn too_large(message: &Message, budget: &Budget) -> String {
    match (budget.padding_bytes, message.form) {
        (_, Form::Cores) => "The TensorCore and the SparseCores share HBM, and need too much together.".to_owned(),
        (Some(0), _) => {
            "It is too large: none of it is padding, so only less data helps, not other layouts.".to_owned()
        }
        (Some(padding), _) => {
            let padding = bytes(padding);
            match (budget.missing_bytes, budget.used_bytes) {
                (Some(missing), _) => format!(
                    "It is too large: {padding} of it is padding, and {} is missing, so other layouts alone can't \
                     help.",
                    bytes(missing)
                ),
                (None, Some(used)) => {
                    format!("It is too large: only {padding} of {} is padding.", bytes(used))
                }
                (None, None) => format!("It is too large: only {padding} of it is padding."),
            }
        }
        (None, _) => "It is too large; the message does not tell how much of it is padding.".to_owned(),
    }
}

fn kernel(message: &Message) -> String {
    let name = message.entries.iter().find_map(|entry| {
        let label = entry.instruction().map_or_else(|| entry.label.as_deref().unwrap_or_default(), |(name, _)| name);
        let name = label.split(" = ").next().unwrap_or(label).trim_start_matches('%');
        (!name.is_empty() && !name.contains(' ')).then(|| format!(", {name},"))
    });
    let name = name.unwrap_or_default();
    let (what, space) = match (message.form, message.memory_space.as_deref()) {
        (Form::SparseCore, Some(space)) => ("A program of the SparseCore", space.to_owned()),
        (Form::SparseCore, None) => ("A program of the SparseCore", "the SparseCore's memory".to_owned()),
        (_, Some(space)) => ("One kernel or fusion", space.to_uppercase()),
        (_, None) => ("One kernel or fusion", "the memory of a core".to_owned()),
    };
    format!("{what}{name} does not fit into {space}: what counts is its own blocks, not what the program holds in HBM.")
}
