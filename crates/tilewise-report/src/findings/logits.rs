//! Logits of a vocabulary: the loss needs them once, and a part of the sequence at a time will do.

use super::{
    Words,
    code::JAX_AND_NUMPY,
    words::{at_line, bounds_of},
};
use tilewise_audit::{Recommendation, recommendation::finding::Logits};

const CODE: &str = "@jax.checkpoint
def loss_of(chunk):
    hidden, labels = chunk
    logits = (hidden @ head).astype(jnp.float32)
    picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return (jax.nn.logsumexp(logits, axis=-1) - picked).sum()
chunks = jax.tree.map(lambda x: x.reshape(8, -1, *x.shape[2:]), (hidden, labels))  # [batch, sequence, …]
loss = jax.lax.map(loss_of, chunks).sum() / labels.size";

pub(super) fn words(finding: &Logits, about: &Recommendation) -> Words {
    Words::new(format!(
        "Compute the cross entropy in chunks of tokens, each behind `jax.checkpoint`, with your own masks and weights: [{}]{} \
         has one value per token of the vocabulary ({}); {} chunks need an eighth of the memory",
        bounds_of(about),
        at_line(about),
        finding.vocabulary,
        finding.chunks
    ))
    .jax(about, JAX_AND_NUMPY, CODE)
}
