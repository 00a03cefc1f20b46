//! A result that could take the memory of the argument it is made of, if the caller donated that.

use crate::{
    advice::{
        message::MessageModel,
        program::{BufferChanges, LiveArray, ProgramModel},
        recommendation::{Change, Recommendation, Saving, Target},
        rule::{MessageRule, Proposal, Rule},
        snippet::{JAX, tuple},
    },
    program::{is_name, name, root},
};
use std::collections::{BTreeSet, HashMap, HashSet};
use tilewise::{Shape, tpu::allocated_bytes};
use tilewise_hlo::{InputOutputAlias, Instruction};
use tilewise_oom::Role;

pub(crate) struct UndonatedState;

impl Rule for UndonatedState {
    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
        let aliases = program.module.input_output_aliases().unwrap_or_default();
        let taken: HashSet<usize> = aliases.iter().map(|alias| alias.parameter_number).collect();
        let is_free =
            |argument: &Instruction<'_>| argument.parameter_number().is_some_and(|number| !taken.contains(&number));
        let mut free: Vec<&LiveArray<'_>> = program.arguments().filter(|array| is_free(&array.instruction)).collect();
        let mut updated: Vec<&LiveArray<'_>> = Vec::new();
        for result in program.results() {
            let is_its_own =
                |argument: &&LiveArray<'_>| argument.shape == result.shape && program.updates(result, argument);
            if let Some(at) = free.iter().position(is_its_own) {
                updated.push(free.swap_remove(at));
            }
        }
        let Some(largest) = updated.iter().max_by_key(|argument| argument.bytes) else { return Vec::new() };
        let roots: BTreeSet<String> = updated.iter().map(|argument| root_of(&argument.instruction)).collect();
        let donated_bytes = donated_bytes(program, &aliases, &roots);
        let quoted: Vec<String> = roots.iter().map(|root| format!("`{root}`")).collect();
        let sentence = format!(
            "Donate {}: results of the same shape can take the place of what they replace, if the caller no longer needs \
             the old values",
            quoted.join(" and ")
        );
        let (import, code) = donating(program, &roots);
        vec![Proposal {
            buffers: BufferChanges { donated_bytes, ..BufferChanges::default() },
            is_bound: true,
            // `args` may be `*args`, which has no name to donate by.
            snippet: program.snippet(import, code).filter(|_| roots.iter().all(|root| is_name(root) && root != "args")),
            ..Proposal::new(Change::Donate, Target::Argument, program.advised(largest), sentence)
        }]
    }
}

/// The call that donates these parameters: of the library that jitted the function, if it is another than JAX.
fn donating(program: &ProgramModel<'_>, roots: &BTreeSet<String>) -> (&'static str, String) {
    let function = program.function();
    let text = program.module.source();
    // Its models have leaves that are no arrays, which `jax.jit` refuses.
    if text.contains("equinox/_jit.py") {
        return ("import equinox as eqx", format!("{function} = eqx.filter_jit({function}, donate=\"all\")"));
    }
    let names = tuple(roots.iter().map(|root| format!("\"{root}\"")));
    let (import, jit) = match text.contains("flax/nnx/transforms/compilation.py") {
        // `jax.jit` would lose what the function writes into its arguments.
        true => ("from flax import nnx", "nnx.jit"),
        false => (JAX, "jax.jit"),
    };
    (import, format!("{function} = {jit}({function}, donate_argnames=({names}))"))
}

/// Bytes of results that lie in arguments once these parameters of the Python function are donated: all their arrays are,
/// and JAX finds each a result of its shape.
fn donated_bytes(program: &ProgramModel<'_>, aliases: &[InputOutputAlias], roots: &BTreeSet<String>) -> u64 {
    let taken: HashSet<usize> = aliases.iter().map(|alias| alias.parameter_number).collect();
    let mut shapes: HashMap<Shape, usize> = HashMap::new();
    for argument in program.parameters().iter().filter(|argument| roots.contains(&root_of(argument))) {
        let is_free = argument.parameter_number().is_some_and(|number| !taken.contains(&number));
        if let (true, Ok(shape)) = (is_free, argument.shape()) {
            *shapes.entry(shape).or_default() += 1;
        }
    }
    let lies_in_one: HashSet<&[usize]> = aliases.iter().map(|alias| &*alias.output_index).collect();
    let result = program.module.entry().and_then(|entry| entry.root()?.shape().ok());
    let free = result.iter().flat_map(Shape::leaves).filter(|(index, _)| !lies_in_one.contains(&**index));
    let matched = free.filter(|(_, leaf)| {
        let left = shapes.get_mut(leaf).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    });
    matched.filter_map(|(_, leaf)| allocated_bytes(leaf.as_array()?).ok()).fold(0, u64::saturating_add)
}

/// The parameter of the Python function that an argument is part of.
fn root_of(argument: &Instruction<'_>) -> String {
    root(&name(argument)).to_owned()
}

impl MessageRule for UndonatedState {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        of_message(message).into_iter().collect()
    }
}

fn of_message(message: &MessageModel<'_>) -> Option<Recommendation> {
    let own = message.budget.output_bytes?.min(message.budget.argument_bytes?);
    let mut results: HashMap<(String, u64), u64> = HashMap::new();
    for result in message.arrays(|role| matches!(role, Role::Output(_))) {
        *results.entry(result).or_default() += 1;
    }
    let is_listed = !results.is_empty();
    let mut matched = 0_u64;
    for argument in message.arrays(|role| matches!(role, Role::Argument(..))) {
        if let Some(left) = results.get_mut(&argument).filter(|left| **left > 0) {
            *left -= 1;
            matched = matched.saturating_add(argument.1);
        }
    }
    let saved = if is_listed { own.min(matched) } else { own };
    let sentence = "Donate arguments that the caller no longer needs, such as the state before a step: results of the same \
                    shape take their place";
    let found = Recommendation::new(Change::Donate, Target::Argument, sentence).saving(Saving::AtMost(saved));
    let code = "step = jax.jit(step, donate_argnums=(0,))  # 0: the argument's number";
    (saved > 0).then(|| message.with_jax(found, JAX, code))
}
