//! Logits of classes at each of many places: the loss needs those of a part of the places at a time.

use super::{
    Words,
    code::JAX,
    words::{at_line, bounds_of},
};
use tilewise_audit::{Recommendation, recommendation::finding::ClassLogits};

const CODE: &str = "# loss_of(one): what the loss adds up of one picture or text, from its last features to its labels
sums = jax.lax.map(jax.checkpoint(loss_of), (features, labels))  # your loss is made of their sum";

pub(super) fn words(finding: &ClassLogits, about: &Recommendation) -> Words {
    let ClassLogits { classes, chunks, .. } = finding;
    Words::new(format!(
        "Compute the loss in chunks of places, such as a picture at a time, each behind `jax.checkpoint`: [{}]{} has a number for \
         each of {classes} classes at each place; {chunks} chunks need an eighth of the memory",
        bounds_of(about),
        at_line(about),
    ))
    .jax(about, JAX, CODE)
}
