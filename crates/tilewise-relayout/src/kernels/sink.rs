//! Where the generic kernels' vectors go, in the order of addresses.

use super::{
    Stream,
    ahead::{Ahead, look_up},
    vector::{Vector, copy},
};

/// Where a kernel's vectors go, in the order of addresses.
///
/// # Safety
/// As for [`Vector`]; and all bytes from where the sink starts to where it ends are written, so they must be the caller's.
pub(super) trait Sink<V: Vector>: Sized {
    /// Whether writes pass the caches.
    const STREAMS: bool;
    /// Continues where a kernel left off, once it is told where to [seek](Self::seek).
    unsafe fn resume(stream: &Stream) -> Self;
    /// Leaves what is not written yet to the next kernel.
    unsafe fn save(self, stream: &mut Stream);
    /// Starts at an address.
    unsafe fn start(at: *mut u8) -> Self;
    /// Writes what is left.
    unsafe fn finish(&mut self);
    /// Goes on at an address, which usually is where the sink is.
    unsafe fn seek(&mut self, to: *mut u8);
    /// Appends a vector.
    unsafe fn push(&mut self, vector: V);
    /// Appends `n` bytes.
    unsafe fn copy(&mut self, from: *const u8, n: usize, ahead: &mut Ahead);
    /// The same where most runs are four vectors and more.
    #[inline(always)]
    unsafe fn copy_long(&mut self, from: *const u8, n: usize, ahead: &mut Ahead) {
        // SAFETY: passed on.
        unsafe { self.copy(from, n, ahead) }
    }
    /// Appends `n` zeros.
    unsafe fn zeros(&mut self, n: usize);
}

/// Plain stores, for what fits into a cache.
pub(super) type Plain = Straight<false>;

/// Stores past the caches in pieces of 16 bytes, where addresses are multiples of 16; the write buffers make lines of them.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) type Pieces = Straight<true>;

/// Stores that need nothing of what was stored before.
pub(super) struct Straight<const PAST_CACHES: bool> {
    at: *mut u8,
}

impl<V: Vector, const PAST_CACHES: bool> Sink<V> for Straight<PAST_CACHES> {
    const STREAMS: bool = PAST_CACHES;

    #[inline(always)]
    unsafe fn resume(_: &Stream) -> Self {
        Self { at: core::ptr::null_mut() }
    }

    #[inline(always)]
    unsafe fn save(self, _: &mut Stream) {}

    #[inline(always)]
    unsafe fn start(at: *mut u8) -> Self {
        Self { at }
    }

    #[inline(always)]
    unsafe fn finish(&mut self) {}

    #[inline(always)]
    unsafe fn seek(&mut self, to: *mut u8) {
        self.at = to;
    }

    #[inline(always)]
    unsafe fn push(&mut self, vector: V) {
        // SAFETY: the sink's bytes are the caller's.
        unsafe {
            if PAST_CACHES {
                look_up::<V>(self.at);
                vector.stream_or_store(self.at);
            } else {
                vector.store(self.at);
            }
            self.at = self.at.add(V::BYTES);
        }
    }

    #[inline(always)]
    unsafe fn copy(&mut self, mut from: *const u8, n: usize, ahead: &mut Ahead) {
        // A line that gets both kinds of stores is slow, so it is one kind for the whole run.
        let streams = PAST_CACHES && (self.at.addr() | n).is_multiple_of(16);
        // SAFETY: `n` bytes are valid on both sides, and the parts add up to `n`.
        unsafe {
            let mut rest = n;
            while streams && rest >= V::BYTES {
                ahead.read::<V>(from);
                look_up::<V>(self.at);
                V::load(from).stream(self.at);
                self.at = self.at.add(V::BYTES);
                from = from.add(V::BYTES);
                rest -= V::BYTES;
            }
            copy::<V, false>(from, self.at, rest);
            self.at = self.at.add(rest);
        }
    }

    #[inline(always)]
    unsafe fn copy_long(&mut self, from: *const u8, n: usize, ahead: &mut Ahead) {
        // SAFETY: passed on; `n` bytes are valid on both sides.
        unsafe {
            if PAST_CACHES {
                return Sink::<V>::copy(self, from, n, ahead);
            }
            copy::<V, true>(from, self.at, n);
            self.at = self.at.add(n);
        }
    }

    #[inline(always)]
    unsafe fn zeros(&mut self, n: usize) {
        // SAFETY: `n` bytes are the caller's.
        unsafe {
            core::ptr::write_bytes(self.at, 0, n);
            self.at = self.at.add(n);
        }
    }
}
