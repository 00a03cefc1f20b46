//! What ran out, what is the matter, and what fills the memory, in words.

use crate::output::human::{FAINT, STRONG, bytes, percent, styled};
use std::io::{self, Write};
use tilewise_oom::{Budget, Form, Message, PrintedSize, Verdict, meaning_of_code};

/// A size as the message prints it, with a unit if it is a bare number of bytes.
pub(super) fn printed(size: &PrintedSize) -> String {
    if size.text().bytes().all(|byte| byte.is_ascii_digit()) { bytes(size.bytes()) } else { size.text().to_owned() }
}

/// `Out of memory in hbm: 294.50M needed, 250.00M available, 44.50M over.`
pub(super) fn headline(message: &Message) -> String {
    if message.form == Form::Other
        && let Some(meaning) = message.code.as_deref().and_then(meaning_of_code)
    {
        let code = message.code.as_deref().unwrap_or_default();
        return format!("{code}: {meaning}.");
    }
    let place = message.memory_space.as_deref().map_or(String::new(), |space| format!(" in {space}"));
    let mut words = format!("Out of memory{place}");
    let names = match message.form {
        Form::RunTime => ["asked for", "free", "over"],
        _ => ["needed", "available", "over"],
    };
    let figures = [&message.used, &message.limit, &message.exceeded].into_iter().zip(names);
    let figures = figures.filter_map(|(size, what)| Some(format!("{} {what}", printed(size.as_ref()?))));
    let mut figures: Vec<String> = figures.collect();
    figures.extend(message.contiguous.as_ref().map(|piece| format!("{} of it in one piece", printed(piece))));
    if let (None, Some(total)) = (&message.used, &message.usage) {
        figures.insert(0, format!("at least {} needed", printed(&total.total)));
    }
    if !figures.is_empty() {
        words = format!("{words}: {}", figures.join(", "));
    }
    format!("{words}.")
}

/// What is the matter, in a sentence.
pub(super) fn verdict(message: &Message, budget: &Budget) -> String {
    let size = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), bytes);
    let missing = budget.missing_bytes.map(|missing| format!("; {} is missing", bytes(missing))).unwrap_or_default();
    match message.verdict() {
        Verdict::Padding => {
            let padding = budget.padding_bytes.unwrap_or_default();
            let of = budget.used_bytes.map(|used| format!(" of {}", bytes(used))).unwrap_or_default();
            format!("Padding is the matter: {}{of} holds no data{missing}.", bytes(padding))
        }
        Verdict::Arguments => format!(
            "The arguments alone do not fit: they take {} of {}. What the program does with them can't help.",
            size(budget.argument_bytes),
            size(budget.capacity_bytes)
        ),
        Verdict::Size => too_large(message, budget),
        Verdict::Fragmentation if message.form == Form::RunTime => format!(
            "Enough is free, but not in one piece: {} of {} free{}.",
            message.used.as_ref().map_or_else(|| "?".to_owned(), printed),
            message.limit.as_ref().map_or_else(|| "?".to_owned(), printed),
            message
                .contiguous
                .as_ref()
                .map(|piece| format!(", at most {} of it together", printed(piece)))
                .unwrap_or_default()
        ),
        Verdict::Fragmentation => format!(
            "Packing the temporaries loses {}{missing}: what is alive at the peak would fit.",
            size(budget.fragmentation_bytes)
        ),
        Verdict::Reservation => {
            let held = budget.others_bytes.map(|held| format!(": {} are taken", bytes(held))).unwrap_or_default();
            format!("The program compiled, but when it ran other arrays and programs held the memory{held}.")
        }
        Verdict::KernelMemory => kernel(message),
        Verdict::Spills => {
            "One kernel or fusion keeps more values at once than there are registers: those that don't fit fill VMEM."
                .to_owned()
        }
        Verdict::NotTpu => {
            "This is a message of a GPU or of the host, not of a TPU: nothing there is tiled, so padding is \
                            not the matter."
                .to_owned()
        }
        Verdict::Unknown if message.form == Form::Other && message.code.is_some() => {
            "This is not about how much memory the program takes.".to_owned()
        }
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
                (None, Some(used)) => format!("It is too large: only {padding} of {} is padding.", bytes(used)),
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

/// What fills the memory, as the message's totals say; parts under 1 % are left out.
pub(super) fn write_budget(budget: &Budget, out: &mut dyn Write) -> io::Result<()> {
    let is_part = budget.others_bytes.is_some();
    let interface = [("arguments", budget.argument_bytes), ("results", budget.output_bytes)];
    let mut parts = vec![("held by arrays and programs", budget.others_bytes)];
    parts.extend(interface.iter().filter(|_| !is_part));
    parts.extend([("temporaries", budget.temporary_bytes), ("code and the like", budget.program_bytes)]);
    let mut of_it: Vec<_> = interface.iter().filter(|_| is_part).copied().collect();
    of_it.extend([("padding", budget.padding_bytes), ("lost in packing", budget.fragmentation_bytes)]);
    let total = parts.iter().filter_map(|(_, part)| *part).fold(0, u64::saturating_add);
    let is_worth_a_line = |part: &u64| *part > 0 && u128::from(*part) * 100 >= u128::from(total);
    parts.retain(|(_, part)| part.as_ref().is_some_and(is_worth_a_line));
    of_it.retain(|(_, part)| part.as_ref().is_some_and(is_worth_a_line));
    if parts.is_empty() || parts.len() == 1 && of_it.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", styled(STRONG, "What fills the memory"))?;
    let names = parts.into_iter().map(|(name, part)| (name.to_owned(), part));
    for (name, part) in names.chain(of_it.into_iter().map(|(name, part)| (format!("of it {name}"), part))) {
        let part = part.unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = percent(part as f64 / total as f64);
        writeln!(out, "  {:>11}  {share:>7}  {name}", bytes(part))?;
    }
    let apart = [
        ("available", budget.capacity_bytes),
        (if is_part { "reserved of that" } else { "reserved beside that" }, budget.reserved_bytes),
    ];
    for (name, size) in apart {
        if let Some(size) = size.filter(|size| *size > 0) {
            writeln!(out, "{}", styled(FAINT, format!("  {:>11}  {:>7}  {name}", bytes(size), "")))?;
        }
    }
    Ok(())
}

/// Words in lines of at most `width` columns, all behind `indent`.
pub(super) fn write_wrapped(words: &str, indent: &str, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let options = textwrap::Options::new(width).initial_indent(indent).subsequent_indent(indent);
    textwrap::wrap(words, options).into_iter().try_for_each(|line| writeln!(out, "{line}"))
}
