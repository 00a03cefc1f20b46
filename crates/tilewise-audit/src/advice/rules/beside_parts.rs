//! What lies in memory beside each part of a batch: sums of gradients, and what is the same for all parts.

use super::separable::results;
use crate::{
    advice::{
        finding::GradientSums,
        program::{BufferChanges, LiveArray, ProgramModel},
        purpose::{Purpose, of_argument},
        samples::Samples,
    },
    program::{is_backward, name, traced},
};
use std::collections::HashSet;
use tilewise::{ElementKind, ElementType, tpu};
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::{AssignedValue, MemoryPlan, Role};

/// What parts free whose arrays take so much.
pub(super) fn freed(
    program: &ProgramModel<'_>,
    (samples, size): (Option<&Samples>, u64),
    buffers: &[(usize, u64)],
    gradients: GradientSums,
) -> u64 {
    let in_parts: HashSet<usize> = buffers.iter().map(|(buffer, _)| *buffer).collect();
    let changes = BufferChanges { at_most: buffers.iter().copied().collect(), ..BufferChanges::default() };
    let Some(plan) = program.plan_with(&changes) else { return 0 };
    let sums = if gradients == GradientSums::Summed { sums(program, &plan) } else { 0 };
    let same = samples.map_or(0, |samples| {
        same_for_all(program, samples, &plan, |array| {
            // Numbers drawn for all samples are rows of each.
            in_parts.contains(&array.buffer) || array.bounds.contains(&size)
        })
    });
    program.total_bytes.saturating_sub(plan.total_bytes().saturating_add(sums).saturating_add(same))
}

/// What is alive at a plan's peak.
fn alive(plan: &MemoryPlan) -> impl Iterator<Item = &AssignedValue> {
    let peak = plan.space(0).and_then(|hbm| Some((hbm, hbm.peak.as_ref()?)));
    peak.into_iter().flat_map(|(hbm, peak)| peak.live.iter().map(|live| &hbm.values[live.value]))
}

/// The sums of gradients, in four bytes at least, but for gradients that are all alive at the peak: they are sums themselves.
fn sums(program: &ProgramModel<'_>, plan: &MemoryPlan) -> u64 {
    let states = results(program);
    let all: Vec<&LiveArray<'_>> = program.arguments().collect();
    // What only its result says is trained may be a moment of an optimizer, of the same bounds as its weight.
    let is_alone = |bounds: &[u64]| all.iter().filter(|argument| argument.bounds == bounds).count() == 1;
    let is_trained = |argument: &&&LiveArray<'_>| {
        let (name, shape) = (name(&argument.instruction), argument.shape.without_layout().to_string());
        let is_weight = match of_argument(&name).0 {
            Purpose::Parameter => true,
            Purpose::OtherArgument => is_alone(&argument.bounds),
            _ => false,
        };
        is_weight && states.contains(&shape)
    };
    let of = |argument: &LiveArray<'_>| (argument.bounds.clone(), sum_bytes(program, argument));
    let mut trained: Vec<(Vec<u64>, u64)> = all.iter().filter(is_trained).map(|argument| of(argument)).collect();
    for value in alive(plan).filter(|value| value.role == Role::Temporary) {
        let bounds: Option<Vec<u64>> =
            value.shape().map(|shape| shape.dimensions().iter().filter_map(|dimension| dimension.bound()).collect());
        if let Some(found) = bounds.and_then(|bounds| trained.iter().position(|(known, _)| *known == bounds)) {
            trained[found].1 = trained[found].1.saturating_sub(value.bytes);
            trained[found].0.clear();
        }
    }
    trained.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
}

/// Bytes of a sum of an argument's gradients, in the order of dimensions in which they are made.
fn sum_bytes(program: &ProgramModel<'_>, argument: &LiveArray<'_>) -> u64 {
    let kind = argument.element_type();
    let is_narrow = kind.kind() == ElementKind::Float && kind.natural_bits() < ElementType::F32.natural_bits();
    let wide = if is_narrow { ElementType::F32 } else { kind };
    let is_gradient = |array: &&LiveArray<'_>| {
        array.bounds == argument.bounds
            && traced(program.flow, &array.instruction).0.is_some_and(|name| is_backward(&name))
    };
    let made = program.temporaries().filter(is_gradient).max_by_key(|array| array.bytes);
    let order = made.unwrap_or(argument).minor_to_major();
    let shape = tpu::layout_for_order(wide, &argument.bounds, order, program.generation).ok();
    let sizes = shape.and_then(|shape| Some(shape.as_array()?.sizes().ok()?.physical_bytes));
    sizes.unwrap_or(argument.bytes).max(argument.bytes)
}

/// What is worked out before all parts since each of them reads it, such as weights in another type or layout, and isn't at the peak
/// in any case.
fn same_for_all(
    program: &ProgramModel<'_>,
    samples: &Samples,
    plan: &MemoryPlan,
    is_in_parts: impl Fn(&LiveArray<'_>) -> bool,
) -> u64 {
    let at_peak: HashSet<usize> = alive(plan).map(|value| value.buffer).collect();
    let is_it = |array: &&LiveArray<'_>| {
        array.instruction.computation().is_entry()
            && !is_made_anew(&array.instruction)
            && !at_peak.contains(&array.buffer)
            && !is_in_parts(array)
            && samples.is_same_for_all(program, array)
            && program.readers(array.position).any(|reader| samples.is_of_each(program, reader))
    };
    program.temporaries().filter(is_it).map(|array| array.bytes).fold(0, u64::saturating_add)
}

/// Whether an array is made of nothing, or of one element: each part makes its own.
fn is_made_anew(instruction: &Instruction<'_>) -> bool {
    let fused = instruction.calls().find_map(|call| call.computation()?.root());
    let root = fused.filter(|_| instruction.opcode() == Opcode::Fusion).unwrap_or(*instruction);
    matches!(root.opcode(), Opcode::Broadcast | Opcode::Iota)
}
