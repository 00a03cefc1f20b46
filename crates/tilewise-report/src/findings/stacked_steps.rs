//! Arrays that a loop stacks up: less of each step can be kept, or fewer steps at a time.

use super::{
    Words,
    code::{JAX, JAX_AND_NUMPY},
    words::at,
};
use crate::style::bytes;
use tilewise_audit::{
    Recommendation,
    recommendation::finding::{OfStep, OverSteps, StackedSteps},
};

pub(super) fn words(finding: &StackedSteps, about: &Recommendation) -> Words {
    let StackedSteps { steps, arrays, enough, bytes: taken, source, .. } = finding;
    let of = |one: &str, all: &str| if *arrays == 1 { one.to_owned() } else { format!("{arrays} {all}") };
    let (stacks, results) = (of("an array", "arrays"), of("a result", "results"));
    let (place, taken) = (at(source.as_ref()), bytes(*taken));
    match enough {
        OfStep::Last => Words::new(format!(
            "Keep only the last step's value of the loop{place}: it stacks up {stacks} over all {steps} steps, {taken}, of which the program reads \
             the last alone. Carry that value from step to step, and stack nothing"
        ))
        .task(format!("Carry the last step's value: only that of {steps} steps is read"))
        .jax(
            about,
            JAX,
            "return carry, None  # at the end of the loop's step, in place of `return carry, y`; put y into the carry\n\
             carry, _ = jax.lax.scan(step, carry, xs)  # and read it there, in place of ys[-1]",
        ),
        OfStep::Picked(picked) => Words::new(format!(
            "Keep only the {picked} steps of the loop{place} that are read: it stacks up {stacks} over all {steps} steps, {taken}. Carry a place for \
             each of those from step to step"
        ))
        .task(format!("Keep only the {picked} of {steps} steps that are read"))
        .jax(
            about,
            JAX_AND_NUMPY,
            format!(
                "# read: the numbers of the steps that are read; in the loop's step, of number t and with the values y:\n\
                 kept = jnp.where((read == t).reshape(-1, *[1] * y.ndim), y, kept)  # from zeros (len(read), *y.shape)\n\
                 return (carry, kept), None  # in place of `return carry, y`; loop over jnp.arange({steps}); kept is ys[read]"
            ),
        ),
        OfStep::Narrower(narrower) => Words::new(format!(
            "Stack the `{narrower}` values of each step of the loop{place}, and convert them where they are read: it stacks up {results} over all {steps} \
             steps, {taken}, each value of which is made from one of `{narrower}`"
        ))
        .task(format!("Stack the `{narrower}` values, and convert them where they are read"))
        .jax(about, JAX, "return carry, raw  # raw: before `astype` and what is computed of each value; do that where it is read"),
        OfStep::Made => Words::new(format!(
            "Take of each step of the loop only what is read after the loop{place}: it stacks up {stacks} over all {steps} steps, {taken}, of which \
             little is made, such as a few places, a mean or a sum. Make that in the step"
        ))
        .task(format!("Stack less of each of the loop's {steps} steps: only what is read"))
        .jax(
            about,
            JAX_AND_NUMPY,
            "return carry, jax.tree.map(jnp.mean, y)  # in place of `return carry, y`: what is made of it after the loop, here a mean",
        ),
        OfStep::MadeOverSteps(over) => {
            let words = Words::new(format!(
                "Carry from step to step of the loop{place} what is made of all steps after it: it stacks up {stacks} over all {steps} steps, \
                 {taken}, of which little is made, such as a maximum, a sum or the first step that passes a limit"
            ));
            let carried: Vec<_> = carried(*over).collect();
            let names = carried.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
            let said = names.rsplit_once(", ").map_or(names.clone(), |(first, last)| format!("{first} and {last}"));
            let task = if over.others { "what is made".to_owned() } else { format!("the {said}") };
            let (left, stacked) = if over.is_each_read {
                ("little", "some  # in place of `return carry, y`; some: the little that is made of each step's y")
            } else {
                ("nothing", "None  # in place of `return carry, y`; the last step's y is in the carry")
            };
            let updates = carried.iter().map(|(_, update, start)| format!("{update}  # from {start}\n"));
            let code = format!(
                "# in the loop's step (of a jax.lax.map made a jax.lax.scan), once for each; y: of this step, what it is made of, such as x ** 2\n{}\
                 return (carry, {names}), {stacked}",
                updates.collect::<String>()
            );
            let of = if over.others { "of all" } else { "of the" };
            words.task(format!("Carry {task} {of} {steps} steps along, and stack {left}")).jax(about, JAX_AND_NUMPY, code)
        }
        _ => Words::new(format!(
            "Return less of each step of the loop{place}: it stacks up {results} over all {steps} steps, {taken}, which the program only returns. \
             A mean, a last value or every tenth step takes little; or run fewer steps in a call, and take their results to the host"
        ))
        .task(format!("Return less of each of the loop's {steps} steps: only what is read"))
        .jax(
            about,
            JAX,
            "return carry, ys[0]  # at the end of the loop's step, in place of `return carry, ys`: only what is read, or a mean",
        )
        .caveat("or run fewer steps in a call, and take each call's results to the host"),
    }
}

/// The names, updates and starts of what is carried from step to step.
fn carried(over: OverSteps) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let all = [
        (over.sums, ("total", "total = total + y", "zeros")),
        (over.maxima, ("maximum", "maximum = jnp.maximum(maximum, y)", "-jnp.inf")),
        (over.minima, ("minimum", "minimum = jnp.minimum(minimum, y)", "jnp.inf")),
        (
            over.squares,
            (
                "mean, squares",
                "delta = y - mean; mean = mean + delta / (t + 1); squares = squares + delta * (y - mean)",
                "zeros; t: the step's number; the variance is squares / steps, and over other dimensions too: its mean, plus the variance of mean",
            ),
        ),
        (over.log_sums, ("logsumexp", "logsumexp = jnp.logaddexp(logsumexp, y)", "-jnp.inf")),
        (
            over.others,
            (
                "first",
                "first = jnp.where((first < 0) & (y > limit), t, first)",
                "-1; t: the step's number; others likewise",
            ),
        ),
    ];
    all.into_iter().filter(|(is_it, _)| *is_it).map(|(_, one)| one)
}
