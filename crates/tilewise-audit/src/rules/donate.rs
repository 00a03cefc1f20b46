//! A result that could take the memory of the argument it is made of, if the caller donated that.

use super::{
    Proposal, Rule,
    naming::{name, root},
};
use crate::{
    program_model::{BufferChanges, LiveArray, ProgramModel},
    recommendation::{Change, Target},
    snippet::{JAX, tuple},
};

pub(crate) struct UndonatedState;

impl Rule for UndonatedState {
    fn propose<'m>(&self, program: &ProgramModel<'m>) -> Vec<Proposal<'m>> {
        let mut free: Vec<&LiveArray<'m>> = program.arguments().filter(|array| !is_donated(program, array)).collect();
        let mut pairs: Vec<(&LiveArray<'m>, &LiveArray<'m>)> = Vec::new();
        for result in program.results() {
            let is_its_own = |argument: &&LiveArray<'m>| {
                argument.shape == result.shape && program.flow.updates(&result.instruction, &argument.instruction)
            };
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
