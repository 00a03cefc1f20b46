//! An argument or a result in another order than the default one, which takes less: the caller pins it.

use crate::{
    advice::{
        message::{ListedArrays, MessageModel},
        program::{BufferChanges, LiveArray, ProgramModel},
        recommendation::{Change, Recommendation, Saving, Snippet, Target},
        rule::{MessageRule, Proposal, Rule},
        snippet::{LAYOUT, put_in_order, results_in_any_order},
        words::listed,
    },
    program::{does, is_elementwise, name},
};
use std::collections::{HashMap, HashSet};
use tilewise::{
    ArrayShape, Shape,
    tpu::{self, Generation},
};
use tilewise_hlo::{Instruction, Opcode, dataflow::OpId};
use tilewise_memory::Role;

pub(crate) struct PinnedOrder;

impl Rule for PinnedOrder {
    /// Arrays of one shape change together: a program that reads two of them would bring one into the order of the other.
    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
        let mut seen = HashSet::new();
        let mut groups: Vec<Vec<(&LiveArray<'_>, u64)>> = Vec::new();
        for array in program.arguments().chain(program.results()) {
            let Some(after) = in_default_order(program, array).filter(|after| *after < array.bytes) else { continue };
            if !seen.insert(array.buffer) {
                continue;
            }
            let is_alike = |group: &&mut Vec<(&LiveArray<'_>, u64)>| {
                group.first().is_some_and(|(first, _)| first.role == array.role && first.bounds == array.bounds)
            };
            match groups.iter_mut().find(is_alike) {
                Some(group) => group.push((array, after)),
                None => groups.push(vec![(array, after)]),
            }
        }
        groups.iter().filter_map(|group| proposal(program, group)).collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>, group: &[(&LiveArray<'m>, u64)]) -> Option<Proposal> {
    let &(about, _) = group.first()?;
    let target = if about.role == Role::Argument { Target::Argument } else { Target::Result };
    let mut buffers = BufferChanges::default();
    for (array, after) in group {
        buffers.at_most.insert(array.buffer, *after);
        if target == Target::Argument {
            buffers.at_most.extend(copies(program, array));
        }
    }
    let arrays: Vec<&LiveArray<'m>> = group.iter().map(|(array, _)| *array).collect();
    let (sentence, snippet) =
        if target == Target::Argument { of_arguments(program, &arrays) } else { of_result(program) };
    let (change, about) = (Change::Order, program.advised(about));
    Some(Proposal { buffers, snippet, ..Proposal::new(change, target, about, sentence) })
}

fn of_arguments(program: &ProgramModel<'_>, arrays: &[&LiveArray<'_>]) -> (String, Option<Snippet>) {
    let names: Vec<String> = arrays.iter().map(|array| name(&array.instruction)).collect();
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let (them, pads) = if names.len() == 1 { ("it", "pads it") } else { ("them", "pads them") };
    let sentence = format!(
        "Pass {} in the default layout: the caller pins {them} to another order, which {pads} and everything made from \
         {them}",
        listed(&quoted)
    );
    let lines = arrays.iter().zip(&names).map(|(array, name)| {
        let default = tpu::default_layout(array.element_type(), &array.bounds, program.generation).ok();
        put_in_order(name, &default.as_ref().map(major_to_minor).unwrap_or_default())
    });
    let code = lines.collect::<Vec<_>>().join("\n");
    (sentence, program.snippet(LAYOUT, code))
}

fn of_result(program: &ProgramModel<'_>) -> (String, Option<Snippet>) {
    let sentence = "Take this result in the default layout: drop its order from `out_shardings`".to_owned();
    (sentence, program.snippet(LAYOUT, results_in_any_order(program.function())))
}

/// The order of a shape's dimensions, the slowest-varying first.
fn major_to_minor(shape: &Shape) -> Vec<usize> {
    shape.as_array().map(|array| array.major_to_minor().collect()).unwrap_or_default()
}

/// The array as the compiler would lay it out, if it is in another order.
fn default_order(array: &ArrayShape, generation: Generation) -> Option<Shape> {
    let bounds: Vec<u64> = array.dimensions().iter().map(|dimension| dimension.bound()).collect::<Option<_>>()?;
    let default = tpu::default_layout(array.element_type(), &bounds, generation).ok()?;
    (default.layout()?.minor_to_major() != array.layout()?.minor_to_major()).then_some(default)
}

/// Bytes of an array in the default order, if it is in another.
fn in_default_order(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<u64> {
    let default = default_order(array.shape.as_array()?, program.generation)?;
    Some(default.as_array()?.sizes().ok()?.physical_bytes)
}

/// The padded arrays that are made of an argument by moving its elements, and what each takes in the default order:
/// they are in the argument's order because it is.
fn copies<'m>(program: &ProgramModel<'m>, argument: &LiveArray<'m>) -> HashMap<usize, u64> {
    let moves_elements = |op: &OpId| program.flow.instruction(*op).is_some_and(|at| moves_elements(&at));
    let next = |op: OpId| program.flow.users(op).iter().map(|user| user.op).filter(moves_elements);
    let made: HashSet<OpId> = program.flow.reached([argument.op], next).collect();
    let padded = program.temporaries().filter(|array| made.contains(&array.op));
    let padded = padded.filter(|array| array.bytes >= array.logical_bytes().saturating_mul(2));
    padded.filter_map(|array| Some((array.buffer, in_default_order(program, array)?))).collect()
}

fn moves_elements(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.opcode(),
        Opcode::Copy | Opcode::Slice | Opcode::Bitcast | Opcode::GetTupleElement | Opcode::Transpose | Opcode::Reshape
    ) || instruction.opcode() == Opcode::Fusion && (does(instruction, Opcode::Slice) || is_elementwise(instruction))
}

impl MessageRule for PinnedOrder {
    fn recommend(&self, message: &MessageModel<'_>) -> Vec<Recommendation> {
        message.interface().iter().filter_map(|arrays| of_listed(message, arrays)).collect()
    }
}

fn of_listed(message: &MessageModel<'_>, arrays: &ListedArrays<'_>) -> Option<Recommendation> {
    let array = arrays.row.shape.as_ref()?.as_array()?;
    let default = default_order(array, message.generation_of(array))?;
    let after = default.as_array()?.sizes().ok()?.physical_bytes;
    let saved = arrays.row.sizes?.physical_bytes.checked_sub(after).filter(|saved| *saved > 0)?;
    let (pass, name) = arrays.in_words();
    let order: Vec<String> = array.layout()?.minor_to_major().iter().map(usize::to_string).collect();
    let why = if arrays.is_argument() {
        "so the caller or the program pins it; this assumes that no kernel needs it"
    } else {
        "so it is pinned, or follows from the operation that makes it: `Layout.AUTO` leaves it to the compiler"
    };
    let sentence = format!(
        "{pass} in the default order of dimensions: the order {{{}}} is not the default one, {why}",
        order.join(",")
    );
    let code = if arrays.is_argument() {
        put_in_order(&name, &major_to_minor(&default))
    } else {
        format!("{}  # f: the function compiled", results_in_any_order("f"))
    };
    let found = Recommendation::new(Change::Order, arrays.target(), sentence)
        .about(arrays.shape_text())
        .saving(Saving::Exact(saved.saturating_mul(arrays.count)));
    Some(message.with_jax(found, LAYOUT, code))
}
