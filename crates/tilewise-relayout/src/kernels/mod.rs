//! Kernels, the bodies of loop nests: they move bytes between places that a plan has decided.
//!
//! Each body is one algorithm, generic over a [vector](vector::Vector) and a [store](store::Store): runs in `copy` and `bits`, rows that
//! are interleaved in `interleave`, everything else in `transpose`. This module instantiates them for each instruction set of `arch`, and
//! [`run`] calls the one for a [`Level`].
//!
//! # The job contract
//!
//! Every kernel is unsafe for the same reasons, which SAFETY comments call *the job contract*:
//!
//! - the CPU has the instructions of the kernel's vector;
//! - every byte that the job's body names, at each of its repeats, lies inside the source buffer where it is read, and inside the destination
//!   where it is written;
//! - while the job runs, no other code accesses those bytes of the destination, and the buffers do not overlap;
//! - the [`KernelState`] is new, or was left by a job of the same level on the same destination.

mod arch;
mod bits;
mod copy;
mod interleave;
mod prefetch;
mod store;
mod transpose;
mod vector;

use crate::{
    cpu::Level,
    leaf::Convert,
    tuning::{Mechanism, Tuning},
};
pub(crate) use interleave::{Deinterleave, Interleave};
pub(crate) use prefetch::Prefetch;
pub(crate) use transpose::{Grid, Side, Stride};

/// The work of one call: a body, repeated at fixed strides.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) source_start: *const u8,
    pub(crate) destination_start: *mut u8,
    /// Two loops around the body, the outer one first.
    pub(crate) repeats: [Repeat; 2],
    pub(crate) body: Body,
}

/// A loop around a body: how often, and how many bytes apart in source and destination.
#[derive(Clone, Copy)]
pub(crate) struct Repeat {
    pub(crate) count: usize,
    pub(crate) source_stride: usize,
    pub(crate) destination_stride: usize,
}

impl Repeat {
    pub(crate) const ONCE: Self = Self { count: 1, source_stride: 0, destination_stride: 0 };
}

/// Runs `$body` at every repeat of a job. (A closure might end up outside the function that has the instructions.)
macro_rules! repeat {
    ($job:expr, |$from:ident, $to:ident| $body:expr) => {
        let [outer, inner] = $job.repeats;
        for value in 0..outer.count {
            let mut $from = $job.source_start.wrapping_add(value * outer.source_stride);
            let mut $to = $job.destination_start.wrapping_add(value * outer.destination_stride);
            for _ in 0..inner.count {
                $body
                $from = $from.wrapping_add(inner.source_stride);
                $to = $to.wrapping_add(inner.destination_stride);
            }
        }
    };
}
use repeat;

/// The destination bytes of one run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) bytes: usize,
    /// Zeros after them.
    pub(crate) zeros: usize,
}

/// The work of one repeat.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// Destination bytes from a contiguous source, then zeros; `last` instead of `each` at the end of the inner loop.
    Run { each: Span, last: Span, convert: Convert },
    /// A few rows become one, unit by unit.
    Interleave(Interleave),
    /// One row becomes a few, unit by unit.
    Deinterleave(Deinterleave),
    /// Any other transpose.
    Transpose(Grid),
}

/// State that kernels of one pass over a nest hand on: the unwritten end of the last job, so that the next one can go
/// on in the middle of a cache line, and the prefetches of reads.
#[repr(align(64))]
pub(crate) struct KernelState {
    pending: [u8; 64],
    at: *mut u8,
    low: usize,
    /// Whether `pending` may have bytes that are not written yet.
    is_pending: bool,
    is_non_temporal: bool,
    tuning: Tuning,
    pub(crate) prefetch: Prefetch,
}

impl KernelState {
    pub(crate) fn new(is_non_temporal: bool, tuning: Tuning) -> Self {
        let (pending, at, prefetch) = ([0; 64], core::ptr::null_mut(), Prefetch::nothing());
        Self { pending, at, low: 0, is_pending: false, is_non_temporal, tuning, prefetch }
    }

    fn warms_tlb(&self) -> bool {
        self.tuning.has(Mechanism::TlbWarming)
    }
}

/// Everything for one level: each kernel is a function of its own that has the level's instructions, chosen once per
/// job. `$joined` stores vectors that a kernel assembles inside the caches, `$non_temporal` all non-temporal writes.
macro_rules! level {
    ($name:ident, [$(#[$features:meta])?], $vector:ty, $joined:ty, $non_temporal:ty) => {
        mod $name {
            use super::store::{Plain, Store};
            #[allow(clippy::wildcard_imports, reason = "each level names some of them")]
            use super::*;

            type V = $vector;

            #[inline(never)]
            $(#[$features])?
            unsafe fn copy<S: Store<V>>(job: &Job, state: &mut KernelState) {
                // SAFETY: the job contract.
                unsafe { copy::copy_runs::<V, S>(job, state) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn pack<S: Store<V>, const WAYS: usize>(job: &Job, state: &mut KernelState) {
                // SAFETY: the job contract.
                unsafe { bits::pack_runs::<V, S, WAYS>(job, state) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn merge<S: Store<V>>(job: &Job, state: &mut KernelState) {
                // SAFETY: the job contract.
                unsafe { bits::merge_runs::<V, S>(job, state) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn unpack<S: Store<V>, const WAYS: usize>(job: &Job, state: &mut KernelState) {
                // SAFETY: the job contract.
                unsafe { bits::unpack_runs::<V, S, WAYS>(job, state) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn split<S: Store<V>, const WAYS: usize>(job: &Job, state: &mut KernelState) {
                // SAFETY: the job contract.
                unsafe { bits::split_runs::<V, S, WAYS>(job, state) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn interleave<S: Store<V>, const U: usize, const WAYS: usize>(job: &Job, state: &mut KernelState) {
                // SAFETY: the job contract.
                unsafe { interleave::interleave::<V, S, U, WAYS>(job, state) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn deinterleave<S: Store<V>, const U: usize, const WAYS: usize>(job: &Job, state: &mut KernelState) {
                // SAFETY: the job contract.
                unsafe { interleave::deinterleave::<V, S, U, WAYS>(job, state) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn transpose<S: Store<V>, const U: usize, const K: usize, const N: usize>(
                job: &Job,
                state: &mut KernelState,
            ) {
                // SAFETY: the job contract.
                unsafe { transpose::transpose::<V, S, U, K, N>(job, state) }
            }

            #[inline(never)]
            $(#[$features])?
            unsafe fn write_pending(state: &mut KernelState) {
                // SAFETY: the job contract.
                unsafe { store::finish::<V, $non_temporal>(state) }
            }

            unsafe fn run_into<S: Store<V>, Joined: Store<V>>(job: &Job, state: &mut KernelState) {
                // SAFETY: the job contract.
                unsafe {
                    match &job.body {
                        Body::Run { convert: Convert::Copy, .. } => copy::<S>(job, state),
                        Body::Run { convert: Convert::Pack { bits, pitch: 1 }, .. } => match bits {
                            4 => pack::<Joined, 2>(job, state),
                            2 => pack::<Joined, 4>(job, state),
                            _ => pack::<Joined, 8>(job, state),
                        },
                        Body::Run { convert: Convert::Pack { .. }, .. } => merge::<Joined>(job, state),
                        Body::Run { convert: Convert::Unpack { bits, pitch: 1, .. }, .. } => match bits {
                            4 => unpack::<Joined, 2>(job, state),
                            2 => unpack::<Joined, 4>(job, state),
                            _ => unpack::<Joined, 8>(job, state),
                        },
                        Body::Run { convert: Convert::Unpack { bits, .. }, .. } => match bits {
                            4 => split::<Joined, 2>(job, state),
                            2 => split::<Joined, 4>(job, state),
                            _ => split::<Joined, 8>(job, state),
                        },
                        Body::Interleave(body) => interleave::by_unit_and_ways!(interleave, Joined, job, state, body),
                        Body::Deinterleave(body) => interleave::by_unit_and_ways!(deinterleave, Joined, job, state, body),
                        Body::Transpose(grid) => match grid.unit {
                            1 => transpose::<S, 1, 16, { size_of::<V>() / 1 }>(job, state),
                            2 => transpose::<S, 2, 8, { size_of::<V>() / 2 }>(job, state),
                            4 => transpose::<S, 4, 4, { size_of::<V>() / 4 }>(job, state),
                            8 => transpose::<S, 8, 2, { size_of::<V>() / 8 }>(job, state),
                            _ => transpose::<S, 16, 1, { size_of::<V>() / 16 }>(job, state),
                        },
                    }
                }
            }

            /// *Safety*: the job contract.
            pub(super) unsafe fn run(job: &Job, state: &mut KernelState) {
                // SAFETY: the job contract.
                unsafe {
                    if state.is_non_temporal {
                        run_into::<$non_temporal, $non_temporal>(job, state);
                    } else {
                        run_into::<Plain, $joined>(job, state);
                    }
                }
            }

            /// *Safety*: as for [`super::finish`].
            pub(super) unsafe fn finish(state: &mut KernelState) {
                if state.is_pending {
                    // SAFETY: the CPU has the instructions, and the state is of a job on this destination.
                    unsafe { write_pending(state) }
                }
            }
        }
    };
}

// Compiled to SSE2 on x86-64, and to NEON on aarch64.
level!(portable_level, [], arch::portable::Block, Plain, Plain);

#[cfg(target_arch = "x86_64")]
level!(avx2, [#[target_feature(enable = "avx2")]], arch::x86_64::__m256i, Plain, store::NonTemporal);

#[cfg(target_arch = "x86_64")]
level!(
    avx512,
    [#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]],
    arch::x86_64::__m512i,
    store::LineBuffer<false>,
    store::LineBuffer<true>
);

/// Does a job. *Safety*: the job contract, at the head of this module, for the instructions of `level`.
pub(crate) unsafe fn run(level: Level, job: &Job, state: &mut KernelState) {
    // SAFETY: this function's contract, for the level that is matched.
    unsafe {
        match level {
            Level::Portable => portable_level::run(job, state),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::run(job, state),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::run(job, state),
        }
    }
}

/// Writes the pending bytes of a pass, and waits until other threads can see all of its writes.
/// *Safety*: the CPU has the instructions of `level`; the state is new, or was left by a job of that level whose destination is still the
/// caller's.
pub(crate) unsafe fn finish(level: Level, state: &mut KernelState) {
    // SAFETY: this function's contract, for the level that is matched.
    unsafe {
        match level {
            Level::Portable => portable_level::finish(state),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::finish(state),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::finish(state),
        }
    }
    #[cfg(target_arch = "x86_64")]
    if state.is_non_temporal {
        // SAFETY: SSE is part of x86-64.
        unsafe { core::arch::x86_64::_mm_sfence() };
    }
}
