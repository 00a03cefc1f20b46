//! Code that runs a program in parts, only where that is known to compute the same.

use crate::{
    advice::{
        finding::InParts,
        program::{LiveArray, ProgramModel},
        split::Split,
    },
    program::{bounds, is_name, op_name, root},
};
use tilewise_hlo::Instruction;

/// The compiled function in parts: its parameters that begin with the dimension are split. `None` if that may compute
/// something else, because results don't consist of the parts' results, positions along the dimension meet, a gradient
/// is taken, or random keys are passed; or if a usable name or number of parts is missing.
pub(super) fn in_parts(
    program: &ProgramModel<'_>,
    split: &Split<'_>,
    about: &LiveArray<'_>,
    most: u64,
) -> Option<InParts> {
    let size = split.size;
    // Pairs of one array's elements: parts would leave most of them out.
    if about.bounds.iter().filter(|bound| **bound == size).count() > 1 || program.has_gradient {
        return None;
    }
    if !split.is_in_all_results(program) || !split.are_places_alike() {
        return None;
    }
    let parts = (2..=most).rev().find(|parts| size.is_multiple_of(*parts))?;
    // For each parameter's name, whether all of its arrays have the dimension.
    let mut parameters: Vec<(String, bool)> = Vec::new();
    for argument in program.parameters() {
        let name = op_name(&argument)?;
        let root = root(&name);
        // `args[0]` may be of `*args`, which is passed as several. A random key would be the same for all parts.
        if name[root.len()..].starts_with('[') && !name[root.len()..].starts_with("['") || is_key(&argument) {
            return None;
        }
        let has_it = split.inputs.iter().any(|(input, leaf)| *input == name && *leaf == 0);
        match parameters.iter_mut().find(|(known, _)| known == root) {
            Some((_, all_have_it)) => *all_have_it &= has_it,
            None => parameters.push((root.to_owned(), has_it)),
        }
    }
    let function = program.function();
    // `jit__lambda_` and the like: no function has that name.
    if !parameters.iter().any(|(_, has_it)| *has_it)
        || !parameters.iter().all(|(name, _)| is_name(name))
        || function.starts_with('_')
    {
        return None;
    }
    Some(InParts { function: function.to_owned(), parameters, parts })
}

/// Whether an argument may be a random key: `jax.random.key` has two words, other generators four.
pub(super) fn is_key(argument: &Instruction<'_>) -> bool {
    let Some(bounds) = bounds(argument) else { return true };
    let is_u32 = argument.shape().is_ok_and(|shape| shape.element_type() == Some(tilewise::ElementType::U32));
    is_u32 && matches!(bounds.last(), Some(2 | 4))
}
