//! Runs that are contiguous on both sides, copied.

use super::{Body, Job, KernelState, Span, repeat, store::Store, vector::Vector};

/// Runs `$body` for every repeat, with the store where the repeat starts, and zeros behind it.
macro_rules! runs {
    ($job:ident, $state:ident, $s:ty, |$store:ident, $from:ident, $bytes:ident, $prefetch:ident| $body:expr) => {
        let Body::Run { each, last, .. } = $job.body else { return };
        let [outer, inner] = $job.repeats;
        let mut $prefetch = $state.prefetch;
        // SAFETY: the job contract.
        unsafe {
            let mut $store = <$s>::resume($state);
            for value in 0..outer.count {
                let mut $from = $job.source_start.wrapping_add(value * outer.source_stride);
                let mut to = $job.destination_start.wrapping_add(value * outer.destination_stride);
                for left in (0..inner.count).rev() {
                    let Span { bytes: $bytes, zeros } = if left == 0 { last } else { each };
                    $store.seek(to);
                    $body;
                    if zeros != 0 {
                        $store.zeros(zeros);
                    }
                    $from = $from.wrapping_add(inner.source_stride);
                    to = to.wrapping_add(inner.destination_stride);
                }
            }
            $store.save($state);
        }
        $state.prefetch = $prefetch;
    };
}
pub(super) use runs;

/// *Safety*: the [job contract](super).
#[inline(always)]
pub(super) unsafe fn copy_runs<V: Vector, S: Store<V>>(job: &Job, state: &mut KernelState) {
    if let Body::Run { each, last, .. } = job.body
        && each == last
        && each.zeros == 0
        && each.bytes.is_multiple_of(V::BYTES)
        && each.bytes < SHORT
    {
        // SAFETY: the job contract, and each run has this number of vectors.
        return unsafe { copy_vectors::<V, S>(job, state, each.bytes / V::BYTES) };
    }
    // Short runs skip the decisions of long ones.
    if let Body::Run { each, .. } = job.body
        && each.bytes >= 4 * V::BYTES
        && !S::NON_TEMPORAL
    {
        runs!(job, state, S, |store, from, bytes, prefetch| store.copy_long(from, bytes, &mut prefetch));
    } else {
        runs!(job, state, S, |store, from, bytes, prefetch| store.copy(from, bytes, &mut prefetch));
    }
}

/// Runs of fewer bytes gain nothing from a store's own way to copy.
const SHORT: usize = 512;

/// Short runs of whole vectors: the loop has nothing to decide.
/// *Safety*: the [job contract](super); each run has `vectors` vectors.
#[inline(always)]
unsafe fn copy_vectors<V: Vector, S: Store<V>>(job: &Job, state: &mut KernelState, vectors: usize) {
    let mut prefetch = state.prefetch;
    // SAFETY: the job contract.
    unsafe {
        let mut store = S::resume(state);
        repeat!(job, |from, to| {
            store.seek(to);
            let mut at = from;
            for _ in 0..vectors {
                prefetch.read::<V>(at);
                store.push(V::load(at));
                at = at.wrapping_add(V::BYTES);
            }
        });
        store.save(state);
    }
    state.prefetch = prefetch;
}
