//! A cache that a loop or a kernel holds row-major: heads of fewer than 128 numbers fill few lanes, and few heads fill
//! few rows. With its last two dimensions merged, it fills both.

use super::gathered_pages::{LANES, fills_few_lanes, merged};
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, PaddedHeads},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::name,
};
use foldhash::HashSet;
use tilewise::Shape;
use tilewise_hlo::Opcode;

pub(crate) struct CacheOfPaddedHeads;

impl Rule for CacheOfPaddedHeads {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        evidence.program().and_then(proposal).into_iter().collect()
    }
}

fn proposal(program: &ProgramModel<'_>) -> Option<Proposal> {
    // A program that takes a gradient has no cache.
    let padded = program.peak_temporaries().filter(|array| !program.has_gradient && fills_few_lanes(program, array));
    let largest = padded.max_by_key(|array| array.bytes)?;
    let is_it = |shape: &Shape| shape.bounds().as_ref() == Some(&largest.bounds);
    let result = program.module.entry().and_then(|entry| entry.root()?.shape().ok())?;
    let given = program.parameters().into_iter().filter(|at| at.shape().is_ok_and(|shape| is_it(&shape)));
    let names: Vec<String> = given.map(|argument| name(&argument)).collect();
    let is_state = !names.is_empty() && result.leaves().any(|(_, leaf)| is_it(&leaf));
    let merged = merged(&largest.bounds).filter(|merged| is_state && merged.last() >= Some(&LANES))?;
    let taken = program.default_bytes(largest.element_type(), &merged)?;
    let finding = PaddedHeads { names: program.in_whole(&names), merged, width: *largest.bounds.last()? };
    let alike = program.arrays.iter().filter(|array| array.bounds == largest.bounds);
    // A kernel then reads the argument itself.
    let of_kernels = read_by_kernels(program);
    let left = |array: &LiveArray<'_>| if of_kernels.contains(&array.buffer) { 0 } else { taken };
    let proposal = Proposal::new(Finding::PaddedHeads(finding), Target::Argument, program.advised(largest)).bound();
    Some(proposal.at_most(alike.map(|array| (array.buffer, left(array)))))
}

/// The buffers that kernels read.
fn read_by_kernels(program: &ProgramModel<'_>) -> HashSet<usize> {
    let is_kernel = |op| program.flow.instruction(op).is_some_and(|at| at.opcode() == Opcode::CustomCall);
    let temporaries = program.temporaries();
    temporaries.filter(|array| program.readers(array.position).any(is_kernel)).map(|array| array.buffer).collect()
}
