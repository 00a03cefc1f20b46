//! Logits of a vocabulary: the loss needs them once, and a part of the sequence at a time will do.

use super::{
    Words,
    code::{JAX_AND_NUMPY, is_path},
    words::{at_line, bounds_of},
};
use tilewise_audit::{Recommendation, recommendation::finding::Logits};

/// Tokens where their number is unknown.
const MOST: u64 = 8192;

/// Code for the loss of each token, for any number of them; the reduction is the program's own, such as the mean or weights for
/// padding.
fn code(finding: &Logits, about: &Recommendation) -> String {
    let shape = about.array.as_ref().and_then(|array| array.shape());
    let elements = shape.and_then(|shape| shape.bounds()?.into_iter().reduce(u64::saturating_mul));
    let chunk = elements.map_or(MOST, |elements| elements / finding.vocabulary.max(1)).div_ceil(finding.chunks.max(1));
    let cap = if finding.is_capped { "\n    logits = cap * jnp.tanh(logits / cap)  # cap: your soft cap" } else { "" };
    let of_token = if finding.are_labels_dense {
        "return -(jax.nn.one_hot(label, logits.size) * jax.nn.log_softmax(logits)).sum()  # smoothed, if yours are"
    } else {
        "return jax.nn.logsumexp(logits) - logits[label]"
    };
    if finding.is_distilled {
        return format!(
            "@jax.checkpoint
def loss_of(token):  # your own loss, of one token
    hidden, other = token  # what your head, and that of the model without a gradient, multiplies
    logits = (hidden @ head).astype(jnp.float32){cap}
    wanted = jax.nn.softmax((other @ other_head).astype(jnp.float32))
    return -(wanted * jax.nn.log_softmax(logits)).sum()
tokens = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), (hidden, other))
losses = jax.lax.map(loss_of, tokens, batch_size={chunk}).reshape(hidden.shape[:-1])"
        );
    }
    let head = finding.weight.as_ref().filter(|(name, _)| is_path(name));
    // Through another name than the one that the loss is differentiated by, the weight had no gradient.
    let head = head.map(|(name, is_first)| {
        let transposed = if *is_first { ".T" } else { "" };
        format!("head = {name}{transposed}  # in the loss function, of the parameters that it is given\n")
    });
    let head = head.unwrap_or_default();
    format!(
        "{head}@jax.checkpoint
def loss_of(token):  # your own loss, of one token
    hidden, label = token  # hidden: what the head multiplies
    logits = (hidden @ head).astype(jnp.float32){cap}
    {of_token}
tokens = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (hidden, labels))
losses = jax.lax.map(loss_of, tokens, batch_size={chunk}).reshape(labels.shape)  # of each token; add up as yours are"
    )
}

pub(super) fn words(finding: &Logits, about: &Recommendation) -> Words {
    let condition =
        if finding.is_shown { String::new() } else { format!("If {} is a vocabulary: ", finding.vocabulary) };
    let compute = if finding.is_shown { "Compute" } else { "compute" };
    let loss = if finding.is_distilled { "the loss between both models' logits" } else { "the cross entropy" };
    Words::new(format!(
        "{condition}{compute} {loss} in chunks of tokens, each behind `jax.checkpoint`: [{}]{} has one value per token of the vocabulary ({}); {} chunks need an eighth of the memory",
        bounds_of(about),
        at_line(about),
        finding.vocabulary,
        finding.chunks
    ))
    .task(format!("{condition}{compute} {loss} in {} chunks{}", finding.chunks, if finding.is_shown { " of tokens" } else { "" }))
    .jax(about, JAX_AND_NUMPY, code(finding, about))
}
