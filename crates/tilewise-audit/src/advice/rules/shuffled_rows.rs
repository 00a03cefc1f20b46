//! Rows that are gathered all at once before a loop that takes a part of them in each step, such as shuffled samples in
//! minibatches. Gathered in the loop, one part is in memory at a time.

use super::narrow_rows::is_gather;
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, ShuffledRows},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{any_fused, is_elementwise, source_line},
};
use tilewise_hlo::{
    Opcode,
    dataflow::{OpId, Use},
};
use tilewise_memory::Machine;

pub(crate) struct RowsBeforeALoop;

impl Rule for RowsBeforeALoop {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let Some(program) = evidence.program() else { return Vec::new() };
        let gathered = program.peak_temporaries().filter(|array| is_gather(&array.instruction));
        let mut loops: Vec<(OpId, Vec<&LiveArray<'_>>)> = Vec::new();
        for array in gathered {
            let (arrays, rows) = as_taken(program, array);
            let Some(around) = loop_that_takes_parts(program, rows) else { continue };
            match loops.iter_mut().find(|(known, _)| *known == around) {
                Some((_, known)) => known.extend(arrays),
                None => loops.push((around, arrays)),
            }
        }
        loops.iter().filter_map(|(around, arrays)| proposal(program, *around, arrays)).collect()
    }
}

/// The gathered rows as a loop takes them, with all arrays of them: `jnp.take` masks rows that aren't there.
fn as_taken<'p, 'm>(
    program: &'p ProgramModel<'m>,
    gathered: &'p LiveArray<'m>,
) -> (Vec<&'p LiveArray<'m>>, &'p LiveArray<'m>) {
    let masked = || {
        let mut readers = program.flow.readers(gathered.position);
        let (Some(Use::Read(only)), None) = (readers.next(), readers.next()) else { return None };
        let masks = program.flow.instruction(only).is_some_and(|at| is_elementwise(&at));
        program.temporaries().find(|array| masks && array.op == only && array.elements() == gathered.elements())
    };
    masked().map_or_else(|| (vec![gathered], gathered), |rows| (vec![gathered, rows], rows))
}

/// The loop whose steps each read another part of the array; `None` if anything else reads it.
fn loop_that_takes_parts(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> Option<OpId> {
    let mut found = None;
    for reader in program.flow.readers(array.position) {
        let Use::Read(reader) = reader else { return None };
        let around = program.flow.caller(reader)?;
        let trips = program.flow.trip_count(around).filter(|trips| *trips > 1)?;
        let takes_part = any_fused(&program.flow.instruction(reader)?, |at| {
            let shape = at.shape().ok().filter(|_| at.opcode() == Opcode::DynamicSlice);
            let mut bounds = shape.iter().flat_map(|shape| shape.dimensions()).map(|dimension| dimension.bound());
            let elements = bounds.try_fold(trips, |product, bound| product.checked_mul(bound?));
            elements == Some(array.elements())
        });
        if !takes_part || *found.get_or_insert(around) != around {
            return None;
        }
    }
    found
}

fn proposal(program: &ProgramModel<'_>, around: OpId, arrays: &[&LiveArray<'_>]) -> Option<Proposal> {
    let steps = program.flow.trip_count(around)?;
    let largest = *arrays.iter().max_by_key(|array| array.bytes)?;
    let source = program.flow.instruction(around).and_then(|around| source_line(&around));
    let finding = Finding::ShuffledRows(ShuffledRows { steps, others: arrays.len() - 1, source });
    let proposal = Proposal::new(finding, Target::Loop, program.advised(largest)).bound();
    // The part that a step gathers takes the place of the slice that it takes now.
    Some(proposal.at_most(arrays.iter().map(|array| (array.buffer, 0))))
}
