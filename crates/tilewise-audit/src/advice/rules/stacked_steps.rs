//! Arrays that a loop stacks up, a slice in each step, in a program that doesn't fit: where they are only returned, or little
//! is made of them, it may take less of each step.

use super::stacked_cache::Stack;
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, OfStep, StackedSteps},
        program::{LiveArray, ProgramModel},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
    },
    program::{any_fused, count, elements, source_line},
};
use std::cmp::Reverse;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Position, Use},
};
use tilewise_memory::Machine;

/// Returned stacks matter from this part of the program's bytes on.
const MUCH: u64 = 8;

/// Less than this part of a stack is little of it.
const LITTLE: u64 = 4;

pub(crate) struct ResultsOfALoop;

impl Rule for ResultsOfALoop {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        // Of a program that fits, the results are wanted as they are.
        let Some(program) = evidence.program().filter(|program| program.is_too_large()) else { return Vec::new() };
        let loops = program.module.instructions().filter(|at| at.opcode() == Opcode::While);
        let both = |around| [true, false].into_iter().filter_map(move |results| proposal(program, &around, results));
        loops.flat_map(both).collect()
    }
}

/// The proposal for stacks that are results, or for those of which little is made.
fn proposal<'m>(program: &ProgramModel<'m>, around: &Instruction<'m>, are_results: bool) -> Option<Proposal> {
    let steps = program.flow.trip_count(program.flow.op(around)?).filter(|steps| *steps > 1)?;
    let stack = Stack::of(around)?;
    let mut arrays: Vec<(&LiveArray<'m>, OfStep)> = Vec::new();
    for number in &stack.written {
        let bounds = stack.bounds(*number).filter(|bounds| bounds.first() == Some(&steps) && bounds.len() > 1);
        let is_new = |array: &&LiveArray<'m>| {
            Some(&array.bounds) == bounds.as_ref() && !arrays.iter().any(|(known, _)| known.buffer == array.buffer)
        };
        let (found, enough): (Vec<&LiveArray<'m>>, OfStep) = if are_results {
            let mut results = program.results().filter(is_new);
            let found = results.find(|array| stack.is_held_in(program, *number, array));
            (found.into_iter().collect(), stack.narrower(*number).map_or(OfStep::Returned, OfStep::Narrower))
        } else {
            let Some(element) = element(program, around, *number) else { continue };
            let origin = program.flow.origin(element);
            // A copy in another layout, too.
            let is_it = |array: &&LiveArray<'m>| {
                stack.is_held_in(program, *number, array) || program.flow.origin(array.position) == origin
            };
            let found = program.peak_temporaries().filter(is_new).filter(is_it);
            let found = found.filter(|_| makes_little(program, around, element)).collect();
            (found, if is_last_read(program, element, steps) { OfStep::Last } else { OfStep::Made })
        };
        arrays.extend(found.into_iter().map(|array| (array, enough)));
    }
    arrays.sort_by_key(|(array, _)| Reverse(array.bytes));
    let (largest, enough) = *arrays.first()?;
    let bytes = arrays.iter().map(|(array, _)| array.bytes).fold(0, u64::saturating_add);
    if bytes < program.total_bytes / MUCH {
        return None;
    }
    let is_of_all = arrays.iter().all(|(_, of)| *of == enough);
    let enough = if is_of_all { enough } else { [OfStep::Made, OfStep::Returned][usize::from(are_results)] };
    let left = |array: &LiveArray<'_>| match enough {
        OfStep::Narrower(narrower) => {
            array.bytes / u64::from(array.element_type().bits() / narrower.bits().max(1)).max(1)
        }
        OfStep::Last => 0,
        _ => array.bytes / steps,
    };
    let source = source_line(around);
    let about = AdvisedArray { source: source.clone(), ..program.advised(largest) };
    let finding = Finding::StackedSteps(StackedSteps { steps, arrays: arrays.len(), enough, bytes, source });
    let target = if are_results { Target::Result } else { Target::Loop };
    let proposal = Proposal::new(finding, target, about).bound();
    Some(proposal.at_most(arrays.iter().map(|(array, _)| (array.buffer, left(array)))))
}

/// An element of a loop's result.
fn element(program: &ProgramModel<'_>, around: &Instruction<'_>, number: usize) -> Option<Position> {
    let result = program.flow.positions(program.flow.op(around)?).next()?;
    program.flow.element(result, number)
}

/// Whether all that reads an element of a loop's result, behind the loop and not in another one, makes little of it.
fn makes_little(program: &ProgramModel<'_>, around: &Instruction<'_>, element: Position) -> bool {
    let all = program.flow.shape(element).and_then(|shape| shape.bounds()).map(|bounds| elements(&bounds));
    let mut made = program.flow.readers(element).map(|found| match found {
        Use::Read(op) => {
            let reader = program.flow.instruction(op)?;
            let is_behind = reader.computation() == around.computation() && reader.opcode() != Opcode::While;
            count(&reader).filter(|_| is_behind)
        }
        _ => None,
    });
    let made = made.try_fold(0_u64, |sum, made| Some(sum.saturating_add(made?)));
    all.zip(made).is_some_and(|(all, made)| made > 0 && made <= all / LITTLE)
}

/// Whether each reader of a stack takes the slice of its last step alone.
fn is_last_read(program: &ProgramModel<'_>, element: Position, steps: u64) -> bool {
    let is_last = |at: &Instruction<'_>| {
        let limits = at.slice_limits().filter(|_| at.opcode() == Opcode::Slice);
        limits.and_then(|limits| limits.first().copied()).is_some_and(|of| (of.start, of.limit) == (steps - 1, steps))
    };
    let mut readers = program.flow.readers(element).peekable();
    let is_read = readers.peek().is_some();
    is_read
        && readers.all(|found| match found {
            Use::Read(op) => program.flow.instruction(op).is_some_and(|reader| any_fused(&reader, is_last)),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::super::looped::{Looped, STACKS};
    use crate::advice::{
        Recommendation,
        finding::{Finding, OfStep},
    };
    use tilewise::ElementType;

    /// 64 steps, 128 MiB.
    fn advice(turn: &str, end: &str) -> Vec<Recommendation> {
        let start = r#"ALL custom-call(), custom_call_target="AllocateBuffer""#;
        Looped { steps: 64, matrix: "512,1024", turn, start, end }.advice()
    }

    fn enough(turn: &str, end: &str) -> Option<OfStep> {
        advice(turn, end).iter().find_map(|one| match &one.finding {
            Finding::StackedSteps(stack) if stack.steps == 64 => Some(stack.enough),
            _ => None,
        })
    }

    #[test]
    fn less_is_stacked_where_little_is_read() {
        let end = "ROOT r.1 = f32[64,1,1024]{2,0,1:T(8,128)} slice(e), slice={[0:64], [3:4], [0:1024]}";
        assert_eq!(enough(STACKS, end), Some(OfStep::Made));
        let last = "ROOT r.1 = f32[1,512,1024]{2,1,0:T(8,128)} slice(e), slice={[63:64], [0:512], [0:1024]}";
        assert_eq!(enough(STACKS, last), Some(OfStep::Last));
        // All of it is read.
        assert_eq!(enough(STACKS, "ROOT r.1 = ALL exponential(e)"), None);
    }

    #[test]
    fn narrower_values_are_stacked_before_their_conversion() {
        let turn = "z = u8[512,1024]{1,0:T(8,128)(4,1)} convert(x)
  y = ONE negate(x)
  kept = ALL fusion(stack, z, i), kind=kLoop, calls=written";
        let returned = "ROOT r.1 = ALL get-tuple-element(w), index=2";
        assert_eq!(enough(STACKS, returned), Some(OfStep::Returned));
        assert_eq!(enough(turn, returned), Some(OfStep::Narrower(ElementType::U8)));
    }
}
