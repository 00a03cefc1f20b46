//! Kernels: what they take of VMEM, and which of their operands are copied before the call.

use super::{SHOWN, array_row::who};
use crate::{
    style::{FAINT, STRONG, bytes, cut, percent, style_of, styled},
    summary::Tone,
};
use anstyle::Style;
use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
    io::{self, Write},
};
use tilewise_audit::KernelRow;

/// What kernels take of VMEM, those nearest to their limits first.
pub(super) fn write_vmem(kernels: &[KernelRow], all: bool, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut kernels: Vec<&KernelRow> = kernels.iter().filter(|kernel| kernel.used_bytes.is_some()).collect();
    kernels.sort_by(|a, b| b.share_of_limit().partial_cmp(&a.share_of_limit()).unwrap_or(Ordering::Equal));
    let Some(cap) = kernels.first().map(|kernel| kernel.cap_bytes) else { return Ok(()) };
    let most = cap.map(|cap| format!("; a limit may be up to {}", bytes(cap))).unwrap_or_default();
    writeln!(out, "\n{}{}", styled(STRONG, "VMEM of kernels"), styled(FAINT, most))?;
    writeln!(out, "{}", styled(FAINT, format!("  {:>10}  {:>10}  {:>7}  kernel", "takes", "limit", "share")))?;
    let shown = if all { kernels.len() } else { SHOWN.min(kernels.len()) };
    for kernel in &kernels[..shown] {
        let size = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), bytes);
        let share = kernel.share_of_limit().map_or_else(|| "-".to_owned(), percent);
        let numbers = format!("  {:>10}  {:>10}  {share:>7}", size(kernel.used_bytes), size(kernel.limit_bytes));
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

/// An operand as its row shows it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CopiedOperand {
    who: String,
    index: usize,
    from: String,
    to: String,
}

/// Which operands XLA brings into another order before kernels, those with the most bytes first; alike ones are one row.
pub(super) fn write_operands(kernels: &[KernelRow], all: bool, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut alike: BTreeMap<CopiedOperand, (u64, usize)> = BTreeMap::new();
    for kernel in kernels {
        for operand in kernel.operands.iter().filter(|operand| operand.copied_bytes() > 0) {
            let copied = operand.copied_bytes();
            let from = operand.between.iter().rfind(|change| change.is_relayout).map(|change| change.from.to_string());
            let operand = CopiedOperand {
                who: who(kernel.source.as_ref(), kernel.op_name.as_deref().unwrap_or(&kernel.instruction)),
                index: operand.index,
                from: from.unwrap_or_default(),
                to: operand.shape.to_string(),
            };
            let (moved, calls) = alike.entry(operand).or_default();
            *moved = moved.saturating_add(copied);
            *calls += 1;
        }
    }
    if alike.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<_> = alike.into_iter().collect();
    rows.sort_by_key(|(_, (moved, _))| Reverse(*moved));
    let shown = if all { rows.len() } else { SHOWN.min(rows.len()) };
    let why = "; a kernel takes row-major operands";
    writeln!(out, "\n{}{}", styled(STRONG, "Operands copied before kernels"), styled(FAINT, why))?;
    writeln!(out, "{}", styled(FAINT, format!("  {:>10}  {:>6}  kernel", "moves", "calls")))?;
    for (CopiedOperand { who, index, from, to }, (moved, calls)) in &rows[..shown] {
        writeln!(out, "  {:>10}  {calls:>6}  {}", bytes(*moved), cut(who, width.saturating_sub(22)))?;
        let operand = format!("operand {index}: ");
        // A layout that is cut says nothing.
        if 6 + operand.len() + from.len() + to.len() + 3 <= width {
            writeln!(out, "      {operand}{from} → {to}")?;
        } else {
            writeln!(out, "      {operand}{from}\n      {:>1$} {to}", "→", operand.len() - 1)?;
        }
    }
    if rows.len() > shown {
        writeln!(out, "  {} more; --all lists all", rows.len() - shown)?;
    }
    Ok(())
}
