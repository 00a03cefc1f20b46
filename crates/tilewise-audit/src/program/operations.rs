//! Effects of instructions on the elements of arrays.

use foldhash::HashSet;
use tilewise_hlo::{Instruction, Opcode};

/// The custom-call target of Pallas and Mosaic kernels.
pub(crate) const MOSAIC: &str = "tpu_custom_call";

/// Whether an instruction passes its operand on unchanged.
pub(crate) fn passes_on(instruction: &Instruction<'_>) -> bool {
    matches!(
        instruction.opcode(),
        Opcode::Copy | Opcode::CopyStart | Opcode::CopyDone | Opcode::Bitcast | Opcode::GetTupleElement
    ) || instruction.wrapped_opcode() == Some(Opcode::Slice)
        || instruction.joins_slices()
}

/// Custom calls that rank the numbers of a row.
const RANKING: &[&str] = &["TopK", "PartialReduce", "ApproxTopK"];

/// Whether an instruction ranks the numbers of each row.
pub(crate) fn ranks_rows(instruction: &Instruction<'_>) -> bool {
    instruction.custom_call_target().is_some_and(|target| RANKING.contains(&target))
}

/// Whether an instruction, or one that it fuses, has this opcode.
pub(crate) fn does(instruction: &Instruction<'_>, opcode: Opcode) -> bool {
    any_fused(instruction, |at| at.opcode() == opcode)
}

/// Whether this holds for an instruction, or for one that is fused into it.
pub(crate) fn any_fused(instruction: &Instruction<'_>, is: impl Fn(&Instruction<'_>) -> bool) -> bool {
    with_fused(*instruction).any(|at| is(&at))
}

/// An instruction, and those that are fused into it.
pub(crate) fn with_fused(instruction: Instruction<'_>) -> impl Iterator<Item = Instruction<'_>> {
    /// Maximum levels of nested fusions: a scatter's are three deep.
    const DEPTH: usize = 4;
    let mut left = vec![(instruction, 1)];
    std::iter::from_fn(move || {
        let (at, depth) = left.pop()?;
        if at.opcode() == Opcode::Fusion && depth < DEPTH {
            let called = at.calls().filter_map(|call| call.computation());
            left.extend(called.flat_map(|inner| inner.instructions()).map(|inner| (inner, depth + 1)));
        }
        Some(at)
    })
}

/// Whether each element of the result depends on the same elements of the operands only.
pub(crate) fn is_elementwise(instruction: &Instruction<'_>) -> bool {
    if instruction.opcode() != Opcode::Fusion {
        return keeps_indices(instruction.opcode());
    }
    let mut called = instruction.calls().filter_map(|call| call.computation()).peekable();
    called.peek().is_some()
        && called.all(|computation| computation.instructions().all(|inner| keeps_indices(inner.opcode())))
}

/// Whether an instruction only reduces its largest operand, in any order, to at most an eighth of its elements; its
/// other operands are as small.
pub(crate) fn is_reduction(instruction: &Instruction<'_>) -> bool {
    let mut elements = instruction.operands().filter_map(|operand| count(&operand.instruction()?));
    let (mut largest, mut second) = (0, 0);
    for elements in elements.by_ref() {
        second = second.max(elements.min(largest));
        largest = largest.max(elements);
    }
    let is_small = |elements: u64| elements <= largest / 8;
    let is_reduced = |inner: &Instruction<'_>| inner.opcode() == Opcode::Reduce || keeps_indices(inner.opcode());
    is_small(second)
        && count(instruction).is_some_and(is_small)
        && match instruction.opcode() {
            Opcode::Reduce => true,
            Opcode::Fusion => {
                let mut called = instruction.calls().filter_map(|call| call.computation()).peekable();
                called.peek().is_some()
                    && called.all(|computation| computation.instructions().all(|inner| is_reduced(&inner)))
            }
            _ => false,
        }
}

/// The elements of all arrays of a result.
pub(crate) fn count(instruction: &Instruction<'_>) -> Option<u64> {
    let shape = instruction.shape().ok()?;
    let elements = |leaf: tilewise::Shape| {
        leaf.dimensions().iter().try_fold(1_u64, |product, dimension| product.checked_mul(dimension.bound()?))
    };
    shape.leaves().map(|(_, leaf)| elements(leaf)).try_fold(0_u64, |sum, elements| sum.checked_add(elements?))
}

/// The operands of a fusion that its result, or `element` of it, updates in place or is made from elementwise. Visits
/// at most `left` instructions.
pub(crate) fn fused_updates(fusion: &Instruction<'_>, element: Option<usize>, left: &mut usize) -> Vec<usize> {
    let Some(root) = fusion.calls().find_map(|call| call.computation()?.root()) else { return Vec::new() };
    let (mut waiting, mut seen, mut numbers) = (vec![(root, element)], HashSet::default(), Vec::new());
    while let Some((at, element)) = waiting.pop() {
        if *left == 0 || !seen.insert((at.index(), element)) {
            continue;
        }
        *left -= 1;
        let operand = |number: usize| at.operands().nth(number).and_then(|operand| operand.instruction());
        match at.opcode() {
            Opcode::Parameter => numbers.extend(at.parameter_number()),
            Opcode::Tuple => waiting.extend(element.and_then(operand).map(|operand| (operand, None))),
            Opcode::DynamicUpdateSlice | Opcode::Scatter => waiting.extend(operand(0).map(|operand| (operand, None))),
            // A nested fusion, such as a scatter and operations on its result.
            Opcode::Fusion => {
                let inner = fused_updates(&at, element, left);
                waiting.extend(inner.into_iter().filter_map(operand).map(|operand| (operand, None)));
            }
            opcode if keeps_indices(opcode) => {
                waiting
                    .extend(at.operands().filter_map(|operand| operand.instruction()).map(|operand| (operand, None)));
            }
            _ => {}
        }
    }
    numbers
}

/// Whether each element of the result depends on the same elements of the operands, or on none: XLA's elementwise
/// opcodes, and those that pass elements on or broadcast them.
pub(crate) fn keeps_indices(opcode: Opcode) -> bool {
    opcode.is_elementwise()
        || matches!(opcode, Opcode::Bitcast | Opcode::Broadcast | Opcode::Constant | Opcode::Parameter | Opcode::Tuple)
}

/// The bounds of an instruction's array.
pub(crate) fn bounds(at: &Instruction<'_>) -> Option<Vec<u64>> {
    at.shape().ok()?.bounds()
}
