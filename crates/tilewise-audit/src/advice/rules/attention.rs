//! Attention scores, one for each pair of positions: kernels that go through blocks never hold them.

use crate::{
    advice::{
        change::Target,
        evidence::{ArrayFact, Evidence, Listed},
        finding::{AttentionScores, Finding},
        program::{BufferChanges, LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{bounds_of, elements, scores},
};
use tilewise_hlo::Opcode;

/// Shorter sequences don't fill a memory.
const POSITIONS: u64 = 512;

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
    let scores = scores(program.module, POSITIONS);
    // A loop stacks up the scores of all layers, and may compute those of some rows at a time.
    let are_some = |all: u64, count: u64| count > 0 && (all.is_multiple_of(count) || count.is_multiple_of(all.max(1)));
    let has = |size: &u64, all: u64| scores.iter().any(|(count, of)| of == size && are_some(all, *count));
    let of_bounds = |bounds: &[u64]| {
        let all = elements(bounds);
        positions(bounds).filter(|size| has(size, all)).or_else(|| scores.get(&all).copied())
    };
    let of = |array: &&LiveArray<'_>| of_bounds(&array.bounds);
    let total = |bytes: u64, array: &LiveArray<'_>| bytes.saturating_add(array.bytes);
    let held = changed().filter(|array| of(array).is_some()).fold(0, total);
    let positions = changed().max_by_key(|array| (of(array).is_some(), array.bytes)).and_then(|array| of(&array))?;
    // An activation of as many features as there are positions is square, too, but has no heads.
    let is_score = |bounds: Vec<u64>| scores.get(&elements(&bounds)) == Some(&positions);
    let is_capped = || bounds_of(program.module, Opcode::Tanh).any(is_score);
    (held >= changed().fold(0, total) / 2).then(|| AttentionScores { positions, is_capped: is_capped() })
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
pub(super) fn is_scores(array: &dyn ArrayFact) -> bool {
    let bounds = array.bounds();
    let signs: &[&str] = match bounds.len() {
        ..3 => return false,
        3 => &["attention", "attn", "hqk"],
        _ => &["attention", "attn", "softmax", "einsum", "dot_general", "qk"],
    };
    positions(bounds).is_some() && signs.iter().any(|sign| array.op_name().contains(sign))
}
