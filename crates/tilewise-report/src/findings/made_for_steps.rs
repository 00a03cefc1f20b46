//! Slices that each step of a loop reads, made for all steps before it.

use super::{Words, code::JAX, words::at_line};
use crate::style::bytes;
use tilewise_audit::{Recommendation, recommendation::finding::MadeForSteps};

pub(super) fn words(finding: &MadeForSteps, about: &Recommendation) -> Words {
    let MadeForSteps { steps, bytes: taken, is_drawn, .. } = finding;
    let (what, task, xs) = if *is_drawn {
        ("random numbers", "Draw each step's random numbers in the step", format!("jax.random.split(key, {steps})"))
    } else {
        ("values", "Make the values that a step reads in the step", format!("jax.numpy.arange({steps})"))
    };
    let words = Words::new(format!(
        "Make the {what} that a step of the loop reads in that step: {}{} holds those of all {steps} steps before the first one runs, and \
         little is needed to make them",
        bytes(*taken),
        at_line(about)
    ))
    .task(task)
    .jax(
        about,
        JAX,
        format!("carry, ys = jax.lax.scan(lambda carry, x: step(carry, make(x)), carry, {xs})  # make(x): what one step reads"),
    );
    if *is_drawn { words.caveat("the random numbers are others than before, of the same distribution") } else { words }
}
