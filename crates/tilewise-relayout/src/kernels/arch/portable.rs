//! Vectors of any CPU: 16 bytes in an array. Compilers turn these loops into the vector instructions that every CPU of the target has,
//! byte permutations included.

use crate::kernels::vector::Vector;

/// 16 bytes.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Block([u8; 16]);

impl Block {
    #[inline(always)]
    fn map(self, other: Self, f: impl Fn(u8, u8) -> u8) -> Self {
        Self(core::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    #[inline(always)]
    fn words(self, f: impl Fn(u16) -> u16) -> Self {
        let mut bytes = self.0;
        for pair in bytes.chunks_exact_mut(2) {
            let word = f(u16::from_le_bytes([pair[0], pair[1]]));
            pair.copy_from_slice(&word.to_le_bytes());
        }
        Self(bytes)
    }
}

impl Vector for Block {
    const BYTES: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0; 16])
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        Self([byte; 16])
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: 16 bytes are valid by the trait's contract.
        unsafe { Self(from.cast::<[u8; 16]>().read()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: 16 bytes are valid by the trait's contract.
        unsafe { to.cast::<[u8; 16]>().write(self.0) }
    }

    #[inline(always)]
    unsafe fn store_non_temporal(self, to: *mut u8) {
        // SAFETY: 16 bytes are valid by the trait's contract.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    unsafe fn copy_16_non_temporal(from: *const u8, to: *mut u8) {
        // SAFETY: 16 bytes are valid by the trait's contract.
        unsafe { Self::load(from).store(to) }
    }

    #[inline(always)]
    unsafe fn interleave<const U: usize>(self, other: Self) -> (Self, Self) {
        let at = |place: usize| {
            let (unit, byte) = (place / U, place % U);
            if unit % 2 == 0 { self.0[unit / 2 * U + byte] } else { other.0[unit / 2 * U + byte] }
        };
        (Self(core::array::from_fn(at)), Self(core::array::from_fn(|i| at(16 + i))))
    }

    #[inline(always)]
    unsafe fn deinterleave<const U: usize>(self, other: Self) -> (Self, Self) {
        let at = |unit: usize, byte: usize| {
            if unit * U < 16 { self.0[unit * U + byte] } else { other.0[unit * U - 16 + byte] }
        };
        let every_other = |first: usize| core::array::from_fn(|i| at(i / U * 2 + first, i % U));
        (Self(every_other(0)), Self(every_other(1)))
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        self.map(other, |a, b| a & b)
    }

    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        self.map(other, |a, b| a | b)
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self.map(other, |a, b| a ^ b)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.map(other, u8::wrapping_sub)
    }

    #[inline(always)]
    unsafe fn shift_left<const BITS: i32>(self) -> Self {
        self.words(|word| word << BITS)
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: i32>(self) -> Self {
        self.words(|word| word >> BITS)
    }

    #[inline(always)]
    unsafe fn prefetch<const L1: bool>(_: *const u8) {}
}
