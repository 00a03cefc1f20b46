//! AVX2 and AVX-512 vectors.

use crate::kernels::vector::Vector;
use core::arch::x86_64::*;
pub(in crate::kernels) use core::arch::x86_64::{__m256i, __m512i};

/// Calls intrinsics, in a method of [`Vector`].
macro_rules! intrinsics {
    ($calls:expr) => {
        // SAFETY: by the contract of [`Vector`] the CPU has the instructions, and pointers are valid for the bytes named there.
        unsafe { $calls }
    };
}

/// Methods that differ only in the names of intrinsics.
macro_rules! basics {
    ($zero:ident, $splat:ident, $load:ident, $store:ident, $and:ident, $or:ident, $xor:ident, $sub:ident) => {
        #[inline(always)]
        unsafe fn zero() -> Self {
            intrinsics!($zero())
        }

        #[inline(always)]
        unsafe fn splat(byte: u8) -> Self {
            intrinsics!($splat(byte.cast_signed()))
        }

        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            intrinsics!($load(from.cast()))
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            intrinsics!($store(to.cast(), self))
        }

        #[inline(always)]
        unsafe fn and(self, other: Self) -> Self {
            intrinsics!($and(self, other))
        }

        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            intrinsics!($or(self, other))
        }

        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            intrinsics!($xor(self, other))
        }

        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            intrinsics!($sub(self, other))
        }

        #[inline(always)]
        unsafe fn prefetch<const L1: bool>(at: *const u8) {
            // (A prefetch never faults, whatever the address.)
            intrinsics!(if L1 {
                _mm_prefetch::<_MM_HINT_T0>(at.cast());
            } else {
                _mm_prefetch::<_MM_HINT_T1>(at.cast());
            });
        }

        #[inline(always)]
        unsafe fn copy_16_non_temporal(from: *const u8, to: *mut u8) {
            intrinsics!(_mm_stream_si128(to.cast(), _mm_loadu_si128(from.cast())));
        }
    };
}

impl Vector for __m256i {
    const BYTES: usize = 32;
    basics!(
        _mm256_setzero_si256,
        _mm256_set1_epi8,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_and_si256,
        _mm256_or_si256,
        _mm256_xor_si256,
        _mm256_sub_epi8
    );

    #[inline(always)]
    unsafe fn store_non_temporal_aligned(self, to: *mut u8) {
        intrinsics!(_mm256_stream_si256(to.cast(), self))
    }

    #[inline(always)]
    unsafe fn store_non_temporal(self, to: *mut u8) {
        intrinsics!({
            if to.addr().is_multiple_of(32) {
                _mm256_stream_si256(to.cast(), self);
            } else {
                _mm_stream_si128(to.cast(), _mm256_castsi256_si128(self));
                _mm_stream_si128(to.add(16).cast(), _mm256_extracti128_si256::<1>(self));
            }
        })
    }

    #[inline(always)]
    unsafe fn interleave<const U: usize>(self, other: Self) -> (Self, Self) {
        intrinsics!({
            let (low, high) = self.interleave_lanes::<U>(other);
            (_mm256_permute2x128_si256::<0x20>(low, high), _mm256_permute2x128_si256::<0x31>(low, high))
        })
    }

    #[inline(always)]
    unsafe fn interleave_lanes<const U: usize>(self, other: Self) -> (Self, Self) {
        intrinsics!({
            match U {
                1 => (_mm256_unpacklo_epi8(self, other), _mm256_unpackhi_epi8(self, other)),
                2 => (_mm256_unpacklo_epi16(self, other), _mm256_unpackhi_epi16(self, other)),
                4 => (_mm256_unpacklo_epi32(self, other), _mm256_unpackhi_epi32(self, other)),
                8 => (_mm256_unpacklo_epi64(self, other), _mm256_unpackhi_epi64(self, other)),
                _ => (self, other),
            }
        })
    }

    #[inline(always)]
    unsafe fn load_strided_lanes(from: *const u8, step: usize) -> Self {
        intrinsics!(_mm256_loadu2_m128i(from.wrapping_add(step).cast(), from.cast()))
    }

    #[inline(always)]
    unsafe fn deinterleave<const U: usize>(self, other: Self) -> (Self, Self) {
        // Even units to the lower half of each 16 bytes, then of the whole register, then of both.
        let order = |[low, high]: [i64; 2]| intrinsics!(_mm256_set_epi64x(high, low, high, low));
        let halves = |v: Self| {
            intrinsics!({
                let lanes = match U {
                    1 => _mm256_shuffle_epi8(v, order([0x0E0C_0A08_0604_0200, 0x0F0D_0B09_0705_0301])),
                    2 => _mm256_shuffle_epi8(v, order([0x0D0C_0908_0504_0100, 0x0F0E_0B0A_0706_0302])),
                    4 => _mm256_shuffle_epi32::<0b11_01_10_00>(v),
                    _ => v,
                };
                if U == 16 { lanes } else { _mm256_permute4x64_epi64::<0b11_01_10_00>(lanes) }
            })
        };
        let (a, b) = (halves(self), halves(other));
        intrinsics!((_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)))
    }

    #[inline(always)]
    unsafe fn shift_left<const BITS: i32>(self) -> Self {
        intrinsics!(_mm256_slli_epi16::<BITS>(self))
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: i32>(self) -> Self {
        intrinsics!(_mm256_srli_epi16::<BITS>(self))
    }
}

/// 64 places for a permutation of bytes: the units of both operands in turn, or every other unit, from the `start`th on.
pub(in crate::kernels) const fn places(unit: usize, interleave: bool, second: usize) -> [u8; 64] {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (at, byte) = (i / unit, i % unit);
        let place = if interleave {
            let at = at + second * (64 / unit);
            at / 2 * unit + at % 2 * 64 + byte
        } else {
            (2 * at + second) * unit + byte
        };
        #[expect(clippy::cast_possible_truncation, reason = "below 128")]
        {
            places[i] = place as u8;
        }
        i += 1;
    }
    places
}

/// Permutations of the units of two registers.
struct Places<const U: usize>;

impl<const U: usize> Places<U> {
    const ZIP: [[u8; 64]; 2] = [places(U, true, 0), places(U, true, 1)];
    const UNZIP: [[u8; 64]; 2] = [places(U, false, 0), places(U, false, 1)];
}

#[inline(always)]
unsafe fn permute(a: __m512i, places: &[u8; 64], b: __m512i) -> __m512i {
    intrinsics!(_mm512_permutex2var_epi8(a, _mm512_loadu_si512(places.as_ptr().cast()), b))
}

impl Vector for __m512i {
    const BYTES: usize = 64;
    basics!(
        _mm512_setzero_si512,
        _mm512_set1_epi8,
        _mm512_loadu_si512,
        _mm512_storeu_si512,
        _mm512_and_si512,
        _mm512_or_si512,
        _mm512_xor_si512,
        _mm512_sub_epi8
    );

    #[inline(always)]
    unsafe fn store_non_temporal_aligned(self, to: *mut u8) {
        intrinsics!(_mm512_stream_si512(to.cast(), self))
    }

    #[inline(always)]
    unsafe fn store_non_temporal(self, to: *mut u8) {
        intrinsics!({
            if to.addr().is_multiple_of(64) {
                _mm512_stream_si512(to.cast(), self);
            } else {
                _mm_stream_si128(to.cast(), _mm512_castsi512_si128(self));
                _mm_stream_si128(to.add(16).cast(), _mm512_extracti32x4_epi32::<1>(self));
                _mm_stream_si128(to.add(32).cast(), _mm512_extracti32x4_epi32::<2>(self));
                _mm_stream_si128(to.add(48).cast(), _mm512_extracti32x4_epi32::<3>(self));
            }
        })
    }

    #[inline(always)]
    unsafe fn interleave<const U: usize>(self, other: Self) -> (Self, Self) {
        intrinsics!((permute(self, &Places::<U>::ZIP[0], other), permute(self, &Places::<U>::ZIP[1], other)))
    }

    #[inline(always)]
    unsafe fn interleave_lanes<const U: usize>(self, other: Self) -> (Self, Self) {
        intrinsics!({
            match U {
                1 => (_mm512_unpacklo_epi8(self, other), _mm512_unpackhi_epi8(self, other)),
                2 => (_mm512_unpacklo_epi16(self, other), _mm512_unpackhi_epi16(self, other)),
                4 => (_mm512_unpacklo_epi32(self, other), _mm512_unpackhi_epi32(self, other)),
                8 => (_mm512_unpacklo_epi64(self, other), _mm512_unpackhi_epi64(self, other)),
                _ => (self, other),
            }
        })
    }

    #[inline(always)]
    unsafe fn load_strided_lanes(from: *const u8, step: usize) -> Self {
        intrinsics!({
            let lane = |i: usize| _mm_loadu_si128(from.wrapping_add(i * step).cast());
            let low = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(lane(0)), lane(1));
            _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(low, lane(2)), lane(3))
        })
    }

    #[inline(always)]
    unsafe fn transpose_4x4_lanes([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        intrinsics!({
            let even = |a, b| _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
            let odd = |a, b| _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b);
            let (ab, cd) = (even(a, b), even(c, d));
            let (ab_odd, cd_odd) = (odd(a, b), odd(c, d));
            [even(ab, cd), even(ab_odd, cd_odd), odd(ab, cd), odd(ab_odd, cd_odd)]
        })
    }

    #[inline(always)]
    unsafe fn deinterleave<const U: usize>(self, other: Self) -> (Self, Self) {
        intrinsics!((permute(self, &Places::<U>::UNZIP[0], other), permute(self, &Places::<U>::UNZIP[1], other)))
    }

    #[inline(always)]
    unsafe fn shift_left<const BITS: i32>(self) -> Self {
        intrinsics!(_mm512_sll_epi16(self, _mm_cvtsi32_si128(BITS)))
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: i32>(self) -> Self {
        intrinsics!(_mm512_srl_epi16(self, _mm_cvtsi32_si128(BITS)))
    }
}
