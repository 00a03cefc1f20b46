//! Arrays that a loop stacks up over its trips for its gradient, and those that stay once its steps are recomputed.

use super::program::{LiveArray, ProgramModel};
use foldhash::HashMap;
use std::cmp::Reverse;
use tilewise::ElementType;
use tilewise_hlo::{Instruction, dataflow::Position};

/// The arrays of a program's loops in memory.
pub(crate) struct LoopArrays<'p, 'm> {
    program: &'p ProgramModel<'m>,
    /// Bytes of all planned values, by position.
    bytes: HashMap<Position, u64>,
    /// All temporaries, by the position of the value that they are or are copies of.
    held: HashMap<Position, Vec<&'p LiveArray<'m>>>,
}

/// The stacks of one loop: those in the device's default memory first, and of these the largest.
pub(crate) struct ScanResiduals {
    all: Vec<Stack>,
    /// Bytes of the loop's carry.
    carry_bytes: u64,
    /// Bytes of the arrays of it that no stack has.
    unstacked_bytes: u64,
    /// Whether the loop's carry is stacked, too, by its bounds.
    pub(crate) is_carry_stacked: bool,
    /// Whether it is stacked in its own type, so that the compiler's layout of its stacks is known.
    pub(crate) is_carry_of_its_type: bool,
}

/// Maximum number of segments that are tried: a text may claim any number of trips.
const MOST_SEGMENTS: u64 = 4096;

/// Segments of a loop, each behind a checkpoint: the carry stays of each, and the stacks of one at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments {
    /// Number of segments.
    pub(crate) count: u64,
    /// Bytes of the carries.
    pub(crate) carry_bytes: u64,
}

/// An array with a slice for each trip.
struct Stack {
    position: Position,
    /// The bounds of a slice, without dimensions of size 1.
    slice: Vec<u64>,
    element_type: ElementType,
    bytes: u64,
    is_in_default_memory: bool,
    /// Whether it holds the loop's carry, from which the rest can be recomputed.
    is_carried: bool,
    /// Whether the carry has its element type.
    is_of_its_type: bool,
}

impl<'p, 'm> LoopArrays<'p, 'm> {
    pub(crate) fn of(program: &'p ProgramModel<'m>) -> Self {
        let values = program.plan.spaces.iter().flat_map(|space| &space.values);
        let bytes = values.map(|value| (value.position, value.bytes)).collect();
        let mut held: HashMap<Position, Vec<&LiveArray<'m>>> = HashMap::default();
        for array in program.temporaries() {
            held.entry(program.flow.origin(array.position)).or_default().push(array);
        }
        Self { program, bytes, held }
    }

    /// The arrays that a loop stacks up.
    pub(crate) fn stacks(&self, forward: &Instruction<'_>, trips: u64) -> Option<ScanResiduals> {
        let flow = self.program.flow;
        let (mut stacks, mut carry) = (Vec::new(), Vec::new());
        let mut carry_bytes: u64 = 0;
        for position in flow.elements(flow[flow.op(forward)?].position) {
            // Elements that no trip changes, such as weights, come from elsewhere.
            let Some(shape) = flow.shape(position).filter(|_| flow.source(position).is_none()) else { continue };
            let bounds: Option<Vec<u64>> = shape.bounds();
            let (Some(bounds), Some(array)) = (bounds, shape.as_array()) else { continue };
            let element_type = array.element_type();
            let bytes = self.bytes.get(&position).copied().unwrap_or_default();
            let mut carried_bytes = 0;
            match bounds.split_first() {
                Some((first, slice)) if *first == trips && !slice.is_empty() => stacks.push(Stack {
                    position,
                    slice: without_ones(slice),
                    element_type,
                    bytes,
                    is_in_default_memory: array.memory_space() == 0,
                    is_carried: false,
                    is_of_its_type: false,
                }),
                _ => carried_bytes = bytes,
            }
            carry_bytes = carry_bytes.saturating_add(carried_bytes);
            // A seeming stack may be a batch of as many samples as there are trips.
            // Counters take next to nothing.
            let told = if bounds.is_empty() { 0 } else { carried_bytes };
            carry.push((without_ones(&bounds), element_type, told));
        }
        stacks.sort_by_key(|stack| (Reverse(stack.is_in_default_memory), Reverse(stack.bytes)));
        let (is_carry_stacked, unstacked_bytes) = find_carried(&mut stacks, carry);
        let is_of_its_type = stacks.iter().all(|stack| !stack.is_carried || stack.is_of_its_type);
        let is_carry_of_its_type = is_carry_stacked && is_of_its_type;
        Some(ScanResiduals { all: stacks, carry_bytes, unstacked_bytes, is_carry_stacked, is_carry_of_its_type })
    }

    /// The arrays of the default memory that are or copy stacks.
    pub(crate) fn of_stacks(&self, stacks: &ScanResiduals) -> Vec<&'p LiveArray<'m>> {
        stacks.all.iter().flat_map(|stack| self.held.get(&stack.position).into_iter().flatten().copied()).collect()
    }

    /// The arrays of the default memory that aren't needed once each step is recomputed from its carry: other stacks
    /// and their copies, and stacks of the carry that move to faster memory.
    pub(crate) fn recomputed(&self, stacks: &ScanResiduals) -> Vec<&'p LiveArray<'m>> {
        let moved = stacks.moved();
        // The carry's own stacks aren't there yet.
        let is_none_carried = !stacks.is_carry_stacked;
        let held = |stack: &Stack| self.held.get(&stack.position).cloned().unwrap_or_default();
        let recomputed = stacks.all.iter().flat_map(|stack| {
            let is_moved = moved.contains(&stack.position);
            let is_gone = move |array: &&LiveArray<'m>| {
                is_none_carried || !stack.is_carried || is_moved && array.position == stack.position
            };
            held(stack).into_iter().filter(is_gone)
        });
        recomputed.collect()
    }
}

impl ScanResiduals {
    /// The bounds of stacked slices, without dimensions of size 1.
    pub(crate) fn slices(&self) -> impl Iterator<Item = &[u64]> {
        self.all.iter().map(|stack| &*stack.slice)
    }

    /// Bytes of the loop's carry.
    pub(crate) fn carry_bytes(&self) -> u64 {
        self.carry_bytes
    }

    /// Bytes of the carry of all steps, but of arrays that are stacked already; its stacks' layouts are the compiler's choice.
    pub(crate) fn new_stacks(&self, trips: u64) -> u64 {
        let of_a_step = if self.is_carry_stacked { self.unstacked_bytes } else { self.carry_bytes };
        of_a_step.saturating_mul(trips)
    }

    /// The equal segments of a loop of this number of trips that leave the fewest bytes, if they free more than twice
    /// as much as to recompute each step from a carry of its own, which frees `freed`.
    pub(crate) fn segments(&self, trips: u64, freed: u64) -> Option<Segments> {
        let in_default_memory = self.all.iter().filter(|stack| stack.is_in_default_memory);
        let kept = in_default_memory.map(|stack| stack.bytes).fold(0, u64::saturating_add);
        // A carry with as many samples as there are trips seems to be a stack, and is told by its own.
        let carried = self.all.iter().filter(|stack| stack.is_carried).map(|stack| stack.bytes / trips);
        let carry = self.carry_bytes.max(carried.fold(0, u64::saturating_add));
        let left = |count: u64| carry.saturating_mul(count).saturating_add(kept / count);
        let most = trips.isqrt().saturating_mul(4).min(MOST_SEGMENTS);
        let divisors = (2..=most).filter(|count| trips.is_multiple_of(*count) && *count < trips);
        let count = divisors.min_by_key(|count| left(*count))?;
        (kept.saturating_sub(left(count)) / 2 > freed)
            .then(|| Segments { count, carry_bytes: carry.saturating_mul(count) })
    }

    /// Stacks of the carry that the compiler puts into faster memory: as many as fit in place of other stacks there.
    fn moved(&self) -> Vec<Position> {
        let others = self.all.iter().filter(|stack| !stack.is_in_default_memory && !stack.is_carried);
        let mut room: u64 = others.map(|stack| stack.bytes).fold(0, u64::saturating_add);
        let mut moved = Vec::new();
        for stack in self.all.iter().filter(|stack| stack.is_in_default_memory && stack.is_carried) {
            if let Some(left) = room.checked_sub(stack.bytes) {
                room = left;
                moved.push(stack.position);
            }
        }
        moved
    }
}

/// Marks a stack for each array of the carry: of its element type, or else of another, in which the gradient reads it.
/// Returns whether any of the carry is stacked, and the bytes of its other arrays; if none is, the first stack stands for it.
fn find_carried(stacks: &mut [Stack], carry: Vec<(Vec<u64>, ElementType, u64)>) -> (bool, u64) {
    // Arrays of the carry by bounds: their types and bytes.
    let mut left: HashMap<Vec<u64>, Vec<(ElementType, u64)>> = HashMap::default();
    for (bounds, element_type, bytes) in carry {
        left.entry(bounds).or_default().push((element_type, bytes));
    }
    for needs_its_type in [true, false] {
        for stack in stacks.iter_mut().filter(|stack| !stack.is_carried) {
            let Some(arrays) = left.get_mut(&stack.slice) else { continue };
            let is_it = |of: &ElementType| *of == stack.element_type || !needs_its_type;
            if let Some(at) = arrays.iter().position(|(of, _)| is_it(of)) {
                arrays.swap_remove(at);
                (stack.is_carried, stack.is_of_its_type) = (true, needs_its_type);
            }
        }
    }
    let is_found = stacks.iter().any(|stack| stack.is_carried);
    // Something is carried, even if under other bounds.
    if !is_found && let Some(first) = stacks.first_mut() {
        first.is_carried = true;
    }
    (is_found, left.into_values().flatten().map(|(_, bytes)| bytes).fold(0, u64::saturating_add))
}

pub(crate) fn without_ones(bounds: &[u64]) -> Vec<u64> {
    bounds.iter().copied().filter(|bound| *bound != 1).collect()
}
