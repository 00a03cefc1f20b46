//! Scores of attention, a number for each pair of positions: kernels that go through blocks never hold them.

use super::{
    Words,
    words::{at_line, bare},
};
use tilewise_audit::{Recommendation, recommendation::finding::AttentionScores};

/// Another way to free the scores, for advice that is about something else.
pub(super) fn instead(scores: &AttentionScores) -> String {
    let cap = if scores.is_capped { "; your soft cap is splash attention's `attn_logits_soft_cap`" } else { "" };
    format!("blockwise (flash) attention never holds these scores of all pairs of {} positions{cap}", scores.positions)
}

pub(super) fn words(finding: &AttentionScores, about: &Recommendation) -> Words {
    let sentence = format!(
        "Use blockwise attention, whose kernel holds a block of the scores: {}{} has one for each pair of {} positions",
        bare(about),
        at_line(about),
        finding.positions
    );
    Words::new(sentence).task("Use blockwise (flash) attention").jax(
        about,
        "from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention",
        "y = flash_attention(q, k, v, causal=causal, sm_scale=q.shape[-1] ** -0.5)\n# q, k, v: [batch, heads, sequence, features]: swap axes 1 and 2 where heads come third\n# causal: whether yours masks what comes later; other masks by segment_ids, ab",
    )
}
