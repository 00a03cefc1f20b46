//! The baseline: the fastest plain copy on this machine.

use std::{
    hint::black_box,
    thread,
    time::{Duration, Instant},
};

/// Buffers of up to this many bytes each fit in the caches. Non-temporal stores would be slow, and would evict them for
/// the next contender.
pub(crate) const IN_CACHE: usize = 8 << 20;

type Way = fn(&[u8], &mut [u8]);

/// Two buffers, and the ways to copy one to the other.
pub(crate) struct Copy {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Copy {
    /// Buffers of that many bytes, none of them zero: untouched pages and pages of zeros are copied faster than others.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { from: vec![3; bytes], to: vec![4; bytes] }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.from.len()
    }

    /// The time of `calls` copies on `threads` threads: the faster of plain and non-temporal stores.
    pub(crate) fn fastest(&mut self, threads: usize, calls: u32) -> Duration {
        let ways: &[Way] = if self.bytes() > IN_CACHE { &[plain, non_temporal] } else { &[plain] };
        let times = ways.iter().map(|&way| time(calls, || self.copy(threads, way)));
        times.min().unwrap_or_default()
    }

    /// `memcpy`.
    pub(crate) fn plain(&mut self) {
        self.copy(1, plain);
    }

    /// With non-temporal stores.
    pub(crate) fn non_temporal(&mut self) {
        self.copy(1, non_temporal);
    }

    fn copy(&mut self, threads: usize, way: Way) {
        let share = self.bytes().div_ceil(threads);
        let (from, to) = (black_box(&self.from[..]), black_box(&mut self.to[..]));
        if threads == 1 {
            return way(from, to);
        }
        thread::scope(|scope| {
            for (from, to) in from.chunks(share).zip(to.chunks_mut(share)) {
                scope.spawn(move || way(from, to));
            }
        });
    }
}

/// The time of `calls` calls. If there are several, a few calls before bring the buffers into the caches.
pub(crate) fn time(calls: u32, mut work: impl FnMut()) -> Duration {
    const WARM: u32 = 8;
    if calls > 1 {
        (0..calls.min(WARM)).for_each(|_| work());
    }
    let start = Instant::now();
    (0..calls).for_each(|_| work());
    start.elapsed()
}

fn plain(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

/// Non-temporal stores of 32 bytes.
#[cfg(target_arch = "x86_64")]
fn non_temporal(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};

    /// # Safety
    /// The CPU has AVX, and `to` starts on a multiple of 32.
    #[target_feature(enable = "avx")]
    unsafe fn stream(from: &[[u8; 128]], to: &mut [[u8; 128]]) {
        for (from, to) in from.iter().zip(to) {
            let (from, to) = (from.as_ptr().cast::<__m256i>(), to.as_mut_ptr().cast::<__m256i>());
            // SAFETY: four vectors are 128 bytes; `to` is aligned, and stays so in steps of 128.
            unsafe {
                let vectors = [0, 1, 2, 3].map(|i| _mm256_loadu_si256(from.add(i)));
                for (i, vector) in vectors.into_iter().enumerate() {
                    _mm256_stream_si256(to.add(i), vector);
                }
            }
        }
        _mm_sfence();
    }

    if !std::is_x86_feature_detected!("avx") {
        return plain(from, to);
    }
    let head = to.as_ptr().align_offset(32).min(to.len());
    let ((from_head, from), (to_head, to)) = (from.split_at(head), to.split_at_mut(head));
    let ((from, from_tail), (to, to_tail)) = (from.as_chunks(), to.as_chunks_mut());
    plain(from_head, to_head);
    // SAFETY: AVX was just found; the head ends on a multiple of 32.
    unsafe { stream(from, to) };
    plain(from_tail, to_tail);
}

#[cfg(not(target_arch = "x86_64"))]
fn non_temporal(from: &[u8], to: &mut [u8]) {
    plain(from, to);
}
