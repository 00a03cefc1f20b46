//! Rows that are gathered all at once, and of which a loop takes a part in each step, as shuffled samples are cut into
//! minibatches: gathered in the loop, one part lies in memory at a time.

use super::upstream::is_gather;
use crate::{
    advice::{
        program::{BufferChanges, LiveArray, ProgramModel},
        recommendation::{Change, Target},
        rule::{Proposal, Rule},
        snippet::JAX,
        words::bounds_text,
    },
    program::{any_fused, at_line},
};
use tilewise_hlo::{
    Opcode,
    dataflow::{OpId, Use},
};
use tilewise_memory::Machine;

pub(crate) struct ShuffledRows;

impl Rule for ShuffledRows {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
        let gathered = program.peak_temporaries().filter(|array| is_gather(&array.instruction));
        let mut loops: Vec<(OpId, Vec<&LiveArray<'_>>)> = Vec::new();
        for (array, around) in gathered.filter_map(|array| Some((array, loop_that_takes_parts(program, array)?))) {
            match loops.iter_mut().find(|(known, _)| *known == around) {
                Some((_, arrays)) => arrays.push(array),
                None => loops.push((around, vec![array])),
            }
        }
        loops.iter().filter_map(|(around, arrays)| proposal(program, *around, arrays)).collect()
    }
}

/// The loop of which each step reads another part of the array, where nothing else reads it.
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

fn proposal<'m>(program: &ProgramModel<'m>, around: OpId, arrays: &[&LiveArray<'m>]) -> Option<Proposal> {
    let trips = program.flow.trip_count(around)?;
    let largest = *arrays.iter().max_by_key(|array| array.bytes)?;
    let others = match arrays.len() {
        1 => String::new(),
        2 => ", and the other array that is gathered so".to_owned(),
        count => format!(", and the {} others that are gathered so", count - 1),
    };
    let sentence = format!(
        "Gather the rows of [{}]{} inside the loop{}, in each of its {trips} steps those that it takes{others}: gathered \
         before it, all of them lie in memory for all of its steps",
        bounds_text(&largest.bounds),
        at_line(&largest.instruction),
        program.flow.instruction(around).map(|around| at_line(&around)).unwrap_or_default(),
    );
    let code = format!(
        "def step_of(carry, rows):\n    return step(carry, jax.tree.map(lambda x: x[rows], data))\n\
         carry, ys = jax.lax.scan(step_of, carry, order.reshape({trips}, -1))  # data: not shuffled; order: of its rows"
    );
    Some(Proposal {
        buffers: BufferChanges {
            at_most: arrays.iter().map(|array| (array.buffer, array.bytes.div_ceil(trips))).collect(),
            ..BufferChanges::default()
        },
        is_bound: true,
        snippet: program.snippet(JAX, code),
        ..Proposal::new(Change::Chunk, Target::Loop, program.advised(largest), sentence)
    })
}
