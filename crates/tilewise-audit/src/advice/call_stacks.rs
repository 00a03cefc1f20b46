//! Call stacks of instructions, and their common parts.

use crate::program::{SourceLine, innermost_own};
use foldhash::HashMap;
use tilewise_hlo::{Instruction, SourceLocation};

/// Call stack of an instruction, outermost call first.
pub(super) type Calls<'m> = Vec<SourceLocation<'m>>;

pub(super) fn calls<'m>(instruction: &Instruction<'m>) -> Calls<'m> {
    let mut calls: Calls<'m> = instruction.frames().collect();
    calls.reverse();
    calls
}

/// Whether `count` of `all` are nine in ten.
pub(super) fn is_shared(count: usize, all: usize) -> bool {
    count >= all.saturating_mul(9).div_ceil(10)
}

/// The common prefix of nine in ten call stacks.
pub(super) fn shared<'c, 'm>(all: impl Iterator<Item = &'c Calls<'m>>) -> &'c [SourceLocation<'m>] {
    shared_by(all, is_shared)
}

/// The common prefix of call stacks, each line of which `is_most` of all have.
pub(super) fn shared_by<'c, 'm>(
    all: impl Iterator<Item = &'c Calls<'m>>,
    is_most: fn(usize, usize) -> bool,
) -> &'c [SourceLocation<'m>] {
    let mut left: Vec<&'c Calls<'m>> = all.filter(|calls| !calls.is_empty()).collect();
    let (all, mut depth) = (left.len(), 0);
    loop {
        let mut next: HashMap<(&str, u32), usize> = HashMap::default();
        for frame in left.iter().filter_map(|calls| calls.get(depth)) {
            *next.entry((&*frame.file, frame.line)).or_default() += 1;
        }
        let most = next.into_iter().max_by_key(|(frame, count)| (*count, *frame));
        let Some((frame, _)) = most.filter(|(_, count)| is_most(*count, all)) else { break };
        left.retain(|calls| calls.get(depth).is_some_and(|at| (&*at.file, at.line) == frame));
        depth += 1;
    }
    left.first().and_then(|calls| calls.get(..depth)).unwrap_or_default()
}

pub(super) fn innermost(calls: &[SourceLocation<'_>]) -> Option<SourceLine> {
    innermost_own(|| calls.iter().rev().cloned())
}

/// The lines of a call stack.
pub(super) fn places<'c>(calls: &'c [SourceLocation<'_>]) -> impl Iterator<Item = (&'c str, u32)> {
    calls.iter().map(|frame| (&*frame.file, frame.line))
}
