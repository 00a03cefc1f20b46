//! Prefetching by strips: what a transpose reads after the strip it is in.

use super::{grid::Places, micro_kernel::LINE};
use crate::kernels::vector::Vector;

/// Prefetches what a transpose reads next: rows of a strip, one after the other.
pub(super) struct StripPrefetch {
    source: *const u8,
    rows: Places,
    rows_left: usize,
    /// Bytes of each row.
    row_bytes: usize,
    /// Where the row starts, and how much of it has been prefetched.
    row: *const u8,
    done: usize,
}

impl StripPrefetch {
    /// `count` rows of so many bytes, whose starts are `rows` away from `source`.
    pub(super) fn new(source: *const u8, rows: Places, count: usize, row_bytes: usize) -> Self {
        Self { source, rows, rows_left: count, row_bytes, row: source, done: usize::MAX }
    }

    /// Prefetches the next lines. *Safety*: the CPU has the instructions.
    #[inline(always)]
    pub(super) unsafe fn read<V: Vector>(&mut self, lines: usize) {
        for _ in 0..lines {
            if self.done >= self.row_bytes {
                if self.rows_left == 0 {
                    return;
                }
                (self.rows_left, self.done) = (self.rows_left - 1, 0);
                self.row = self.source.wrapping_add(self.rows.next());
            }
            // SAFETY: the CPU has the instructions; a prefetch may name any address.
            unsafe { V::prefetch::<false>(self.row.wrapping_add(self.done)) };
            self.done += LINE;
        }
    }
}
