//! Logits of classes at each of many places: the loss needs those of a part of the places at a time.

use super::{
    Words,
    code::JAX,
    words::{at_line, bounds_of},
};
use tilewise_audit::{Recommendation, recommendation::finding::ClassLogits};

const CODE: &str =
    "# loss_of(one): the loss's terms of one picture or text, summed, from its last features and its labels
sums = jax.lax.map(jax.checkpoint(loss_of), (features, labels))  # the loss follows from their sum";

pub(super) fn words(finding: &ClassLogits, about: &Recommendation) -> Words {
    let ClassLogits { classes, chunks, .. } = finding;
    Words::new(format!(
        "Compute the loss in chunks, such as one picture at a time, each behind `jax.checkpoint`: [{}]{} has one value per class \
         ({classes}) at each position; {chunks} chunks need an eighth of the memory",
        bounds_of(about),
        at_line(about),
    ))
    .task(format!("Compute the loss in {chunks} chunks"))
    .jax(about, JAX, CODE)
}
