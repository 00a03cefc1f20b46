//! What arguments and functions are called, in sentences and in code.

use crate::{
    origin::{op_name, place, source_line},
    program_model::ProgramModel,
    recommendation::Snippet,
};
use tilewise::Shape;
use tilewise_hlo::{Instruction, Opcode};

impl ProgramModel<'_> {
    /// The code, if JAX made the program: its names of operations begin with the function that was compiled.
    pub(super) fn snippet(&self, imports: &'static str, code: impl Into<String>) -> Option<Snippet> {
        const LOOKED_AT: usize = 4096;
        let mut names = self.module.instructions().rev().take(LOOKED_AT).filter_map(|at| op_name(&at));
        let is_jax = self.module.name().starts_with("jit_")
            || names.any(|name| name.starts_with("jit(") || name.starts_with("pmap("));
        is_jax.then(|| Snippet { imports: Some(imports), code: code.into() })
    }

    /// The Python function that was compiled.
    pub(super) fn function(&self) -> &str {
        let name = self.module.name();
        name.strip_prefix("jit_").filter(|name| !name.is_empty()).unwrap_or("f")
    }

    /// The entry's parameters, by number.
    pub(crate) fn parameters(&self) -> Vec<Instruction<'_>> {
        let Some(entry) = self.module.entry() else { return Vec::new() };
        let mut parameters: Vec<Instruction<'_>> =
            entry.instructions().filter(|at| at.opcode() == Opcode::Parameter).collect();
        parameters.sort_by_cached_key(Instruction::parameter_number);
        parameters
    }
}

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
pub(super) fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// ` at model.py:12`, or nothing.
pub(crate) fn at_line(instruction: &Instruction<'_>) -> String {
    place(source_line(instruction).as_ref())
}

/// `a`, `a and b`, `a, b and 3 others`.
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, two, rest @ ..] => {
            let others = if rest.len() == 1 { "other" } else { "others" };
            format!("{one}, {two} and {} {others}", rest.len())
        }
    }
}

/// `4,8`
pub(super) fn bounds_text(bounds: &[u64]) -> String {
    bounds.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

/// Whether an array's first dimension has this size.
pub(super) fn begins_with(shape: &Shape, size: u64) -> bool {
    shape.dimensions().first().and_then(|dimension| dimension.bound()) == Some(size)
}

/// The same with its first letter large.
pub(super) fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
