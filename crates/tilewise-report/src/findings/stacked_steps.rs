//! Results that a loop stacks up: less of each step can be returned, or fewer steps at a time.

use super::{
    Words,
    code::{JAX, JAX_AND_NUMPY},
    words::at,
};
use crate::style::bytes;
use tilewise_audit::{Recommendation, recommendation::finding::StackedSteps};

pub(super) fn words(finding: &StackedSteps, about: &Recommendation) -> Words {
    let StackedSteps { steps, arrays, are_results, bytes: taken, source, .. } = finding;
    if !are_results {
        let stacks = if *arrays == 1 { "an array".to_owned() } else { format!("{arrays} arrays") };
        return Words::new(format!(
            "Take of each step of the loop only what is read after the loop{}: it stacks up {stacks} over all {steps} steps, {}, of which little is \
             made, such as a few places, a mean or a sum. Make that in the step",
            at(source.as_ref()),
            bytes(*taken)
        ))
        .task(format!("Stack less of each of the loop's {steps} steps: only what is read"))
        .jax(
            about,
            JAX_AND_NUMPY,
            "return carry, jax.tree.map(jnp.mean, y)  # in place of `return carry, y`: what is made of it after the loop, here a mean",
        );
    }
    let results = if *arrays == 1 { "a result".to_owned() } else { format!("{arrays} results") };
    Words::new(format!(
        "Return less of each step of the loop{}: it stacks up {results} over all {steps} steps, {}, which the program only returns. \
         A mean, a last value or every tenth step takes little; or run fewer steps in a call, and take their results to the host",
        at(source.as_ref()),
        bytes(*taken)
    ))
    .task(format!("Return less of each of the loop's {steps} steps: only what is read"))
    .jax(
        about,
        JAX,
        "return carry, ys[0]  # at the end of the loop's step, in place of `return carry, ys`: only what is read, or a mean",
    )
    .caveat("or run fewer steps in a call, and take each call's results to the host")
}
