//! Parts that each step of a loop reads, made for all steps before it.

use super::{
    Words,
    code::JAX,
    words::{at, at_line},
};
use crate::style::{bytes, grouped};
use tilewise_audit::{Recommendation, recommendation::finding::MadeForSteps};

pub(super) fn words(finding: &MadeForSteps, about: &Recommendation) -> Words {
    let MadeForSteps { parts, bytes: taken, is_drawn, of, rows, source, .. } = finding;
    let (taken, line, read) = (bytes(*taken), at_line(about), at(source.as_ref()));
    if let Some(name) = of {
        let (part, all) = (grouped(rows.0), grouped(rows.1));
        return Words::new(format!(
            "Make in the step what it reads: {taken}{line} holds all {all} rows made of `{name}` before the loop, and a step looks up {part} of \
             them{read}. Look up the rows of `{name}` there, and make those",
        ))
        .task(format!("Look up the {part} rows of `{name}` in the step{read}, then make what it reads of them"))
        .jax(about, JAX, format!("part = make({name}[rows])  # in the step, in place of make({name})[rows]; make: what that line does"));
    }
    let parts = grouped(*parts);
    let task = match is_drawn {
        true => format!(
            "Draw the random numbers of each of the {parts} parts in the step that reads it{read}, not all before the loop"
        ),
        false => format!("Make each of the {parts} parts in the step that reads it{read}, not all before the loop"),
    };
    let code = match is_drawn {
        true => "part = draw(jax.random.fold_in(key, i))  # in step i; draw: what that line does for one part",
        false => "part = make(x)  # in the step; x: the step's own inputs; make: what that line does for one part",
    };
    let words = Words::new(format!("{task}: {taken}{line} holds them all, and each is made of little"))
        .task(task)
        .jax(about, JAX, code);
    if *is_drawn { words.caveat("the random numbers are others than before, of the same distribution") } else { words }
}
