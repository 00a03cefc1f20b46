//! How kernels write: vectors and runs in the order of addresses, plainly or non-temporally.

#[cfg(target_arch = "x86_64")]
mod line_buffer;

use super::{
    KernelState,
    prefetch::{Prefetch, warm_tlb},
    vector::{Vector, copy},
};
#[cfg(target_arch = "x86_64")]
pub(super) use line_buffer::LineBuffer;

/// A cursor in the destination that kernels append to.
/// *Safety*: every method is called only where the CPU has the instructions of `V`, and *the bytes appended are the
/// caller's*: the bytes that a method writes, from the store's address on, are inside the destination, and no other
/// code accesses them until the store is finished. Methods that take a source pointer add what must be readable.
pub(super) trait Store<V: Vector>: Sized {
    /// Whether stores are non-temporal.
    const NON_TEMPORAL: bool;
    /// Continues where the previous kernel left off, after a [seek](Self::seek).
    /// *Safety*: the CPU has the instructions; the state is of kernels with the same store on the same destination.
    unsafe fn resume(state: &KernelState) -> Self;
    /// Leaves pending bytes to the next kernel. *Safety*: the CPU has the instructions.
    unsafe fn save(self, state: &mut KernelState);
    /// Starts at an address. *Safety*: the CPU has the instructions.
    unsafe fn start(at: *mut u8, state: &KernelState) -> Self;
    /// Writes the pending bytes. *Safety*: the CPU has the instructions; the bytes appended are the caller's.
    unsafe fn finish(&mut self);
    /// Goes on at an address, usually the store's own.
    /// *Safety*: the CPU has the instructions; the bytes appended are the caller's.
    unsafe fn seek(&mut self, to: *mut u8);
    /// Appends a vector. *Safety*: the CPU has the instructions; the bytes appended are the caller's.
    unsafe fn push(&mut self, vector: V);
    /// Appends `n` bytes.
    /// *Safety*: the CPU has the instructions; the bytes appended are the caller's; `n` bytes are readable at `from`.
    unsafe fn copy(&mut self, from: *const u8, n: usize, prefetch: &mut Prefetch);
    /// [`copy`](Self::copy) where most runs are four vectors and more.
    /// *Safety*: the CPU has the instructions; the bytes appended are the caller's; `n` bytes are readable at `from`.
    #[inline(always)]
    unsafe fn copy_long(&mut self, from: *const u8, n: usize, prefetch: &mut Prefetch) {
        // SAFETY: `copy` has the same contract.
        unsafe { self.copy(from, n, prefetch) }
    }
    /// Appends `n` zeros. *Safety*: the CPU has the instructions; the bytes appended are the caller's.
    unsafe fn zeros(&mut self, n: usize);
}

/// Plain stores, for buffers that fit into a cache.
pub(super) type Plain = Direct<false>;

/// Non-temporal stores in pieces of 16 bytes, where addresses are multiples of 16; the CPU's write-combining buffers make lines of them.
#[cfg(target_arch = "x86_64")]
pub(super) type NonTemporal = Direct<true>;

/// Stores that leave no bytes pending.
pub(super) struct Direct<const NON_TEMPORAL: bool> {
    at: *mut u8,
    warms_tlb: bool,
}

impl<V: Vector, const NON_TEMPORAL: bool> Store<V> for Direct<NON_TEMPORAL> {
    const NON_TEMPORAL: bool = NON_TEMPORAL;

    #[inline(always)]
    unsafe fn resume(state: &KernelState) -> Self {
        Self { at: core::ptr::null_mut(), warms_tlb: state.warms_tlb() }
    }

    #[inline(always)]
    unsafe fn save(self, _: &mut KernelState) {}

    #[inline(always)]
    unsafe fn start(at: *mut u8, state: &KernelState) -> Self {
        Self { at, warms_tlb: state.warms_tlb() }
    }

    #[inline(always)]
    unsafe fn finish(&mut self) {}

    #[inline(always)]
    unsafe fn seek(&mut self, to: *mut u8) {
        self.at = to;
    }

    #[inline(always)]
    unsafe fn push(&mut self, vector: V) {
        // SAFETY: the bytes appended are the caller's.
        unsafe {
            if NON_TEMPORAL {
                warm_tlb::<V>(self.at, self.warms_tlb);
                vector.store_non_temporal_or_plain(self.at);
            } else {
                vector.store(self.at);
            }
            self.at = self.at.add(V::BYTES);
        }
    }

    #[inline(always)]
    unsafe fn copy(&mut self, mut from: *const u8, n: usize, prefetch: &mut Prefetch) {
        // A line with both kinds of stores is slow: the whole run gets one kind.
        let is_non_temporal = NON_TEMPORAL && (self.at.addr() | n).is_multiple_of(16);
        // SAFETY: `n` bytes are readable, and the caller's at the store; the parts add up to `n`.
        unsafe {
            let mut rest = n;
            while is_non_temporal && rest >= V::BYTES {
                prefetch.read::<V>(from);
                warm_tlb::<V>(self.at, self.warms_tlb);
                V::load(from).store_non_temporal(self.at);
                self.at = self.at.add(V::BYTES);
                from = from.add(V::BYTES);
                rest -= V::BYTES;
            }
            copy::<V, false>(from, self.at, rest);
            self.at = self.at.add(rest);
        }
    }

    #[inline(always)]
    unsafe fn copy_long(&mut self, from: *const u8, n: usize, prefetch: &mut Prefetch) {
        // SAFETY: `n` bytes are readable, and the caller's at the store.
        unsafe {
            if NON_TEMPORAL {
                return Store::<V>::copy(self, from, n, prefetch);
            }
            copy::<V, true>(from, self.at, n);
            self.at = self.at.add(n);
        }
    }

    #[inline(always)]
    unsafe fn zeros(&mut self, n: usize) {
        // SAFETY: the bytes appended are the caller's.
        unsafe {
            core::ptr::write_bytes(self.at, 0, n);
            self.at = self.at.add(n);
        }
    }
}

/// Writes the pending bytes of a state.
/// *Safety*: the CPU has the instructions; the state was left by a kernel with the same store, whose destination is still the caller's.
#[inline(always)]
pub(super) unsafe fn finish<V: Vector, S: Store<V>>(state: &mut KernelState) {
    // SAFETY: this function's contract.
    unsafe {
        let mut store = S::resume(state);
        store.finish();
        store.save(state);
    }
}
