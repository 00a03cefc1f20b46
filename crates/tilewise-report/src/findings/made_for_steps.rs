//! Slices that each step of a loop reads, made for all steps before it.

use super::{
    Words,
    code::JAX,
    words::{at, at_line},
};
use crate::style::{bytes, grouped};
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{LookedUp, MadeForSteps},
};

pub(super) fn words(finding: &MadeForSteps, about: &Recommendation) -> Words {
    let MadeForSteps { steps, bytes: taken, is_drawn, of, .. } = finding;
    if let Some(of) = of {
        return looked_up(of, *taken, about);
    }
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

/// Rows of an argument that are made into others before the loop.
fn looked_up(of: &LookedUp, taken: u64, about: &Recommendation) -> Words {
    let LookedUp { name, rows: (part, all), source, .. } = of;
    let (part, all, read) = (grouped(*part), grouped(*all), at(source.as_ref()));
    Words::new(format!(
        "Make in the step what it reads: {}{} holds all {all} rows made of `{name}` before the loop, and a step looks up {part} of \
         them{read}. Look up the rows of `{name}` there, and make those",
        bytes(taken),
        at_line(about),
    ))
    .task(format!("Look up the {part} rows of `{name}` in the step{read}, then make what it reads of them"))
    .jax(about, JAX, format!("part = make({name}[rows])  # in the step, in place of make({name})[rows]; make: what that line does"))
}
