//! A smaller batch: the change without code for a program that doesn't fit.

use super::{
    finding::SmallerBatch,
    program::{BufferChanges, ProgramModel},
};
use crate::program::{name, root};
use foldhash::HashSet;
use std::iter::successors;

/// Most equal parts of a batch of which one is worth naming.
const MOST_PARTS: u64 = 4;

/// The batch that fits, of these inputs; `part` gives the bytes of each buffer with a part of the batch.
pub(super) fn smaller_batch(
    program: &ProgramModel<'_>,
    size: u64,
    inputs: &[(usize, Vec<String>)],
    part: impl Fn(u64) -> Vec<(usize, u64)>,
) -> Option<SmallerBatch> {
    let names: HashSet<&str> = inputs.iter().flat_map(|(_, names)| names).map(String::as_str).collect();
    let is_input = |name: &str| names.contains(name) || names.contains(root(name));
    let taken = |parts: u64| {
        let passed = program.arguments().filter(|array| is_input(&name(&array.instruction)));
        let passed = passed.map(|array| (array.buffer, array.bytes / parts));
        let changes = BufferChanges { at_most: part(parts).into_iter().chain(passed).collect(), ..Default::default() };
        (size / parts, program.total_with([&changes]))
    };
    // It fits even if a tenth less is freed.
    let fits = |after: u64| program.fits_without(program.total_bytes.saturating_sub(after) / 10 * 9);
    successors(Some(2_u64), |parts| parts.checked_mul(2))
        .take_while(|parts| *parts <= MOST_PARTS && size.is_multiple_of(*parts))
        .map(taken)
        .find(|(_, after)| fits(*after))
        .map(|(to, bytes_after)| SmallerBatch { size, to, bytes_after })
}
