//! What is asked for before it is needed: lines of the source, and the addresses of pages on both sides.

use super::{Tuning, vector::Vector};

/// What reads ask for.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    /// The next address in a linear pass over what is read later, a line for every line read; null for none.
    pub(crate) far: *const u8,
    /// Whether lines of that pass are asked for, not just its pages: the CPU itself asks for lines that are read in plain order.
    pub(crate) lines: bool,
    /// Bytes from a read to its continuation in the same row, 0 for none.
    pub(crate) near: usize,
    /// Whether the nearest cache is to have that.
    pub(crate) nearest: bool,
}

impl Ahead {
    /// Asks for nothing.
    pub(crate) const fn nothing() -> Self {
        Self { far: core::ptr::null(), lines: false, near: 0, nearest: false }
    }

    /// A vector is read here.
    #[inline(always)]
    pub(super) unsafe fn read<V: Vector>(&mut self, at: *const u8) {
        // SAFETY: the caller's `V` is available; a prefetch may name any address.
        unsafe {
            if !self.far.is_null() {
                if self.lines {
                    V::prefetch::<false>(self.far);
                }
                look_up::<V>(self.far);
                self.far = self.far.wrapping_add(V::BYTES);
            }
            if self.near != 0 {
                let at = at.wrapping_add(self.near);
                if self.nearest { V::prefetch::<true>(at) } else { V::prefetch::<false>(at) }
            }
        }
    }
}

/// Pages of the smallest size there is.
const PAGE: usize = 4096;
/// Pages that are looked up together.
const PAGES: usize = 32;

/// Called with every vector of a linear pass, has the CPU find the addresses of pages that the pass comes to, many at a time.
///
/// Otherwise the pass stops at each new page until its address is found, which takes a few accesses to memory (twice as many in a
/// virtual machine). Lookups that are asked for together happen at the same time, and neighbours share what they read. Not every CPU
/// gains.
///
/// # Safety
/// `V` is available; the address is not read from.
#[inline(always)]
pub(super) unsafe fn look_up<V: Vector>(at: *const u8) {
    const GROUP: usize = PAGES * PAGE;
    if at.addr() % GROUP < V::BYTES {
        // SAFETY: passed on.
        unsafe { look_up_group::<V>(at.wrapping_add(GROUP)) };
    }
}

/// A function of its own: written out in loops, it would make them too long to unroll.
///
/// # Safety
/// As for [`look_up`].
#[cold]
#[inline(never)]
unsafe fn look_up_group<V: Vector>(at: *const u8) {
    if Tuning::detect().looks_up_pages {
        for page in 0..PAGES {
            // SAFETY: a prefetch may name any address.
            unsafe { V::prefetch::<false>(at.wrapping_add(page * PAGE)) };
        }
    }
}
