//! Rows together and rows apart: the (2,1) and (4,1) of TPU layouts, and everything else that interleaves a few rows.

use super::{
    Body, Job, Stream,
    ahead::Ahead,
    repeat,
    run::{Rows, merge_rows, merge_rows_short},
    sink::Sink,
    vector::{Vector, copy_short},
};
use crate::leaf::Convert;

/// `ways` rows become one: unit 0 of each row, unit 1 of each row, and so on.
#[derive(Clone, Copy)]
pub(crate) struct Together {
    pub(crate) unit: usize,
    pub(crate) ways: usize,
    /// Rows that exist; the others count as zero.
    pub(crate) rows: usize,
    /// Source bytes from a row to the next.
    pub(crate) pitch: usize,
    pub(crate) columns: usize,
    /// Zeros after the last column.
    pub(crate) zeros: usize,
    /// Where each row is itself several rows of narrow elements: bits, and source bytes between those.
    pub(crate) merge: Option<(u32, usize)>,
}

/// One row of interleaved units becomes `ways` rows.
#[derive(Clone, Copy)]
pub(crate) struct Apart {
    pub(crate) unit: usize,
    pub(crate) ways: usize,
    /// Rows wanted.
    pub(crate) rows: usize,
    /// Destination bytes from a row to the next.
    pub(crate) pitch: usize,
    /// Columns in all.
    pub(crate) columns: usize,
    /// Columns after which the source goes on elsewhere, and the distance.
    pub(crate) run: usize,
    pub(crate) run_step: usize,
    /// Where each row is itself several rows of narrow elements: how to unpack them.
    pub(crate) convert: Convert,
}

/// Zips `WAYS` rows: each round interleaves rows half of all apart.
#[inline(always)]
unsafe fn zip_rows<V: Vector, const U: usize, const WAYS: usize>(mut rows: [V; WAYS]) -> [V; WAYS] {
    let mut rounds = WAYS;
    while rounds > 1 {
        let mut next = rows;
        for i in 0..WAYS / 2 {
            // SAFETY: `V` is available.
            (next[2 * i], next[2 * i + 1]) = unsafe { rows[i].zip::<U>(rows[i + WAYS / 2]) };
        }
        rows = next;
        rounds /= 2;
    }
    rows
}

/// The inverse of [`zip_rows`].
#[inline(always)]
unsafe fn unzip_rows<V: Vector, const U: usize, const WAYS: usize>(mut rows: [V; WAYS]) -> [V; WAYS] {
    let mut rounds = WAYS;
    while rounds > 1 {
        let mut next = rows;
        for i in 0..WAYS / 2 {
            // SAFETY: `V` is available.
            (next[i], next[i + WAYS / 2]) = unsafe { rows[2 * i].unzip::<U>(rows[2 * i + 1]) };
        }
        rows = next;
        rounds /= 2;
    }
    rows
}

/// Every pair of unit and ways that plans have: two rows, or groups of at most 16 bytes.
macro_rules! by_unit_and_ways {
    ($function:ident, $s:ty, $job:ident, $stream:ident, $body:ident) => {
        match ($body.unit, $body.ways) {
            (1, 2) => $function::<$s, 1, 2>($job, $stream),
            (1, 4) => $function::<$s, 1, 4>($job, $stream),
            (1, 8) => $function::<$s, 1, 8>($job, $stream),
            (1, 16) => $function::<$s, 1, 16>($job, $stream),
            (2, 2) => $function::<$s, 2, 2>($job, $stream),
            (2, 4) => $function::<$s, 2, 4>($job, $stream),
            (2, 8) => $function::<$s, 2, 8>($job, $stream),
            (4, 2) => $function::<$s, 4, 2>($job, $stream),
            (4, 4) => $function::<$s, 4, 4>($job, $stream),
            (8, 2) => $function::<$s, 8, 2>($job, $stream),
            (16, 2) => $function::<$s, 16, 2>($job, $stream),
            _ => unreachable!("plans have no other unit or number of rows"),
        }
    };
}
pub(super) use by_unit_and_ways;

/// A vector of each row from a column on; of rows that are not there, zeros. `short` counts the units that are there, if not all are.
#[inline(always)]
unsafe fn load_rows<V: Vector, const U: usize, const WAYS: usize>(
    body: &Together,
    at: *const u8,
    short: Option<usize>,
) -> [V; WAYS] {
    // SAFETY: `rows` rows have the units asked for, and whole vectors are read only where those are.
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

/// Prefetches for a vector of each row.
#[inline(always)]
unsafe fn read_rows<V: Vector>(body: &Together, at: *const u8, parts: usize, ahead: &mut Ahead) {
    for i in 0..body.rows {
        for part in 0..parts {
            let pitch = body.merge.map_or(0, |(_, pitch)| pitch);
            // SAFETY: `V` is available.
            unsafe { ahead.read::<V>(at.wrapping_add(i * body.pitch + part * pitch)) };
        }
    }
}

/// # Safety
/// As for [`super::run`].
#[inline(always)]
pub(super) unsafe fn together<V: Vector, S: Sink<V>, const U: usize, const WAYS: usize>(
    job: &Job,
    stream: &mut Stream,
) {
    let Body::Together(body) = job.body else { return };
    let mut ahead = stream.ahead;
    let whole = V::BYTES / U;
    let parts = body.merge.map_or(1, |(bits, _)| 8 / bits as usize);
    if body.rows == WAYS && body.columns.is_multiple_of(whole) && body.zeros == 0 {
        // SAFETY: passed on. The eight rows that 4-bit elements have in a 32-bit word are all that is worth compiling of the others.
        unsafe {
            match body.merge {
                None => return together_whole::<V, S, U, WAYS, 1>(job, stream, &body),
                Some((4, _)) if U == 1 && WAYS == 4 => return together_whole::<V, S, U, WAYS, 2>(job, stream, &body),
                Some(_) => {}
            }
        }
    }
    // SAFETY: each of `rows` rows has `columns` units, and the sink room for `WAYS` times as many.
    unsafe {
        let mut sink = S::resume(stream);
        repeat!(job, |from, to| {
            sink.seek(to);
            let mut at = from;
            let mut columns = body.columns;
            while columns >= whole {
                read_rows::<V>(&body, at, parts, &mut ahead);
                for vector in zip_rows::<V, U, WAYS>(load_rows::<V, U, WAYS>(&body, at, None)) {
                    sink.push(vector);
                }
                at = at.wrapping_add(V::BYTES);
                columns -= whole;
            }
            if columns > 0 {
                let mut zipped = [0; 16 * 64];
                let rows = zip_rows::<V, U, WAYS>(load_rows::<V, U, WAYS>(&body, at, Some(columns)));
                for (i, vector) in rows.into_iter().enumerate() {
                    vector.store(zipped.as_mut_ptr().add(i * V::BYTES));
                }
                sink.copy(zipped.as_ptr(), columns * U * WAYS, &mut Ahead::nothing());
            }
            if body.zeros != 0 {
                sink.zeros(body.zeros);
            }
        });
        sink.save(stream);
        stream.ahead = ahead;
    }
}

/// The same where all rows are there and take whole vectors, and each row is two of 4-bit elements, or, with one part, as it is: nothing
/// is left to decide in the loop.
#[inline(always)]
unsafe fn together_whole<V: Vector, S: Sink<V>, const U: usize, const WAYS: usize, const PARTS: usize>(
    job: &Job,
    stream: &mut Stream,
    body: &Together,
) {
    let mut ahead = stream.ahead;
    let (pitch, vectors) = (body.pitch, body.columns / (V::BYTES / U));
    let part_pitch = body.merge.map_or(0, |(_, pitch)| pitch);
    // SAFETY: each of `WAYS` rows has `vectors` vectors in each part, and the sink room for all of them.
    unsafe {
        let mut sink = S::resume(stream);
        repeat!(job, |from, to| {
            sink.seek(to);
            let mut at = from;
            for _ in 0..vectors {
                let mut rows = [V::zero(); WAYS];
                for (i, row) in rows.iter_mut().enumerate() {
                    let at = at.wrapping_add(i * pitch);
                    for part in 0..PARTS {
                        ahead.read::<V>(at.wrapping_add(part * part_pitch));
                    }
                    *row = match PARTS {
                        1 => V::load(at),
                        _ => merge_rows::<V>(at, 4, part_pitch),
                    };
                }
                for vector in zip_rows::<V, U, WAYS>(rows) {
                    sink.push(vector);
                }
                at = at.wrapping_add(V::BYTES);
            }
        });
        sink.save(stream);
        stream.ahead = ahead;
    }
}

/// # Safety
/// As for [`super::run`].
#[inline(always)]
pub(super) unsafe fn apart<V: Vector, S: Sink<V>, const U: usize, const WAYS: usize>(job: &Job, stream: &mut Stream) {
    let Body::Apart(body) = &job.body else { return };
    // SAFETY: passed on. Plans split four rows of bytes only: more would take long to compile, and nobody has them.
    unsafe {
        match body.convert {
            Convert::Unpack { bits: 4, .. } if U == 1 && WAYS == 4 => apart_into::<V, S, U, WAYS, 2>(job, stream, body),
            Convert::Unpack { bits: 2, .. } if U == 1 && WAYS == 4 => apart_into::<V, S, U, WAYS, 4>(job, stream, body),
            Convert::Unpack { .. } if U == 1 && WAYS == 4 => apart_into::<V, S, U, WAYS, 8>(job, stream, body),
            _ => apart_into::<V, S, U, WAYS, 1>(job, stream, body),
        }
    }
}

/// [`apart`] where each of the `WAYS` rows is `PARTS` rows of narrow elements, or 1 as it is.
#[inline(always)]
unsafe fn apart_into<V: Vector, S: Sink<V>, const U: usize, const WAYS: usize, const PARTS: usize>(
    job: &Job,
    stream: &mut Stream,
    body: &Apart,
) {
    let mut ahead = stream.ahead;
    let whole = V::BYTES / U;
    // SAFETY: the source has `columns` groups of `WAYS` units (in runs), each of `rows` rows room for `columns` units in each part.
    unsafe {
        repeat!(job, |from, to| {
            // Told apart by constants only, sinks stay in registers. In memory they would wait among the stores past the caches.
            let mut sinks: [Rows<V, S, PARTS>; WAYS] = core::array::from_fn(|row| {
                let row = row.min(body.rows - 1);
                Rows::start(to.wrapping_add(row * body.pitch), body.convert)
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
                        ahead.read::<V>(at);
                        *row = V::load(at);
                    }
                    let rows = unzip_rows::<V, U, WAYS>(rows);
                    for (i, (sink, row)) in sinks.iter_mut().zip(rows).enumerate() {
                        if i < body.rows {
                            sink.push(row);
                        }
                    }
                    at = at.wrapping_add(WAYS * V::BYTES);
                    columns -= whole;
                }
                if columns > 0 {
                    let mut zipped = [0; 16 * 64];
                    core::ptr::copy_nonoverlapping(at, zipped.as_mut_ptr(), columns * U * WAYS);
                    let rows = core::array::from_fn(|i| V::load(zipped.as_ptr().add(i * V::BYTES)));
                    let mut in_memory = sinks;
                    for (sink, row) in in_memory.iter_mut().zip(unzip_rows::<V, U, WAYS>(rows)).take(body.rows) {
                        sink.push_short(row, columns * U);
                    }
                    sinks = in_memory;
                }
                run = run.wrapping_add(body.run_step);
            }
            for (i, sink) in sinks.iter_mut().enumerate() {
                if i < body.rows {
                    sink.finish();
                }
            }
        });
        stream.ahead = ahead;
    }
}
