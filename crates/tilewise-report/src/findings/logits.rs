//! Logits of a vocabulary: the loss needs them once, and a part of the sequence at a time will do.

use super::{
    Words,
    code::{JAX_AND_NUMPY, is_path},
    words::{at_line, bounds_of},
};
use tilewise_audit::{Recommendation, recommendation::finding::Logits};

/// Code for the loss of each token; the reduction is the program's own, such as the mean or weights for padding.
fn code(finding: &Logits) -> String {
    let cap = if finding.is_capped { "\n    logits = cap * jnp.tanh(logits / cap)  # cap: your soft cap" } else { "" };
    let of_tokens = if finding.are_labels_dense {
        "targets = jax.nn.one_hot(labels, logits.shape[-1])  # smoothed, if yours are
    return -(targets * jax.nn.log_softmax(logits)).sum(-1)"
    } else {
        "picked = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return jax.nn.logsumexp(logits, axis=-1) - picked"
    };
    let head = finding.weight.as_ref().filter(|(name, _)| is_path(name));
    // Through another name than the one that the loss is differentiated by, the weight had no gradient.
    let head = head.map(|(name, is_first)| {
        let transposed = if *is_first { ".T" } else { "" };
        format!("head = {name}{transposed}  # in the loss function, of the parameters that it is given\n")
    });
    let head = head.unwrap_or_default();
    format!(
        "{head}@jax.checkpoint
def loss_of(chunk):  # your own loss, of each token
    hidden, labels = chunk  # hidden: what the head multiplies (of Hugging Face: output_hidden_states=True, the last)
    logits = (hidden @ head).astype(jnp.float32){cap}
    {of_tokens}
chunks = jax.tree.map(lambda x: x.reshape(8, -1, *x.shape[2:]), (hidden, labels))
losses = jax.lax.map(loss_of, chunks).reshape(labels.shape)  # of tokens that count: (losses * mask).sum() / mask.sum()"
    )
}

pub(super) fn words(finding: &Logits, about: &Recommendation) -> Words {
    let condition =
        if finding.is_shown { String::new() } else { format!("If {} is a vocabulary: ", finding.vocabulary) };
    let compute = if finding.is_shown { "Compute" } else { "compute" };
    Words::new(format!(
        "{condition}{compute} the cross entropy in chunks of tokens, each behind `jax.checkpoint`: [{}]{} has one value per token of the vocabulary ({}); {} chunks need an eighth of the memory",
        bounds_of(about),
        at_line(about),
        finding.vocabulary,
        finding.chunks
    ))
    .task(format!("{condition}{compute} the cross entropy in {} chunks{}", finding.chunks, if finding.is_shown { " of tokens" } else { "" }))
    .jax(about, JAX_AND_NUMPY, code(finding))
}
