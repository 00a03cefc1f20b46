//! The first screen of a message as data, in the types of a program's.

use super::{CauseAxis, Headline, MessageSummary, PeakCause, PlannedChange, causes::share};
use crate::{
    findings::words,
    style::{Tone, bytes, file_and_line, freed, grouped},
};
use std::cmp::Reverse;
use tilewise_audit::{Allocation, Explanation};
use tilewise_oom::PrintedSize;

/// The headline of a message: its own verdict, with the figures that it prints.
pub(crate) fn headline(explanation: &Explanation) -> Headline {
    let message = &explanation.message;
    let sentence = MessageSummary::of(explanation).headline;
    let tone = if sentence.starts_with("Out of memory") { Tone::Bad } else { Tone::Strong };
    Headline {
        verdict: message.verdict().as_str(),
        needed_bytes: message.used.as_ref().map(PrintedSize::bytes),
        limit_bytes: message.limit.as_ref().map(PrintedSize::bytes),
        is_comfortable: false,
        sentence,
        tone,
    }
}

/// The largest arrays that a message lists, equal ones of one line together, three at most.
pub(crate) fn listed_causes(explanation: &Explanation) -> Vec<PeakCause> {
    const MOST: usize = 3;
    let mut groups: Vec<(&Allocation, usize, u64)> = Vec::new();
    for row in explanation.allocations.iter().filter(|row| row.taken_bytes() > 0) {
        let is_alike = |of: &Allocation| of.shape.is_some() && of.shape == row.shape && of.source == row.source;
        match groups.iter_mut().find(|(of, ..)| is_alike(of)) {
            Some((_, count, taken)) => (*count, *taken) = (*count + 1, taken.saturating_add(row.taken_bytes())),
            None => groups.push((row, 1, row.taken_bytes())),
        }
    }
    groups.sort_by_key(|(.., taken)| Reverse(*taken));
    let used = explanation.message.budget().used_bytes;
    let whole = used.unwrap_or_else(|| groups.iter().map(|(.., taken)| *taken).fold(0, u64::saturating_add));
    groups.into_iter().take(MOST).map(|(row, count, taken)| of_row(row, count, taken, whole)).collect()
}

fn of_row(row: &Allocation, arrays: usize, taken: u64, whole: u64) -> PeakCause {
    let sizes = || row.shape.iter().flat_map(|shape| shape.dimensions()).filter_map(|dimension| dimension.bound());
    let element = row.shape.as_ref().and_then(|shape| shape.element_type()).map(|of| format!(", {of}"));
    let shape: Vec<String> = sizes().map(grouped).collect();
    let what = match &row.shape {
        Some(_) => format!("{}{}", shape.join(" × "), element.unwrap_or_default()),
        None => row.entry.shape.as_ref().map_or_else(|| "no array".to_owned(), |shape| shape.text.clone()),
    };
    let each = if arrays == 1 { "one array: ".to_owned() } else { format!("{arrays} arrays, each ") };
    let is_padding = row.padding_bytes() > row.taken_bytes() / 2;
    PeakCause {
        kind: if is_padding { "padding" } else { "listed" },
        bytes: taken,
        share: share(taken, whole),
        arrays,
        axes: sizes().map(|size| CauseAxis { name: None, size }).collect(),
        sentence: format!("{each}{what}"),
        filled: super::causes::filled(&row.causes).filter(|_| is_padding),
        quote: None,
        place: row.source.as_ref().map(file_and_line).unwrap_or_default(),
        source: row.source.clone(),
    }
}

/// What to do, and what each change leaves of what the message says is needed.
pub(crate) fn advised_changes(explanation: &Explanation) -> Vec<PlannedChange<'_>> {
    let budget = explanation.message.budget();
    let change = |advice| {
        let said = words(advice);
        let after = budget.used_bytes.zip(advice.saving.bytes()).map(|(used, freed)| used.saturating_sub(freed));
        let limit = budget.used_bytes.zip(budget.missing_bytes).map(|(used, missing)| used.saturating_sub(missing));
        // A bound is never enough for certain.
        let is_known = !advice.saving.is_bound() && !advice.saving.is_estimate();
        PlannedChange {
            task: said.task,
            lead: freed(advice.saving).map_or_else(String::new, |freed| format!("frees {freed}")),
            bytes_after: after,
            fits: after.zip(limit).map(|(after, limit)| after <= limit).filter(|fits| is_known || !fits),
            seconds_after: None,
            effect: after.map_or_else(String::new, |after| format!("leaves {}", bytes(after))),
            plain_code: said.plain,
            caveat: said.caveat,
            quote: None,
            recommendation: advice,
        }
    };
    explanation.advice.iter().map(change).collect()
}
