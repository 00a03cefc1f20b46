//! The vectors of generic kernels: they load, store, interleave, and combine bits.

/// A vector register.
/// *Safety*: every method is unsafe for one common reason, *the CPU has the instructions*: it may be called only where
/// the CPU has the instruction set that the implementing type stands for. Methods that take pointers add conditions
/// under *Safety*.
pub(super) trait Vector: Copy {
    /// Bytes in the register.
    const BYTES: usize;

    /// Zero. *Safety*: the CPU has the instructions.
    unsafe fn zero() -> Self;
    /// Repeats a byte. *Safety*: the CPU has the instructions.
    unsafe fn splat(byte: u8) -> Self;
    /// Loads from any address. *Safety*: the CPU has the instructions; `BYTES` bytes are readable at `from`.
    unsafe fn load(from: *const u8) -> Self;
    /// Stores to any address. *Safety*: the CPU has the instructions; `BYTES` bytes are writable at `to`.
    unsafe fn store(self, to: *mut u8);
    /// Stores non-temporally, in pieces of 16 bytes if need be.
    /// *Safety*: the CPU has the instructions; `BYTES` bytes are writable at `to`, a multiple of 16.
    unsafe fn store_non_temporal(self, to: *mut u8);
    /// Stores non-temporally in one piece.
    /// *Safety*: the CPU has the instructions; `BYTES` bytes are writable at `to`, a multiple of `BYTES`.
    #[inline(always)]
    unsafe fn store_non_temporal_aligned(self, to: *mut u8) {
        // SAFETY: a multiple of `BYTES` is one of 16; the rest is this method's contract, too.
        unsafe { self.store_non_temporal(to) }
    }
    /// Stores to any address, non-temporally if it is a multiple of 16.
    /// *Safety*: the CPU has the instructions; `BYTES` bytes are writable at `to`.
    #[inline(always)]
    unsafe fn store_non_temporal_or_plain(self, to: *mut u8) {
        // SAFETY: alignment is checked; the rest is this method's contract, too.
        unsafe { if to.addr().is_multiple_of(16) { self.store_non_temporal(to) } else { self.store(to) } }
    }
    /// Copies 16 bytes, stored non-temporally.
    /// *Safety*: the CPU has the instructions; 16 bytes are readable at `from`, and writable at `to`, a multiple of 16.
    unsafe fn copy_16_non_temporal(from: *const u8, to: *mut u8);
    /// The units of `U` bytes of both by turns, as one sequence over two registers.
    /// *Safety*: the CPU has the instructions.
    unsafe fn interleave<const U: usize>(self, other: Self) -> (Self, Self);
    /// The inverse of [`interleave`](Self::interleave): units of even and of odd position.
    /// *Safety*: the CPU has the instructions.
    #[inline(always)]
    unsafe fn deinterleave<const U: usize>(self, other: Self) -> (Self, Self) {
        // Interleaving rotates the bits of a unit's position in the sequence, so that enough of it comes round.
        let (mut a, mut b) = (self, other);
        let mut units = Self::BYTES / U;
        while units > 1 {
            // SAFETY: the CPU has the instructions.
            (a, b) = unsafe { a.interleave::<U>(b) };
            units /= 2;
        }
        (a, b)
    }
    /// As [`interleave`](Self::interleave), within each lane of 16 bytes; units have fewer. (The default is for registers of one lane.)
    /// *Safety*: the CPU has the instructions.
    #[inline(always)]
    unsafe fn interleave_lanes<const U: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: the CPU has the instructions.
        unsafe { self.interleave::<U>(other) }
    }
    /// Loads each lane of 16 bytes from an address of its own, `step` bytes apart. (The default is for registers of one lane.)
    /// *Safety*: the CPU has the instructions; 16 bytes are readable at `from` plus each multiple of `step` below the number of
    /// lanes.
    #[inline(always)]
    unsafe fn load_strided_lanes(from: *const u8, _step: usize) -> Self {
        // SAFETY: one lane of 16 bytes is readable at `from`.
        unsafe { Self::load(from) }
    }
    /// Transposes lanes: lane i of vector j becomes lane j of vector i, where vectors have four lanes.
    /// *Safety*: the CPU has the instructions.
    #[inline(always)]
    unsafe fn transpose_4x4_lanes(vectors: [Self; 4]) -> [Self; 4] {
        vectors
    }
    /// Bitwise and. *Safety*: the CPU has the instructions.
    unsafe fn and(self, other: Self) -> Self;
    /// Bitwise or. *Safety*: the CPU has the instructions.
    unsafe fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or. *Safety*: the CPU has the instructions.
    unsafe fn xor(self, other: Self) -> Self;
    /// Difference of bytes, wrapping. *Safety*: the CPU has the instructions.
    unsafe fn sub(self, other: Self) -> Self;
    /// Shifts 16-bit words left. *Safety*: the CPU has the instructions.
    unsafe fn shift_left<const BITS: i32>(self) -> Self;
    /// Shifts 16-bit words right, zeros coming in. *Safety*: the CPU has the instructions.
    unsafe fn shift_right<const BITS: i32>(self) -> Self;
    /// Prefetches the cache line at an address, which need not exist: into the first-level cache, or only into the second.
    /// *Safety*: the CPU has the instructions.
    unsafe fn prefetch<const L1: bool>(at: *const u8);
}

/// Copies `n` bytes. With `LONG`, for four vectors and more: where the ends are whole [pieces](PIECE), no store there crosses a cache line.
/// *Safety*: the CPU has the instructions; `n` bytes are readable at `from` and writable at `to`.
#[inline(always)]
pub(super) unsafe fn copy<V: Vector, const LONG: bool>(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: every access is inside the `n` bytes; where two overlap, they hold the same.
    unsafe {
        if n < V::BYTES {
            return copy_short(from, to, n);
        }
        // Stores between the first and the last are aligned: across two cache lines they take twice as long.
        let mut done = V::BYTES - to.addr() % V::BYTES;
        if LONG && done.is_multiple_of(PIECE) {
            done %= V::BYTES;
            copy_pieces(from, to, done);
        } else {
            V::load(from).store(to);
        }
        while done + V::BYTES <= n {
            V::load(from.add(done)).store(to.add(done));
            done += V::BYTES;
        }
        if LONG && (n - done).is_multiple_of(PIECE) {
            copy_pieces(from.add(done), to.add(done), n - done);
        } else if done < n {
            V::load(from.add(n - V::BYTES)).store(to.add(n - V::BYTES));
        }
    }
}

/// Bytes of the shortest vectors; large allocations start at a multiple of them.
const PIECE: usize = 16;

/// Copies up to three pieces.
/// *Safety*: `n` bytes are readable at `from` and writable at `to`; `n` is a multiple of [`PIECE`] below 64.
#[inline(always)]
unsafe fn copy_pieces(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the parts add up to `n`.
    unsafe {
        if n & PIECE != 0 {
            to.cast::<[u8; PIECE]>().write_unaligned(from.cast::<[u8; PIECE]>().read_unaligned());
        }
        if n & (2 * PIECE) != 0 {
            let (from, to) = (from.add(n & PIECE), to.add(n & PIECE));
            to.cast::<[u8; 2 * PIECE]>().write_unaligned(from.cast::<[u8; 2 * PIECE]>().read_unaligned());
        }
    }
}

/// Copies fewer bytes than a vector has, without a call.
/// *Safety*: `n` bytes are readable at `from` and writable at `to`.
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

/// Writes part of a cache line: non-temporally in pieces of 16 bytes where they fit, if asked to.
/// *Safety*: the CPU has the instructions; `bytes` bytes, at most a line, are readable at `line` and writable at `to`.
#[inline(always)]
pub(super) unsafe fn short_line<V: Vector>(line: *const u8, to: *mut u8, bytes: usize, non_temporal: bool) {
    // SAFETY: `bytes` bytes are valid on both sides.
    unsafe {
        if non_temporal && (to.addr() | bytes).is_multiple_of(16) {
            for at in (0..bytes).step_by(16) {
                V::copy_16_non_temporal(line.add(at), to.add(at));
            }
        } else {
            copy::<V, false>(line, to, bytes);
        }
    }
}
