//! The bodies of loop nests: what is done with bytes once a plan has decided where they lie.
//!
//! One algorithm for each body, generic over a [vector](vector::Vector) and a [sink](sink::Sink), in `run`, `zip` and `blocks`; thin
//! instantiations for each instruction set here. Which one runs is decided once, by [`Cpu::detect`].

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod ahead;
mod blocks;
#[cfg(target_arch = "x86_64")]
mod carry;
mod cpu;
mod cross;
mod grid;
#[cfg(any(feature = "portable", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable;
mod run;
mod sink;
mod square;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86_64;
mod zip;

use crate::leaf::Convert;
pub(crate) use ahead::Ahead;
pub use cpu::Cpu;
pub(crate) use cpu::{Level, Tuning};
pub(crate) use grid::{Grid, Side, Stride};
pub(crate) use zip::{Apart, Together};

/// What one call does, over and over at a distance.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) source: *const u8,
    pub(crate) destination: *mut u8,
    /// Two loops around the body, the outer one first.
    pub(crate) repeats: [Repeat; 2],
    pub(crate) body: Body,
}

/// A loop around a body: how often, and how far apart in source and destination.
#[derive(Clone, Copy)]
pub(crate) struct Repeat {
    pub(crate) count: usize,
    pub(crate) source: usize,
    pub(crate) destination: usize,
}

impl Repeat {
    pub(crate) const ONCE: Self = Self { count: 1, source: 0, destination: 0 };
}

/// Does something for every place of a job's loops. (A closure might end up outside the function that has the instructions.)
macro_rules! repeat {
    ($job:expr, |$from:ident, $to:ident| $body:expr) => {
        let [outer, inner] = $job.repeats;
        for value in 0..outer.count {
            let mut $from = $job.source.wrapping_add(value * outer.source);
            let mut $to = $job.destination.wrapping_add(value * outer.destination);
            for _ in 0..inner.count {
                $body
                $from = $from.wrapping_add(inner.source);
                $to = $to.wrapping_add(inner.destination);
            }
        }
    };
}
use repeat;

/// What one run writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) bytes: usize,
    /// Zeros behind it.
    pub(crate) zeros: usize,
}

/// The work of one repeat.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// Destination bytes from a contiguous source, then zeros; `last` instead of `each` at the end of the inner loop.
    Run { each: Span, last: Span, convert: Convert },
    /// Rows together.
    Together(Together),
    /// Rows apart.
    Apart(Apart),
    /// A transpose in squares.
    Blocks(Grid),
}

/// The end of what was written last, so that the next kernel can go on in the middle of a line.
#[repr(align(64))]
pub(crate) struct Stream {
    pending: [u8; 64],
    at: *mut u8,
    low: usize,
    /// Whether `pending` may have bytes that are not written yet.
    holds: bool,
    /// Whether writes pass the caches.
    past_caches: bool,
    tuning: &'static Tuning,
    pub(crate) ahead: Ahead,
}

impl Stream {
    pub(crate) fn new(past_caches: bool, tuning: &'static Tuning) -> Self {
        let (pending, at, ahead) = ([0; 64], core::ptr::null_mut(), Ahead::nothing());
        Self { pending, at, low: 0, holds: false, past_caches, tuning, ahead }
    }
}

/// Everything for one level: each kernel is a function of its own that has the level's instructions, chosen once a job. Of the two sinks,
/// the first is for vectors that a kernel puts together in the caches, the second for all that passes them.
macro_rules! level {
    ($name:ident, [$(#[$features:meta])?], $vector:ty, $joined:ty, $past:ty) => {
        mod $name {
            use super::sink::{Plain, Sink};
            #[allow(clippy::wildcard_imports, reason = "each level names some of them")]
            use super::*;

            type V = $vector;

            #[inline(never)]
            $(#[$features])?
            unsafe fn copy<S: Sink<V>>(job: &Job, stream: &mut Stream) {
                // SAFETY: passed on, as in all functions of this module.
                unsafe { run::copy_runs::<V, S>(job, stream) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn pack<S: Sink<V>, const WAYS: usize>(job: &Job, stream: &mut Stream) {
                unsafe { run::pack_runs::<V, S, WAYS>(job, stream) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn merge<S: Sink<V>>(job: &Job, stream: &mut Stream) {
                unsafe { run::merge_runs::<V, S>(job, stream) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn unpack<S: Sink<V>, const WAYS: usize>(job: &Job, stream: &mut Stream) {
                unsafe { run::unpack_runs::<V, S, WAYS>(job, stream) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn split<S: Sink<V>, const WAYS: usize>(job: &Job, stream: &mut Stream) {
                unsafe { run::split_runs::<V, S, WAYS>(job, stream) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn together<S: Sink<V>, const U: usize, const WAYS: usize>(job: &Job, stream: &mut Stream) {
                unsafe { zip::together::<V, S, U, WAYS>(job, stream) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn apart<S: Sink<V>, const U: usize, const WAYS: usize>(job: &Job, stream: &mut Stream) {
                unsafe { zip::apart::<V, S, U, WAYS>(job, stream) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn blocks<S: Sink<V>, const U: usize, const K: usize, const N: usize>(
                job: &Job,
                stream: &mut Stream,
            ) {
                unsafe { blocks::blocks::<V, S, U, K, N>(job, stream) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn write_held(stream: &mut Stream) {
                unsafe { run::finish::<V, $past>(stream) }
            }

            unsafe fn run_into<S: Sink<V>, Joined: Sink<V>>(job: &Job, stream: &mut Stream) {
                unsafe {
                    match &job.body {
                        Body::Run { convert: Convert::Copy, .. } => copy::<S>(job, stream),
                        Body::Run { convert: Convert::Pack { bits, pitch: 1 }, .. } => match bits {
                            4 => pack::<Joined, 2>(job, stream),
                            2 => pack::<Joined, 4>(job, stream),
                            _ => pack::<Joined, 8>(job, stream),
                        },
                        Body::Run { convert: Convert::Pack { .. }, .. } => merge::<Joined>(job, stream),
                        Body::Run { convert: Convert::Unpack { bits, pitch: 1, .. }, .. } => match bits {
                            4 => unpack::<Joined, 2>(job, stream),
                            2 => unpack::<Joined, 4>(job, stream),
                            _ => unpack::<Joined, 8>(job, stream),
                        },
                        Body::Run { convert: Convert::Unpack { bits, .. }, .. } => match bits {
                            4 => split::<Joined, 2>(job, stream),
                            2 => split::<Joined, 4>(job, stream),
                            _ => split::<Joined, 8>(job, stream),
                        },
                        Body::Together(body) => zip::by_unit_and_ways!(together, Joined, job, stream, body),
                        Body::Apart(body) => zip::by_unit_and_ways!(apart, Joined, job, stream, body),
                        Body::Blocks(grid) => match grid.unit {
                            1 => blocks::<S, 1, 16, { size_of::<V>() / 1 }>(job, stream),
                            2 => blocks::<S, 2, 8, { size_of::<V>() / 2 }>(job, stream),
                            4 => blocks::<S, 4, 4, { size_of::<V>() / 4 }>(job, stream),
                            8 => blocks::<S, 8, 2, { size_of::<V>() / 8 }>(job, stream),
                            _ => blocks::<S, 16, 1, { size_of::<V>() / 16 }>(job, stream),
                        },
                    }
                }
            }

            /// # Safety
            /// As for [`super::run`], and the CPU has the level.
            pub(super) unsafe fn run(job: &Job, stream: &mut Stream) {
                unsafe {
                    if stream.past_caches {
                        run_into::<$past, $past>(job, stream);
                    } else {
                        run_into::<Plain, $joined>(job, stream);
                    }
                }
            }

            /// # Safety
            /// As for [`super::finish`], and the CPU has the level.
            pub(super) unsafe fn finish(stream: &mut Stream) {
                if stream.holds {
                    unsafe { write_held(stream) }
                }
            }
        }
    };
}

#[cfg(any(feature = "portable", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
level!(portable_level, [], portable::Block, Plain, Plain);

// CPUs without AVX2 are old, and kernels take long to compile: plain stores will do.
#[cfg(target_arch = "x86_64")]
level!(sse2, [#[target_feature(enable = "sse2")]], x86_64::__m128i, Plain, Plain);

#[cfg(target_arch = "x86_64")]
level!(avx2, [#[target_feature(enable = "avx2")]], x86_64::__m256i, Plain, sink::Pieces);

#[cfg(target_arch = "x86_64")]
level!(
    avx512,
    [#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]],
    x86_64::__m512i,
    carry::Carry<false>,
    carry::Carry<true>
);

#[cfg(target_arch = "aarch64")]
level!(neon, [#[target_feature(enable = "neon")]], aarch64::uint8x16_t, Plain, sink::Pieces);

/// Does a job.
///
/// # Safety
/// The CPU has the level. Every byte the job reads is inside a readable buffer, every byte it writes inside a buffer that
/// the caller may write, and the two do not overlap; `stream` was left by a job of the same level on the same destination.
pub(crate) unsafe fn run(level: Level, job: &Job, stream: &mut Stream) {
    // SAFETY: passed on.
    unsafe {
        match level {
            #[cfg(any(feature = "portable", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
            Level::Portable => portable_level::run(job, stream),
            #[cfg(target_arch = "x86_64")]
            Level::Sse2 => sse2::run(job, stream),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::run(job, stream),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::run(job, stream),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => neon::run(job, stream),
        }
    }
}

/// Writes what a stream still holds, and waits until other threads can see all of it.
///
/// # Safety
/// As for [`run`].
pub(crate) unsafe fn finish(level: Level, stream: &mut Stream) {
    // SAFETY: passed on.
    unsafe {
        match level {
            #[cfg(any(feature = "portable", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
            Level::Portable => portable_level::finish(stream),
            #[cfg(target_arch = "x86_64")]
            Level::Sse2 => sse2::finish(stream),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::finish(stream),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::finish(stream),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => neon::finish(stream),
        }
    }
    #[cfg(target_arch = "x86_64")]
    if stream.past_caches {
        // SAFETY: SSE is part of x86-64.
        unsafe { core::arch::x86_64::_mm_sfence() };
    }
}
