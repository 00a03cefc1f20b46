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
    let bounds = about.array.as_ref().and_then(|array| array.shape()?.bounds());
    let elements = bounds.as_ref().and_then(|bounds| bounds.iter().copied().reduce(u64::saturating_mul));
    let chunk = elements.map_or(MOST, |elements| elements / finding.vocabulary.max(1)).div_ceil(finding.chunks.max(1));
    let cap = if finding.is_capped { "\n    logits = cap * jnp.tanh(logits / cap)  # cap: your soft cap" } else { "" };
    let of_token = if finding.are_labels_dense {
        "return -(jax.nn.one_hot(label, logits.size) * jax.nn.log_softmax(logits)).sum()  # smoothed, if yours are"
    } else {
        "return jax.nn.logsumexp(logits) - logits[label]"
    };
    if finding.is_on_devices {
        return along_the_sequence(finding, parts(finding, about), cap);
    }
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
    let head = head(finding);
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

/// The weight that makes the logits. Through another name than the one that the loss is differentiated by, it had no gradient.
fn head(finding: &Logits) -> String {
    let named = finding.weight.as_ref().filter(|(name, _)| is_path(name)).map(|(name, is_first)| {
        let transposed = if *is_first { ".T" } else { "" };
        format!("head = {name}{transposed}  # in the loss function, of the parameters that it is given\n")
    });
    named.unwrap_or_default()
}

/// The number of chunks; on several devices, one that divides the sequence.
fn parts(finding: &Logits, about: &Recommendation) -> u64 {
    let bounds = about.array.as_ref().and_then(|array| array.shape()?.bounds()).filter(|_| finding.is_on_devices);
    let length = bounds.and_then(|bounds| <[u64; 3]>::try_from(bounds).ok()).map(|[_, length, _]| length);
    let parts = length.and_then(|length| (2..=finding.chunks).rev().find(|parts| length.is_multiple_of(*parts)));
    parts.unwrap_or(finding.chunks)
}

/// Code that leaves each row on its device: parts of the sequence, of all rows.
fn along_the_sequence(finding: &Logits, parts: u64, cap: &str) -> String {
    let (head, given, loss) = if finding.is_distilled {
        let wanted = "jax.nn.softmax((other @ other_head).astype(jnp.float32))";
        (String::new(), "other", format!("-({wanted} * jax.nn.log_softmax(logits)).sum(-1)"))
    } else if finding.are_labels_dense {
        let dense = "-(jax.nn.one_hot(labels, logits.shape[-1]) * jax.nn.log_softmax(logits)).sum(-1)";
        (head(finding), "labels", format!("{dense}  # smoothed, if yours are"))
    } else {
        let of_label = "jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]";
        (head(finding), "labels", format!("jax.nn.logsumexp(logits, -1) - {of_label}"))
    };
    format!(
        "{head}@jax.checkpoint
def losses_of(part):  # your own loss, of some positions of all rows
    hidden, {given} = part  # hidden: what the head multiplies
    logits = (hidden @ head).astype(jnp.float32){cap}
    return {loss}
# along the sequence (dimension 1; {parts} has to divide it): no row leaves its device
parts = jax.tree.map(lambda x: jnp.stack(jnp.split(x, {parts}, 1)), (hidden, {given}))
losses = jnp.concatenate(jax.lax.map(losses_of, parts), 1)  # of each token; add up as yours are"
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
        parts(finding, about)
    ))
    .task(format!("{condition}{compute} {loss} in {} chunks{}", parts(finding, about), if finding.is_shown { " of tokens" } else { "" }))
    .jax(about, JAX_AND_NUMPY, code(finding, about))
}
