//! NEON vectors.

use super::vector::Vector;
pub(super) use core::arch::aarch64::uint8x16_t;
use core::arch::aarch64::*;

macro_rules! pairs {
    ($first:ident, $second:ident, $a:expr, $b:expr, $to:ident, $from:ident) => {
        ($from($first($to($a), $to($b))), $from($second($to($a), $to($b))))
    };
}

// SAFETY (all blocks of this file): the trait's contract says that the instructions exist and the bytes are valid.

#[inline(always)]
fn same(v: uint8x16_t) -> uint8x16_t {
    v
}

impl Vector for uint8x16_t {
    const BYTES: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { vdupq_n_u8(0) }
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        unsafe { vdupq_n_u8(byte) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { vst1q_u8(to, self) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // There is no intrinsic for `stnp`; a plain store does the same work.
        unsafe { vst1q_u8(to, self) }
    }

    #[inline(always)]
    unsafe fn stream_16(from: *const u8, to: *mut u8) {
        unsafe { vst1q_u8(to, vld1q_u8(from)) }
    }

    #[inline(always)]
    unsafe fn zip<const U: usize>(self, other: Self) -> (Self, Self) {
        unsafe {
            match U {
                1 => pairs!(vzip1q_u8, vzip2q_u8, self, other, same, same),
                2 => pairs!(vzip1q_u16, vzip2q_u16, self, other, vreinterpretq_u16_u8, vreinterpretq_u8_u16),
                4 => pairs!(vzip1q_u32, vzip2q_u32, self, other, vreinterpretq_u32_u8, vreinterpretq_u8_u32),
                8 => pairs!(vzip1q_u64, vzip2q_u64, self, other, vreinterpretq_u64_u8, vreinterpretq_u8_u64),
                _ => (self, other),
            }
        }
    }

    #[inline(always)]
    unsafe fn unzip<const U: usize>(self, other: Self) -> (Self, Self) {
        unsafe {
            match U {
                1 => pairs!(vuzp1q_u8, vuzp2q_u8, self, other, same, same),
                2 => pairs!(vuzp1q_u16, vuzp2q_u16, self, other, vreinterpretq_u16_u8, vreinterpretq_u8_u16),
                4 => pairs!(vuzp1q_u32, vuzp2q_u32, self, other, vreinterpretq_u32_u8, vreinterpretq_u8_u32),
                8 => pairs!(vuzp1q_u64, vuzp2q_u64, self, other, vreinterpretq_u64_u8, vreinterpretq_u8_u64),
                _ => (self, other),
            }
        }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        unsafe { vandq_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        unsafe { vorrq_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { veorq_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        unsafe { vsubq_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn up<const BITS: i32>(self) -> Self {
        unsafe { vreinterpretq_u8_u16(vshlq_n_u16::<BITS>(vreinterpretq_u16_u8(self))) }
    }

    #[inline(always)]
    unsafe fn down<const BITS: i32>(self) -> Self {
        unsafe { vreinterpretq_u8_u16(vshrq_n_u16::<BITS>(vreinterpretq_u16_u8(self))) }
    }

    #[inline(always)]
    unsafe fn prefetch<const NEAR: bool>(_: *const u8) {}
}
