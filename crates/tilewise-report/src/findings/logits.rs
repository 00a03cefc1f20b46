//! Logits of a vocabulary: the loss needs them once, and a part of the sequence at a time will do.

use super::{
    Words,
    code::JAX_AND_NUMPY,
    words::{at_line, bounds_of},
};
use tilewise_audit::{Recommendation, recommendation::finding::Logits};

/// Chunks have unequal numbers of tokens that count: only the sum over all is divided.
fn code(is_capped: bool) -> String {
    let cap = if is_capped { "\n    logits = cap * jnp.tanh(logits / cap)  # cap: your soft cap" } else { "" };
    format!(
        "@jax.checkpoint
def loss_of(chunk):
    hidden, labels, weights = chunk
    logits = (hidden @ head).astype(jnp.float32){cap}
    picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return ((jax.nn.logsumexp(logits, axis=-1) - picked) * weights).sum()
# [batch, sequence, …]; weights: 0 for tokens that don't count, such as padding
chunks = jax.tree.map(lambda x: x.reshape(8, -1, *x.shape[2:]), (hidden, labels, weights))
loss = jax.lax.map(loss_of, chunks).sum() / weights.sum()"
    )
}

pub(super) fn words(finding: &Logits, about: &Recommendation) -> Words {
    Words::new(format!(
        "Compute the cross entropy in chunks of tokens, each behind `jax.checkpoint`: [{}]{} has one value per token of the vocabulary ({}); {} chunks need an eighth of the memory",
        bounds_of(about),
        at_line(about),
        finding.vocabulary,
        finding.chunks
    ))
    .jax(about, JAX_AND_NUMPY, code(finding.is_capped))
}
