//! Rows that are gathered all at once, and of which a loop takes a part in each step.

use super::{
    Words,
    code::JAX,
    words::{at, at_line, bounds_of},
};
use tilewise_audit::{Recommendation, recommendation::finding::ShuffledRows};

pub(super) fn words(finding: &ShuffledRows, about: &Recommendation) -> Words {
    let steps = finding.steps;
    let others = match finding.others {
        0 => String::new(),
        1 => ", and the other array that is gathered so".to_owned(),
        count => format!(", and the {count} others that are gathered so"),
    };
    let sentence = format!(
        "Gather the rows of [{}]{} inside the loop{}, in each of its {steps} steps those that it takes{others}: gathered before \
         it, all of them lie in memory for all of its steps",
        bounds_of(about),
        at_line(about),
        at(finding.source.as_ref()),
    );
    let code = format!(
        "def step_of(carry, rows):\n    return step(carry, jax.tree.map(lambda x: x[rows], data))\n\
         carry, ys = jax.lax.scan(step_of, carry, order.reshape({steps}, -1))  # data: not shuffled; order: of its rows"
    );
    Words::new(sentence).task("Gather the rows inside the loop, in each step its own").jax(about, JAX, code)
}
