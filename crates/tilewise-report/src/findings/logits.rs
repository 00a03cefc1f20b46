//! Logits of a vocabulary: the loss needs them once, and a part of the sequence at a time will do.

use super::{
    Words,
    code::{JAX_AND_NUMPY, is_path},
    words::{at_line, bounds_of},
};
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{Logits, LogitsUse},
};

/// Code for the loss of each token, in parts of the tokens. Mapped token by token with `batch_size`, it took four times as many of the
/// compiler's cycles (v5e, 30,522 words). The reduction is the program's own, such as the mean or weights for padding.
fn code(finding: &Logits, about: &Recommendation) -> String {
    let parts = parts(finding, about);
    let cap = if finding.is_capped { "\n    logits = cap * jnp.tanh(logits / cap)  # cap: your soft cap" } else { "" };
    if finding.used == LogitsUse::Scores {
        return format!(
            "in_parts = lambda x: x.reshape({parts}, -1, *x.shape[1:])  # samples first\n\
             parts = jax.tree.map(in_parts, (tokens,))  # all that a call there takes of the samples\n\
             scores = jax.tree.map(jnp.concatenate, jax.lax.map(lambda part: f(params, *part), parts))  # f: each call there"
        );
    }
    let is_distilled = finding.used == LogitsUse::Distillation;
    let (head, given, loss) = if is_distilled {
        let wanted = "jax.nn.softmax((other @ other_head).astype(jnp.float32))";
        let loss =
            format!("-({wanted} * jax.nn.log_softmax(logits)).sum(-1)  # other: of the model without a gradient");
        (String::new(), "other", loss)
    } else if finding.are_labels_dense {
        let dense = "-(jax.nn.one_hot(labels, logits.shape[-1]) * jax.nn.log_softmax(logits)).sum(-1)";
        (head(finding), "labels", format!("{dense}  # smoothed, if yours are"))
    } else {
        let of_label = "jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]";
        (head(finding), "labels", format!("jax.nn.logsumexp(logits, -1) - {of_label}"))
    };
    let split = if finding.is_on_devices {
        format!(
            "# along the sequence (dimension 1; {parts} has to divide it): no row leaves its device
parts = jax.tree.map(lambda x: jnp.stack(jnp.split(x, {parts}, 1)), (hidden, {given}))
losses = jnp.concatenate(jax.lax.map(losses_of, parts), 1)"
        )
    } else {
        let last = if is_distilled { ", other.shape[-1]" } else { "" };
        format!(
            "parts = (hidden.reshape({parts}, -1, hidden.shape[-1]), {given}.reshape({parts}, -1{last}))  # {parts} has to divide the tokens
losses = jax.lax.map(losses_of, parts).reshape(hidden.shape[:-1])"
        )
    };
    format!(
        "{head}@jax.checkpoint
def losses_of(part):  # your own loss, of some tokens
    hidden, {given} = part  # hidden: what the head multiplies
    logits = (hidden @ head).astype(jnp.float32){cap}
    return {loss}
{split}  # of each token; add up as yours are"
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

/// The number of chunks, which divides the tokens; on several devices the sequence, and of scores the samples.
fn parts(finding: &Logits, about: &Recommendation) -> u64 {
    let bounds = about.array.as_ref().and_then(|array| array.shape()?.bounds());
    let divided = if finding.used == LogitsUse::Scores {
        bounds.and_then(|bounds| bounds.first().copied())
    } else if finding.is_on_devices {
        bounds.and_then(|bounds| <[u64; 3]>::try_from(bounds).ok()).map(|[_, length, _]| length)
    } else {
        let elements = bounds.and_then(|bounds| bounds.into_iter().reduce(u64::saturating_mul));
        elements.map(|elements| elements / finding.vocabulary.max(1))
    };
    let parts = divided.and_then(|all| (2..=finding.chunks).rev().find(|parts| all.is_multiple_of(*parts)));
    parts.unwrap_or(finding.chunks)
}

pub(super) fn words(finding: &Logits, about: &Recommendation) -> Words {
    let condition =
        if finding.is_shown { String::new() } else { format!("If {} is a vocabulary: ", finding.vocabulary) };
    let compute = if finding.is_shown { "Compute" } else { "compute" };
    let loss = match finding.used {
        LogitsUse::Distillation => "the loss between both models' logits",
        LogitsUse::Scores => {
            let parts = parts(finding, about);
            return Words::new(format!(
                "Make the logits of some samples at a time, and keep what is read of them alone: [{}]{} has one value per token of the vocabulary \
                 ({}), no gradient goes through it, and {parts} parts need 1/{parts} of the memory",
                bounds_of(about),
                at_line(about),
                finding.vocabulary
            ))
            .task(format!("Make the logits of the samples in {parts} parts: no gradient reads them"))
            .jax(about, JAX_AND_NUMPY, code(finding, about));
        }
        _ => "the cross entropy",
    };
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
