//! One-hot arrays by which tokens are sent to experts.

use super::{
    Words,
    code::JAX_AND_NUMPY,
    words::{at_line, bounds_of},
};
use tilewise_audit::{Recommendation, recommendation::finding::OneHotSlots};

pub(super) fn words(finding: &OneHotSlots, about: &Recommendation) -> Words {
    let slots = finding.slots;
    Words::new(format!(
        "Send tokens to experts by the index of their slot, not by one-hot arrays: [{}]{} has a number for each token, expert and slot, nearly all \
         of them 0, and products with it only move rows. A scatter moves them there, a gather back",
        bounds_of(about),
        at_line(about)
    ))
    .task("Send tokens to experts by index: no one-hot array of slots")
    .jax(
        about,
        JAX_AND_NUMPY,
        format!(
            "# expert, place, gate: [tokens, choices]; a place of {slots} or more is dropped\n\
             slot = jnp.where(place < {slots}, expert * {slots} + place, experts * {slots})\n\
             xe = jnp.zeros((experts * {slots}, d), x.dtype).at[slot].set(x[:, None], mode='drop').reshape(experts, {slots}, d)\n\
             y = (gate[..., None] * ye.reshape(-1, d).at[slot].get(mode='fill', fill_value=0)).sum(1)"
        ),
    )
}
