//! Kernels: their VMEM, and their copied operands and results.

use super::{SHOWN, array_row::who, write_wrapped};
use crate::{
    RemedyWords,
    style::{FAINT, STRONG, Tone, bytes, cut, percent, share, style_of, styled},
};
use anstyle::Style;
use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
    io::{self, Write},
};
use tilewise_audit::KernelRow;

/// The VMEM of kernels, those nearest to their limits first, and the VMEM that XLA holds for all of them, if any.
pub(super) fn write_vmem(kernels: &[KernelRow], all: bool, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut kernels: Vec<&KernelRow> = kernels.iter().filter(|kernel| kernel.used_bytes.is_some()).collect();
    kernels.sort_by(|a, b| b.share_of_limit().partial_cmp(&a.share_of_limit()).unwrap_or(Ordering::Equal));
    let Some(cap) = kernels.first().map(|kernel| kernel.cap_bytes) else { return Ok(()) };
    let most = cap.map(|cap| format!("; a limit may be up to {}", bytes(cap))).unwrap_or_default();
    writeln!(out, "\n{}{}", styled(STRONG, "VMEM of kernels"), styled(FAINT, most))?;
    let is_any_held = kernels.iter().any(|kernel| kernel.held_bytes() > 0);
    let held = |text: String| if is_any_held { format!("  {text:>10}") } else { String::new() };
    let beside = held("held".to_owned());
    writeln!(out, "{}", styled(FAINT, format!("  {:>10}  {:>10}  {:>7}{beside}  kernel", "takes", "limit", "share")))?;
    let shown = if all { kernels.len() } else { SHOWN.min(kernels.len()) };
    for kernel in &kernels[..shown] {
        let size = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), bytes);
        let share = kernel.share_of_limit().map_or_else(|| "-".to_owned(), percent);
        let beside = held(bytes(kernel.held_bytes()));
        let numbers =
            format!("  {:>10}  {:>10}  {share:>7}{beside}", size(kernel.used_bytes), size(kernel.limit_bytes));
        let style = if kernel.is_near_limit() { style_of(Tone::Warning) } else { Style::new() };
        let who = who(kernel.source.as_ref(), &kernel.instruction);
        let who = kernel.op_name.as_ref().map_or_else(|| who.clone(), |op_name| format!("{who}  {op_name}"));
        let room = width.saturating_sub(numbers.chars().count() + 2);
        writeln!(out, "{}  {}", styled(style, &numbers), cut(&who, room))?;
    }
    if kernels.len() > shown {
        writeln!(out, "  {} more kernels; --all lists all", kernels.len() - shown)?;
    }
    Ok(())
}

/// Kernels whose bodies transpose or relayout blocks in VMEM.
pub(super) fn write_bodies(kernels: &[KernelRow], width: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut moving: BTreeMap<&[&str], Vec<&str>> = BTreeMap::new();
    for kernel in kernels {
        if let Some(moves) = kernel.body_moves.as_deref().filter(|moves| !moves.is_empty()) {
            moving.entry(moves).or_default().push(&kernel.instruction);
        }
    }
    if moving.is_empty() {
        return Ok(());
    }
    let why = "; an operand that lies the other way round spares it";
    writeln!(out, "\n{}{}", styled(STRONG, "Moved inside kernels, in VMEM"), styled(FAINT, why))?;
    for (moves, names) in moving {
        let (first, others) = (names.first().copied().unwrap_or_default(), names.len() - 1);
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        writeln!(out, "  {}", cut(&format!("{}: {first}{others}", moves.join(", ")), width.saturating_sub(2)))?;
    }
    Ok(())
}

/// A row of a copied operand or result.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CopiedArray {
    who: String,
    /// `operand 1`
    array: String,
    from: String,
    to: String,
    remedy: Option<(String, Option<String>)>,
}

/// The operands and results that XLA copies at kernels, those with the most bytes first, with their shares of the
/// program's moved bytes; alike ones are one row.
pub(super) fn write_boundaries(
    kernels: &[KernelRow],
    program_moves: u64,
    all: bool,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut alike: BTreeMap<CopiedArray, (u64, usize)> = BTreeMap::new();
    for kernel in kernels {
        let who = who(kernel.source.as_ref(), kernel.op_name.as_deref().unwrap_or(&kernel.instruction));
        for (array, [from, to]) in kernel.arrays().filter_map(|array| Some((array, array.ends()?))) {
            let row = CopiedArray {
                who: who.clone(),
                array: format!("{} {}", array.side.as_str(), array.index),
                from: from.to_string(),
                to: to.to_string(),
                remedy: RemedyWords::of(array).map(|words| (words.sentence, words.code)),
            };
            let (sum, calls) = alike.entry(row).or_default();
            *sum = sum.saturating_add(array.copied_bytes());
            *calls += 1;
        }
    }
    if alike.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<_> = alike.into_iter().collect();
    rows.sort_by_key(|(_, (moved, _))| Reverse(*moved));
    let shown = if all { rows.len() } else { SHOWN.min(rows.len()) };
    let why = "; a kernel takes and makes row-major arrays";
    writeln!(out, "\n{}{}", styled(STRONG, "Copies at kernels"), styled(FAINT, why))?;
    writeln!(out, "{}", styled(FAINT, format!("  {:>10}  {:>7}  {:>6}  kernel", "moves", "share", "calls")))?;
    for (CopiedArray { who, array, from, to, remedy }, (moved, calls)) in &rows[..shown] {
        let share = percent(share(*moved, program_moves));
        writeln!(out, "  {:>10}  {share:>7}  {calls:>6}  {}", bytes(*moved), cut(who, width.saturating_sub(31)))?;
        let array = format!("{array}: ");
        // A layout that is cut is useless.
        if 6 + array.len() + from.len() + to.len() + 3 <= width {
            writeln!(out, "      {array}{from} → {to}")?;
        } else {
            writeln!(out, "      {array}{from}\n      {:>1$} {to}", "→", array.len() - 1)?;
        }
        if let Some((sentence, code)) = remedy {
            write_wrapped(sentence, Style::new(), ["      → ", "        "], width, out)?;
            for line in code.iter().flat_map(|code| code.lines()) {
                writeln!(out, "        {line}")?;
            }
        }
    }
    if rows.len() > shown {
        writeln!(out, "  {} more; --all lists all", rows.len() - shown)?;
    }
    Ok(())
}
