//! Small matrices that a loop stacks up.

use super::{Words, code::JAX, words::at};
use crate::style::{bytes, grouped};
use tilewise_audit::{Recommendation, recommendation::finding::FlatStack};

pub(super) fn words(finding: &FlatStack, about: &Recommendation) -> Words {
    let FlatStack { steps, matrix, bytes: taken, source, .. } = finding;
    let sides: Vec<String> = matrix.iter().map(|side| grouped(*side)).collect();
    let (sides, row) = (sides.join(" × "), grouped(matrix.iter().copied().fold(1, u64::saturating_mul)));
    let shape: Vec<String> = matrix.iter().map(u64::to_string).collect();
    Words::new(format!(
        "Stack the {sides} numbers of each of the {} steps of the loop{} as one row of {row}: each matrix fills a tile of its own, {} for all; \
         take them apart where a step, or what follows, reads them",
        grouped(*steps),
        at(source.as_ref()),
        bytes(*taken)
    ))
    .task(format!("Stack the {sides} of each step as one row of {row}"))
    .jax(
        about,
        JAX,
        format!("return carry, y.reshape(-1)  # at the end of the loop's step; y.reshape({}) where it is read", shape.join(", ")),
    )
}
