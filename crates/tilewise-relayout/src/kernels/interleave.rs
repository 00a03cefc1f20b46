//! A few rows interleaved, and taken apart again: the (2,1) and (4,1) of TPU layouts, and any other few rows.

use super::{
    Body, Job, KernelState,
    bits::{Rows, merge_rows, merge_rows_short},
    prefetch::Prefetch,
    repeat,
    store::Store,
    vector::{Vector, copy_short},
};
use crate::leaf::Convert;

/// `ways` rows become one: unit 0 of each row, unit 1 of each row, and so on.
#[derive(Clone, Copy)]
pub(crate) struct Interleave {
    pub(crate) unit: usize,
    pub(crate) ways: usize,
    /// Rows that exist; the others count as zero.
    pub(crate) rows: usize,
    /// Source bytes from a row to the next.
    pub(crate) pitch: usize,
    pub(crate) columns: usize,
    /// Zeros after the last column.
    pub(crate) zeros: usize,
    /// If each row is itself several rows of narrow elements: their bits, and source bytes from one to the next.
    pub(crate) merge: Option<(u32, usize)>,
}

/// One row of interleaved units becomes `ways` rows.
#[derive(Clone, Copy)]
pub(crate) struct Deinterleave {
    pub(crate) unit: usize,
    pub(crate) ways: usize,
    /// Rows wanted.
    pub(crate) rows: usize,
    /// Destination bytes from a row to the next.
    pub(crate) pitch: usize,
    /// Columns in all.
    pub(crate) columns: usize,
    /// Columns of a source run; runs are `run_stride` apart.
    pub(crate) run: usize,
    pub(crate) run_stride: usize,
    /// If each row is itself several rows of narrow elements: how to unpack them.
    pub(crate) convert: Convert,
}

/// Interleaves `WAYS` rows: each round interleaves rows half of all apart. *Safety*: the CPU has the instructions.
#[inline(always)]
unsafe fn interleave_rows<V: Vector, const U: usize, const WAYS: usize>(mut rows: [V; WAYS]) -> [V; WAYS] {
    let mut rounds = WAYS;
    while rounds > 1 {
        let mut next = rows;
        for i in 0..WAYS / 2 {
            // SAFETY: the CPU has the instructions.
            (next[2 * i], next[2 * i + 1]) = unsafe { rows[i].interleave::<U>(rows[i + WAYS / 2]) };
        }
        rows = next;
        rounds /= 2;
    }
    rows
}

/// The inverse of [`interleave_rows`]. *Safety*: the CPU has the instructions.
#[inline(always)]
unsafe fn deinterleave_rows<V: Vector, const U: usize, const WAYS: usize>(mut rows: [V; WAYS]) -> [V; WAYS] {
    let mut rounds = WAYS;
    while rounds > 1 {
        let mut next = rows;
        for i in 0..WAYS / 2 {
            // SAFETY: the CPU has the instructions.
            (next[i], next[i + WAYS / 2]) = unsafe { rows[2 * i].deinterleave::<U>(rows[2 * i + 1]) };
        }
        rows = next;
        rounds /= 2;
    }
    rows
}

/// Every pair of unit and ways that plans have: two rows, or groups of at most 16 bytes.
macro_rules! by_unit_and_ways {
    ($function:ident, $s:ty, $job:ident, $state:ident, $body:ident) => {
        match ($body.unit, $body.ways) {
            (1, 2) => $function::<$s, 1, 2>($job, $state),
            (1, 4) => $function::<$s, 1, 4>($job, $state),
            (1, 8) => $function::<$s, 1, 8>($job, $state),
            (1, 16) => $function::<$s, 1, 16>($job, $state),
            (2, 2) => $function::<$s, 2, 2>($job, $state),
            (2, 4) => $function::<$s, 2, 4>($job, $state),
            (2, 8) => $function::<$s, 2, 8>($job, $state),
            (4, 2) => $function::<$s, 4, 2>($job, $state),
            (4, 4) => $function::<$s, 4, 4>($job, $state),
            (8, 2) => $function::<$s, 8, 2>($job, $state),
            (16, 2) => $function::<$s, 16, 2>($job, $state),
            _ => unreachable!("plans have no other unit or number of rows"),
        }
    };
}
pub(super) use by_unit_and_ways;

/// A vector of each row from a column on; zeros for missing rows. `short` counts the units present, if not all are.
/// *Safety*: the CPU has the instructions; those units are readable in each of `body.rows` rows.
#[inline(always)]
unsafe fn load_rows<V: Vector, const U: usize, const WAYS: usize>(
    body: &Interleave,
    at: *const u8,
    short: Option<usize>,
) -> [V; WAYS] {
    // SAFETY: whole vectors are read only where all of their units are.
    unsafe {
        let mut rows = [V::zero(); WAYS];
        for (i, row) in rows.iter_mut().enumerate().take(body.rows) {
            let at = at.wrapping_add(i * body.pitch);
            *row = match (body.merge, short) {
                (None, None) => V::load(at),
                (None, Some(columns)) => {
                    let mut part = [0; 64];
                    copy_short(at, part.as_mut_ptr(), columns * U);
                    V::load(part.as_ptr())
                }
                (Some((bits, pitch)), None) => merge_rows::<V>(at, bits, pitch),
                (Some((bits, pitch)), Some(columns)) => merge_rows_short::<V>(at, columns * U, bits, pitch),
            };
        }
        rows
    }
}

/// Prefetches for a vector of each row. *Safety*: the CPU has the instructions.
#[inline(always)]
unsafe fn read_rows<V: Vector>(body: &Interleave, at: *const u8, parts: usize, prefetch: &mut Prefetch) {
    for i in 0..body.rows {
        for part in 0..parts {
            let pitch = body.merge.map_or(0, |(_, pitch)| pitch);
            // SAFETY: the CPU has the instructions.
            unsafe { prefetch.read::<V>(at.wrapping_add(i * body.pitch + part * pitch)) };
        }
    }
}

/// *Safety*: the [job contract](super).
#[inline(always)]
pub(super) unsafe fn interleave<V: Vector, S: Store<V>, const U: usize, const WAYS: usize>(
    job: &Job,
    state: &mut KernelState,
) {
    let Body::Interleave(body) = job.body else { return };
    let mut prefetch = state.prefetch;
    let whole = V::BYTES / U;
    let parts = body.merge.map_or(1, |(bits, _)| 8 / bits as usize);
    if body.rows == WAYS && body.columns.is_multiple_of(whole) && body.zeros == 0 {
        // SAFETY: the job contract, of a body with whole vectors. (Of the merging ones only the eight rows that 4-bit elements have in a
        // 32-bit word are worth compiling.)
        unsafe {
            match body.merge {
                None => return interleave_whole::<V, S, U, WAYS, 1>(job, state, &body),
                Some((4, _)) if U == 1 && WAYS == 4 => return interleave_whole::<V, S, U, WAYS, 2>(job, state, &body),
                Some(_) => {}
            }
        }
    }
    // SAFETY: by the job contract each of `rows` rows has `columns` units, and `WAYS` times as many are appended.
    unsafe {
        let mut store = S::resume(state);
        repeat!(job, |from, to| {
            store.seek(to);
            let mut at = from;
            let mut columns = body.columns;
            while columns >= whole {
                read_rows::<V>(&body, at, parts, &mut prefetch);
                for vector in interleave_rows::<V, U, WAYS>(load_rows::<V, U, WAYS>(&body, at, None)) {
                    store.push(vector);
                }
                at = at.wrapping_add(V::BYTES);
                columns -= whole;
            }
            if columns > 0 {
                let mut zipped = [0; 16 * 64];
                let rows = interleave_rows::<V, U, WAYS>(load_rows::<V, U, WAYS>(&body, at, Some(columns)));
                for (i, vector) in rows.into_iter().enumerate() {
                    vector.store(zipped.as_mut_ptr().add(i * V::BYTES));
                }
                store.copy(zipped.as_ptr(), columns * U * WAYS, &mut Prefetch::nothing());
            }
            if body.zeros != 0 {
                store.zeros(body.zeros);
            }
        });
        store.save(state);
        state.prefetch = prefetch;
    }
}

/// [`interleave`] where all rows exist and take whole vectors: the loop has nothing to decide. With two parts each row
/// is two rows of 4-bit elements, with one it stays as it is. *Safety*: the [job contract](super); each of `WAYS` rows
/// has whole vectors.
#[inline(always)]
unsafe fn interleave_whole<V: Vector, S: Store<V>, const U: usize, const WAYS: usize, const PARTS: usize>(
    job: &Job,
    state: &mut KernelState,
    body: &Interleave,
) {
    let mut prefetch = state.prefetch;
    let (pitch, vectors) = (body.pitch, body.columns / (V::BYTES / U));
    let part_pitch = body.merge.map_or(0, |(_, pitch)| pitch);
    // SAFETY: by the job contract each of `WAYS` rows has `vectors` vectors in each part, and all of them are appended.
    unsafe {
        let mut store = S::resume(state);
        repeat!(job, |from, to| {
            store.seek(to);
            let mut at = from;
            for _ in 0..vectors {
                let mut rows = [V::zero(); WAYS];
                for (i, row) in rows.iter_mut().enumerate() {
                    let at = at.wrapping_add(i * pitch);
                    for part in 0..PARTS {
                        prefetch.read::<V>(at.wrapping_add(part * part_pitch));
                    }
                    *row = match PARTS {
                        1 => V::load(at),
                        _ => merge_rows::<V>(at, 4, part_pitch),
                    };
                }
                for vector in interleave_rows::<V, U, WAYS>(rows) {
                    store.push(vector);
                }
                at = at.wrapping_add(V::BYTES);
            }
        });
        store.save(state);
        state.prefetch = prefetch;
    }
}

/// *Safety*: the [job contract](super).
#[inline(always)]
pub(super) unsafe fn deinterleave<V: Vector, S: Store<V>, const U: usize, const WAYS: usize>(
    job: &Job,
    state: &mut KernelState,
) {
    let Body::Deinterleave(body) = &job.body else { return };
    // SAFETY: the job contract. (Plans split four rows of bytes only: more would take long to compile, and no layout has them.)
    unsafe {
        match body.convert {
            Convert::Unpack { bits: 4, .. } if U == 1 && WAYS == 4 => {
                deinterleave_into::<V, S, U, WAYS, 2>(job, state, body)
            }
            Convert::Unpack { bits: 2, .. } if U == 1 && WAYS == 4 => {
                deinterleave_into::<V, S, U, WAYS, 4>(job, state, body)
            }
            Convert::Unpack { .. } if U == 1 && WAYS == 4 => deinterleave_into::<V, S, U, WAYS, 8>(job, state, body),
            _ => deinterleave_into::<V, S, U, WAYS, 1>(job, state, body),
        }
    }
}

/// [`deinterleave`] where each of the `WAYS` rows is `PARTS` rows of narrow elements, or with one part is unchanged.
/// *Safety*: the [job contract](super).
#[inline(always)]
unsafe fn deinterleave_into<V: Vector, S: Store<V>, const U: usize, const WAYS: usize, const PARTS: usize>(
    job: &Job,
    state: &mut KernelState,
    body: &Deinterleave,
) {
    let mut prefetch = state.prefetch;
    let whole = V::BYTES / U;
    // SAFETY: by the job contract the source has `columns` groups of `WAYS` units (in runs), and each of `rows` rows takes `columns` units in
    // each part.
    unsafe {
        repeat!(job, |from, to| {
            // Indexed by constants only, the stores' state stays in registers: in memory it would wait among the non-temporal stores.
            let mut stores: [Rows<V, S, PARTS>; WAYS] = core::array::from_fn(|row| {
                let row = row.min(body.rows - 1);
                Rows::start(to.wrapping_add(row * body.pitch), body.convert, state)
            });
            let mut run = from;
            let mut left = body.columns;
            while left > 0 {
                let mut columns = left.min(body.run);
                left -= columns;
                let mut at = run;
                while columns >= whole {
                    let mut rows = [V::zero(); WAYS];
                    for (i, row) in rows.iter_mut().enumerate() {
                        let at = at.wrapping_add(i * V::BYTES);
                        prefetch.read::<V>(at);
                        *row = V::load(at);
                    }
                    let rows = deinterleave_rows::<V, U, WAYS>(rows);
                    for (i, (store, row)) in stores.iter_mut().zip(rows).enumerate() {
                        if i < body.rows {
                            store.push(row);
                        }
                    }
                    at = at.wrapping_add(WAYS * V::BYTES);
                    columns -= whole;
                }
                if columns > 0 {
                    let mut zipped = [0; 16 * 64];
                    core::ptr::copy_nonoverlapping(at, zipped.as_mut_ptr(), columns * U * WAYS);
                    let rows = core::array::from_fn(|i| V::load(zipped.as_ptr().add(i * V::BYTES)));
                    let mut in_memory = stores;
                    for (store, row) in in_memory.iter_mut().zip(deinterleave_rows::<V, U, WAYS>(rows)).take(body.rows)
                    {
                        store.push_short(row, columns * U);
                    }
                    stores = in_memory;
                }
                run = run.wrapping_add(body.run_stride);
            }
            for (i, store) in stores.iter_mut().enumerate() {
                if i < body.rows {
                    store.finish();
                }
            }
        });
        state.prefetch = prefetch;
    }
}
