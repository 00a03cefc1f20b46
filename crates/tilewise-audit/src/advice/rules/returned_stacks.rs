//! Results that a loop stacks up, a slice in each step, in a program that doesn't fit: it may return less of each step.

use super::stacked_cache::Stack;
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, ReturnedStack},
        program::{LiveArray, ProgramModel},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
    },
    program::source_line,
};
use std::cmp::Reverse;
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Machine;

/// Returned stacks matter from this part of the program's bytes on.
const MUCH: u64 = 8;

pub(crate) struct ResultsOfALoop;

impl Rule for ResultsOfALoop {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        // Of a program that fits, the results are wanted as they are.
        let Some(program) = evidence.program().filter(|program| program.is_too_large()) else { return Vec::new() };
        let loops = program.module.instructions().filter(|at| at.opcode() == Opcode::While);
        loops.filter_map(|around| proposal(program, &around)).collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>, around: &Instruction<'m>) -> Option<Proposal> {
    let steps = program.flow.trip_count(program.flow.op(around)?).filter(|steps| *steps > 1)?;
    let stack = Stack::of(around)?;
    let mut arrays: Vec<&LiveArray<'m>> = Vec::new();
    for number in &stack.written {
        let bounds = stack.bounds(*number).filter(|bounds| bounds.first() == Some(&steps) && bounds.len() > 1);
        let mut results = program.results().filter(|array| Some(&array.bounds) == bounds.as_ref());
        arrays.extend(results.find(|array| {
            stack.is_held_in(program, *number, array) && !arrays.iter().any(|known| known.buffer == array.buffer)
        }));
    }
    arrays.sort_by_key(|array| Reverse(array.bytes));
    let largest = *arrays.first()?;
    let bytes = arrays.iter().map(|array| array.bytes).fold(0, u64::saturating_add);
    if bytes < program.total_bytes / MUCH {
        return None;
    }
    let source = source_line(around);
    let about = AdvisedArray { source: source.clone(), ..program.advised(largest) };
    let finding = Finding::ReturnedStack(ReturnedStack { steps, arrays: arrays.len(), bytes, source });
    let proposal = Proposal::new(finding, Target::Result, about).bound();
    Some(proposal.at_most(arrays.iter().map(|array| (array.buffer, array.bytes / steps))))
}
