//! A cache whose old and new slices are in memory at once. Either a loop reads a slice in each step, and stacks up the
//! new slices (`xs` and `ys` of a scan), or the program takes all slices apart, and stacks them up again. Carried
//! through the loop, or updated as a whole, the slices are written in place.

use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, StackedCache},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{Carry, any_fused, bounds, count, elements, name, op_name, source_line},
};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;
use tilewise::ElementType;
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::{Machine, Role};

pub(crate) struct CacheBesideItsNext;

impl Rule for CacheBesideItsNext {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        // Values that a loop stacks up for its gradient are another rule's.
        let Some(program) = evidence.program().filter(|program| !program.has_gradient) else { return Vec::new() };
        // Gathers that the compiler turns into loops keep their names.
        let is_own = |at: &Instruction<'_>| {
            !op_name(at).is_some_and(|name| name.rsplit('/').next().is_some_and(|last| last.contains("gather")))
        };
        let loops = program.module.instructions().filter(|at| at.opcode() == Opcode::While && is_own(at));
        loops.filter_map(|around| proposal(program, &around)).chain(of_slices(program)).collect()
    }
}

/// Slices of donated caches that are written one by one, all of them in memory before they are stacked up again.
fn of_slices(program: &ProgramModel<'_>) -> Option<Proposal> {
    let aliases = program.module.input_output_aliases().ok()?;
    let donated: HashSet<usize> = aliases.iter().map(|alias| alias.parameter_number).collect();
    let is_donated = |at: &&Instruction<'_>| at.parameter_number().is_some_and(|number| donated.contains(&number));
    // Caches by the bounds of a slice, each with its number of slices.
    let mut caches: HashMap<Vec<u64>, Vec<(String, u64)>> = HashMap::default();
    for cache in program.parameters().iter().filter(is_donated) {
        if let Some([count, slice @ ..]) = bounds(cache).as_deref().filter(|bounds| bounds.len() > 2) {
            caches.entry(slice.to_vec()).or_default().push((name(cache), *count));
        }
    }
    // Slices that are only read may be parts of any array.
    let updates = program.module.instructions().filter(|at| at.opcode() == Opcode::DynamicUpdateSlice);
    let written: HashSet<Vec<u64>> = updates.filter_map(|at| bounds(&at)).collect();
    let mut taken: BTreeMap<&[u64], Vec<&LiveArray<'_>>> = BTreeMap::new();
    let is_part =
        |at: &Instruction<'_>| any_fused(at, |at| matches!(at.opcode(), Opcode::Slice | Opcode::DynamicUpdateSlice));
    let parts = program.peak_temporaries().filter(|array| is_part(&array.instruction));
    for array in parts.filter(|array| written.contains(&array.bounds)) {
        taken.entry(&array.bounds).or_default().push(array);
    }
    let of_caches = taken.into_iter().filter_map(|(slice, arrays)| Some((caches.get(slice)?, arrays)));
    let bytes = |arrays: &[&LiveArray<'_>]| arrays.iter().fold(0, |sum: u64, array| sum.saturating_add(array.bytes));
    let (caches, arrays) = of_caches.max_by_key(|(_, arrays)| bytes(arrays))?;
    let slices = caches.iter().map(|(_, count)| *count).max().filter(|count| *count > 1)?;
    // A single slice may be of a layer that is kept apart.
    if arrays.len() < 2 {
        return None;
    }
    let finding = StackedCache {
        names: caches.iter().map(|(name, _)| name.clone()).collect(),
        steps: slices,
        source: None,
        is_unrolled: true,
        is_donated: true,
    };
    let proposal = Proposal::new(Finding::StackedCache(finding), Target::Argument, program.advised(arrays[0])).bound();
    Some(proposal.at_most(arrays.iter().map(|array| (array.buffer, 0))))
}

fn proposal<'m>(program: &ProgramModel<'m>, around: &Instruction<'m>) -> Option<Proposal> {
    let steps = program.flow.trip_count(program.flow.op(around)?).filter(|steps| *steps > 1)?;
    let stack = Stack::of(around)?;
    let mut read: Vec<usize> = stack.read.clone();
    let (mut arrays, mut names): (Vec<&LiveArray<'m>>, Vec<String>) = (Vec::new(), Vec::new());
    // A returned new cache could reuse the argument that it replaces.
    let results = || program.results().filter(|array| array.instruction.opcode() != Opcode::Parameter);
    for number in &stack.written {
        let bounds = stack.bounds(*number)?;
        let is_stacked = bounds.first() == Some(&steps);
        let alike = read.iter().position(|other| stack.bounds(*other).as_ref() == Some(&bounds));
        let (true, Some(alike)) = (is_stacked, alike) else { continue };
        let given = stack.start(read.swap_remove(alike));
        let held = program
            .peak_temporaries()
            .chain(results())
            .find(|array| array.bounds == bounds && stack.is_held_in(program, *number, array));
        let Some(held) = held else { continue };
        arrays.push(held);
        let given = given.filter(|given| given.opcode() == Opcode::Parameter && given.computation().is_entry());
        names.extend(given.map(|given| name(&given)));
    }
    // An array that the program makes itself, such as a recurrence's inputs, isn't a cache.
    let is_given = |array: &LiveArray<'_>| program.arguments().any(|of| of.elements() == array.elements());
    let largest = *arrays.iter().max_by_key(|array| array.bytes).filter(|array| is_given(array))?;
    let finding = Finding::StackedCache(StackedCache {
        names,
        steps,
        source: source_line(around),
        is_unrolled: false,
        is_donated: arrays.iter().all(|array| array.role != Role::Output),
    });
    let buffers: HashSet<usize> = arrays.iter().map(|array| array.buffer).collect();
    let proposal = Proposal::new(finding, Target::Loop, program.advised(largest));
    Some(proposal.at_most(buffers.into_iter().map(|buffer| (buffer, 0))))
}

/// A loop's carry, with the elements that are read and written by slices.
pub(super) struct Stack<'m> {
    carry: Carry<'m>,
    /// Elements that no step changes, and that are only read by slices.
    pub(super) read: Vec<usize>,
    /// Elements that each step writes a slice of.
    pub(super) written: Vec<usize>,
}

impl<'m> Stack<'m> {
    pub(super) fn of(around: &Instruction<'m>) -> Option<Self> {
        let carry = Carry::of(around)?;
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for (number, next) in carry.next().iter().enumerate() {
            if carry.element(next) == Some(number) {
                read.push(number);
            } else if carry.writer(number, next).is_some() {
                written.push(number);
            }
        }
        // Elements with other readers are needed whole.
        for at in carry.turn().filter(|at| !takes_slices(at)) {
            let whole: HashSet<usize> = carry.read_by(&at).collect();
            read.retain(|number| !whole.contains(number));
        }
        Some(Self { carry, read, written })
    }

    pub(super) fn bounds(&self, number: usize) -> Option<Vec<u64>> {
        self.carry.bounds(number)
    }

    /// The initial value of an element, not its copy.
    pub(super) fn start(&self, number: usize) -> Option<Instruction<'m>> {
        let mut element = self.carry.start(number)?;
        while element.opcode() == Opcode::Copy {
            element = element.operands().next()?.instruction()?;
        }
        Some(element)
    }

    /// The type of the values from which a step's slice of a written element is made one by one, if it is narrower than theirs.
    pub(super) fn narrower(&self, number: usize) -> Option<ElementType> {
        let next = self.carry.next().get(number)?;
        let writer = self.carry.writer(number, next)?;
        let bits = writer.shape().ok()?.element_type()?.bits();
        let slice = elements(self.bounds(number)?.get(1..)?);
        let of_slice = writer.operands().filter_map(|operand| operand.instruction());
        let mut types = of_slice.filter(|at| count(at) == Some(slice)).map(|at| at.shape().ok()?.element_type());
        let narrower = types.next()??;
        (narrower.bits() < bits && types.next().is_none()).then_some(narrower)
    }

    /// Whether an array is this element, or its initial value.
    pub(super) fn is_held_in(&self, program: &ProgramModel<'_>, number: usize, array: &LiveArray<'_>) -> bool {
        self.start(number).is_some_and(|start| start.index() == array.instruction.index())
            || self.carry.is_whole(array.instruction.index()) && program.flow.leaves_before(array.position) == number
    }
}

fn takes_slices(at: &Instruction<'_>) -> bool {
    any_fused(at, |at| at.opcode() == Opcode::DynamicSlice) || at.opcode() == Opcode::AsyncStart
}
