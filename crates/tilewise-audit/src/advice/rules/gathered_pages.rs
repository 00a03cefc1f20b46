//! Pages of a cache, gathered whole: their short last dimension fills few of the lanes, merged with the one before all.

use super::upstream::{is_gather, of_few, table};
use crate::{
    advice::{
        program::{BufferChanges, LiveArray, ProgramModel},
        recommendation::{Change, Target},
        rule::{Proposal, Rule},
        words::bounds_text,
    },
    program::{at_line, name},
};
use tilewise_hlo::Instruction;

/// A last dimension of this size fills the lanes.
const LANES: u64 = 128;

pub(crate) struct GatheredPages;

impl Rule for GatheredPages {
    fn propose(&self, program: &ProgramModel<'_>) -> Vec<Proposal> {
        let mut pages = program.peak_temporaries().filter_map(|array| {
            let table = table(program, &program.made_by(array.op, is_gather)?)?;
            is_of_pages(array, &table).then_some((array, table))
        });
        pages.next().and_then(|(array, table)| proposal(program, array, &table)).into_iter().collect()
    }
}

/// Whether an array has the last two dimensions of the table, the last along the lanes, padded by half or more. Rows of a
/// few columns are rather taken apart.
fn is_of_pages(array: &LiveArray<'_>, table: &Instruction<'_>) -> bool {
    let Some(bounds) = bounds(table).filter(|bounds| bounds.len() >= 3) else { return false };
    let last = array.bounds.len().saturating_sub(1);
    let is_along_lanes = array.minor_to_major().first() == Some(&last) && array.bounds.last() < Some(&LANES);
    let is_padded = array.bytes >= array.logical_bytes().saturating_mul(3) / 2;
    array.bounds.len() >= 3
        && array.bounds.ends_with(&bounds[1..])
        && is_along_lanes
        && is_padded
        && of_few(array).is_none()
}

fn proposal<'m>(program: &ProgramModel<'m>, pages: &LiveArray<'m>, table: &Instruction<'m>) -> Option<Proposal> {
    let (name, of_table) = (name(table), bounds(table)?);
    let merged = |array: &LiveArray<'m>| program.default_bytes(array.element_type(), &merged(&array.bounds)?);
    let alike = program.temporaries().filter(|array| array.bounds == pages.bounds);
    let at_most = alike.filter_map(|array| Some((array.buffer, merged(array)?))).collect();
    let width = pages.bounds.last()?;
    let sentence = format!(
        "Keep `{name}` as [{}] between calls, its last two dimensions merged, and take each {width} of the last where they are \
         used: what is gathered{} fills {width} of {LANES} lanes, and a reshape back would, too",
        bounds_text(&self::merged(&of_table)?),
        at_line(&pages.instruction)
    );
    Some(Proposal {
        buffers: BufferChanges { at_most, ..BufferChanges::default() },
        is_bound: true,
        ..Proposal::new(Change::Reshape, Target::Argument, program.advised(pages), sentence)
    })
}

/// `[2048,16,512]` of `[2048,16,8,64]`
fn merged(bounds: &[u64]) -> Option<Vec<u64>> {
    let (&[before, last], rest) = (bounds.last_chunk()?, bounds.get(..bounds.len().checked_sub(2)?)?);
    Some([rest, &[before.checked_mul(last)?]].concat())
}

fn bounds(at: &Instruction<'_>) -> Option<Vec<u64>> {
    at.shape().ok()?.dimensions().iter().map(|dimension| dimension.bound()).collect()
}
