//! Scores of attention, a number for each pair of positions: kernels that go through blocks never hold them.

use super::in_parts::bounds;
use crate::advice::{
    change::Target,
    evidence::{Evidence, Held, Listed},
    finding::{AttentionScores, Finding},
    program::{BufferChanges, LiveArray, ProgramModel},
    rule::{Proposal, Rule},
};
use std::collections::{HashMap, HashSet};
use tilewise_hlo::{Instruction, Opcode};

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
            let positions = *largest.bounds().last()?;
            let finding = Finding::AttentionScores(AttentionScores { positions, is_capped: false });
            let held = scores().fold(0, |held: u64, array| held.saturating_add(array.bytes()));
            let proposal = Proposal::new(finding, Target::Value, largest.advised(evidence)).bound();
            let proposal = proposal.at_most(scores().map(|array| (array.buffer(), 0)));
            Some(Proposal { estimate: Some(evidence.extrapolated(held, Listed::Bytes)), ..proposal })
        });
        proposal.into_iter().collect()
    }
}

/// Scores that a program's attention makes, where they are most of what these buffers hold at the peak.
pub(crate) fn scores_of(program: &ProgramModel<'_>, buffers: &BufferChanges) -> Option<AttentionScores> {
    let changed = || program.peak_temporaries().filter(|array| buffers.at_most.contains_key(&array.buffer));
    let has_pairs =
        |bounds: &[u64]| bounds.iter().enumerate().any(|(at, size)| *size >= POSITIONS && bounds[..at].contains(size));
    if !changed().any(|array| has_pairs(&array.bounds)) {
        return None;
    }
    let softened: HashMap<Vec<u64>, u64> =
        softened(program).filter_map(|bounds| Some((sorted(&bounds), positions(&bounds)?))).collect();
    let sizes: HashSet<u64> = softened.values().copied().collect();
    let of_bounds = |bounds: &[u64]| {
        positions(bounds).filter(|size| sizes.contains(size)).or_else(|| softened.get(&sorted(bounds)).copied())
    };
    let of = |array: &&LiveArray<'_>| of_bounds(&array.bounds);
    let total = |bytes: u64, array: &LiveArray<'_>| bytes.saturating_add(array.bytes);
    let scores = changed().filter(|array| of(array).is_some()).fold(0, total);
    let positions = changed().max_by_key(|array| (of(array).is_some(), array.bytes)).and_then(|array| of(&array))?;
    let is_capped = || bounds_of(program, Opcode::Tanh).any(|bounds| of_bounds(&bounds) == Some(positions));
    (scores >= changed().fold(0, total) / 2).then(|| AttentionScores { positions, is_capped: is_capped() })
}

/// The bounds of what a softmax goes over: exponentials of which the largest are worked out before. Gates and decays are
/// exponentials as well. In another order of dimensions they are the same.
pub(super) fn softened(program: &ProgramModel<'_>) -> impl Iterator<Item = Vec<u64>> {
    let is_largest = |at: &Instruction<'_>| {
        at.calls().filter_map(|call| call.computation()?.root()).any(|root| root.opcode() == Opcode::Maximum)
    };
    let reductions = program.module.instructions().filter(|at| at.opcode() == Opcode::Reduce);
    let largest: HashSet<Vec<u64>> = reductions
        .filter(is_largest)
        .filter_map(|at| Some(sorted(&bounds(&at.operands().next()?.instruction()?)?)))
        .collect();
    bounds_of(program, Opcode::Exponential).filter(move |bounds| largest.contains(&sorted(bounds)))
}

/// The bounds of all results of such operations.
fn bounds_of(program: &ProgramModel<'_>, opcode: Opcode) -> impl Iterator<Item = Vec<u64>> {
    let instructions = program.module.instructions().filter(move |at| at.opcode() == opcode);
    instructions.filter_map(|at| bounds(&at))
}

pub(super) fn sorted(bounds: &[u64]) -> Vec<u64> {
    let mut bounds = bounds.to_vec();
    bounds.sort_unstable();
    bounds
}

/// `[heads, positions, positions]`, with or without a batch and dimensions that a loop stacks up.
fn positions(bounds: &[u64]) -> Option<u64> {
    match bounds {
        [_, .., queries, keys] if queries == keys && *keys >= POSITIONS => Some(*keys),
        _ => None,
    }
}

/// `[batch, heads, positions, positions]`, or one of the first two, if attention's name stands over it: pictures and products of
/// matrices are square, too.
pub(super) fn is_scores(array: &dyn Held) -> bool {
    let bounds = array.bounds();
    let signs: &[&str] = match bounds.len() {
        ..3 => return false,
        3 => &["attention", "attn", "hqk"],
        _ => &["attention", "attn", "softmax", "einsum", "dot_general", "qk"],
    };
    positions(bounds).is_some() && signs.iter().any(|sign| array.op_name().contains(sign))
}
