//! What names of arguments and operations tell.

use super::origin::op_name;
use tilewise::Shape;
use tilewise_hlo::Instruction;

/// An argument's name in the program, such as `params['w']`.
pub(crate) fn name(argument: &Instruction<'_>) -> String {
    op_name(argument).filter(|name| !name.is_empty() && !root(name).contains('/')).unwrap_or_else(|| "x".to_owned())
}

/// The parameter of the Python function that an argument is part of.
pub(crate) fn root(name: &str) -> &str {
    name.split(['[', '.']).next().unwrap_or(name)
}

/// Parts of a training state, and what optimizers keep of each parameter: trees of their own.
const TREES: &[&str] =
    &["params", "opt_state", "batch_stats", "ema_params", "grads", "mu", "nu", "trace", "acc_grads", "v_row", "v_col"];

/// The tree that an argument is a leaf of: of `state.opt_state[0].mu['w']` that is `mu`, of `batch['x']` it is `batch`.
pub(crate) fn tree(name: &str) -> Option<&str> {
    let words = name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty());
    let known = words.take(8).filter(|word| TREES.contains(word)).last();
    known.or_else(|| Some(root(name)).filter(|root| is_name(root) && !name.contains('/')))
}

/// Whether it can be a variable's name.
pub(crate) fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Whether an array's first dimension has this size.
pub(crate) fn begins_with(shape: &Shape, size: u64) -> bool {
    shape.dimensions().first().and_then(|dimension| dimension.bound()) == Some(size)
}

/// Whether an operation is of the backward pass: JAX's names say so.
pub(crate) fn is_backward(name: &str) -> bool {
    name.contains("transpose(")
}

/// Whether an operation is of the forward pass of a gradient: JAX's names say so.
pub(crate) fn is_forward(name: &str) -> bool {
    name.contains("jvp(") && !is_backward(name)
}

/// Whether an operation is under a checkpoint: JAX's names of operations say so.
pub(crate) fn is_recomputed(name: &str) -> bool {
    name.split('/').any(|word| matches!(word, "checkpoint" | "remat" | "rematted_computation"))
}

/// Modules lie in one another so deep, and no deeper is looked for layers.
const DEEPEST: usize = 16;

/// The places of an operation's name that have a number, with a star for it.
pub(crate) fn numbered(name: &str) -> Vec<(String, u64)> {
    let (mut before, mut found) = (String::new(), Vec::new());
    for word in modules(name).take(DEEPEST) {
        let base = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let number = word[base.len()..].parse().ok();
        let base = if number.is_some() { base.to_owned() } else { format!("{word}_") };
        found.push((format!("{before}{base}*"), number.unwrap_or(0)));
        before = format!("{before}{word}/");
    }
    found
}

/// The modules that an operation is of, the outermost first: its name but for the compiled function and what it computes.
pub(crate) fn modules(name: &str) -> impl Iterator<Item = &str> {
    let inner = name.rsplit_once('/').and_then(|(before, _)| Some(before.split_once('/')?.1)).unwrap_or_default();
    let words = inner
        .split('/')
        .map(|word| word.trim_start_matches("transpose(").trim_start_matches("jvp(").trim_end_matches(')'));
    words.filter(|word| !word.is_empty())
}
