//! A large array that is quickly made anew of smaller ones, such as an argument in a wider type, and that is held because several
//! read it: the turns of a loop, or products before and behind one.

use super::{BLOCKS, MOST_TRIED, MUCH, ROWS, of_step};
use crate::{
    advice::{
        change::Target,
        finding::{Blocks, Finding},
        program::{LiveArray, ProgramModel},
        rule::Proposal,
    },
    program::{bounds, elements, keeps_indices, name, with_fused},
};
use std::cmp::Reverse;
use tilewise_hlo::{
    Instruction, Opcode,
    dataflow::{Event, EventKind, FactorKind},
};

/// Such an array takes this many times as much as those that it is made of.
const WIDER: u64 = 2;

/// The best blocks of such an array, with the bytes that they free, if `enough` gives them; of equals along the outermost dimension.
pub(in crate::advice) fn made_anew(
    program: &ProgramModel<'_>,
    enough: impl Fn(&Proposal) -> Option<u64>,
) -> Option<(u64, Proposal)> {
    if program.has_gradient {
        return None;
    }
    let mut large: Vec<&LiveArray<'_>> = program.peak_temporaries().collect();
    large.sort_by_key(|array| Reverse(array.bytes));
    large.truncate(MOST_TRIED);
    large.retain(|array| array.bytes > program.total_bytes / MUCH && is_of_smaller(array));
    let all = large.into_iter().flat_map(|array| {
        let dimensions = (0..array.bounds.len()).filter(|dimension| array.bounds[*dimension] >= ROWS);
        dimensions.filter_map(|dimension| along(program, array, dimension))
    });
    let found = all.filter_map(|proposal| Some((enough(&proposal)?, proposal)));
    found.reduce(|best, other| if other.0 > best.0 { other } else { best })
}

/// Whether each element follows from one of each operand alone, and these are much smaller together.
fn is_of_smaller(array: &LiveArray<'_>) -> bool {
    let at = &array.instruction;
    let is_fast = |at: Instruction<'_>| {
        keeps_indices(at.opcode()) || matches!(at.opcode(), Opcode::Fusion | Opcode::Copy | Opcode::Iota)
    };
    let operands = at.operands().filter_map(|of| of.instruction()).filter_map(|of| of.shape().ok());
    let bytes = operands.filter_map(|shape| Some(shape.as_array()?.sizes().ok()?.logical_bytes));
    let is_computed = !matches!(at.opcode(), Opcode::Parameter | Opcode::Constant) && at.computation().is_entry();
    let of_operands = bytes.fold(0, u64::saturating_add);
    is_computed && with_fused(*at).all(is_fast) && of_operands <= array.logical_bytes() / WIDER
}

/// Blocks along a dimension, if its positions meet in nothing large but sums.
fn along(program: &ProgramModel<'_>, array: &LiveArray<'_>, dimension: usize) -> Option<Proposal> {
    let axes = program.flow.axes();
    let (at, leaf) = program.flow.told(array.position)?;
    let rows = axes.of_dimension(&at, leaf, dimension);
    let size = rows.iter().map(|axis| axes.all()[*axis].size).fold(1, u64::saturating_mul);
    let blocks = (2..=BLOCKS).rev().find(|blocks| size.is_multiple_of(*blocks))?;
    let least = array.elements() / BLOCKS;
    let has_it = |at: &Instruction<'_>, leaf: usize| axes.in_array(at, leaf).iter().any(|axis| rows.contains(axis));
    let is_large = |at: &Instruction<'_>| {
        let is_its = (0..axes.leaves(at.index())).any(|leaf| has_it(at, leaf));
        is_its && bounds(at).is_some_and(|bounds| elements(&bounds) > least)
    };
    let (mut sums, mut of) = (0, None);
    for Event { instruction, kind, .. } in rows.iter().flat_map(|axis| axes.events(*axis)) {
        let at = program.module.instruction(*instruction)?;
        let reads_large = || at.operands().filter_map(|of| of.instruction()).any(|of| is_large(&of));
        match kind {
            EventKind::Argument(..) => of = of.or_else(|| Some(name(&at)).filter(|name| !name.is_empty())),
            EventKind::Made(FactorKind::Repeat) => {}
            EventKind::Ends(FactorKind::Sum) => sums += 1,
            // Small rows are joined for it.
            _ if is_large(&at) || reads_large() => return None,
            _ => {}
        }
    }
    let of_blocks = program.temporaries().filter(|array| {
        let told = program.flow.told(array.position);
        array.elements() > least && told.is_some_and(|(at, leaf)| has_it(&at, leaf))
    });
    let buffers: Vec<(usize, u64)> = of_blocks.map(|array| (array.buffer, array.bytes / blocks)).collect();
    let finding = Blocks { size, dimension, of, blocks, sums, ..Blocks::default() };
    let proposal = Proposal::new(Finding::Blocks(finding), Target::Value, program.advised(array)).bound();
    of_step(program, proposal.at_most(buffers))
}
