//! Operands and results of a user's own kernel, with rows of a few columns: it could take them transposed.

use super::narrow_rows::narrow_rows;
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, KernelColumns},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{MOSAIC, source_line},
};
use tilewise_hlo::Instruction;

pub(crate) struct KernelOfFewColumns;

impl Rule for KernelOfFewColumns {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let Some(program) = evidence.program() else { return Vec::new() };
        let mut kernels: Vec<(Instruction<'_>, Vec<&LiveArray<'_>>)> = Vec::new();
        for array in program.arrays.iter().filter(|array| array.is_at_peak && narrow_rows(program, *array).is_some()) {
            let Some(kernel) = kernel_of(program, array) else { continue };
            match kernels.iter_mut().find(|(known, _)| known.index() == kernel.index()) {
                Some((_, arrays)) => arrays.push(array),
                None => kernels.push((kernel, vec![array])),
            }
        }
        kernels.iter().filter_map(|(kernel, arrays)| proposal(program, kernel, arrays)).collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>, kernel: &Instruction<'m>, arrays: &[&LiveArray<'m>]) -> Option<Proposal> {
    let largest = *arrays.iter().max_by_key(|array| array.bytes)?;
    // Arrays made of its results, and sources of its operands, have the kernel's order, too.
    let same =
        program.temporaries().filter(|same| same.bounds == largest.bounds && narrow_rows(program, *same).is_some());
    let taken =
        |array: &LiveArray<'m>| Some((array.buffer, program.default_bytes(array.element_type(), &transposed(array)?)?));
    let finding = KernelColumns { transposed: transposed(largest)?, source: source_line(kernel) };
    let proposal = Proposal::new(Finding::KernelColumns(finding), Target::Kernel, program.advised(largest));
    Some(proposal.at_most(arrays.iter().copied().chain(same).filter_map(taken)))
}

/// The kernel that makes or reads an array.
fn kernel_of<'m>(program: &ProgramModel<'m>, array: &LiveArray<'m>) -> Option<Instruction<'m>> {
    let is_kernel = |instruction: &Instruction<'m>| instruction.custom_call_target() == Some(MOSAIC);
    if is_kernel(&array.instruction) {
        return Some(array.instruction);
    }
    program.readers(array.position).filter_map(|op| program.flow.instruction(op)).find(is_kernel)
}

/// The bounds with the columns before the rows, which then lie along the lanes; `None` for fewer than two dimensions.
fn transposed(array: &LiveArray<'_>) -> Option<Vec<u64>> {
    let minor = *array.minor_to_major().first()?;
    let mut bounds = array.bounds.clone();
    if minor >= bounds.len() {
        return None;
    }
    let columns = bounds.remove(minor);
    bounds.insert(bounds.len().checked_sub(1)?, columns);
    Some(bounds)
}
