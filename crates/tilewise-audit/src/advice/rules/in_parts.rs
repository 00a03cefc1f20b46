//! The code that does in parts what a program does at once; only where that is known to compute the same.

use crate::{
    advice::{finding::InParts, program::ProgramModel},
    program::{begins_with, is_elementwise_opcode, is_name, op_name, root},
};
use tilewise_hlo::{Instruction, Opcode, Padding};

/// Custom calls that only hand on, or that make no value.
const HANDING_ON: &[&str] = &["AllocateBuffer", "ConcatBitcast", "Sharding", "AssumeGatherIndicesInBound"];

/// The compiled function in parts, those of its parameters taken apart that begin with a dimension of this size. `None`
/// where that may compute something else: where results don't consist of the parts', elements along the dimension meet, a
/// gradient adds up over it, or random numbers are drawn.
pub(super) fn in_parts(program: &ProgramModel<'_>, about: &[u64], size: u64, most: u64) -> Option<InParts> {
    // Pairs of the same array's elements: taking it apart leaves most of them out.
    if about.iter().filter(|bound| **bound == size).count() > 1 || program.has_gradient {
        return None;
    }
    if !is_in_all_results(program, size) || elements_meet(program, size) {
        return None;
    }
    let parts = (2..=most).rev().find(|parts| size.is_multiple_of(*parts))?;
    // By name: whether all of its arrays have the dimension.
    let mut parameters: Vec<(String, bool)> = Vec::new();
    for argument in program.parameters() {
        let name = op_name(&argument)?;
        let root = root(&name);
        // `args[0]` may be of `*args`, which is passed as several. A key of random numbers would be the same for all parts.
        if name[root.len()..].starts_with('[') && !name[root.len()..].starts_with("['") || is_key(&argument) {
            return None;
        }
        let has_it = begins_with(&argument.shape().ok()?, size);
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

/// Whether all that the program returns begins with a dimension of this size.
pub(super) fn is_in_all_results(program: &ProgramModel<'_>, size: u64) -> bool {
    let result = program.module.entry().and_then(|entry| entry.root()?.shape().ok());
    result.is_some_and(|result| result.leaves().all(|(_, leaf)| begins_with(&leaf, size)))
}

/// Whether an argument may be a key of random numbers: `jax.random.key` has two words, other generators four.
pub(super) fn is_key(argument: &Instruction<'_>) -> bool {
    let Some(bounds) = bounds(argument) else { return true };
    let is_u32 = argument.shape().is_ok_and(|shape| shape.element_type() == Some(tilewise::ElementType::U32));
    is_u32 && matches!(bounds.last(), Some(2 | 4))
}

/// Whether elements at different places along a dimension of this size may meet anywhere in the program, or an element
/// may depend on its place. Such an operation has a dimension of that size, or of a multiple where dimensions are merged;
/// which dimension that is isn't followed, so another one of that size counts as well.
fn elements_meet(program: &ProgramModel<'_>, size: u64) -> bool {
    program.module.instructions().any(|at| meets(&at, size).unwrap_or(true))
}

/// `None` where the text doesn't tell.
fn meets(at: &Instruction<'_>, size: u64) -> Option<bool> {
    let is_it = |bound: &u64| *bound > 0 && bound.is_multiple_of(size);
    let has_it = |bounds: &[u64]| bounds.iter().any(is_it);
    let operand = |number: usize| bounds(&at.operands().nth(number)?.instruction()?);
    let along =
        |bounds: &[u64], dimensions: Vec<usize>| Some(dimensions.iter().any(|at| bounds.get(*at).is_some_and(is_it)));
    let is_cut = |whole: &[u64], part: &[u64]| {
        whole.len() != part.len() || whole.iter().zip(part).any(|(whole, part)| is_it(whole) && whole != part)
    };
    match at.opcode() {
        Opcode::Parameter | Opcode::Tuple | Opcode::GetTupleElement | Opcode::Fusion | Opcode::While | Opcode::Call => {
            Some(false)
        }
        Opcode::Conditional | Opcode::CopyStart | Opcode::CopyDone | Opcode::AsyncStart | Opcode::AsyncDone => {
            Some(false)
        }
        Opcode::AddDependency | Opcode::OptimizationBarrier | Opcode::Transpose => Some(false),
        Opcode::Constant => Some(has_it(&bounds(at)?)),
        Opcode::Iota => Some(bounds(at)?.get(at.iota_dimension()?).is_some_and(is_it)),
        // Split up, its parts would go by another size.
        Opcode::Bitcast | Opcode::Reshape => Some(has_it(&operand(0)?) && !has_it(&bounds(at)?)),
        Opcode::Reduce | Opcode::Sort => along(&operand(0)?, at.dimensions()?),
        Opcode::Dot => along(&operand(0)?, at.dot_dimensions()?.lhs_contracting),
        Opcode::Convolution => {
            // Only the batch of the left operand and the output features of the right one stay apart.
            let found = at.convolution_dimensions()?;
            let mixes =
                |apart: usize, bounds: &[u64]| bounds.iter().enumerate().any(|(at, bound)| at != apart && is_it(bound));
            let is_grouped = found.batch_groups > 1 || found.feature_groups > 1;
            Some(is_grouped || mixes(found.input.batch, &operand(0)?) || mixes(found.kernel.batch, &operand(1)?))
        }
        Opcode::CustomCall => {
            Some(!at.custom_call_target().is_some_and(|target| HANDING_ON.contains(&target)) && touches(at, is_it)?)
        }
        Opcode::Concatenate => along(&bounds(at)?, at.dimensions()?),
        // The dimension stays whole, and what is taken of others is the same at each of its places.
        Opcode::Slice | Opcode::DynamicSlice => Some(is_cut(&operand(0)?, &bounds(at)?)),
        Opcode::DynamicUpdateSlice => Some(is_cut(&operand(0)?, &operand(1)?)),
        Opcode::Gather => Some(is_cut(&operand(0)?, &at.gather_dimensions()?.slice_sizes)),
        Opcode::Pad => {
            let ends = at.padding()?.into_iter();
            Some(ends.zip(operand(0)?).any(|(ends, bound)| is_it(&bound) && ends != Padding::default()))
        }
        opcode if is_elementwise_opcode(opcode) => Some(false),
        // Windows, scatters, collectives: what isn't known to keep them apart.
        _ => touches(at, is_it),
    }
}

/// Whether an operand or the result has such a dimension.
fn touches(at: &Instruction<'_>, is_it: impl Fn(&u64) -> bool) -> Option<bool> {
    let shapes = at.operands().map(|operand| operand.instruction()?.shape().ok()).chain([at.shape().ok()]);
    let mut touched = false;
    for shape in shapes {
        for (_, leaf) in shape?.leaves() {
            touched |= leaf.dimensions().iter().any(|dimension| dimension.bound().is_none_or(|bound| is_it(&bound)));
        }
    }
    Some(touched)
}

/// The bounds of an instruction's array.
pub(super) fn bounds(at: &Instruction<'_>) -> Option<Vec<u64>> {
    at.shape().ok()?.dimensions().iter().map(|dimension| dimension.bound()).collect()
}
