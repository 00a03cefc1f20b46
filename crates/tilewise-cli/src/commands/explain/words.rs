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
            let missing = budget.missing_bytes.map(|missing| format!(" of the {} that is missing", bytes(missing)));
            let most = budget.missing_bytes.is_some_and(|missing| missing > padding);
            let than = if most { missing.unwrap_or_default() } else { String::new() };
            format!("It is too large: without padding, {} less{than}, it would not fit either.", bytes(padding))
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
    let parts = [
        ("reserved", budget.reserved_bytes),
        ("held by others", budget.others_bytes),
        ("arguments", budget.argument_bytes),
        ("results", budget.output_bytes),
        ("temporaries", budget.temporary_bytes),
        ("code and the like", budget.program_bytes),
    ];
    let total = parts.iter().filter_map(|(_, part)| *part).fold(0, u64::saturating_add);
    let is_worth_a_line = |part: &u64| *part > 0 && u128::from(*part) * 100 >= u128::from(total);
    let shown: Vec<_> = parts.iter().filter_map(|(name, part)| Some((*name, part.filter(is_worth_a_line)?))).collect();
    if shown.is_empty() || shown.len() == 1 && budget.padding_bytes.is_none() {
        return Ok(());
    }
    writeln!(out, "\n{}", styled(STRONG, "What fills the memory"))?;
    let mut line = |name: &str, part: u64, of: u64| {
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = if of == 0 { String::new() } else { percent(part as f64 / of as f64) };
        writeln!(out, "  {:>11}  {share:>7}  {name}", bytes(part))
    };
    for (name, part) in shown {
        line(name, part, total)?;
    }
    let wasted = [("of it padding", budget.padding_bytes), ("lost in packing", budget.fragmentation_bytes)];
    for (name, part) in wasted {
        if let Some(part) = part.filter(is_worth_a_line) {
            line(name, part, total)?;
        }
    }
    if let Some(capacity) = budget.capacity_bytes {
        writeln!(
            out,
            "  {:>11}  {:>7}  {}",
            bytes(capacity),
            "",
            styled(FAINT, "is what there is, but for the reserved")
        )?;
    }
    Ok(())
}

/// Words in lines of at most `width` columns, all behind `indent`.
pub(super) fn write_wrapped(words: &str, indent: &str, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let options = textwrap::Options::new(width).initial_indent(indent).subsequent_indent(indent);
    textwrap::wrap(words, options).into_iter().try_for_each(|line| writeln!(out, "{line}"))
}
