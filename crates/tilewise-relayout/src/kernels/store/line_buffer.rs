//! The line buffer: whole cache lines, wherever runs start. Only AVX-512 can afford it.

use super::{KernelState, Prefetch, Store, warm_tlb};
use crate::kernels::arch::x86_64::places;
use core::arch::x86_64::*;

/// Writes whole cache lines from any address on: the known part of a line is kept in a register until the rest comes,
/// which takes one permutation a line. A store across two lines takes longer than that, in a cache too.
pub(in crate::kernels) struct LineBuffer<const NON_TEMPORAL: bool> {
    /// The next byte to append.
    at: *mut u8,
    /// The line that `at` is in, as far as it is known.
    pending: __m512i,
    /// Bytes at the start of that line that are not the buffer's.
    low: usize,
    /// Rotates a vector up by `at mod 64`.
    rotation: __m512i,
    warms_tlb: bool,
}

/// Calls intrinsics, in a method of [`LineBuffer`].
macro_rules! intrinsics {
    ($calls:expr) => {
        // SAFETY: by the contract of [`Store`] the CPU has AVX-512, and what is read and written is the caller's; masked loads and stores
        // touch the lanes of their masks only.
        unsafe { $calls }
    };
}

/// 0 … 63.
const ASCENDING: [u8; 64] = places(64, false, 0);

/// Ones for lanes `from..to` of 64.
#[inline(always)]
fn lanes(from: usize, to: usize) -> u64 {
    let below = |n: usize| if n >= 64 { u64::MAX } else { (1 << n) - 1 };
    below(to) & !below(from)
}

// The methods below are called with the contract of [`Store`] only.
impl<const NON_TEMPORAL: bool> LineBuffer<NON_TEMPORAL> {
    #[inline(always)]
    unsafe fn new(at: *mut u8, state: &KernelState) -> Self {
        let zero = intrinsics!(_mm512_setzero_si512());
        Self { at, pending: zero, low: at.addr() % 64, rotation: zero, warms_tlb: state.warms_tlb() }
    }

    /// Writes a whole line.
    #[inline(always)]
    unsafe fn write(&self, to: *mut u8, line: __m512i) {
        intrinsics!({
            if NON_TEMPORAL {
                warm_tlb::<__m512i>(to, self.warms_tlb);
                _mm512_stream_si512(to.cast(), line);
            } else {
                _mm512_store_si512(to.cast(), line);
            }
        })
    }

    #[inline(always)]
    fn phase(&self) -> usize {
        self.at.addr() % 64
    }

    #[inline(always)]
    unsafe fn set_rotation(&mut self) {
        intrinsics!({
            #[expect(clippy::cast_possible_truncation, reason = "below 64")]
            let phase = _mm512_set1_epi8((self.phase() as u8).cast_signed());
            self.rotation = _mm512_sub_epi8(_mm512_loadu_si512(ASCENDING.as_ptr().cast()), phase);
        })
    }

    /// Writes a whole line; `at` is somewhere in it.
    #[inline(always)]
    unsafe fn emit(&mut self, line: __m512i) {
        intrinsics!({
            let to = self.at.wrapping_sub(self.phase());
            if self.low == 0 {
                self.write(to, line);
            } else {
                _mm512_mask_storeu_epi8(to.cast(), lanes(self.low, 64), line);
                self.low = 0;
            }
        })
    }

    /// Copies to the end of a run, a load for each line of the destination.
    #[inline(always)]
    unsafe fn copy_lines(&mut self, mut line: *const u8, end: usize, prefetch: &mut Prefetch) {
        intrinsics!({
            let mut to = self.at.wrapping_sub(self.phase());
            prefetch.read::<__m512i>(line);
            self.emit(_mm512_mask_loadu_epi8(self.pending, lanes(self.phase(), 64), line.cast()));
            for _ in 1..end / 64 {
                line = line.wrapping_add(64);
                to = to.wrapping_add(64);
                prefetch.read::<__m512i>(line);
                self.write(to, _mm512_loadu_si512(line.cast()));
            }
            self.pending = _mm512_maskz_loadu_epi8(lanes(0, end % 64), line.wrapping_add(64).cast());
        })
    }
}

impl<const NON_TEMPORAL: bool> Store<__m512i> for LineBuffer<NON_TEMPORAL> {
    const NON_TEMPORAL: bool = NON_TEMPORAL;

    #[inline(always)]
    unsafe fn resume(state: &KernelState) -> Self {
        intrinsics!({
            let pending = _mm512_loadu_si512(state.pending.as_ptr().cast());
            let mut store = Self { low: state.low, pending, ..Self::new(state.at, state) };
            store.set_rotation();
            store
        })
    }

    #[inline(always)]
    unsafe fn save(self, state: &mut KernelState) {
        intrinsics!(_mm512_storeu_si512(state.pending.as_mut_ptr().cast(), self.pending));
        (state.at, state.low, state.is_pending) = (self.at, self.low, true);
    }

    #[inline(always)]
    unsafe fn start(at: *mut u8, state: &KernelState) -> Self {
        intrinsics!({
            let mut store = Self::new(at, state);
            store.set_rotation();
            store
        })
    }

    #[inline(always)]
    unsafe fn finish(&mut self) {
        intrinsics!({
            let to = self.at.wrapping_sub(self.phase());
            _mm512_mask_storeu_epi8(to.cast(), lanes(self.low, self.phase()), self.pending);
            self.low = self.phase();
        })
    }

    #[inline(always)]
    unsafe fn seek(&mut self, to: *mut u8) {
        if to != self.at {
            intrinsics!({
                self.finish();
                self.at = to;
                self.low = self.phase();
                self.set_rotation();
            })
        }
    }

    #[inline(always)]
    unsafe fn push(&mut self, vector: __m512i) {
        intrinsics!({
            let rotated = _mm512_permutexvar_epi8(self.rotation, vector);
            let line = _mm512_mask_blend_epi8(lanes(self.phase(), 64), self.pending, rotated);
            self.emit(line);
            self.pending = rotated;
            self.at = self.at.add(64);
        })
    }

    #[inline(always)]
    unsafe fn copy(&mut self, from: *const u8, n: usize, prefetch: &mut Prefetch) {
        intrinsics!({
            let phase = self.phase();
            let end = phase + n;
            // The source address of the line's start, were the run that long.
            let start = from.wrapping_sub(phase);
            if end < 64 {
                self.pending = _mm512_mask_loadu_epi8(self.pending, lanes(phase, end), start.cast());
            } else {
                self.copy_lines(start, end, prefetch);
            }
            self.at = self.at.add(n);
            self.set_rotation();
        })
    }

    #[inline(always)]
    unsafe fn zeros(&mut self, n: usize) {
        intrinsics!({
            let phase = self.phase();
            let end = phase + n;
            let first = _mm512_mask_mov_epi8(self.pending, lanes(phase, end), _mm512_setzero_si512());
            if end < 64 {
                self.pending = first;
            } else {
                self.emit(first);
                let mut to = self.at.wrapping_sub(phase);
                for _ in 1..end / 64 {
                    to = to.wrapping_add(64);
                    self.write(to, _mm512_setzero_si512());
                }
                self.pending = _mm512_setzero_si512();
            }
            self.at = self.at.add(n);
            if !n.is_multiple_of(64) {
                self.set_rotation();
            }
        })
    }
}
