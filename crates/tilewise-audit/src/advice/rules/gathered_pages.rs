//! Pages of a cache, gathered whole: their short last dimension fills few lanes; merged with the one before, it fills
//! all.

use super::narrow_rows::{is_gather, narrow_rows, table};
use crate::{
    advice::{
        change::Target,
        evidence::Evidence,
        finding::{Finding, GatheredPages},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::{bounds, name},
};
use tilewise_hlo::Instruction;

/// A last dimension of this size fills the lanes.
pub(super) const LANES: u64 = 128;

pub(crate) struct PagesOfACache;

impl Rule for PagesOfACache {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let Some(program) = evidence.program() else { return Vec::new() };
        let mut pages = program.peak_temporaries().filter_map(|array| {
            let table = table(program, &program.made_by(array.op, is_gather)?)?;
            is_of_pages(program, array, &table).then_some((array, table))
        });
        pages.next().and_then(|(array, table)| proposal(program, array, &table)).into_iter().collect()
    }
}

/// Whether an array has the last dimensions of the table, the last along the lanes, padded by half or more. Rows of a
/// few columns are split instead.
fn is_of_pages(program: &ProgramModel<'_>, array: &LiveArray<'_>, table: &Instruction<'_>) -> bool {
    let Some(bounds) = bounds(table).filter(|bounds| bounds.len() >= 3) else { return false };
    array.bounds.ends_with(&bounds[1..]) && fills_few_lanes(program, array)
}

/// Whether an array of three or more dimensions has the last along the lanes, padded by half or more, and isn't rows of
/// a few columns.
pub(super) fn fills_few_lanes(program: &ProgramModel<'_>, array: &LiveArray<'_>) -> bool {
    let last = array.bounds.len().saturating_sub(1);
    let is_along_lanes = array.minor_to_major().first() == Some(&last) && array.bounds.last() < Some(&LANES);
    let is_padded = array.bytes >= array.logical_bytes().saturating_mul(3) / 2;
    array.bounds.len() >= 3 && is_along_lanes && is_padded && narrow_rows(program, array).is_none()
}

fn proposal<'m>(program: &ProgramModel<'m>, pages: &LiveArray<'m>, table: &Instruction<'m>) -> Option<Proposal> {
    // At best, pages that fill their lanes lie in VMEM.
    let most = tilewise_kernel::vmem_bytes(program.generation).unwrap_or(0);
    let taken = |array: &LiveArray<'_>| {
        let bytes = program.default_bytes(array.element_type(), &merged(&array.bounds)?)?;
        Some(if bytes > most { bytes } else { 0 })
    };
    let alike = program.temporaries().filter(|array| array.bounds == pages.bounds);
    let finding =
        GatheredPages { argument: name(table), merged: merged(&bounds(table)?)?, width: *pages.bounds.last()? };
    let proposal = Proposal::new(Finding::GatheredPages(finding), Target::Argument, program.advised(pages)).bound();
    Some(proposal.at_most(alike.filter_map(|array| Some((array.buffer, taken(array)?)))))
}

/// The last two dimensions merged: `[2048,16,512]` from `[2048,16,8,64]`.
pub(super) fn merged(bounds: &[u64]) -> Option<Vec<u64>> {
    let (&[before, last], rest) = (bounds.last_chunk()?, bounds.get(..bounds.len().checked_sub(2)?)?);
    Some([rest, &[before.checked_mul(last)?]].concat())
}
