//! Prefetching while a kernel runs. [`crate::prefetch`] decides which addresses.

use super::vector::Vector;

/// The prefetches of a kernel with each vector it reads.
#[derive(Clone, Copy)]
pub(crate) struct Prefetch {
    /// The next address of a linear pass over bytes read later, a vector further for every vector read; null for none.
    pub(crate) linear: *const u8,
    /// Whether the lines of that pass are prefetched.
    pub(crate) linear_lines: bool,
    /// Whether its page addresses are brought into the TLB.
    pub(crate) linear_tlb: bool,
    /// Bytes from a read to its row's continuation, 0 for none.
    pub(crate) row_distance: usize,
    /// Whether the continuation is prefetched into the first-level cache.
    pub(crate) row_into_l1: bool,
}

impl Prefetch {
    /// Prefetches nothing.
    pub(crate) const fn nothing() -> Self {
        Self { linear: core::ptr::null(), linear_lines: false, linear_tlb: false, row_distance: 0, row_into_l1: false }
    }

    /// Prefetches for a vector read at an address. *Safety*: the CPU has the instructions.
    #[inline(always)]
    pub(super) unsafe fn read<V: Vector>(&mut self, at: *const u8) {
        // SAFETY: the CPU has the instructions; a prefetch may name any address.
        unsafe {
            if !self.linear.is_null() {
                if self.linear_lines {
                    V::prefetch::<false>(self.linear);
                }
                warm_tlb::<V>(self.linear, self.linear_tlb);
                self.linear = self.linear.wrapping_add(V::BYTES);
            }
            if self.row_distance != 0 {
                let at = at.wrapping_add(self.row_distance);
                if self.row_into_l1 { V::prefetch::<true>(at) } else { V::prefetch::<false>(at) }
            }
        }
    }
}

/// Pages of the smallest size there is.
const PAGE: usize = 4096;
/// Pages whose addresses are looked up together.
const PAGES: usize = 32;

/// Brings the addresses of the next pages of a linear pass into the TLB, many at a time, if that is `worth_it` on this
/// CPU; called with every vector of the pass.
///
/// Otherwise the pass stops at each new page for a page walk, which takes a few accesses to memory (twice as many in a virtual
/// machine). Walks that are started together overlap, and neighbours share what they read.
/// *Safety*: the CPU has the instructions.
#[inline(always)]
pub(super) unsafe fn warm_tlb<V: Vector>(at: *const u8, worth_it: bool) {
    const GROUP: usize = PAGES * PAGE;
    if at.addr() % GROUP < V::BYTES {
        // SAFETY: the CPU has the instructions.
        unsafe { warm_tlb_group::<V>(at.wrapping_add(GROUP), worth_it) };
    }
}

/// A function of its own: written out in loops, it would make them too long to unroll.
/// *Safety*: the CPU has the instructions.
#[cold]
#[inline(never)]
unsafe fn warm_tlb_group<V: Vector>(at: *const u8, worth_it: bool) {
    if worth_it {
        for page in 0..PAGES {
            // SAFETY: the CPU has the instructions; a prefetch may name any address.
            unsafe { V::prefetch::<false>(at.wrapping_add(page * PAGE)) };
        }
    }
}
