//! Attention scores, one for each pair of positions: kernels that go through blocks never hold them.

use super::{in_parts::bounds, weights::Weights};
use crate::advice::{
    change::Target,
    evidence::{Evidence, Held, Listed},
    finding::{AttentionScores, Finding},
    program::{BufferChanges, LiveArray, ProgramModel},
    rule::{Proposal, Rule},
};
use crate::program::op_name;
use std::collections::{HashMap, HashSet};
use tilewise::Shape;
use tilewise_hlo::{Instruction, Opcode};

/// Shorter sequences don't fill a memory.
const POSITIONS: u64 = 1024;

pub(crate) struct ScoresOfAttention;

impl Rule for ScoresOfAttention {
    /// In a program, the batch's dimension is known, and its scores shrink with that.
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
            Some(proposal.extrapolated(evidence, held, Listed::Bytes))
        });
        proposal.into_iter().collect()
    }
}

/// Scores of a program's attention, if at least half of the bytes of these buffers at the peak are scores.
pub(crate) fn scores_of(program: &ProgramModel<'_>, buffers: &BufferChanges) -> Option<AttentionScores> {
    let changed = || program.peak_temporaries().filter(|array| buffers.at_most.contains_key(&array.buffer));
    let scores = scores(program, POSITIONS);
    let sizes: HashSet<u64> = scores.values().copied().collect();
    let of_bounds = |bounds: &[u64]| {
        positions(bounds).filter(|size| sizes.contains(size)).or_else(|| scores.get(&elements(bounds)).copied())
    };
    let of = |array: &&LiveArray<'_>| of_bounds(&array.bounds);
    let total = |bytes: u64, array: &LiveArray<'_>| bytes.saturating_add(array.bytes);
    let held = changed().filter(|array| of(array).is_some()).fold(0, total);
    let positions = changed().max_by_key(|array| (of(array).is_some(), array.bytes)).and_then(|array| of(&array))?;
    let is_capped = || bounds_of(program, Opcode::Tanh).any(|bounds| of_bounds(&bounds) == Some(positions));
    (held >= changed().fold(0, total) / 2).then(|| AttentionScores { positions, is_capped: is_capped() })
}

/// Keys for each query, at least `least`, by the number of scores: another order of dimensions doesn't change that. Of
/// three dimensions, queries and keys have to be equal: a softmax over logits has other sizes.
pub(super) fn scores(program: &ProgramModel<'_>, least: u64) -> HashMap<u64, u64> {
    let is_of_attention = |bounds: &[u64]| match bounds {
        [_, .., queries, keys] => queries == keys || bounds.len() > 3,
        _ => false,
    };
    let weights = Weights::of(program);
    softened(program)
        .into_iter()
        .filter(|(bounds, keys)| *keys >= least && is_of_attention(bounds) && !weights.make(bounds, *keys))
        .map(|(bounds, keys)| (elements(&bounds), keys))
        .collect()
}

/// Bounds of softmaxes' operands, each with the number of elements in a sum: exponentials whose maximum is computed,
/// for gates and decays are exponentials as well; or the operand of the compiler's own softmax kernel.
pub(super) fn softened(program: &ProgramModel<'_>) -> Vec<(Vec<u64>, u64)> {
    let exponentials: HashSet<Vec<u64>> =
        bounds_of(program, Opcode::Exponential).map(|bounds| sorted(&bounds)).collect();
    let of_instruction = |at: Instruction<'_>| {
        let given = || bounds(&at.operands().next()?.instruction()?);
        match at.opcode() {
            Opcode::Reduce => {
                let mut called = at.calls().filter_map(|call| call.computation()?.root());
                let given = given().filter(|bounds| exponentials.contains(&sorted(bounds)))?;
                let summed = at.shape().ok().map(|shape| elements(&dimensions(&shape)))?;
                let keys = elements(&given).checked_div(summed)?;
                called.any(|root| root.opcode() == Opcode::Maximum).then_some((given, keys))
            }
            _ if is_softmax(&at) => {
                let given = given()?;
                let keys = *given.last()?;
                Some((given, keys))
            }
            _ => None,
        }
    };
    program.module.instructions().filter_map(of_instruction).collect()
}

/// Whether an instruction is the compiler's own kernel of a softmax and the product after it.
pub(super) fn is_softmax(at: &Instruction<'_>) -> bool {
    at.opcode() == Opcode::CustomCall && op_name(at).as_deref() == Some("online-softmax")
}

/// The bounds of all results of an opcode.
fn bounds_of(program: &ProgramModel<'_>, opcode: Opcode) -> impl Iterator<Item = Vec<u64>> {
    let instructions = program.module.instructions().filter(move |at| at.opcode() == opcode);
    instructions.filter_map(|at| bounds(&at))
}

/// The bounds of an array, or of a tuple's first one.
fn dimensions(shape: &Shape) -> Vec<u64> {
    let first = shape.leaves().next().map(|(_, leaf)| leaf);
    first.iter().flat_map(|leaf| leaf.dimensions().iter().filter_map(|dimension| dimension.bound())).collect()
}

pub(super) fn elements(bounds: &[u64]) -> u64 {
    bounds.iter().copied().fold(1, u64::saturating_mul)
}

pub(super) fn sorted(bounds: &[u64]) -> Vec<u64> {
    let mut bounds = bounds.to_vec();
    bounds.sort_unstable();
    bounds
}

/// The positions of `[heads, positions, positions]`, with or without a batch and dimensions that a loop stacks up.
fn positions(bounds: &[u64]) -> Option<u64> {
    match bounds {
        [_, .., queries, keys] if queries == keys && *keys >= POSITIONS => Some(*keys),
        _ => None,
    }
}

/// Whether a listed array is `[batch, heads, positions, positions]`, or has one of the first two, and its name suggests
/// attention: pictures and matrix products are square, too.
pub(super) fn is_scores(array: &dyn Held) -> bool {
    let bounds = array.bounds();
    let signs: &[&str] = match bounds.len() {
        ..3 => return false,
        3 => &["attention", "attn", "hqk"],
        _ => &["attention", "attn", "softmax", "einsum", "dot_general", "qk"],
    };
    positions(bounds).is_some() && signs.iter().any(|sign| array.op_name().contains(sign))
}
