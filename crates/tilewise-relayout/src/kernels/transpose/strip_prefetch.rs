//! Prefetching by strips: the rows that a transpose reads after its current strip.

use super::{grid::Places, micro_kernel::LINE};
use crate::kernels::vector::Vector;

/// Prefetches the next rows of a transpose: those of a strip, one after the other.
pub(super) struct StripPrefetch {
    source: *const u8,
    rows: Places,
    rows_left: usize,
    /// Bytes of each row.
    row_bytes: usize,
    /// The row's start, and its bytes that are prefetched already.
    row: *const u8,
    done: usize,
}

impl StripPrefetch {
    /// Prefetches `count` rows of `row_bytes` bytes, whose starts are `rows` away from `source`.
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
