//! The first screen of a message as data, in the types of a program's.

use super::{
    CauseAxis, Headline, PeakCause, PlannedChange,
    changes::{lines, place},
};
use crate::{
    findings::{extrapolated, printed, words},
    style::{Tone, bytes, file_and_line, freed, grouped, share},
};
use std::cmp::Reverse;
use tilewise_audit::{
    Allocation, Explanation, Recommendation,
    recommendation::{
        Saving, Target,
        finding::{BlockFinding, Finding},
    },
};
use tilewise_oom::{
    Budget, Chunks, Form, Interface, Message, OomVerdict, PrintedSize, Reason, Section, UntiledMachine,
};

/// The contents of a GPU's memory by PyTorch's own figures.
fn of_torch(message: &Message) -> Option<Vec<PeakCause>> {
    let fact = |name| message.facts.size(name).map(PrintedSize::bytes);
    let (capacity, free, held) = (message.capacity.as_ref()?.bytes(), fact("free")?, fact("held")?);
    let (cached, graphs) = (fact("cached").unwrap_or(0), fact("graphs").unwrap_or(0));
    let taken = capacity.saturating_sub(free);
    // Newer messages tell this process's own part from that of others.
    let own = fact("own").unwrap_or(taken).min(taken);
    let beside = own.saturating_sub(held).saturating_sub(cached);
    let libraries = match (fact("own"), message.job.names.pool) {
        (Some(_), None) => "the CUDA context and libraries of this process",
        (Some(_), Some(_)) => "XLA's pool in this process, the CUDA context and libraries",
        (None, None) => "other processes, the CUDA context and libraries",
        (None, Some(_)) => "XLA's pool in this process, other processes, the CUDA context and libraries",
    };
    let parts = [
        ("tensors", held.saturating_sub(graphs), "tensors of this process"),
        ("graphs", graphs, "private pools of this process, such as those of CUDA graphs"),
        ("cached", cached, "free pieces that PyTorch's allocator keeps"),
        ("others", beside, libraries),
        ("others", taken - own, "other processes"),
    ];
    let cause = |(kind, bytes, sentence): (_, u64, &str)| PeakCause {
        share: Some(share(bytes, capacity)),
        ..PeakCause::of_bytes(kind, bytes, sentence.to_owned())
    };
    let mut causes: Vec<PeakCause> = parts.into_iter().map(cause).collect();
    causes.sort_by_key(|cause| Reverse(cause.bytes));
    Some(causes)
}

/// The headline of a message: its own verdict, with the figures that it prints.
pub(super) fn headline(explanation: &Explanation, sentence: String) -> Headline {
    let message = &explanation.message;
    let tone = if sentence.starts_with("Out of memory") { Tone::Bad } else { Tone::Strong };
    Headline {
        verdict: message.verdict().as_str(),
        needed_bytes: message.used.as_ref().map(PrintedSize::bytes),
        limit_bytes: message.limit.as_ref().map(PrintedSize::bytes),
        is_comfortable: false,
        sentence,
        comfort: None,
        tone,
    }
}

/// The contents of the memory in a message: the largest arrays that it lists, equal ones of one line together, and its
/// totals without a list; three at most.
pub(super) fn causes(explanation: &Explanation) -> Vec<PeakCause> {
    const MOST: usize = 3;
    /// The smallest share of a cause.
    const LEAST: f64 = 0.05;
    /// The part of a pool's arrays that the program of a request has to be, to be a cause: 1 in 8.
    const OF_POOL: u64 = 8;
    // The list of a warning, or of a refused program, fills no memory.
    if matches!(
        explanation.message.verdict(),
        OomVerdict::Donation
            | OomVerdict::Mosaic
            | OomVerdict::HostPlacement
            | OomVerdict::HostCompute
            | OomVerdict::InputMismatch
            | OomVerdict::Resharding
            | OomVerdict::CompilerCheck
            | OomVerdict::OtherResource
    ) {
        return Vec::new();
    }
    // A GPU's memory isn't filled by the array it is asked for, nor by the program of a small request.
    let message = &explanation.message;
    if let Some(causes) = of_torch(message) {
        return causes.into_iter().filter(|cause| cause.share.is_some_and(|share| share >= LEAST)).collect();
    }
    let is_table_of_cause = message.usage.is_some() && !matches!(message.reason(), Reason::Tiny | Reason::Small);
    if message.cause() == Some(OomVerdict::Reservation) && message.machine().is_some() && !is_table_of_cause {
        let in_use = message.facts.size("pool_used").map(PrintedSize::bytes);
        let asked = message.used.as_ref().map(PrintedSize::bytes);
        let causes = message.chunks.iter().take(MOST).map(|chunks| of_chunks(*chunks, in_use, asked));
        return causes.filter(|cause| cause.share.is_none_or(|share| share >= LEAST)).collect();
    }
    let in_use = message.facts.size("pool_used").map_or(0, PrintedSize::bytes);
    let is_full = matches!(message.reason(), Reason::OwnArrays(_));
    let listed: u64 = explanation.allocations.iter().map(Allocation::taken_bytes).fold(0, u64::saturating_add);
    if is_full && listed < in_use / OF_POOL {
        return Vec::new();
    }
    let mut groups: Vec<(&Allocation, usize, u64)> = Vec::new();
    for row in explanation.allocations.iter().filter(|row| row.taken_bytes() > 0) {
        let is_alike = |of: &Allocation| {
            of.shape.is_some() && of.shape == row.shape && of.source == row.source && role(of) == role(row)
        };
        match groups.iter_mut().find(|(of, ..)| is_alike(of)) {
            Some((_, count, taken)) => (*count, *taken) = (*count + 1, taken.saturating_add(row.taken_bytes())),
            None => groups.push((row, 1, row.taken_bytes())),
        }
    }
    // Arrays that a message lists behind a kernel lie in it.
    let is_of_one = explanation.message.form == Form::Scoped;
    groups.truncate(if is_of_one { 1 } else { usize::MAX });
    let budget = explanation.message.budget();
    let listed = groups.iter().map(|(.., taken)| *taken).fold(0, u64::saturating_add);
    let beside = budget.others_bytes.and(budget.capacity_bytes);
    // On a GPU the requested memory may be a part of the program's.
    let total = explanation.message.usage.as_ref().map(|usage| usage.total.bytes());
    let total = total.filter(|_| explanation.message.machine().is_some());
    // A pool that is in use is not filled by the request.
    let is_of_pool = message.facts.size("pool_used").is_some();
    let told = beside.or(budget.used_bytes.max(total)).filter(|_| !is_of_pool);
    let whole = told.unwrap_or(listed).max(listed);
    let mut causes: Vec<PeakCause> = groups
        .into_iter()
        // The array in a kernel's row lies elsewhere: only a printed size is the kernel's.
        .filter(|(row, ..)| !is_of_one || row.entry.size.is_some())
        .map(|(row, count, taken)| match is_of_one {
            true => of_kernel(row, taken),
            false => of_row(row, count, taken, meaning(explanation, row)),
        })
        .collect();
    causes.extend(unlisted(explanation, &budget));
    // On a GPU arguments lie beside the requested memory.
    let together = causes.iter().map(|cause| cause.bytes).fold(0, u64::saturating_add);
    let share = |cause: &PeakCause| share(cause.bytes, whole.max(together));
    // The largest array that a message lists tells more than all that it doesn't list.
    let listed = causes.iter().filter(|cause| cause.kind == "listed" || cause.kind == "padding");
    let largest = listed.map(|cause| cause.bytes).max();
    causes.retain(|cause| share(cause) >= LEAST || Some(cause.bytes) == largest);
    // A list shows only the largest arrays, so their sum isn't the total.
    let is_share_of_request = explanation.message.form == Form::RunTime && beside.is_none();
    if !is_share_of_request && told.is_some() {
        causes.iter_mut().for_each(|cause| cause.share = Some(share(cause)));
    }
    causes.sort_by_key(|cause| Reverse(cause.bytes));
    causes.truncate(MOST);
    causes
}

/// Equal chunks of a GPU's pool, of which `in_use` bytes are in use, and of which no chunk of `asked` bytes is left.
fn of_chunks(chunks: Chunks, in_use: Option<u64>, asked: Option<u64>) -> PeakCause {
    let equal = if asked == Some(chunks.bytes) { ", as large as the one asked for" } else { "" };
    let sentence = match chunks.count {
        1 => format!("one array{equal}"),
        count => format!("{} arrays of {} each{equal}", grouped(count), bytes(chunks.bytes)),
    };
    PeakCause {
        share: in_use.map(|in_use| share(chunks.total_bytes(), in_use)),
        arrays: usize::try_from(chunks.count).unwrap_or(usize::MAX),
        ..PeakCause::of_bytes("chunks", chunks.total_bytes(), sentence)
    }
}

/// The message's totals without a list.
fn unlisted(explanation: &Explanation, budget: &Budget) -> Vec<PeakCause> {
    let interface = explanation.allocations.iter().filter(|row| row.entry.section == Section::ArgumentsAndOutputs);
    let listed = interface.map(Allocation::taken_bytes).fold(0, u64::saturating_add);
    // At run time they are a part of the memory that was there before.
    let message = &explanation.message;
    let mut verdicts = [Some(message.verdict()), message.cause()].into_iter().flatten();
    // On a GPU the table is the program's, whatever request failed, unless others hold the memory.
    let is_of_gpu = message.machine() == Some(UntiledMachine::Gpu) && message.cause() != Some(OomVerdict::Reservation);
    let is_of_compiler = is_of_gpu && message.usage.is_some()
        || verdicts.any(|verdict| matches!(verdict, OomVerdict::Size | OomVerdict::Padding | OomVerdict::Arguments));
    let is_beside = is_of_compiler && budget.others_bytes.is_none();
    let arguments = budget.argument_bytes.filter(|_| is_beside);
    // Overlays and the like aren't among the temporaries.
    let is_temporary = |row: &&Allocation| {
        let kind = row.entry.allocation_type.as_deref();
        row.entry.section == Section::Allocations && kind.is_none_or(|kind| kind.contains("temp"))
    };
    let temporaries = explanation.allocations.iter().filter(is_temporary);
    let temporary = temporaries.map(Allocation::taken_bytes).fold(0, u64::saturating_add);
    // Results of the table of persistent memory may lie in arguments, and a GPU's list doesn't tell them from other
    // arrays: listed bytes beyond the temporaries are results.
    let beyond = temporary.checked_sub(budget.temporary_bytes.unwrap_or(0)).or((temporary == 0).then_some(0));
    let is_told_apart = if message.machine().is_some() { beyond.is_some() } else { message.entries.is_empty() };
    let results = budget.output_bytes.filter(|_| is_beside && message.persistent.is_empty() && is_told_apart);
    let results = results.map(|all| all.saturating_sub(beyond.unwrap_or(0)));
    let gaps = budget.fragmentation_bytes.unwrap_or(0);
    let made =
        budget.temporary_bytes.filter(|_| is_of_compiler).map(|all| all.saturating_sub(temporary).saturating_sub(gaps));
    let gaps_are = match message.form {
        Form::RunTime if message.is_at_the_bottom() => "free elsewhere, behind arrays that lie in between",
        Form::RunTime => "free in other pieces, each too small for it",
        _ => "gaps between arrays, too small for what else is alive",
    };
    // Each row of a core's memory is an allocation of one kernel.
    let is_of_core =
        matches!(message.verdict(), OomVerdict::KernelMemory | OomVerdict::Spills) && message.form != Form::Scoped;
    let all = explanation.allocations.iter().map(Allocation::taken_bytes).fold(0, u64::saturating_add);
    let of_core = budget.used_bytes.filter(|_| is_of_core && all > 0).map(|used| used.saturating_sub(all));
    let others = match largest_unlisted(explanation) {
        _ if temporary == 0 => "arrays that the program makes".to_owned(),
        Some(most) => format!("smaller arrays that the program makes, of {} at most", bytes(most)),
        None => "arrays that the program makes, not listed".to_owned(),
    };
    let totals = [
        ("temporaries", made, others.as_str()),
        (
            "arguments",
            arguments.map(|all| all.saturating_sub(listed)),
            if listed == 0 { "arguments" } else { "other arguments" },
        ),
        ("temporaries", of_core, "allocations of the kernel, not listed"),
        ("results", results, "results"),
        ("others", budget.others_bytes, "arrays and programs that were there before"),
        ("fragmentation", budget.fragmentation_bytes, gaps_are),
    ];
    let of_bytes =
        |(kind, bytes, sentence): (_, Option<u64>, &str)| Some(PeakCause::of_bytes(kind, bytes?, sentence.to_owned()));
    totals.into_iter().filter_map(of_bytes).collect()
}

/// Bytes of the largest array inside a program that its list may leave out: the list begins with the largest, and has no gap.
fn largest_unlisted(explanation: &Explanation) -> Option<u64> {
    /// A list of one or two may be a person's choice.
    const LEAST: usize = 3;
    let inside = explanation.allocations.iter().filter(|row| row.entry.section == Section::Allocations);
    let rows: Vec<&Allocation> = inside.collect();
    let is_whole = (1..).zip(&rows).all(|(number, row)| row.entry.number == Some(number));
    let smallest = rows.iter().map(|row| row.taken_bytes()).min();
    smallest.filter(|smallest| is_whole && rows.len() >= LEAST && *smallest > 0)
}

/// The name that a row goes by without a shape.
pub(crate) fn name_of(row: &Allocation) -> String {
    // A label may be the whole instruction.
    let name = |label: &str| label.trim_start_matches('%').split(" = ").next().unwrap_or_default().to_owned();
    let label = row.entry.label.as_deref().map(name);
    // The end of a path: the operation, and its module.
    let operation = || {
        let name = row.entry.operator.as_ref()?.op_name()?;
        // An older JAX writes an operation's parameters behind it.
        let name = name.split('[').next().unwrap_or_default();
        let parts: Vec<&str> = name.rsplitn(3, '/').take(2).collect();
        Some(parts.into_iter().rev().collect::<Vec<_>>().join("/"))
    };
    label.or_else(operation).unwrap_or_else(|| "an array whose shape is not in the text".to_owned())
}

/// The memory of one kernel or operation: the array in its row lies elsewhere.
fn of_kernel(row: &Allocation, taken: u64) -> PeakCause {
    let what = match row.entry.instruction() {
        Some((_, "custom-call")) => "kernel",
        _ => "operation",
    };
    let name = name_of(row);
    PeakCause {
        kind: "kernel",
        axes: Vec::new(),
        sentence: format!("the {what} `{name}` at once: its blocks, scratch and stack"),
        remedy: None,
        filled: None,
        ..of_row(row, 1, taken, "")
    }
}

/// The role of a listed array: a GPU's list has parameters among temporaries.
fn role(row: &Allocation) -> &'static str {
    match (row.entry.interface(), row.entry.section) {
        (Some(Interface::Output(_)), _) => "result",
        (Some(Interface::Argument(..)), _) => "argument",
        (_, Section::ArgumentsAndOutputs) if row.entry.label.is_none() => "argument",
        _ => "array",
    }
}

/// The meaning of a listed array, where a finding about its shape tells it.
fn meaning(explanation: &Explanation, row: &Allocation) -> &'static str {
    let is_of_row = |piece: &&Recommendation| {
        let shape = piece.array.as_ref().and_then(|array| array.shape());
        row.shape.is_some() && shape.as_ref() == row.shape.as_ref()
    };
    let found = explanation.advice.iter().filter(is_of_row).find_map(|piece| match &piece.finding {
        Finding::Logits(logits) => logits.is_shown.then_some(" of logits"),
        Finding::AttentionScores(_) => Some(" of attention scores"),
        _ => None,
    });
    found.unwrap_or_default()
}

fn of_row(row: &Allocation, arrays: usize, taken: u64, of: &str) -> PeakCause {
    let sizes = || row.shape.iter().flat_map(|shape| shape.dimensions()).filter_map(|dimension| dimension.bound());
    let element = row.shape.as_ref().and_then(|shape| shape.element_type()).map(|of| format!(", {of}"));
    let shape: Vec<String> = sizes().map(grouped).collect();
    let what = match &row.shape {
        Some(_) => format!("{}{}", shape.join(" × "), element.unwrap_or_default()),
        None => row.entry.shape.as_ref().map_or_else(|| name_of(row), |shape| shape.text.clone()),
    };
    let each = match (arrays, role(row)) {
        (1, _) if row.entry.shape.is_none() => String::new(),
        (1, role) => format!("one {role}{of}: "),
        (_, role) => format!("{arrays} {role}s{of}, each "),
    };
    let is_padding = row.padding_bytes() > row.taken_bytes() / 2;
    PeakCause {
        kind: if is_padding { "padding" } else { "listed" },
        bytes: taken,
        share: None,
        arrays,
        axes: sizes().map(|size| CauseAxis { name: None, size }).collect(),
        sentence: format!("{each}{what}"),
        remedy: None,
        filled: super::causes::filled(&row.causes).filter(|_| is_padding),
        quote: None,
        place: row.source.as_ref().map(file_and_line).unwrap_or_default(),
        source: row.source.clone(),
    }
}

/// The changes, and the part of the missing bytes that each frees.
pub(super) fn changes(explanation: &Explanation) -> Vec<PlannedChange<'_>> {
    let budget = explanation.message.budget();
    let change = |advice| {
        let said = words(advice);
        let after = budget.used_bytes.zip(advice.saving.bytes()).map(|(used, freed)| used.saturating_sub(freed));
        let limit = budget.used_bytes.zip(budget.missing_bytes).map(|(used, missing)| used.saturating_sub(missing));
        // A bound is never enough for certain.
        let is_known = !advice.saving.is_bound() && !advice.saving.is_estimate();
        PlannedChange {
            task: said.task,
            lead: frees(advice),
            bytes_after: after,
            fits: after.zip(limit).map(|(after, limit)| after <= limit).filter(|fits| is_known || !fits),
            seconds_after: None,
            costs_no_compute: false,
            effect: extrapolated(advice).unwrap_or_else(|| beside_missing(advice.saving, explanation, &budget)),
            plain_code: said.plain,
            caveat: said.caveat,
            place: kernel_call(advice, explanation).unwrap_or_else(|| place(advice)),
            lines: lines(advice),
            edit: None,
            recommendation: advice,
        }
    };
    explanation.advice.iter().map(change).collect()
}

/// The bytes that a change frees of the arrays that a message lists, or of all; empty if unknown.
fn frees(advice: &Recommendation) -> String {
    let freed = match advice.listed_bytes {
        Some(listed) => Some(bytes(listed)),
        None => freed(advice.saving),
    };
    freed.map_or_else(String::new, |freed| format!("frees {freed}"))
}

/// The place where a kernel of the reader's own is called: its function, by the names of operations.
fn kernel_call(advice: &Recommendation, explanation: &Explanation) -> Option<String> {
    let is_of_library = matches!(
        &advice.finding,
        Finding::Block(
            BlockFinding::Library { .. }
                | BlockFinding::Options { .. }
                | BlockFinding::Unlisted { library: Some(_), .. }
        )
    );
    if advice.target != Target::Kernel || is_of_library {
        return None;
    }
    let named = explanation.allocations.iter().find_map(|row| {
        let around = row.entry.operator.as_ref()?.op_name()?.strip_suffix("/pallas_call")?.rsplit('/').next()?;
        // JAX calls what it compiles `main`.
        around.strip_prefix("jit(")?.strip_suffix(')').filter(|name| *name != "main").map(str::to_owned)
    });
    named.map(|function| format!("the `pallas_call` in `{function}`"))
}

/// The freed bytes beside the missing ones; empty if unknown. A bound is never called enough.
fn beside_missing(saving: Saving, explanation: &Explanation, budget: &Budget) -> String {
    let exceeded = explanation.message.exceeded.as_ref();
    let missing = exceeded.map(PrintedSize::bytes).or(budget.missing_bytes).filter(|missing| *missing > 0);
    let (Some(freed), Some(missing)) = (saving.bytes(), missing) else { return String::new() };
    let of = exceeded.map_or_else(|| bytes(missing), printed);
    match saving {
        Saving::Exact(_) if freed >= missing => "enough to fit".to_owned(),
        _ if freed >= missing => format!("more than the {of} that is missing"),
        _ => format!("of the {of} that is missing"),
    }
}
