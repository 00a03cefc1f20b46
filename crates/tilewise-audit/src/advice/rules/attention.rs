//! Scores of attention, a number for each pair of positions: kernels that go through blocks never hold them.

use crate::{
    advice::{
        message::{MessageModel, total},
        recommendation::{Change, Recommendation, Saving, Target},
        rule::MessageRule,
    },
    message::Allocation,
};

/// Shorter sequences don't fill a memory.
const POSITIONS: u64 = 1024;

pub(crate) struct AttentionScores;

impl MessageRule for AttentionScores {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        of_message(message).into_iter().collect()
    }
}

fn of_message(message: &MessageModel<'_>) -> Option<Recommendation> {
    let scores = || message.temporaries.iter().copied().filter(|row| is_scores(row));
    let largest = scores().max_by_key(|row| row.taken_bytes())?;
    let shape = largest.shape.as_ref()?.without_layout().to_string();
    let positions = *largest.bounds().last()?;
    let sentence = format!(
        "Use blockwise attention, whose kernel holds a block of the scores: {shape}{} has one for each pair of {positions} \
         positions",
        largest.at_line()
    );
    let found = Recommendation::new(Change::Chunk, Target::Value, sentence)
        .about(shape)
        .saving(Saving::AtMost(total(scores(), Allocation::taken_bytes)));
    Some(message.with_jax(
        found,
        "from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention",
        "y = flash_attention(q, k, v, causal=causal, sm_scale=q.shape[-1] ** -0.5)\n# q, k, v: [batch, heads, sequence, features]; causal: whether yours masks what comes later; other masks by segment_ids, ab",
    ))
}

/// `[batch, heads, positions, positions]`
pub(super) fn is_scores(row: &Allocation) -> bool {
    match &row.bounds()[..] {
        [_, .., _, queries, keys] => queries == keys && *keys >= POSITIONS && is_named(row),
        _ => false,
    }
}

/// Pictures are square, too.
fn is_named(row: &Allocation) -> bool {
    let name = row.op_name();
    ["attention", "attn", "softmax", "einsum", "dot_general", "qk"].iter().any(|sign| name.contains(sign))
}
