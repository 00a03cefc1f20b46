//! Scores of attention, a number for each pair of positions: kernels that go through blocks never hold them.

use crate::advice::{
    change::Target,
    evidence::{Evidence, Held},
    finding::{AttentionScores, Finding},
    program::{BufferChanges, LiveArray, ProgramModel},
    rule::{Proposal, Rule},
};
use std::collections::HashSet;
use tilewise_hlo::Opcode;

/// Shorter sequences don't fill a memory.
const POSITIONS: u64 = 1024;

pub(crate) struct ScoresOfAttention;

impl Rule for ScoresOfAttention {
    /// A program tells which of its dimensions is the batch, so that its scores fall with that.
    fn is_of_programs(&self) -> bool {
        false
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        if evidence.program().is_some() {
            return Vec::new();
        }
        let temporaries = evidence.temporaries();
        let scores = || temporaries.iter().copied().filter(|array| is_scores(*array));
        let proposal = scores().max_by_key(|array| array.bytes()).and_then(|largest| {
            let finding = Finding::AttentionScores(AttentionScores { positions: *largest.bounds().last()? });
            let proposal = Proposal::new(finding, Target::Value, largest.advised(evidence)).bound();
            Some(proposal.at_most(scores().map(|array| (array.buffer(), 0))))
        });
        proposal.into_iter().collect()
    }
}

/// Scores that a program's attention makes, where they are most of what these buffers hold at the peak.
pub(crate) fn scores_of(program: &ProgramModel<'_>, buffers: &BufferChanges) -> Option<AttentionScores> {
    let changed = || program.peak_temporaries().filter(|array| buffers.at_most.contains_key(&array.buffer));
    let squares: HashSet<u64> = changed().filter_map(|array| positions(&array.bounds)).collect();
    if squares.is_empty() {
        return None;
    }
    // A softmax goes over them.
    let softened: HashSet<u64> = program
        .module
        .instructions()
        .filter(|at| at.opcode() == Opcode::Exponential)
        .filter_map(|at| {
            let shape = at.shape().ok()?;
            positions(&shape.dimensions().iter().filter_map(|dimension| dimension.bound()).collect::<Vec<_>>())
        })
        .collect();
    let of = |array: &&LiveArray<'_>| positions(&array.bounds).filter(|size| softened.contains(size));
    let total = |bytes: u64, array: &LiveArray<'_>| bytes.saturating_add(array.bytes);
    let scores = changed().filter(|array| of(array).is_some()).fold(0, total);
    let positions = changed().max_by_key(|array| (of(array).is_some(), array.bytes)).and_then(|array| of(&array))?;
    (scores >= changed().fold(0, total) / 2).then_some(AttentionScores { positions })
}

/// `[heads, positions, positions]`, with or without a batch and dimensions that a loop stacks up.
fn positions(bounds: &[u64]) -> Option<u64> {
    match bounds {
        [_, .., queries, keys] if queries == keys && *keys >= POSITIONS => Some(*keys),
        _ => None,
    }
}

/// `[batch, heads, positions, positions]`
pub(super) fn is_scores(array: &dyn Held) -> bool {
    match array.bounds() {
        [_, .., _, queries, keys] => queries == keys && *keys >= POSITIONS && is_named(&array.op_name()),
        _ => false,
    }
}

/// Pictures are square, too.
fn is_named(name: &str) -> bool {
    ["attention", "attn", "softmax", "einsum", "dot_general", "qk"].iter().any(|sign| name.contains(sign))
}
