//! The list of a message, equal rows together.

use crate::{
    findings::printed,
    style::{FAINT, STRONG, bytes, styled, waste_style},
    summary::name_of,
    table::window_words,
    text::{
        array_row::{Row, write_header},
        write_wrapped,
    },
};
use foldhash::HashMap;
use std::{
    collections::hash_map::Entry,
    io::{self, Write},
};
use tilewise_audit::{Allocation, Explanation, SourceLine};
use tilewise_oom::{OomVerdict, PrintedSize, Section};

/// Rows shown: one screen.
const SHOWN: usize = 8;

/// Rows under a hundredth of the listed bytes are not worth a line.
const WORTH_A_LINE: u128 = 100;

pub(super) fn write(explanation: &Explanation, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let listed = explanation.allocations.iter().map(Allocation::taken_bytes).fold(0, u64::saturating_add);
    let is_of_kernel = explanation.message.verdict() == OomVerdict::KernelMemory;
    let titles = [(Section::Allocations, "Allocations"), (Section::ArgumentsAndOutputs, "Arguments and outputs")];
    for (section, title) in titles {
        let mut groups: Vec<(&Allocation, u64)> = Vec::new();
        let mut known: HashMap<Key<'_>, usize> = HashMap::default();
        for row in explanation.allocations.iter().filter(|row| row.entry.section == section && tells(row)) {
            match known.entry(key(row)) {
                Entry::Occupied(at) => groups[*at.get()].1 += 1,
                Entry::Vacant(at) => {
                    at.insert(groups.len());
                    groups.push((row, 1));
                }
            }
        }
        if groups.is_empty() {
            continue;
        }
        let is_worth_a_line = |(row, count): &&(&Allocation, u64)| {
            let taken = u128::from(row.taken_bytes()) * u128::from(*count);
            taken == 0 && row.entry.size.is_none() || taken * WORTH_A_LINE >= u128::from(listed) && taken > 0
        };
        let shown: Vec<_> = groups.iter().filter(is_worth_a_line).take(SHOWN).collect();
        writeln!(out, "\n{}", styled(STRONG, title))?;
        write_header(out)?;
        for (row, count) in &shown {
            write_row(row, *count, is_of_kernel, width, out)?;
        }
        let all: u64 = groups.iter().map(|(_, count)| count).sum();
        let left = all - shown.iter().map(|(_, count)| count).sum::<u64>();
        if left > 0 {
            let sum = |groups: &mut dyn Iterator<Item = &(&Allocation, u64)>| {
                groups.fold(0_u64, |sum, (row, count)| sum.saturating_add(row.taken_bytes().saturating_mul(*count)))
            };
            let rest = sum(&mut groups.iter()).saturating_sub(sum(&mut shown.iter().copied()));
            writeln!(out, "  {left} more, {} together; --format json lists them all", bytes(rest))?;
        }
    }
    Ok(())
}

/// Whether a row has more than a name, which the headline has, too.
fn tells(row: &Allocation) -> bool {
    let entry = &row.entry;
    entry.size.is_some() || entry.shape.is_some() || entry.operator.is_some()
}

type Key<'a> = (Option<&'a str>, Option<&'a PrintedSize>, Option<&'a str>, Option<&'a str>, Option<&'a str>);

/// The key of equal arrays' rows; the names of instructions don't matter.
fn key(row: &Allocation) -> Key<'_> {
    let entry = &row.entry;
    let op_name = entry.operator.as_ref().and_then(|operator| operator.op_name());
    let name = entry.label.as_deref().filter(|_| entry.shape.is_none());
    (entry.shape.as_ref().map(|shape| shape.text.as_str()), entry.size.as_ref(), op_name, name, entry.tag.as_deref())
}

fn write_row(row: &Allocation, count: u64, is_of_kernel: bool, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let entry = &row.entry;
    let reported = entry.size.as_ref();
    let disagrees = row.agrees() == Some(false);
    let is_listed = entry.number.is_some() || entry.tag.is_some();
    // A row that is named by its instruction alone is that instruction's stack, not its result.
    let is_stack = !is_listed && is_of_kernel;
    let takes = match (row.sizes, reported) {
        (Some(sizes), None) if !is_stack => bytes(sizes.physical_bytes),
        (Some(sizes), Some(_)) if !disagrees => bytes(sizes.physical_bytes),
        (_, Some(reported)) => bytes(reported.bytes()),
        _ => "-".to_owned(),
    };
    let times = if count > 1 { format!("{count} × ") } else { String::new() };
    let own = row.sizes.filter(|_| !disagrees).map(|sizes| sizes.padding_bytes());
    let padding = entry.padding_bytes().filter(|_| entry.shape.is_some()).or(own);
    let padding = padding.filter(|_| is_listed && entry.window().is_none());
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let expansion = match (padding, row.taken_bytes()) {
        (Some(padding), taken) if taken > padding => taken as f64 / (taken - padding) as f64,
        _ => 1.0,
    };
    let unread = entry.shape.as_ref().is_some_and(|shape| shape.parsed.is_err());
    let block = entry.window().and_then(|window| {
        let buffers = window.buffers.filter(|buffers| *buffers > 1).map(|buffers| format!(" × {buffers}"));
        Some(format!("{}{}", window.block?.text, buffers.unwrap_or_default()))
    });
    // A layout that the text lacks is shown where the size proves it, by padding.
    let is_laid_out = padding.is_some_and(|bytes| bytes > 0)
        || entry.shape.as_ref().is_some_and(|written| written.text.contains('{'));
    let shape = match &row.shape {
        _ if block.is_some() => block.unwrap_or_default(),
        Some(shape) if !disagrees && is_laid_out => shape.to_string(),
        // The array of a kernel's row lies elsewhere.
        _ if disagrees && entry.allocation_type.as_deref() == Some("scoped") => "blocks, scratch and stack".to_owned(),
        _ => entry.shape.as_ref().map_or_else(|| name_of(row), |shape| shape.text.clone()),
    };
    let cut = if unread { " (cut)" } else { "" };
    let row_of_table = Row {
        padding,
        takes,
        expansion,
        shape: format!("{times}{shape}{cut}"),
        who: who_of(row, count, width.saturating_sub(6)),
        op_name: None,
        causes: if padding.is_none() || disagrees { &[] } else { &row.causes },
    };
    row_of_table.write(width, out)?;
    if let (Some(reported), Some(sizes), true) = (reported, row.sizes, disagrees && is_listed) {
        let doubt = format!(
            "the message says {}, but this shape takes {}: its layout is not printed in full, or the allocation is \
             shared",
            printed(reported),
            bytes(sizes.physical_bytes)
        );
        write_wrapped(&doubt, waste_style(2.0), ["      "; 2], width, out)?;
    }
    if let Some(words) = entry.window().as_ref().and_then(window_words) {
        write_wrapped(&words, FAINT, ["      "; 2], width, out)?;
    }
    Ok(())
}

/// The line of the program, shortened from the left so that its number stays, the instruction, and the operation.
fn who_of(row: &Allocation, count: u64, width: usize) -> String {
    let entry = &row.entry;
    let name = entry.instruction().map_or_else(|| entry.label.as_deref().unwrap_or_default(), |(name, _)| name);
    let name = if entry.shape.is_some() { name } else { "" };
    let like_it =
        if count > 1 && !name.is_empty() { format!("{name} and {} like it", count - 1) } else { name.to_owned() };
    let name = like_it.as_str();
    let op_name = entry.operator.as_ref().and_then(|operator| operator.op_name());
    let line = row.source.as_ref().map(|source| place(source, width / 2));
    let parts = [line.as_deref(), Some(name).filter(|name| !name.is_empty()), op_name];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// `…/models/attention.py:12`
fn place(source: &SourceLine, columns: usize) -> String {
    let whole = format!("{}:{}", source.file, source.line);
    let length = whole.chars().count();
    if length <= columns {
        return whole;
    }
    let kept: String = whole.chars().skip(length - columns.saturating_sub(1)).collect();
    // From a folder's name on, if one begins in it.
    let from = kept.find('/').filter(|at| at + 1 < kept.len()).unwrap_or(0);
    format!("…{}", &kept[from..])
}
