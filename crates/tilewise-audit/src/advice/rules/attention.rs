//! Scores of attention, a number for each pair of positions: kernels that go through blocks never hold them.

use crate::advice::{
    change::Target,
    evidence::{Evidence, Held},
    finding::{AttentionScores, Finding},
    rule::{Proposal, Rule},
};

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
