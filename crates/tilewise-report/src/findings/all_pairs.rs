//! A matrix that has a number for each two rows of the input.

use super::{
    Words,
    code::JAX,
    words::{at_line, bounds_of},
};
use tilewise_audit::{Recommendation, recommendation::finding::AllPairs};

pub(super) fn words(finding: &AllPairs, about: &Recommendation) -> Words {
    let AllPairs { rows, blocks, has_gradient, .. } = finding;
    let (behind, wrapped) =
        if *has_gradient { (", each behind `jax.checkpoint`", "jax.checkpoint(of_row)") } else { ("", "of_row") };
    Words::new(format!(
        "Compute [{}]{} in blocks of rows{behind}: it has a number for each two rows of the input, and what is made of its rows, \
         such as their sums, needs one block at a time; {blocks} blocks free this much",
        bounds_of(about),
        at_line(about),
    ))
    .jax(
        about,
        JAX,
        format!(
            "# of_row(x): what is made of the row of one x, such as its sum
sums = jax.lax.map({wrapped}, xs, batch_size={})",
            rows.div_ceil(*blocks)
        ),
    )
}
