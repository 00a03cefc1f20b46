//! Memory needed beside each part of a batch: sums of gradients, and values that are the same for all parts.

use crate::{
    advice::{
        finding::GradientSums,
        program::{BufferChanges, LiveArray, ProgramModel},
        split::Split,
    },
    program::{Purpose, is_backward, is_elementwise, name, passes_on, traced},
};
use foldhash::{HashMap, HashSet};
use tilewise::{ElementKind, ElementType, tpu};
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{OpId, Position},
};
use tilewise_memory::{AssignedValue, MemoryPlan, Role};

/// Bytes freed by parts with these buffer sizes.
pub(super) fn freed(
    program: &ProgramModel<'_>,
    split: &Split<'_>,
    buffers: &[(usize, u64)],
    gradients: GradientSums,
) -> u64 {
    let in_parts: HashSet<usize> = buffers.iter().map(|(buffer, _)| *buffer).collect();
    let changes = BufferChanges { at_most: buffers.iter().copied().collect(), ..BufferChanges::default() };
    let Some(plan) = program.plan_with(changes) else { return 0 };
    let are_summed = matches!(gradients, GradientSums::Summed | GradientSums::OfEach);
    let sums = if are_summed { sums(program, &plan) } else { 0 };
    let same = same_for_all(program, split, &plan, &in_parts);
    program.total_bytes.saturating_sub(plan.total_bytes().saturating_add(sums).saturating_add(same))
}

/// The values that are live at a plan's peak.
fn alive(plan: &MemoryPlan) -> impl Iterator<Item = &AssignedValue> {
    let peak = plan.space(0).and_then(|hbm| Some((hbm, hbm.peak.as_ref()?)));
    peak.into_iter().flat_map(|(hbm, peak)| peak.live.iter().map(|live| &hbm.values[live.value]))
}

/// Bytes of gradients' sums, floats in four bytes at least, less gradients live at the peak: these are sums themselves.
fn sums(program: &ProgramModel<'_>, plan: &MemoryPlan) -> u64 {
    let states = program.states();
    let mut alike: HashMap<&[u64], usize> = HashMap::default();
    for argument in program.arguments() {
        *alike.entry(&argument.bounds).or_default() += 1;
    }
    // An argument whose name doesn't show a weight may be an optimizer's moment, with the bounds of its weight.
    let is_trained = |argument: &&LiveArray<'_>| {
        let is_weight = match Purpose::of_argument(&name(&argument.instruction)) {
            Purpose::Parameter => true,
            Purpose::OtherArgument => alike.get(&argument.bounds[..]) == Some(&1),
            _ => false,
        };
        is_weight && states.contains(&argument.shape.without_layout().to_string())
    };
    let orders = orders_of_gradients(program);
    let mut trained: HashMap<Vec<u64>, Vec<u64>> = HashMap::default();
    for argument in program.arguments().filter(is_trained) {
        let order = orders.get(&argument.bounds[..]).map_or(argument, |made| *made).minor_to_major();
        trained.entry(argument.bounds.clone()).or_default().push(sum_bytes(program, argument, order));
    }
    let sums = trained.values().flatten().copied().fold(0, u64::saturating_add);
    let mut held = 0_u64;
    for value in alive(plan).filter(|value| value.role == Role::Temporary) {
        let bounds: Option<Vec<u64>> =
            value.shape().map(|shape| shape.dimensions().iter().filter_map(|dimension| dimension.bound()).collect());
        if let Some(sum) = bounds.and_then(|bounds| trained.get_mut(&bounds)?.pop()) {
            held = held.saturating_add(value.bytes.min(sum));
        }
    }
    sums.saturating_sub(held)
}

/// The backward pass's largest array for each bounds.
fn orders_of_gradients<'p, 'm>(program: &'p ProgramModel<'m>) -> HashMap<&'p [u64], &'p LiveArray<'m>> {
    let mut found: HashMap<&[u64], &LiveArray<'m>> = HashMap::default();
    let is_backward =
        |array: &&LiveArray<'_>| traced(program.flow, &array.instruction).0.is_some_and(|name| is_backward(&name));
    for array in program.temporaries().filter(is_backward) {
        let largest = found.entry(&array.bounds).or_insert(array);
        if array.bytes > largest.bytes {
            *largest = array;
        }
    }
    found
}

/// Bytes of the sum of an argument's gradients in this order of dimensions, at least the argument's own.
fn sum_bytes(program: &ProgramModel<'_>, argument: &LiveArray<'_>, order: &[usize]) -> u64 {
    let kind = argument.element_type();
    let is_narrow = kind.kind() == ElementKind::Float && kind.natural_bits() < ElementType::F32.natural_bits();
    let wide = if is_narrow { ElementType::F32 } else { kind };
    let shape = tpu::layout_for_order(wide, &argument.bounds, order, program.generation).ok();
    let sizes = shape.and_then(|shape| Some(shape.as_array()?.sizes().ok()?.physical_bytes));
    sizes.unwrap_or(argument.bytes).max(argument.bytes)
}

/// Bytes of values that are computed before all parts since each part reads them, such as weights in another type or
/// layout; those live at the peak in any case don't count.
fn same_for_all(program: &ProgramModel<'_>, split: &Split<'_>, plan: &MemoryPlan, in_parts: &HashSet<usize>) -> u64 {
    let at_peak: HashSet<usize> = alive(plan).map(|value| value.buffer).collect();
    let is_whole = |array: &&LiveArray<'_>| {
        array.instruction.computation().is_entry()
            && !is_made_anew(&array.instruction)
            && !at_peak.contains(&array.buffer)
            && !in_parts.contains(&array.buffer)
            && split.is_same_for_all(program, array)
    };
    let whole: Vec<&LiveArray<'_>> = program.temporaries().filter(is_whole).collect();
    if whole.is_empty() {
        return 0;
    }
    let flow = program.flow;
    // A loop that passes weights on beside samples reads neither.
    let hands_on = |op: &OpId| {
        let made = flow.instruction(*op);
        made.is_none_or(|at| {
            passes_on(&at) || matches!(at.opcode(), Opcode::Tuple | Opcode::While | Opcode::Conditional)
        })
    };
    let readers = flow.ops().ids().filter(|op| split.is_of_each(program, *op) && !hands_on(op));
    let operands = readers.flat_map(|op| flow.operands(op)).map(|operand| flow.origin(flow[*operand].position));
    let read: HashSet<Position> = operands.collect();
    let is_read = |array: &&&LiveArray<'_>| read.contains(&flow.origin(array.position));
    whole.iter().filter(is_read).map(|array| array.bytes).fold(0, u64::saturating_add)
}

/// Whether each part makes its own copy of an array: a broadcast, an iota, or elementwise results larger than their
/// operands, such as dequantized weights.
fn is_made_anew(instruction: &Instruction<'_>) -> bool {
    let fused = || instruction.calls().find_map(|call| call.computation()?.root());
    let root = if instruction.opcode() == Opcode::Fusion { fused().unwrap_or(*instruction) } else { *instruction };
    let is_larger = || {
        let operands = instruction.operands().map(|operand| logical_bytes(&operand.instruction()?));
        let read = operands.collect::<Option<Vec<u64>>>()?.into_iter().fold(0, u64::saturating_add);
        Some(0 < read && read < logical_bytes(instruction)?)
    };
    matches!(root.opcode(), Opcode::Broadcast | Opcode::Iota)
        || is_elementwise(instruction) && is_larger().unwrap_or(false)
}

fn logical_bytes(at: &Instruction<'_>) -> Option<u64> {
    Some(at.shape().ok()?.as_array()?.sizes().ok()?.logical_bytes)
}
