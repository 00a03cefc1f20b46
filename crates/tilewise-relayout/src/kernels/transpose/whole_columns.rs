//! Transposes of short columns that follow each other in the destination, written in one piece.

use super::{
    first_strip,
    grid::Grid,
    micro_kernel::{LINE, ScratchLines, column_vector, stage_short_rows, transpose_lanes_to},
    strip_prefetch::StripPrefetch,
    unaligned_columns,
};
use crate::{
    kernels::{Job, KernelState, prefetch::Prefetch, repeat, store::Store, vector::Vector},
    tuning::Mechanism,
};
use core::mem::MaybeUninit;

/// Maximum rows of such a transpose.
pub(super) const MOST_ROWS: usize = 256;

/// How many bytes ahead of use a row is prefetched, if rows are prefetched in turn.
const ROW_DISTANCE: usize = 1024;

/// *Safety*: the [job contract](crate::kernels); the grid is linear and has at most [`MOST_ROWS`] rows.
#[inline(always)]
pub(super) unsafe fn transpose<V: Vector, S: Store<V>, const U: usize, const K: usize, const N: usize>(
    job: &Job,
    state: &mut KernelState,
    grid: &Grid,
) {
    #[repr(align(64))]
    struct Blocks([MaybeUninit<u8>; MOST_ROWS * LINE]);
    let mut blocks = Blocks([MaybeUninit::uninit(); MOST_ROWS * LINE]);
    let blocks = blocks.0.as_mut_ptr().cast::<u8>();
    let mut staged = ScratchLines::new();
    let (wide, deep) = (N, LINE / U);
    let (pitch, count) = (grid.rows.source_stride.step, grid.rows.count);
    // SAFETY: rows and columns are inside the grid; the blocks are read where they were written, the last one also where not all
    // rows are there.
    unsafe {
        if !count.is_multiple_of(deep) {
            blocks.add(count / deep * deep * V::BYTES).write_bytes(0, deep * V::BYTES);
        }
        let mut store = S::resume(state);
        let strip = state.tuning.column_strip_bytes / U;
        let prefetches = S::NON_TEMPORAL && state.tuning.has(Mechanism::StripPrefetch);
        repeat!(job, |from, to| {
            store.seek(to);
            let unaligned = if S::NON_TEMPORAL { unaligned_columns::<V, U>(from, &grid.rows) } else { 0 };
            let (mut column, mut end) = (0, 0);
            let mut later = StripPrefetch::new(from, grid.rows.places(grid.rows.source_stride, 0), 0, 0);
            while column < grid.columns.count {
                if column >= end && strip != 0 {
                    end = if column == 0 { first_strip(from, U, strip, (unaligned, wide)) } else { end + strip };
                    let bytes = strip.min(grid.columns.count.saturating_sub(end)) * U;
                    later = StripPrefetch::new(
                        from.wrapping_add(end * U),
                        grid.rows.places(grid.rows.source_stride, 0),
                        count,
                        bytes,
                    );
                }
                let wanted = if column == 0 && unaligned != 0 { unaligned } else { wide };
                let present = wanted.min(grid.columns.count - column);
                let at = from.wrapping_add(column * U);
                if prefetches {
                    later.read::<V>(count * V::BYTES / LINE);
                }
                for row in (0..count).step_by(deep) {
                    let present_rows = deep.min(count - row);
                    let mut rows = [at; LINE];
                    for (i, place) in rows.iter_mut().enumerate().take(present_rows) {
                        *place = at.wrapping_add((row + i) * pitch);
                        if prefetches && strip == 0 {
                            V::prefetch::<false>(place.wrapping_add(ROW_DISTANCE));
                        }
                    }
                    if present < wide {
                        stage_short_rows(&mut rows, present_rows, present * U, 0, &mut staged);
                    }
                    transpose_lanes_to::<V, U, K>(&rows, 0, present_rows.div_ceil(K), blocks.add(row * V::BYTES));
                }
                for column in 0..present {
                    for row in (0..count).step_by(deep) {
                        let block = blocks.add(row * V::BYTES);
                        let mut rest = deep.min(count - row) * U;
                        for part in 0..rest.div_ceil(V::BYTES) {
                            let vector = column_vector::<V, K>(block, column, part);
                            if rest >= V::BYTES {
                                store.push(vector);
                                rest -= V::BYTES;
                            } else {
                                let mut short = [0; LINE];
                                vector.store(short.as_mut_ptr());
                                store.copy(short.as_ptr(), rest, &mut Prefetch::nothing());
                            }
                        }
                    }
                }
                column += present;
            }
        });
        store.save(state);
    }
}
