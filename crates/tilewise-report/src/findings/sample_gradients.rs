//! Gradients of weights that a loop adds up for each sample on its own.

use super::{
    Words,
    words::{at_line, bounds_of, list},
};
use tilewise_audit::{Recommendation, recommendation::finding::SampleGradients};

pub(super) fn words(finding: &SampleGradients, about: &Recommendation) -> Words {
    let SampleGradients { weight, samples, bounds, .. } = finding;
    Words::new(format!(
        "Run the loop{} on the whole batch, instead of a `jax.vmap` of it: it adds up the gradient of `{weight}` for each of \
         {samples} samples, [{}]; the batch as one state, with the same steps for all, has one of [{}]",
        at_line(about),
        bounds_of(about),
        list(bounds)
    ))
    .task("Run the loop on the whole batch, not under `jax.vmap`")
}
