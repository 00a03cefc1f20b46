//! NEON vectors.

use crate::kernels::vector::Vector;
pub(in crate::kernels) use core::arch::aarch64::uint8x16_t;
use core::arch::aarch64::*;

/// Calls intrinsics, in a method of [`Vector`].
macro_rules! intrinsics {
    ($calls:expr) => {
        // SAFETY: by the contract of [`Vector`] the CPU has NEON, and pointers are valid for the bytes named there.
        unsafe { $calls }
    };
}

macro_rules! pairs {
    ($first:ident, $second:ident, $a:expr, $b:expr, $to:ident, $from:ident) => {
        ($from($first($to($a), $to($b))), $from($second($to($a), $to($b))))
    };
}

#[inline(always)]
fn same(v: uint8x16_t) -> uint8x16_t {
    v
}

impl Vector for uint8x16_t {
    const BYTES: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        intrinsics!(vdupq_n_u8(0))
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        intrinsics!(vdupq_n_u8(byte))
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        intrinsics!(vld1q_u8(from))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        intrinsics!(vst1q_u8(to, self))
    }

    #[inline(always)]
    unsafe fn store_non_temporal(self, to: *mut u8) {
        // There is no intrinsic for `stnp`; a plain store does the same work.
        intrinsics!(vst1q_u8(to, self))
    }

    #[inline(always)]
    unsafe fn copy_16_non_temporal(from: *const u8, to: *mut u8) {
        intrinsics!(vst1q_u8(to, vld1q_u8(from)))
    }

    #[inline(always)]
    unsafe fn interleave<const U: usize>(self, other: Self) -> (Self, Self) {
        intrinsics!({
            match U {
                1 => pairs!(vzip1q_u8, vzip2q_u8, self, other, same, same),
                2 => pairs!(vzip1q_u16, vzip2q_u16, self, other, vreinterpretq_u16_u8, vreinterpretq_u8_u16),
                4 => pairs!(vzip1q_u32, vzip2q_u32, self, other, vreinterpretq_u32_u8, vreinterpretq_u8_u32),
                8 => pairs!(vzip1q_u64, vzip2q_u64, self, other, vreinterpretq_u64_u8, vreinterpretq_u8_u64),
                _ => (self, other),
            }
        })
    }

    #[inline(always)]
    unsafe fn deinterleave<const U: usize>(self, other: Self) -> (Self, Self) {
        intrinsics!({
            match U {
                1 => pairs!(vuzp1q_u8, vuzp2q_u8, self, other, same, same),
                2 => pairs!(vuzp1q_u16, vuzp2q_u16, self, other, vreinterpretq_u16_u8, vreinterpretq_u8_u16),
                4 => pairs!(vuzp1q_u32, vuzp2q_u32, self, other, vreinterpretq_u32_u8, vreinterpretq_u8_u32),
                8 => pairs!(vuzp1q_u64, vuzp2q_u64, self, other, vreinterpretq_u64_u8, vreinterpretq_u8_u64),
                _ => (self, other),
            }
        })
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        intrinsics!(vandq_u8(self, other))
    }

    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        intrinsics!(vorrq_u8(self, other))
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        intrinsics!(veorq_u8(self, other))
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        intrinsics!(vsubq_u8(self, other))
    }

    #[inline(always)]
    unsafe fn shift_left<const BITS: i32>(self) -> Self {
        intrinsics!(vreinterpretq_u8_u16(vshlq_n_u16::<BITS>(vreinterpretq_u16_u8(self))))
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: i32>(self) -> Self {
        intrinsics!(vreinterpretq_u8_u16(vshrq_n_u16::<BITS>(vreinterpretq_u16_u8(self))))
    }

    #[inline(always)]
    unsafe fn prefetch<const L1: bool>(_: *const u8) {}
}
