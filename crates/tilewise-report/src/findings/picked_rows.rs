//! Rows of a product of which few are read.

use super::{Words, code::JAX, words::at_line};
use crate::style::{bytes, grouped};
use tilewise_audit::{Recommendation, recommendation::finding::PickedRows};

pub(super) fn words(finding: &PickedRows, about: &Recommendation) -> Words {
    let PickedRows { rows, all, columns, bytes: taken, .. } = finding;
    let (rows, all, columns) = (grouped(*rows), grouped(*all), grouped(*columns));
    Words::new(format!(
        "Pick the rows that are read before the product that makes them: the one{} takes {} and has {all} rows of {columns}, of which {rows} are \
         read behind it, as where a language model's head makes the logits of a whole prompt and only those of its last token are used",
        at_line(about),
        bytes(*taken)
    ))
    .task("Pick the rows that are read before the product, not behind it")
    .jax(about, JAX, "x = x[jnp.arange(x.shape[0]), last]  # before `x @ head`; last: each sample's place that is read")
}
