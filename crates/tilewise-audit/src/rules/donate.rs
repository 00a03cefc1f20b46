//! A result that could take the memory of the argument it is made of, if the caller donated that.

use super::{
    MessageRule, Proposal, Rule,
    naming::{name, root},
};
use crate::{
    Recommendation,
    message_model::MessageModel,
    program_model::{BufferChanges, LiveArray, ProgramModel},
    recommendation::{Change, Saving, Target},
    snippet::{JAX, tuple},
};
use std::collections::HashMap;
use tilewise_oom::Role;

pub(crate) struct UndonatedState;

impl Rule for UndonatedState {
    fn propose<'m>(&self, program: &ProgramModel<'m>) -> Vec<Proposal<'m>> {
        let mut free: Vec<&LiveArray<'m>> = program.arguments().filter(|array| !is_donated(program, array)).collect();
        let mut pairs: Vec<(&LiveArray<'m>, &LiveArray<'m>)> = Vec::new();
        for result in program.results() {
            let is_its_own =
                |argument: &&LiveArray<'m>| argument.shape == result.shape && program.updates(result, argument);
            if let Some(at) = free.iter().position(is_its_own) {
                pairs.push((free.swap_remove(at), result));
            }
        }
        let Some((largest, _)) = pairs.iter().max_by_key(|(argument, _)| argument.bytes) else { return Vec::new() };
        let mut roots: Vec<String> =
            pairs.iter().map(|(argument, _)| root(&name(&argument.instruction)).to_owned()).collect();
        roots.sort();
        roots.dedup();
        let quoted: Vec<String> = roots.iter().map(|root| format!("`{root}`")).collect();
        let sentence = format!(
            "Donate {}: results of the same shape can take the place of what they replace, if the caller no longer needs \
             the old values",
            quoted.join(" and ")
        );
        let names = tuple(roots.iter().map(|root| format!("\"{root}\"")));
        let function = program.function();
        let code = format!("{function} = jax.jit({function}, donate_argnames=({names}))");
        let donated_bytes = pairs.iter().map(|(_, result)| result.bytes).fold(0, u64::saturating_add);
        vec![Proposal {
            change: Change::Donate,
            target: Target::Argument,
            about: (*largest).clone(),
            buffers: BufferChanges { donated_bytes, ..BufferChanges::default() },
            is_bound: true,
            sentence,
            snippet: program.snippet(JAX, code),
        }]
    }
}

/// Whether a result lies in it already.
fn is_donated(program: &ProgramModel<'_>, argument: &LiveArray<'_>) -> bool {
    program.arrays.iter().any(|array| array.buffer == argument.buffer && !array.is_parameter())
        || program.module.input_output_aliases().is_ok_and(|aliases| {
            aliases.iter().any(|alias| Some(alias.parameter_number) == argument.instruction.parameter_number())
        })
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
