//! Small matrices that a loop stacks up, one for each step: each fills a tile of its own, and as one row only a row of one.

use super::stacked_cache::Stack;
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, FlatStack},
        program::{LiveArray, ProgramModel},
        recommendation::AdvisedArray,
        rule::{Proposal, Rule},
    },
    program::source_line,
};
use foldhash::HashSet;
use tilewise::tpu;
use tilewise_hlo::Instruction;

/// The arrays matter from this part of the program's bytes on.
const MUCH: u64 = 8;

/// Larger matrices fill tiles between their edges, and the compiler lays them out for their readers.
const SMALL: u64 = 8 * 128;

/// Rows take at most this part of what matrices do.
const FLAT: u64 = 2;

pub(crate) struct MatricesOfALoop;

impl Rule for MatricesOfALoop {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        // The stacks of a gradient aren't the reader's own.
        let Some(program) = evidence.program().filter(|program| !program.has_gradient) else { return Vec::new() };
        let mut matrices: HashSet<Vec<u64>> = HashSet::default();
        let loops = program.module.instructions().filter(|at| program.own_loops.contains(&at.index()));
        let found = loops.filter_map(|around| {
            let (matrix, proposal) = proposal(program, &around)?;
            matrices.insert(matrix).then_some(proposal)
        });
        found.collect()
    }
}

/// The proposal for the largest stack of matrices that a loop writes, with the matrix's bounds.
fn proposal<'m>(program: &ProgramModel<'m>, around: &Instruction<'m>) -> Option<(Vec<u64>, Proposal)> {
    let steps = program.flow.trip_count(program.flow.op(around)?).filter(|steps| *steps > 1)?;
    let stack = Stack::of(around)?;
    let written: HashSet<Vec<u64>> = stack.written.iter().filter_map(|number| stack.bounds(*number)).collect();
    let is_written = |array: &&LiveArray<'m>| array.bounds.first() == Some(&steps) && written.contains(&array.bounds);
    // The bytes of an array of rows, if that is much less.
    let flat = |array: &LiveArray<'m>| {
        let [count, matrix @ ..] = &array.bounds[..] else { return None };
        let row = matrix.iter().try_fold(1_u64, |all, bound| all.checked_mul(*bound))?;
        // A step writes its row, so that the rows are whole.
        let rows = tpu::layout_for_order(array.element_type(), &[*count, row], &[1, 0], program.generation).ok()?;
        let bytes = rows.as_array()?.sizes().ok()?.physical_bytes;
        (matrix.len() > 1 && row <= SMALL && bytes <= array.bytes / FLAT).then_some(bytes)
    };
    let largest = program.peak_temporaries().filter(is_written).filter(|array| flat(array).is_some());
    let largest = largest.max_by_key(|array| array.bytes)?;
    let matrix = largest.bounds[1..].to_vec();
    // Slices of the stacks, and those of a loop that goes on with them.
    let is_alike = |array: &&LiveArray<'m>| array.bounds.get(1..) == Some(&matrix);
    let alike = || program.temporaries().filter(is_alike);
    let bytes = program.peak_temporaries().filter(is_alike).map(|array| array.bytes).fold(0, u64::saturating_add);
    if bytes < program.total_bytes / MUCH {
        return None;
    }
    let source = source_line(around);
    let about = AdvisedArray { source: source.clone(), ..program.advised(largest) };
    let finding = Finding::FlatStack(FlatStack { steps, matrix: matrix.clone(), bytes, source });
    let proposal = Proposal::new(finding, Target::Loop, about).bound();
    let proposal = proposal.at_most(alike().filter_map(|array| Some((array.buffer, flat(array)?))));
    Some((matrix.clone(), proposal))
}

#[cfg(test)]
mod tests {
    use super::super::looped::{Looped, STACKS};
    use crate::advice::finding::Finding;

    #[test]
    fn a_matrix_of_each_step_is_a_row() {
        let saved = |matrix: &str| {
            let start = r#"ALL custom-call(), custom_call_target="AllocateBuffer""#;
            let end = "more = ALL exponential(e)
  ROOT r.1 = f32[65536]{0:T(1024)} custom-call(more), custom_call_target=\"f\"";
            let found = Looped { steps: 65_536, matrix, turn: STACKS, start, end }.advice();
            found.into_iter().find_map(|one| match one.finding {
                Finding::FlatStack(found) => Some((found.matrix, one.saving.bytes())),
                _ => None,
            })
        };
        // Of two arrays, 65,536 × 8 × 128 numbers become 65,536 × 128.
        assert_eq!(saved("6,6"), Some((vec![6, 6], Some((2 * (256 - 32)) << 20))));
        // A matrix that fills its tiles.
        assert_eq!(saved("8,128"), None);
    }
}
