//! The summary of a message: the exhausted memory, the cause, and the contents of the memory.

use super::{BudgetStack, Headline, PeakCause, PlannedChange, Remark, told};
use crate::{
    findings::{answer, likely_cause, printed},
    style::{Tone, bytes, grouped},
};
use serde::Serialize;
use tilewise::tpu::Generation;
use tilewise_audit::Explanation;
use tilewise_oom::{
    Budget, Form, Frame, Framework, Level, Message, Occasion, OomVerdict, PrintedSize, meaning_of_code,
};

/// The summary of a message as data: the terminal prints it, the page draws it.
///
/// ```
/// use tilewise_report::MessageSummary;
///
/// let text = "Attempting to allocate 6.48G. That was not possible. There are 6.78G free. Due to fragmentation, the largest \
///             contiguous region of free memory is 3.33G.";
/// let explained = tilewise_audit::explain(tilewise_oom::Message::parse(text)?, None);
/// let sentence = "Enough is free, but not in one piece: 6.48 GiB are asked for, 6.78 GiB are free, the largest piece has 3.33 GiB.";
/// assert_eq!(MessageSummary::of(&explained).verdict, sentence);
/// # Ok::<(), tilewise_oom::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MessageSummary<'a> {
    /// The exhausted memory: `Out of memory in hbm: 294.50 MiB needed, 250.00 MiB available, 44.50 MiB over.`
    pub headline: Headline,
    /// The line of the reader's program that a traceback leads to.
    #[serde(serialize_with = "crate::json::optional")]
    pub raised_at: Option<Frame>,
    /// Whether that line runs operations that waited for it, as in PyTorch/XLA.
    pub is_lazy: bool,
    /// The cause: the message's [`verdict`](Message::verdict) with its figures.
    pub verdict: String,
    /// The largest arrays that the message lists, three at most.
    pub causes: Vec<PeakCause>,
    /// The changes, the best first, and the part of the missing bytes that each frees.
    pub changes: Vec<PlannedChange<'a>>,
    /// The contents of the memory.
    pub stack: Option<BudgetStack>,
    /// The bytes missing after all advice; `None` if it may be enough.
    pub shortfall: Option<Remark>,
    /// Other contents of the text, and unread parts of the message.
    pub notes: Vec<Remark>,
    /// The message's own sentences, and in them the figures that were read.
    pub quote: Option<Quote>,
}

/// A text in one line, and the places of the figures that were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Quote {
    /// The text.
    pub text: String,
    /// Ranges of characters, from the first to behind the last of each figure.
    pub marks: Vec<[usize; 2]>,
}

impl Quote {
    fn of(message: &Message) -> Option<Self> {
        let text = message.quote.clone()?;
        let figures = [&message.used, &message.limit, &message.exceeded, &message.contiguous, &message.capacity];
        let is_part =
            |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '.');
        let mut marks = Vec::new();
        for figure in figures.into_iter().flatten() {
            let own = text.match_indices(figure.text()).find(|(at, own)| {
                let behind = &text[at + own.len()..];
                !is_part(text[..*at].chars().next_back())
                    && !behind.starts_with(|letter: char| letter.is_ascii_alphanumeric())
            });
            marks.extend(own.map(|(at, own)| {
                let start = text[..at].chars().count();
                [start, start + own.chars().count()]
            }));
        }
        marks.sort_unstable();
        marks.dedup();
        Some(Self { text, marks })
    }
}

impl<'a> MessageSummary<'a> {
    /// The summary of an explanation.
    #[must_use]
    pub fn of(explanation: &'a Explanation) -> Self {
        let message = &explanation.message;
        let budget = message.budget();
        let (headline, verdict) = sentences(explanation, &budget);
        Self {
            headline: told::headline(explanation, headline),
            raised_at: message.raised_at.clone(),
            is_lazy: message.framework == Some(Framework::TorchXla),
            verdict,
            causes: told::causes(explanation),
            changes: told::changes(explanation),
            stack: BudgetStack::of(explanation),
            shortfall: shortfall(explanation, &budget),
            notes: notes(explanation, &budget),
            quote: Quote::of(message),
        }
    }
}

fn shortfall(explanation: &Explanation, budget: &Budget) -> Option<Remark> {
    let together = explanation.advice.iter().filter_map(|advice| advice.saving.bytes()).fold(0, u64::saturating_add);
    let missing = budget.missing_bytes.filter(|missing| together > 0 && together < *missing)?;
    let (frees, missing) = (bytes(together), bytes(missing));
    // Advice without a figure, or on arrays that a cut message doesn't list, may free more.
    if explanation.message.truncated || explanation.advice.iter().any(|advice| advice.saving.bytes().is_none()) {
        return None;
    }
    let words = format!("All of it frees at most {frees} of the {missing} that is missing.");
    Some(Remark { words, tone: Tone::Plain })
}

/// The exhausted memory, and the cause.
fn sentences(explanation: &Explanation, budget: &Budget) -> (String, String) {
    let message = &explanation.message;
    match answer(explanation) {
        Some([headline, cause]) if is_of_compiler(message) => (format!("{NO_MEMORY_RAN_OUT} {headline}"), cause),
        Some([headline, cause]) => (headline, likely_cause(explanation, &cause).unwrap_or(cause)),
        None => (headline(message, budget), verdict(message, budget)),
    }
}

/// The first sentence if the compiler gave up for another reason than memory.
const NO_MEMORY_RAN_OUT: &str = "Compile failed, no memory ran out.";

fn is_of_compiler(message: &Message) -> bool {
    let is_refused =
        matches!(message.verdict(), OomVerdict::Mosaic | OomVerdict::HostPlacement | OomVerdict::CompilerCheck);
    is_refused && message.form.level() == Level::Error && message.facts.text("ended").is_none()
}

/// Other messages of a text that are listed, at most.
const OTHERS: usize = 4;

fn notes(explanation: &Explanation, budget: &Budget) -> Vec<Remark> {
    let message = &explanation.message;
    let mut notes = Vec::new();
    let (own, _) = sentences(explanation, budget);
    // The headline of a request that is tried again tells of all tries.
    let is_told = |other: &&Message| match other.form {
        Form::Other => other.used.is_none(),
        Form::GpuRetry => message.form == Form::GpuRetry,
        _ => false,
    };
    // Two forms may tell of one failure.
    let is_same = |other: &&Message| {
        let figures = |of: &Message| Some([of.used.as_ref()?.bytes(), of.limit.as_ref()?.bytes()]);
        figures(other).is_some() && figures(other) == figures(message)
    };
    let others: Vec<&Message> = message.others.iter().filter(|other| !is_told(other) && !is_same(other)).collect();
    for other in others.iter().copied().take(OTHERS) {
        let other = tilewise_audit::explain(other.clone(), None);
        let (headline, _) = sentences(&other, &other.message.budget());
        // A message that repeats the summary's sentence with fewer figures adds nothing.
        if own.starts_with(headline.trim_end_matches('.')) {
            continue;
        }
        notes.push(Remark { words: format!("Also in this text: {headline}"), tone: Tone::Plain });
    }
    if let Some(more) = others.len().checked_sub(OTHERS).filter(|more| *more > 0) {
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
    if message.is_retold && (message.used.is_some() || !message.entries.is_empty()) {
        let words = "These figures come from a paraphrased message.".to_owned();
        notes.push(Remark { words, tone: Tone::Faint });
    }
    if message.truncated {
        let words = "The message is truncated: only what it contains is explained. Paste it whole for more.".to_owned();
        notes.push(Remark { words, tone: Tone::Faint });
    }
    notes
}

/// The kernel's declared part of VMEM, and the part of its body.
fn kernel_note(explanation: &Explanation) -> Option<Remark> {
    /// Bytes of a register: the body takes whole ones.
    const REGISTER: u64 = 4096;
    let message = &explanation.message;
    let words = match explanation.declared_and_body_bytes {
        Some((declared, body)) if body >= REGISTER => format!(
            "{} of it are the windows and scratch that are listed; {} are its body's (spilled registers, values too large \
             for them), or not listed.",
            bytes(declared),
            bytes(body)
        ),
        // No bytes are left for the body.
        Some(_) => return None,
        None if message.form == Form::Scoped
            && message.verdict() == OomVerdict::KernelMemory
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

fn headline(message: &Message, budget: &Budget) -> String {
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
    if is_complaint(message) {
        let grows = message.facts.text("grows").is_some();
        return if grows { "Memory grows on a TPU, by the text's own words." } else { "Out of memory on a TPU." }
            .to_owned();
    }
    if message.form == Form::RunTime && message.used.is_none() && message.requirement.is_none() {
        return "A program or an array found no room, most likely.".to_owned();
    }
    let place = message.memory_space.as_deref().map_or(String::new(), |space| format!(" in {space}"));
    let mut words = format!("Out of memory{place}");
    let names = match message.form {
        Form::RunTime => ["asked for", "free", "over"],
        Form::Bound => ["needed for temporaries", "available", "over"],
        _ => ["needed", "available", "over"],
    };
    // The total of a table is a lower bound.
    let least = if message.form == Form::Excerpt { "at least " } else { "" };
    let needed = message.used.as_ref().or(message.requirement.as_ref().map(|requirement| &requirement.total));
    let figures = [needed, message.limit.as_ref(), message.exceeded.as_ref()].into_iter().zip(names);
    let figures = figures.filter_map(|(size, what)| Some(format!("{least}{} {what}", printed(size?))));
    let mut figures: Vec<String> = figures.collect();
    let difference = budget.missing_bytes.filter(|missing| *missing > 0 && message.exceeded.is_none());
    // Rounded figures near one another leave nothing of their difference; temporaries alone exceed the memory by less than all.
    let width = |size: &PrintedSize| size.high() - size.low();
    let figures_of = message.used.as_ref().zip(message.limit.as_ref());
    let is_exact =
        |missing: &u64| figures_of.is_some_and(|(used, limit)| *missing > width(used).saturating_add(width(limit)));
    let is_small = is_full(message);
    let difference = difference.filter(is_exact).filter(|_| message.form != Form::Bound && !is_small);
    figures.extend(difference.map(|missing| format!("{} over", bytes(missing))));
    let where_free = if message.is_at_the_bottom() { "of it where programs are put" } else { "of it in one piece" };
    figures.extend(message.contiguous.as_ref().map(|piece| format!("{} {where_free}", printed(piece))));
    let asked = message.used.as_ref().zip(message.contiguous.as_ref());
    let short = asked.map(|(asked, piece)| (asked, piece, asked.bytes().saturating_sub(piece.bytes())));
    let short = short.filter(|(asked, piece, short)| *short > width(asked).saturating_add(width(piece)));
    figures.extend(short.map(|(.., short)| format!("{} short", bytes(short))));
    if !figures.is_empty() {
        words = format!("{words}: {}", figures.join(", "));
    }
    format!("{words}.")
}

/// Whether a small array found a device full: by how little it is too large tells nothing of what there is too much of.
fn is_full(message: &Message) -> bool {
    /// The part of a device's memory below which an array is small: 1 in 32.
    const SMALL: u64 = 32;
    let sizes = [message.used.as_ref(), message.limit.as_ref()];
    let least = message.device_bytes().or_else(smallest_hbm).unwrap_or_default() / SMALL;
    message.form == Form::RunTime
        && message.contiguous.is_none()
        && sizes.into_iter().all(|size| size.is_some_and(|size| size.bytes() < least))
}

/// Whether a person's sentence alone tells that a TPU's memory ran out.
fn is_complaint(message: &Message) -> bool {
    message.form == Form::RunTime && message.is_retold && message.used.is_none() && message.limit.is_none()
}

fn verdict(message: &Message, budget: &Budget) -> String {
    if is_complaint(message) {
        return "The text doesn't tell whether the program is too large, or what was there before it.".to_owned();
    }
    let size = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), bytes);
    match message.verdict() {
        OomVerdict::Size | OomVerdict::Padding if message.memory_space.as_deref() == Some("host") => {
            "What the program keeps in the host's memory doesn't fit there: arrays that were offloaded, not those on the device."
                .to_owned()
        }
        OomVerdict::Padding => {
            let padding = budget.padding_bytes.unwrap_or_default();
            let of = budget.used_bytes.map(|used| format!(" of {}", bytes(used))).unwrap_or_default();
            format!("Padding is the cause: {}{of} holds no data.", bytes(padding))
        }
        OomVerdict::Arguments => format!(
            "The arguments alone do not fit: they take {}, and there are {}. No change inside the program helps.",
            size(budget.argument_bytes),
            size(budget.capacity_bytes)
        ),
        OomVerdict::Size => too_large(message, budget),
        OomVerdict::Fragmentation if message.form == Form::RunTime => {
            let size = |size: &Option<PrintedSize>| size.as_ref().map_or_else(|| "?".to_owned(), printed);
            let piece = message.contiguous.as_ref();
            let (asked, free) = (size(&message.used), size(&message.limit));
            if message.is_at_the_bottom() {
                let there = piece.map(|piece| format!(", {} of it there", printed(piece))).unwrap_or_default();
                return format!(
                    "Enough is free, but not at the bottom of memory, where programs are put: {asked} are asked for, {free} are free{there}."
                );
            }
            let piece = piece.map(|piece| format!(", the largest piece has {}", printed(piece))).unwrap_or_default();
            let least = smallest_hbm().unwrap_or_default() / 32;
            match message.limit.as_ref().filter(|free| free.bytes() < least) {
                Some(_) => format!("The memory is nearly full: {free} are left, in pieces{piece}, and {asked} are asked for."),
                None => format!("Enough is free, but not in one piece: {asked} are asked for, {free} are free{piece}."),
            }
        }
        OomVerdict::Fragmentation => format!(
            "Fragmentation takes {}: what is alive at the peak would fit.",
            size(budget.fragmentation_bytes)
        ),
        OomVerdict::Reservation => {
            let held = budget.others_bytes.map(|held| format!(": {} are taken", bytes(held))).unwrap_or_default();
            // Functions that make or load arrays run no program of the reader's.
            let is_of_arrays = matches!(message.occasion(), Some(Occasion::Weights | Occasion::Load | Occasion::Division));
            let room_of_core = room_of_core(message);
            if message.page() == "E0100" || is_of_arrays {
                let full = if is_full(message) { "The memory is full. " } else { "" };
                return format!(
                    "{full}An array found no room beside the arrays and programs that were there{held}.{room_of_core}"
                );
            }
            // Less free memory than the smallest TPU's means that others hold the rest.
            let room = budget.capacity_bytes.or_else(smallest_hbm);
            let is_part = |size: &Option<PrintedSize>| size.as_ref().is_some_and(|size| Some(size.bytes()) < room);
            let is_beside = budget.others_bytes.is_some() || is_part(&message.limit) || is_part(&message.used);
            let or_else = if is_beside { "" } else { ", or it is too large by itself" };
            format!(
                "The program compiled, but found no room beside the arrays and programs that were there{held}{or_else}.{room_of_core}"
            )
        }
        OomVerdict::KernelMemory => kernel(message),
        OomVerdict::Spills => {
            "One kernel or fusion keeps more values at once than there are registers: those that don't fit fill VMEM."
                .to_owned()
        }
        OomVerdict::Unknown if message.code.is_some() || message.form == Form::CoreHalt => {
            "This is not about how much memory the program takes.".to_owned()
        }
        _ if message.form == Form::Other => "The message does not tell what ran out.".to_owned(),
        _ => "The message does not tell what takes the memory.".to_owned(),
    }
}

/// The least HBM that a TPU's core has, in bytes.
fn smallest_hbm() -> Option<u64> {
    Generation::ALL.iter().map(|tpu| tpu.hbm_bytes()).min()
}

/// The memory of one core of an old TPU, whose slices are named after all of them.
fn room_of_core(message: &Message) -> String {
    let said = message.job.core.map(|core| format!(" A core of a {} has {}.", core.name, bytes(core.bytes)));
    said.unwrap_or_default()
}

/// Whether a message tells of the padding of all temporaries, or lists at least half of what is needed.
fn lists_most(message: &Message, budget: &Budget) -> bool {
    let has_total = message.requirement.as_ref().is_some_and(|requirement| requirement.utilization.is_some());
    let sizes = message.entries.iter().filter_map(|entry| entry.size.as_ref()).map(PrintedSize::bytes);
    let listed = sizes.fold(0, u64::saturating_add);
    has_total || budget.used_bytes.is_none_or(|used| listed >= used / 2)
}

fn too_large(message: &Message, budget: &Budget) -> String {
    if message.occasion() == Some(Occasion::Gather) {
        return "Each device gathers an array whole, once for every process.".to_owned();
    }
    if let Some(times) = message.times_too_large() {
        return format!("It is {} times too large, so that only other sizes of its arrays help.", grouped(times));
    }
    match (budget.padding_bytes, message.form) {
        (_, Form::Cores) => "The TensorCore and the SparseCores share HBM, and need too much together.".to_owned(),
        (Some(0), _) if budget.unread == 0 && lists_most(message, budget) => {
            "Its arrays are too large in themselves: padding takes none of it.".to_owned()
        }
        (Some(padding), _) if padding > 0 => {
            let of = budget.used_bytes.map_or_else(|| "it".to_owned(), bytes);
            let so = if budget.missing_bytes.is_some() { ", so other layouts alone can't help" } else { "" };
            format!("It is too large: only {} of {of} is padding{so}.", bytes(padding))
        }
        _ => {
            let made = budget.temporary_bytes.or(budget.program_bytes);
            let parts = made.zip(budget.argument_bytes).filter(|(made, arguments)| made > arguments);
            match parts {
                Some((_, 0)) => "The program itself is too large: all of it is made by the program.".to_owned(),
                Some((made, arguments)) => format!(
                    "The program itself is too large: what it makes takes {}, its arguments {}.",
                    bytes(made),
                    bytes(arguments)
                ),
                None if message.entries.is_empty() => {
                    "The program itself is too large; the message lists none of its arrays.".to_owned()
                }
                None => "The program itself is too large.".to_owned(),
            }
        }
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
        (_, Some("vmem")) => ("One kernel or fusion", "VMEM, the memory of a TPU's core".to_owned()),
        (_, Some(space)) => ("One kernel or fusion", space.to_uppercase()),
        (_, None) => ("One kernel or fusion", "the memory of a core".to_owned()),
    };
    // The scalar unit's memory has no blocks.
    let own = if message.memory_space.as_deref() == Some("smem") { "indices, lengths and tables" } else { "blocks" };
    format!("{what}{name} does not fit into {space}: what counts is its own {own}, not what the program holds in HBM.")
}
