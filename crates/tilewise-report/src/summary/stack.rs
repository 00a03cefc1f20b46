//! The contents of the memory, part upon part.

use serde::Serialize;
use tilewise_audit::Explanation;
use tilewise_oom::{Budget, Message, OomVerdict, PrintedSize};

/// The contents of the memory by the message's totals; parts under 1 % are left out.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BudgetStack {
    /// The parts that lie side by side.
    pub parts: Vec<BudgetPart>,
    /// Bytes of all parts that lie side by side, including those left out.
    pub total_bytes: u64,
    /// Bytes within the parts: padding, and losses of packing.
    pub within: Vec<BudgetPart>,
    /// The available memory, and its reserved part.
    pub room: Vec<BudgetPart>,
}

/// A part of the memory's contents.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct BudgetPart {
    /// A stable name: `arguments`, `results`, `temporaries`, `program`, `others`, `padding`, `fragmentation`, `available` or
    /// `reserved`; of a fragmented memory `asked`, `piece` or `scattered`.
    pub kind: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: u64,
}

impl BudgetStack {
    /// The contents of the memory; `None` if the message has no parts, and for the memory of one kernel, whose own
    /// blocks count.
    pub(super) fn of(explanation: &Explanation) -> Option<Self> {
        // A compiler's list has parts, even if fragmentation is the cause.
        let message = &explanation.message;
        let pieces = match message.verdict() {
            OomVerdict::KernelMemory | OomVerdict::Spills => return None,
            OomVerdict::Fragmentation if message.entries.is_empty() => pieces(message),
            _ => None,
        };
        pieces.or_else(|| stack(&message.budget()))
    }
}

/// The requested piece beside the largest free piece, if the message has it, and all free memory: the room ends with
/// that piece.
fn pieces(message: &Message) -> Option<BudgetStack> {
    let size = |size: &Option<PrintedSize>| size.as_ref().map(PrintedSize::bytes);
    let (asked, free, piece) = (size(&message.used)?, size(&message.limit)?, size(&message.contiguous));
    let asked_for = [("asked", "asked for, in one piece", Some(asked))];
    let room = [
        ("piece", "free in the largest piece", piece),
        (
            "scattered",
            if piece.is_some() { "free in smaller pieces" } else { "free in several pieces" },
            free.checked_sub(piece.unwrap_or(0)),
        ),
    ];
    Some(BudgetStack { parts: known([&asked_for]), total_bytes: asked, within: Vec::new(), room: known([&room]) })
}

fn stack(budget: &Budget) -> Option<BudgetStack> {
    // If others hold memory, arguments and results are a part of theirs.
    let is_part = budget.others_bytes.is_some();
    let interface = [("arguments", "arguments", budget.argument_bytes), ("results", "results", budget.output_bytes)];
    // The message's total may hold the results in the program.
    let program = budget.temporary_bytes.unwrap_or(0).saturating_add(budget.program_bytes.unwrap_or(0));
    let without = program.saturating_add(budget.argument_bytes.unwrap_or(0));
    let is_all = budget.output_bytes.is_some_and(|results| results <= program)
        && budget.used_bytes.is_some_and(|used| without.abs_diff(used) <= used / 100);
    let (beside, inside): (&[_], &[_]) = match (is_part, is_all) {
        (true, _) => (&[], &interface),
        (false, true) => interface.split_at(1),
        (false, false) => (&interface, &[]),
    };
    let others = [("others", "held by arrays and programs", budget.others_bytes)];
    let rest = if budget.temporary_bytes.is_some() {
        "the rest of the program, such as its code"
    } else {
        "the program, which the message doesn't break down"
    };
    let own = [("temporaries", "temporaries", budget.temporary_bytes), ("program", rest, budget.program_bytes)];
    let lost =
        [("padding", "padding", budget.padding_bytes), ("fragmentation", "fragmentation", budget.fragmentation_bytes)];
    let reserved = if is_part { "reserved of that" } else { "also reserved" };
    let room = [("available", "available", budget.capacity_bytes), ("reserved", reserved, budget.reserved_bytes)];
    let parts = known([&others, beside, &own]);
    let total_bytes = parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add);
    let worth_a_line = |mut parts: Vec<BudgetPart>| {
        parts.retain(|part| u128::from(part.bytes) * 100 >= u128::from(total_bytes));
        parts
    };
    let (parts, within) = (worth_a_line(parts), worth_a_line(known([inside, &lost])));
    let tells_nothing = parts.is_empty() || parts.len() == 1 && within.is_empty();
    (!tells_nothing).then(|| BudgetStack { parts, total_bytes, within, room: known([&room]) })
}

/// The parts in the message, without those of 0 bytes.
fn known<const N: usize>(lists: [&[(&'static str, &'static str, Option<u64>)]; N]) -> Vec<BudgetPart> {
    let all = lists.into_iter().flatten();
    all.filter_map(|&(kind, name, bytes)| Some(BudgetPart { kind, name, bytes: bytes.filter(|bytes| *bytes > 0)? }))
        .collect()
}
