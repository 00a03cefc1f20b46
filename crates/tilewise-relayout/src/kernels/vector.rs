//! What the generic kernels ask of a machine: vectors that zip.

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

/// Copies `n` bytes. With `LONG`, made for four vectors and more: no store at the ends goes across two lines where they are whole
/// [pieces](PIECE).
///
/// # Safety
/// `n` bytes are valid on both sides, and `V` is available.
#[inline(always)]
pub(super) unsafe fn copy<V: Vector, const LONG: bool>(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: every access is inside the `n` bytes; where two overlap, they hold the same.
    unsafe {
        if n < V::BYTES {
            return copy_short(from, to, n);
        }
        // Between the first and the last, stores are aligned: across two lines they take twice as long.
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

/// Bytes that large allocations start on a multiple of, and that the shortest vectors have.
const PIECE: usize = 16;

/// Copies up to three pieces.
///
/// # Safety
/// `n` bytes are valid on both sides, a multiple of [`PIECE`] below 64.
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

/// Writes part of a line: past the caches in pieces of 16 bytes where they fit.
///
/// # Safety
/// `bytes` bytes, at most a line, are valid on both sides, and `V` is available.
#[inline(always)]
pub(super) unsafe fn short_line<V: Vector>(line: *const u8, to: *mut u8, bytes: usize, past_caches: bool) {
    // SAFETY: `bytes` bytes are valid on both sides.
    unsafe {
        if past_caches && (to.addr() | bytes).is_multiple_of(16) {
            for at in (0..bytes).step_by(16) {
                V::stream_16(line.add(at), to.add(at));
            }
        } else {
            copy::<V, false>(line, to, bytes);
        }
    }
}
