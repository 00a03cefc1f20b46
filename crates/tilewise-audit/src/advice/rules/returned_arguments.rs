//! Results that are arguments, unchanged, in a program that doesn't fit: each is a copy of what the caller has.

use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::Finding,
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::name,
};
use foldhash::HashSet;
use std::iter::successors;
use tilewise_hlo::{Instruction, Opcode};
use tilewise_memory::Machine;

pub(crate) struct UnchangedResults;

impl Rule for UnchangedResults {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let Some(program) = evidence.program().filter(|program| program.may_be_too_large()) else { return Vec::new() };
        let returned = returned(program);
        let unchanged = |array: &LiveArray<'_>| {
            let argument = argument(&array.instruction).filter(|argument| returned.contains(&argument.index()))?;
            Some(name(&argument))
        };
        let arrays: Vec<_> = program.results().filter_map(|array| Some((array, unchanged(array)?))).collect();
        let Some((largest, _)) = arrays.iter().max_by_key(|(array, _)| array.bytes) else { return Vec::new() };
        let names: Vec<String> = arrays.iter().map(|(_, name)| name.clone()).collect();
        let finding = Finding::ReturnedArguments(program.in_whole(&names));
        let proposal = Proposal::new(finding, Target::Result, program.advised(largest)).bound();
        vec![proposal.at_most(arrays.iter().map(|(array, _)| (array.buffer, 0)))]
    }
}

/// The arguments that are results: a loop may change the copy that it is given.
fn returned(program: &ProgramModel<'_>) -> HashSet<usize> {
    let flow = program.flow;
    let results = flow.entry().map(|entry| flow.result(entry));
    let origins = results.into_iter().flat_map(|result| flow.within(result)).map(|position| flow.origin(position));
    origins.filter_map(|origin| flow.instruction(flow.op_at(origin))).map(|at| at.index()).collect()
}

/// The argument that an instruction copies.
fn argument<'m>(at: &Instruction<'m>) -> Option<Instruction<'m>> {
    /// Copies in a row.
    const MOST: usize = 4;

    let copied = |at: &Instruction<'m>| {
        let is_copy = matches!(at.opcode(), Opcode::Copy | Opcode::CopyDone | Opcode::CopyStart | Opcode::Bitcast);
        is_copy.then(|| at.operands().next()?.instruction()).flatten()
    };
    let is_argument = |at: &Instruction<'_>| at.opcode() == Opcode::Parameter && at.computation().is_entry();
    successors(copied(at), copied).take(MOST).find(is_argument)
}
