//! An unchanged step in parts, by `tilewise`.

use super::{
    Words,
    code::{JAX, tuple},
};
use tilewise_audit::{
    Recommendation,
    recommendation::{
        MadeBatch,
        finding::{GradientSums, LargeDimension},
    },
};
use tilewise_oom::Framework;

/// An unchanged step, in parts of its arguments' batch.
pub(super) fn microbatch(finding: &LargeDimension, about: &Recommendation, parts: u64) -> Option<String> {
    let names = names_of_batch(about.inputs())?;
    Some(compiled(about, finding.function.as_deref()?, &format!("{parts}, batch_argnames={names}"), ""))
}

/// Such a step, whose samples are computed again once they were joined; without a gradient nothing is.
pub(super) fn recomputed(finding: &LargeDimension, about: &Recommendation, parts: u64) -> Option<String> {
    let function = about.function.as_deref().filter(|_| !finding.is_made)?;
    let inputs = finding.inputs.iter().flat_map(|(at, names)| names.iter().map(|name| (&**name, *at)));
    let again = if finding.gradients == GradientSums::None { "" } else { ", recompute=True" };
    Some(compiled(about, function, &format!("{parts}, batch_argnames={}{again}", names_of_batch(inputs)?), ""))
}

/// Arguments that have the batch, as `tw.microbatch` takes them; `None` without any.
fn names_of_batch<'a>(inputs: impl Iterator<Item = (&'a str, usize)>) -> Option<String> {
    let inputs: Vec<(&str, usize)> = inputs.collect();
    if inputs.iter().any(|(name, _)| name.contains(['"', '\\'])) {
        return None;
    }
    let (_, axis) = *inputs.first()?;
    Some(if inputs.iter().all(|(_, at)| *at == axis) {
        let names = tuple(inputs.iter().map(|(name, _)| format!("\"{name}\"")));
        if axis == 0 { format!("({names})") } else { format!("({names}), axis={axis}") }
    } else {
        let pairs = inputs.iter().map(|(name, at)| format!("\"{name}\": {at}"));
        format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
    })
}

/// An unchanged step in parts of a batch that it makes itself.
fn made(about: &Recommendation) -> Option<String> {
    let MadeBatch { function, made_at, size, axis, parts, .. } = about.made()?;
    let axis = if axis == 0 { String::new() } else { format!(", axis={axis}") };
    Some(compiled(
        about,
        function,
        &format!("{parts}, made_at=\"{made_at}\", size={size}{axis}"),
        "the line may move; ",
    ))
}

/// A compiled function as `tilewise` changes it, which donates as before, and a note on its arguments; a lambda's program has no name for it.
fn compiled(about: &Recommendation, function: &str, call: &str, note: &str) -> String {
    let of_jit = if function == "f" { "; f: what you give to jax.jit" } else { "" };
    let names: Vec<String> = about.donated.iter().map(|name| format!("\"{name}\"")).collect();
    let donated =
        if names.is_empty() { String::new() } else { format!(", donate_argnames=({})", tuple(names.into_iter())) };
    format!(
        "import tilewise as tw  # `pip install ./python` in a checkout of tilewise installs it
{function} = jax.jit(tw.microbatch({function}, {call}){donated})  # {note}refused, with the reason, where results would change{of_jit}"
    )
}

/// Code of `tilewise` for an unchanged step, if it takes one, before a sketch in JAX, if there is one.
pub(super) fn either(words: Words, about: &Recommendation, code: Option<String>, sketch: Option<String>) -> Words {
    match (code.or_else(|| made(about)), sketch) {
        (Some(code), sketch) if about.framework == Some(Framework::Jax) => {
            Words { sketch, is_of_step: true, ..words.code(JAX, code) }
        }
        (_, Some(sketch)) => words.jax(about, JAX, sketch),
        (_, None) => words,
    }
}
