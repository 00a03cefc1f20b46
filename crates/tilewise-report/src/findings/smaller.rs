//! A program that is too large on a machine without tiles.

use super::{
    Words,
    code::{JAX, MAP},
};
use crate::style::{bytes, grouped};
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{LargestBuffer, Transform},
};
use tilewise_oom::Framework;

/// The step where a smaller batch is ruled out.
pub(super) const PARTS_OF_INPUTS: &str = "Take shorter or smaller inputs, or parts of them in turn";

/// Fewer rows than these are channels or parts of something.
const FEW: u64 = 8;

pub(super) fn words(largest: &LargestBuffer, about: &Recommendation) -> Words {
    let owner = largest.owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
    let start = format!(": the largest buffer{owner} takes {}", bytes(largest.bytes));
    let rows = largest.rows;
    if rows == Some(1) {
        return Words::new(format!(
            "Keep less of what is computed (`jax.checkpoint`, if it is differentiated), or compute it for a part of the picture or \
             sequence at a time{start}, and has one sample"
        ))
        .jax(about, JAX, "f = jax.checkpoint(f)  # around each layer");
    }
    if largest.is_random {
        return Words::new(format!(
            "Make fewer random numbers at once: a layer at a time, on the host, or on each device its part (`out_shardings`; before \
             JAX 0.5 only with `jax_threefry_partitionable`){start}, the bits of random numbers"
        ))
        .task("Make fewer random numbers at once, or make them on the host")
        .jax(
            about,
            JAX,
            "jax.config.update('jax_threefry_partitionable', True)  # where devices share the array; the default since JAX 0.5\n\
             with jax.default_device(jax.devices('cpu')[0]):  # or, on one device, around the initialisation\n    params = init(key)",
        );
    }
    let rows = rows.filter(|rows| *rows >= FEW);
    let fewer = match rows {
        Some(rows) => format!(
            "fewer than {} at once (its first dimension), one part after the other, where these don't depend on each other, as \
             samples, rays or tokens",
            grouped(rows)
        ),
        None if about.is_batch_ruled_out => {
            "shorter or smaller inputs, or parts of them one after the other".to_owned()
        }
        None => "fewer samples at once".to_owned(),
    };
    let recomputed = match about.framework {
        Some(Framework::Jax) => Some("`jax.checkpoint` around what makes the largest buffers"),
        Some(Framework::TensorFlow) => Some("`tf.recompute_grad` around what makes the largest buffers"),
        _ => None,
    };
    let transform = largest.transform;
    let how = match recomputed {
        Some(recomputed) if transform == Some(Transform::Gradient) => format!("{recomputed}, or {fewer}"),
        Some(recomputed) => format!("{fewer}, or, if a gradient is taken, {recomputed}"),
        None => fewer,
    };
    let words = Words::new(format!("Make the program smaller: {how}{start}"));
    match (transform, rows) {
        (Some(Transform::Map), Some(rows)) if rows <= 64 => {
            let batch = (1..=rows / 2).rev().find(|part| rows % part == 0).unwrap_or(1);
            words.task(format!("Map over parts of the {rows}, one after the other")).code(
                JAX,
                format!(
                    "ys = jax.lax.map(f, xs, batch_size={batch})  # in place of jax.vmap(f)(xs), of {rows} at once"
                ),
            )
        }
        (Some(Transform::Map), _) => words.task("Map over parts, one after the other").code(JAX, MAP),
        (Some(Transform::Gradient), _) => {
            let fewer = if about.is_batch_ruled_out { "" } else { ", or take fewer samples at once" };
            words.task(format!("Keep less for the gradient{fewer}")).jax(
                about,
                JAX,
                "layer = jax.checkpoint(layer)  # what is differentiated",
            )
        }
        (_, Some(rows)) => words.task(format!("Take fewer than {} at once, if these are independent", grouped(rows))),
        (_, None) if about.is_batch_ruled_out => words.task(PARTS_OF_INPUTS),
        (_, None) => words.task("If a dimension is your batch: take fewer samples at once"),
    }
}
