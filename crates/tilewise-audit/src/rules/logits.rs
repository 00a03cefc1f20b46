//! Logits of a vocabulary: the loss needs them once, and a part of the sequence at a time will do.

use super::MessageRule;
use crate::{
    Allocation, Recommendation,
    message_model::{MessageModel, total},
    recommendation::{Change, Saving, Target},
    snippet::JAX_AND_NUMPY,
};

/// Vocabularies are larger; other dimensions of models are smaller.
const VOCABULARY: u64 = 30_000;
/// Of two dimensions, the other is tokens, not the features of a weight.
const TOKENS: u64 = 16_384;
const PARTS: u64 = 8;

pub(crate) struct VocabularyLogits;

impl MessageRule for VocabularyLogits {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        of_message(message).into_iter().collect()
    }
}

fn of_message(message: &MessageModel<'_>) -> Option<Recommendation> {
    let logits = || message.temporaries.iter().copied().filter(|row| is_logits(row));
    let largest = logits().max_by_key(|row| row.taken_bytes())?;
    let shape = largest.shape.as_ref()?.without_layout().to_string();
    let vocabulary = *largest.bounds().last()?;
    let sentence = format!(
        "Compute the cross entropy in chunks of the sequence, each behind `jax.checkpoint`: {shape}{} has a number for each \
         of {vocabulary} tokens of the vocabulary; {PARTS} chunks hold an eighth of that",
        largest.at_line()
    );
    let held = total(logits(), Allocation::taken_bytes);
    let found = Recommendation::new(Change::Chunk, Target::Value, sentence)
        .about(shape)
        .saving(Saving::AtMost(held / PARTS * (PARTS - 1)));
    Some(message.with_jax(
        found,
        JAX_AND_NUMPY,
        format!(
            "@jax.checkpoint
def loss_of(chunk):
    hidden, labels = chunk
    logits = (hidden @ head).astype(jnp.float32)
    picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(logits, axis=-1) - picked).sum()
chunks = jax.tree.map(lambda x: x.reshape({PARTS}, -1, *x.shape[2:]), (hidden, labels))  # [batch, sequence, …]
loss = jax.lax.map(loss_of, chunks).sum() / labels.size"
        ),
    ))
}

pub(super) fn is_logits(row: &Allocation) -> bool {
    let bounds = row.bounds();
    let is_wide = bounds.last().is_some_and(|last| *last >= VOCABULARY && (!is_picture(*last) || is_named(row)));
    is_wide && (bounds.len() > 2 || bounds.len() == 2 && bounds[0] >= TOKENS)
}

/// Pixels of a square picture are as many, such as 512 × 512; Gemma's vocabulary, too.
fn is_picture(size: u64) -> bool {
    size.is_power_of_two() && size.trailing_zeros().is_multiple_of(2)
}

fn is_named(row: &Allocation) -> bool {
    let name = row.op_name();
    ["logit", "vocab", "entropy", "lm_head", "embed", "softmax", "decode"].iter().any(|sign| name.contains(sign))
}
