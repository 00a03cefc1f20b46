//! Rows of a product of which few are read.

use super::{Words, code::JAX, words::at_line};
use crate::style::{bytes, grouped};
use tilewise_audit::{Recommendation, recommendation::finding::PickedRows};

pub(super) fn words(finding: &PickedRows, about: &Recommendation) -> Words {
    let PickedRows { rows, all, columns, bytes: taken, .. } = finding;
    let (rows, all, columns) = (grouped(*rows), grouped(*all), grouped(*columns));
    Words::new(format!(
        "Pick the rows first, then multiply: the product{} takes {} and has {all} rows of {columns}, of which only {rows} are read afterwards, as \
         where a language model's head makes the logits of a whole prompt and only those of its last token are used",
        at_line(about),
        bytes(*taken)
    ))
    .task(format!("Multiply only those {rows} of {all} rows that are read afterwards"))
    .jax(about, JAX, "x = x[jnp.arange(x.shape[0]), at]  # before the product, in place of the same pick after it; at: the place in each sample")
}
