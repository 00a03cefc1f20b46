//! What the generic kernels ask of a machine: vectors that zip, and sinks that vectors go to in address order.

use super::{
    Stream,
    ahead::{Ahead, look_up},
};

/// A vector register.
///
/// # Safety
/// Every method may be called only where the CPU has what the implementing type stands for; those that take pointers,
/// only for as many valid bytes as they say.
pub(super) trait Vector: Copy {
    /// Bytes in the register.
    const BYTES: usize;

    /// Zero.
    unsafe fn zero() -> Self;
    /// The same byte everywhere.
    unsafe fn splat(byte: u8) -> Self;
    /// `BYTES` bytes from anywhere.
    unsafe fn load(from: *const u8) -> Self;
    /// `BYTES` bytes to anywhere.
    unsafe fn store(self, to: *mut u8);
    /// `BYTES` bytes past the caches, in pieces of 16; `to` is a multiple of 16.
    unsafe fn stream(self, to: *mut u8);
    /// `BYTES` bytes past the caches; `to` is a multiple of `BYTES`.
    #[inline(always)]
    unsafe fn stream_aligned(self, to: *mut u8) {
        // SAFETY: passed on.
        unsafe { self.stream(to) }
    }
    /// `BYTES` bytes to anywhere, past the caches if `to` is a multiple of 16.
    #[inline(always)]
    unsafe fn stream_or_store(self, to: *mut u8) {
        // SAFETY: passed on.
        unsafe { if to.addr().is_multiple_of(16) { self.stream(to) } else { self.store(to) } }
    }
    /// Copies 16 bytes past the caches; `to` is a multiple of 16.
    unsafe fn stream_16(from: *const u8, to: *mut u8);
    /// The units of `U` bytes of both in turn, as one sequence over two registers.
    unsafe fn zip<const U: usize>(self, other: Self) -> (Self, Self);
    /// As [`zip`](Self::zip), within each 16 bytes; units have fewer. (This is for registers that have no more.)
    #[inline(always)]
    unsafe fn zip_lanes<const U: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: passed on.
        unsafe { self.zip::<U>(other) }
    }
    /// As many times 16 bytes as the register has, `step` bytes apart. (This is for registers that have no more.)
    #[inline(always)]
    unsafe fn load_lanes(from: *const u8, _step: usize) -> Self {
        // SAFETY: passed on.
        unsafe { Self::load(from) }
    }
    /// The `i`th 16 bytes of the `j`th vector become the `j`th of the `i`th, where vectors have four times 16.
    #[inline(always)]
    unsafe fn turn_lanes(vectors: [Self; 4]) -> [Self; 4] {
        vectors
    }
    /// The inverse of [`zip`](Self::zip): units of even and of odd place.
    #[inline(always)]
    unsafe fn unzip<const U: usize>(self, other: Self) -> (Self, Self) {
        // Zipping rotates the bits of a unit's place in the sequence, so that enough of it comes round.
        let (mut a, mut b) = (self, other);
        let mut units = Self::BYTES / U;
        while units > 1 {
            // SAFETY: as promised by the caller.
            (a, b) = unsafe { a.zip::<U>(b) };
            units /= 2;
        }
        (a, b)
    }
    /// Bitwise and.
    unsafe fn and(self, other: Self) -> Self;
    /// Bitwise or.
    unsafe fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    unsafe fn xor(self, other: Self) -> Self;
    /// Difference of bytes.
    unsafe fn sub(self, other: Self) -> Self;
    /// Shifts 16-bit lanes up.
    unsafe fn up<const BITS: i32>(self) -> Self;
    /// Shifts 16-bit lanes down.
    unsafe fn down<const BITS: i32>(self) -> Self;
    /// Asks for the line at an address, which need not exist, to be brought near (or, if not, at least nearer).
    unsafe fn prefetch<const NEAR: bool>(at: *const u8);
}

/// Where a kernel's vectors go, in the order of addresses.
///
/// # Safety
/// As for [`Vector`]; and all bytes from where the sink starts to where it ends are written, so they must be the caller's.
pub(super) trait Sink<V: Vector>: Sized {
    /// Whether writes pass the caches.
    const STREAMS: bool;
    /// Continues where a kernel left off.
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
    /// Appends `n` zeros.
    unsafe fn zeros(&mut self, n: usize);
}

/// Plain stores, for what fits into a cache.
pub(super) struct Plain {
    at: *mut u8,
}

impl<V: Vector> Sink<V> for Plain {
    const STREAMS: bool = false;

    #[inline(always)]
    unsafe fn resume(stream: &Stream) -> Self {
        Self { at: stream.at }
    }

    #[inline(always)]
    unsafe fn save(self, stream: &mut Stream) {
        stream.at = self.at;
    }

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
            vector.store(self.at);
            self.at = self.at.add(V::BYTES);
        }
    }

    #[inline(always)]
    unsafe fn copy(&mut self, from: *const u8, n: usize, _: &mut Ahead) {
        // SAFETY: `n` bytes are valid on both sides.
        unsafe {
            copy::<V>(from, self.at, n);
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

/// Stores past the caches in pieces of 16 bytes, where addresses are multiples of 16; the write buffers make lines of them.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) struct Pieces {
    at: *mut u8,
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl<V: Vector> Sink<V> for Pieces {
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn resume(stream: &Stream) -> Self {
        Self { at: stream.at }
    }

    #[inline(always)]
    unsafe fn save(self, stream: &mut Stream) {
        stream.at = self.at;
    }

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
            look_up::<V>(self.at);
            vector.stream_or_store(self.at);
            self.at = self.at.add(V::BYTES);
        }
    }

    #[inline(always)]
    unsafe fn copy(&mut self, mut from: *const u8, n: usize, ahead: &mut Ahead) {
        // A line that gets both kinds of stores is slow, so it is one kind for the whole run.
        let fits = (self.at.addr() | n).is_multiple_of(16);
        // SAFETY: `n` bytes are valid on both sides, and the parts add up to `n`.
        unsafe {
            let mut rest = n;
            while fits && rest >= V::BYTES {
                ahead.read::<V>(from);
                look_up::<V>(self.at);
                V::load(from).stream(self.at);
                self.at = self.at.add(V::BYTES);
                from = from.add(V::BYTES);
                rest -= V::BYTES;
            }
            copy::<V>(from, self.at, rest);
            self.at = self.at.add(rest);
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

/// Copies `n` bytes.
///
/// # Safety
/// `n` bytes are valid on both sides, and `V` is available.
#[inline(always)]
pub(super) unsafe fn copy<V: Vector>(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: every access is inside the `n` bytes; where two overlap, they hold the same.
    unsafe {
        if n < V::BYTES {
            return copy_short(from, to, n);
        }
        // Between the first and the last, stores are aligned: across two lines they take twice as long.
        V::load(from).store(to);
        let mut done = V::BYTES - to.addr() % V::BYTES;
        while done + V::BYTES <= n {
            V::load(from.add(done)).store(to.add(done));
            done += V::BYTES;
        }
        if done < n {
            V::load(from.add(n - V::BYTES)).store(to.add(n - V::BYTES));
        }
    }
}

/// Copies fewer bytes than a vector has, without a call.
///
/// # Safety
/// `n` bytes are valid on both sides.
#[inline(always)]
pub(super) unsafe fn copy_short(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: first and last part of the `n` bytes; where they overlap, they hold the same.
    unsafe {
        macro_rules! two {
            ($word:ty) => {{
                let bytes = size_of::<$word>();
                let first = from.cast::<$word>().read_unaligned();
                let last = from.add(n - bytes).cast::<$word>().read_unaligned();
                to.cast::<$word>().write_unaligned(first);
                to.add(n - bytes).cast::<$word>().write_unaligned(last);
            }};
        }
        match n {
            0 => {}
            1 => *to = *from,
            2..4 => two!(u16),
            4..8 => two!(u32),
            8..16 => two!(u64),
            16..=32 => two!(u128),
            _ => core::ptr::copy_nonoverlapping(from, to, n),
        }
    }
}
