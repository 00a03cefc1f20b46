//! Transposes, of units of 1 to 16 bytes.
//!
//! The [micro-kernel](micro_kernel) transposes a block of as many rows as a cache line of the destination has units, by as many columns as a
//! vector has. Around it, [`strips`] reads long runs of the source and writes whole lines of each column; [`whole_columns`] serves short
//! columns that follow each other in the destination; and [`straddle`] writes the lines in which one column ends and the next begins.

mod grid;
mod micro_kernel;
mod straddle;
mod strip_prefetch;
mod strips;
mod whole_columns;

use super::{Body, Job, KernelState, repeat, store::Store, vector::Vector};
pub(crate) use grid::{Grid, Side, Stride};
use micro_kernel::{LINE, Scratch};

/// *Safety*: the [job contract](super); `K` units of `U` bytes make a lane of 16 bytes, and `N` a vector.
#[inline(always)]
pub(super) unsafe fn transpose<V: Vector, S: Store<V>, const U: usize, const K: usize, const N: usize>(
    job: &Job,
    state: &mut KernelState,
) {
    let Body::Transpose(grid) = job.body else { return };
    let whole_lines = grid.rows.count.is_multiple_of(LINE / U);
    if grid.is_linear() && grid.rows.count <= whole_columns::MOST_ROWS && (S::NON_TEMPORAL || !whole_lines) {
        // SAFETY: the job contract, of columns that follow each other and have no more rows.
        unsafe { whole_columns::transpose::<V, S, U, K, N>(job, state, &grid) };
        return;
    }
    let mut scratch = Scratch::new();
    repeat!(job, |from, to| {
        // SAFETY: the job contract, at each repeat.
        unsafe { strips::transpose::<V, U, K, N>(from, to, &grid, &mut scratch, S::NON_TEMPORAL, &state.tuning) }
    });
}

/// The columns before the first that starts a cache line in all rows; 0 if no column does.
fn unaligned_columns<V: Vector, const U: usize>(source: *const u8, rows: &Side) -> usize {
    let possible = rows.is_in_lines(rows.source_stride) && source.addr().is_multiple_of(U);
    if possible { source.addr().wrapping_neg() % LINE / U % (V::BYTES / U) } else { 0 }
}

/// The end of the first strip, at a multiple of strips: a page may end there, too, where the CPU's own prefetcher
/// stops. The columns after the first `unaligned` are a multiple of a vector.
fn first_strip(source: *const u8, unit: usize, strip: usize, (unaligned, wide): (usize, usize)) -> usize {
    let end = strip - source.addr() / unit % strip;
    let end = if end < strip / 2 { end + strip } else { end };
    end - (end - unaligned) % wide
}
