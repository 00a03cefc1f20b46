//! One call of `jax.vmap`, under which most of the peak is made.

use super::{
    Words,
    code::JAX,
    words::{at_line, bounds_of},
};
use crate::style::grouped;
use tilewise_audit::{Recommendation, recommendation::finding::MappedCall};

pub(super) fn words(finding: &MappedCall, about: &Recommendation) -> Words {
    let MappedCall { line, size, at_once, has_gradient, .. } = finding;
    let (some, all) = (grouped(*at_once), grouped(*size));
    let (function, again) =
        if *has_gradient { ("jax.checkpoint(f)", "; the backward pass computes each part again") } else { ("f", "") };
    Words::new(format!(
        "Map {some} of {all} at a time at {}:{}, with `jax.lax.map` and its `batch_size` in place of `jax.vmap`: [{}]{} and most arrays \
         at the peak are made under this call, and positions don't meet in it{again}",
        line.file,
        line.line,
        bounds_of(about),
        at_line(about),
    ))
    .task(format!("Map {some} of {all} at a time: `jax.lax.map` in place of `jax.vmap`"))
    .jax(
        about,
        JAX,
        format!(
            "ys = jax.lax.map({function}, xs, batch_size={at_once})  # in place of jax.vmap(f)(xs)\n\
             # of several arguments: f = lambda args: g(*args), and xs = (x, y)"
        ),
    )
}
