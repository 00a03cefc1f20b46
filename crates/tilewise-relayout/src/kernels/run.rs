//! Runs that are contiguous on both sides, as they are or with their elements packed or unpacked.

use super::{
    Body, Job, Span, Stream,
    ahead::Ahead,
    repeat,
    sink::Sink,
    vector::{Vector, copy_short},
};
use crate::leaf::Convert;

/// Runs `$body` for every repeat, with the sink where the repeat starts, and zeros behind it.
macro_rules! runs {
    ($job:ident, $stream:ident, $s:ty, |$sink:ident, $from:ident, $bytes:ident, $ahead:ident| $body:expr) => {
        let Body::Run { each, last, .. } = $job.body else { return };
        let [outer, inner] = $job.repeats;
        let mut $ahead = $stream.ahead;
        // SAFETY: the job's contract.
        unsafe {
            let mut $sink = <$s>::resume($stream);
            for value in 0..outer.count {
                let mut $from = $job.source.wrapping_add(value * outer.source);
                let mut to = $job.destination.wrapping_add(value * outer.destination);
                for left in (0..inner.count).rev() {
                    let Span { bytes: $bytes, zeros } = if left == 0 { last } else { each };
                    $sink.seek(to);
                    $body;
                    if zeros != 0 {
                        $sink.zeros(zeros);
                    }
                    $from = $from.wrapping_add(inner.source);
                    to = to.wrapping_add(inner.destination);
                }
            }
            $sink.save($stream);
        }
        $stream.ahead = $ahead;
    };
}

/// # Safety
/// As for [`super::run`].
#[inline(always)]
pub(super) unsafe fn copy_runs<V: Vector, S: Sink<V>>(job: &Job, stream: &mut Stream) {
    if let Body::Run { each, last, .. } = job.body
        && each == last
        && each.zeros == 0
        && each.bytes.is_multiple_of(V::BYTES)
        && each.bytes < SHORT
    {
        // SAFETY: passed on.
        return unsafe { copy_vectors::<V, S>(job, stream, each.bytes / V::BYTES) };
    }
    // What short runs need not decide is not decided for each of them.
    if let Body::Run { each, .. } = job.body
        && each.bytes >= 4 * V::BYTES
        && !S::STREAMS
    {
        runs!(job, stream, S, |sink, from, bytes, ahead| sink.copy_long(from, bytes, &mut ahead));
    } else {
        runs!(job, stream, S, |sink, from, bytes, ahead| sink.copy(from, bytes, &mut ahead));
    }
}

/// Runs of fewer bytes gain nothing from a sink's way to copy long ones.
const SHORT: usize = 512;

/// Short runs of whole vectors: nothing is left to decide in the loop.
#[inline(always)]
unsafe fn copy_vectors<V: Vector, S: Sink<V>>(job: &Job, stream: &mut Stream, vectors: usize) {
    let mut ahead = stream.ahead;
    // SAFETY: the job's contract.
    unsafe {
        let mut sink = S::resume(stream);
        repeat!(job, |from, to| {
            sink.seek(to);
            let mut at = from;
            for _ in 0..vectors {
                ahead.read::<V>(at);
                sink.push(V::load(at));
                at = at.wrapping_add(V::BYTES);
            }
        });
        sink.save(stream);
    }
    stream.ahead = ahead;
}

/// # Safety
/// As for [`super::run`].
#[inline(always)]
pub(super) unsafe fn pack_runs<V: Vector, S: Sink<V>, const WAYS: usize>(job: &Job, stream: &mut Stream) {
    runs!(job, stream, S, |sink, from, bytes, ahead| pack::<V, S, WAYS>(&mut sink, from, bytes, &mut ahead));
}

/// # Safety
/// As for [`super::run`].
#[inline(always)]
pub(super) unsafe fn unpack_runs<V: Vector, S: Sink<V>, const WAYS: usize>(job: &Job, stream: &mut Stream) {
    let Body::Run { convert: Convert::Unpack { signed, .. }, .. } = job.body else { return };
    runs!(job, stream, S, |sink, from, bytes, ahead| unpack::<V, S, WAYS>(&mut sink, from, bytes, signed, &mut ahead));
}

/// # Safety
/// As for [`super::run`].
#[inline(always)]
pub(super) unsafe fn merge_runs<V: Vector, S: Sink<V>>(job: &Job, stream: &mut Stream) {
    let Body::Run { convert: Convert::Pack { bits, pitch }, .. } = job.body else { return };
    #[expect(clippy::cast_possible_truncation, reason = "a stride inside a buffer")]
    let pitch = pitch as usize;
    runs!(job, stream, S, |sink, from, bytes, ahead| {
        merged::<V, S>(&mut sink, from, bytes, bits, pitch, &mut ahead);
    });
}

/// # Safety
/// As for [`super::run`].
#[inline(always)]
pub(super) unsafe fn split_runs<V: Vector, S: Sink<V>, const WAYS: usize>(job: &Job, stream: &mut Stream) {
    let Body::Run { each, last, convert } = job.body else { return };
    let [outer, inner] = job.repeats;
    let mut ahead = stream.ahead;
    // SAFETY: the job's contract: each span's bytes are valid in the source, and in each row of the destination.
    unsafe {
        let mut rows = Rows::<V, S, WAYS>::start(job.destination, convert);
        for value in 0..outer.count {
            let mut from = job.source.wrapping_add(value * outer.source);
            let mut to = job.destination.wrapping_add(value * outer.destination);
            for left in (0..inner.count).rev() {
                let Span { bytes, .. } = if left == 0 { last } else { each };
                // The rows go on where they are if this run follows the one before.
                rows.seek(to);
                split(&mut rows, from, bytes, &mut ahead);
                from = from.wrapping_add(inner.source);
                to = to.wrapping_add(inner.destination);
            }
        }
        rows.finish();
    }
    stream.ahead = ahead;
}

/// Writes what a stream still holds.
///
/// # Safety
/// As for [`super::finish`].
#[inline(always)]
pub(super) unsafe fn finish<V: Vector, S: Sink<V>>(stream: &mut Stream) {
    // SAFETY: the stream was left by a job, whose destination is still there.
    unsafe {
        let mut sink = S::resume(stream);
        sink.finish();
        sink.save(stream);
    }
}

/// The lower `BITS` of each byte of two vectors, two bytes into one.
#[inline(always)]
unsafe fn join<V: Vector, const BITS: i32>(a: V, b: V) -> V {
    // SAFETY: `V` is available.
    unsafe {
        let (even, odd) = a.unzip::<1>(b);
        let mask = V::splat((1 << BITS) - 1);
        even.and(mask).or(odd.and(mask).up::<BITS>())
    }
}

/// The lower and the upper `BITS` of each byte, one byte into two.
#[inline(always)]
unsafe fn part<V: Vector, const BITS: i32>(v: V) -> (V, V) {
    // SAFETY: `V` is available.
    unsafe {
        let mask = V::splat((1 << BITS) - 1);
        v.and(mask).zip::<1>(v.down::<BITS>().and(mask))
    }
}

/// One vector of packed bytes from `WAYS` vectors of elements.
#[inline(always)]
unsafe fn pack_vector<V: Vector, const WAYS: usize>(from: *const u8) -> V {
    // SAFETY: `WAYS` vectors are valid at `from`.
    unsafe {
        let at = |i: usize| V::load(from.add(i * V::BYTES));
        match WAYS {
            2 => join::<V, 4>(at(0), at(1)),
            4 => join::<V, 4>(join::<V, 2>(at(0), at(1)), join::<V, 2>(at(2), at(3))),
            _ => {
                let low = join::<V, 2>(join::<V, 1>(at(0), at(1)), join::<V, 1>(at(2), at(3)));
                let high = join::<V, 2>(join::<V, 1>(at(4), at(5)), join::<V, 1>(at(6), at(7)));
                join::<V, 4>(low, high)
            }
        }
    }
}

/// Appends `bytes` packed bytes.
#[inline(always)]
unsafe fn pack<V: Vector, S: Sink<V>, const WAYS: usize>(
    sink: &mut S,
    mut from: *const u8,
    mut bytes: usize,
    ahead: &mut Ahead,
) {
    // SAFETY: `bytes · WAYS` are valid at `from`, and `bytes` at the sink.
    unsafe {
        while bytes >= V::BYTES {
            for i in 0..WAYS {
                ahead.read::<V>(from.wrapping_add(i * V::BYTES));
            }
            sink.push(pack_vector::<V, WAYS>(from));
            from = from.add(WAYS * V::BYTES);
            bytes -= V::BYTES;
        }
        if bytes > 0 {
            let (mut elements, mut packed) = ([0; 8 * 64], [0; 64]);
            core::ptr::copy_nonoverlapping(from, elements.as_mut_ptr(), bytes * WAYS);
            pack_vector::<V, WAYS>(elements.as_ptr()).store(packed.as_mut_ptr());
            sink.copy(packed.as_ptr(), bytes, &mut Ahead::nothing());
        }
    }
}

/// `WAYS` vectors of elements, the sign not yet extended, from one of packed bytes.
#[inline(always)]
unsafe fn unpack_vector<V: Vector, const WAYS: usize>(packed: V) -> [V; 8] {
    // SAFETY: `V` is available.
    unsafe {
        let mut out = [packed; 8];
        (out[0], out[1]) = part::<V, 4>(packed);
        if WAYS >= 4 {
            (out[2], out[3]) = part::<V, 2>(out[1]);
            (out[0], out[1]) = part::<V, 2>(out[0]);
        }
        if WAYS == 8 {
            (out[6], out[7]) = part::<V, 1>(out[3]);
            (out[4], out[5]) = part::<V, 1>(out[2]);
            (out[2], out[3]) = part::<V, 1>(out[1]);
            (out[0], out[1]) = part::<V, 1>(out[0]);
        }
        out
    }
}

/// Appends `bytes` elements of a byte each from packed ones.
#[inline(always)]
unsafe fn unpack<V: Vector, S: Sink<V>, const WAYS: usize>(
    sink: &mut S,
    mut from: *const u8,
    mut bytes: usize,
    signed: bool,
    ahead: &mut Ahead,
) {
    // SAFETY: `bytes / WAYS` are valid at `from`, and `bytes` at the sink.
    unsafe {
        // (x xor sign) − sign repeats the sign; with a sign of 0 it does nothing.
        let sign = V::splat(if signed { 1 << (8 / WAYS - 1) } else { 0 });
        while bytes >= WAYS * V::BYTES {
            ahead.read::<V>(from);
            let out = unpack_vector::<V, WAYS>(V::load(from));
            for vector in &out[..WAYS] {
                sink.push(vector.xor(sign).sub(sign));
            }
            from = from.add(V::BYTES);
            bytes -= WAYS * V::BYTES;
        }
        if bytes > 0 {
            let (mut packed, mut elements) = ([0; 64], [0; 8 * 64]);
            core::ptr::copy_nonoverlapping(from, packed.as_mut_ptr(), bytes / WAYS);
            let out = unpack_vector::<V, WAYS>(V::load(packed.as_ptr()));
            for (i, vector) in out[..WAYS].iter().enumerate() {
                vector.xor(sign).sub(sign).store(elements.as_mut_ptr().add(i * V::BYTES));
            }
            sink.copy(elements.as_ptr(), bytes, &mut Ahead::nothing());
        }
    }
}

/// Bytes of `8 / bits` rows, `pitch` apart, as one vector of packed bytes.
///
/// # Safety
/// A vector is valid in each row.
#[inline(always)]
pub(super) unsafe fn merge_rows<V: Vector>(at: *const u8, bits: u32, pitch: usize) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        let row = |i: usize| V::load(at.wrapping_add(i * pitch));
        match bits {
            4 => {
                let mask = V::splat(15);
                row(0).and(mask).or(row(1).and(mask).up::<4>())
            }
            2 => {
                let mask = V::splat(3);
                let low = row(0).and(mask).or(row(1).and(mask).up::<2>());
                low.or(row(2).and(mask).up::<4>()).or(row(3).and(mask).up::<6>())
            }
            _ => {
                let mask = V::splat(1);
                let low = row(0).and(mask).or(row(1).and(mask).up::<1>());
                let low = low.or(row(2).and(mask).up::<2>()).or(row(3).and(mask).up::<3>());
                let low = low.or(row(4).and(mask).up::<4>()).or(row(5).and(mask).up::<5>());
                low.or(row(6).and(mask).up::<6>()).or(row(7).and(mask).up::<7>())
            }
        }
    }
}

/// The first `n` bytes of [`merge_rows`], fewer than a vector.
///
/// # Safety
/// `n` bytes are valid in each row.
#[inline(always)]
pub(super) unsafe fn merge_rows_short<V: Vector>(at: *const u8, n: usize, bits: u32, pitch: usize) -> V {
    let mut rows = [0; 8 * 64];
    // SAFETY: the caller's promise; the copies have room for whole vectors.
    unsafe {
        for row in 0..(8 / bits) as usize {
            copy_short(at.wrapping_add(row * pitch), rows.as_mut_ptr().add(row * 64), n);
        }
        merge_rows::<V>(rows.as_ptr(), bits, 64)
    }
}

/// Appends `bytes` bytes, each of several rows.
#[inline(always)]
unsafe fn merged<V: Vector, S: Sink<V>>(
    sink: &mut S,
    mut from: *const u8,
    mut bytes: usize,
    bits: u32,
    pitch: usize,
    ahead: &mut Ahead,
) {
    // SAFETY: `bytes` are valid in each row and at the sink.
    unsafe {
        while bytes >= V::BYTES {
            for row in 0..(8 / bits) as usize {
                ahead.read::<V>(from.wrapping_add(row * pitch));
            }
            sink.push(merge_rows::<V>(from, bits, pitch));
            from = from.add(V::BYTES);
            bytes -= V::BYTES;
        }
        if bytes > 0 {
            let mut packed = [0; 64];
            merge_rows_short::<V>(from, bytes, bits, pitch).store(packed.as_mut_ptr());
            sink.copy(packed.as_ptr(), bytes, &mut Ahead::nothing());
        }
    }
}

/// Where bytes go that hold an element of each of `PARTS` rows: a sink for each row. With one part, bytes go as they are.
pub(super) struct Rows<V, S, const PARTS: usize> {
    sinks: [S; PARTS],
    /// Destination bytes from a row to the next.
    pitch: usize,
    /// The sign's bit in every byte, 0 where elements have none.
    sign: V,
}

impl<V: Vector, S: Sink<V>, const PARTS: usize> Rows<V, S, PARTS> {
    /// Starts the first row at an address.
    ///
    /// # Safety
    /// As for [`Sink`], for each of the rows.
    #[inline(always)]
    pub(super) unsafe fn start(at: *mut u8, convert: Convert) -> Self {
        let (sign, pitch) = match convert {
            Convert::Unpack { bits, signed, pitch } => (u8::from(signed) << (bits - 1), pitch),
            _ => (0, 0),
        };
        #[expect(clippy::cast_possible_truncation, reason = "a stride inside a buffer")]
        let pitch = pitch as usize;
        // SAFETY: the caller's promise.
        unsafe {
            let sinks = core::array::from_fn(|part| S::start(at.wrapping_add(part * pitch)));
            Self { sinks, pitch, sign: V::splat(sign) }
        }
    }

    /// Goes on with the first row at an address.
    #[inline(always)]
    unsafe fn seek(&mut self, to: *mut u8) {
        for (part, sink) in self.sinks.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { sink.seek(to.wrapping_add(part * self.pitch)) };
        }
    }

    /// The elements of one row, from a vector of bytes that hold all rows'.
    #[inline(always)]
    unsafe fn part(&self, packed: V, part: usize) -> V {
        // SAFETY: `V` is available.
        unsafe {
            let shifted = match part * 8 / PARTS {
                0 => packed,
                1 => packed.down::<1>(),
                2 => packed.down::<2>(),
                3 => packed.down::<3>(),
                4 => packed.down::<4>(),
                5 => packed.down::<5>(),
                6 => packed.down::<6>(),
                _ => packed.down::<7>(),
            };
            // (x xor sign) − sign repeats the sign, as in `unpack`.
            shifted.and(V::splat(u8::MAX >> (8 - 8 / PARTS))).xor(self.sign).sub(self.sign)
        }
    }

    /// Appends a vector of bytes.
    ///
    /// # Safety
    /// As for [`Sink`].
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, packed: V) {
        // SAFETY: the caller's promise.
        unsafe {
            if PARTS == 1 {
                return self.sinks[0].push(packed);
            }
            for part in 0..PARTS {
                let elements = self.part(packed, part);
                self.sinks[part].push(elements);
            }
        }
    }

    /// Appends the first `n` bytes of a vector.
    ///
    /// # Safety
    /// As for [`Sink`].
    #[inline(always)]
    pub(super) unsafe fn push_short(&mut self, packed: V, n: usize) {
        let mut short = [0; 64];
        // SAFETY: the caller's promise; no vector is longer than the copy.
        unsafe {
            for part in 0..PARTS {
                let elements = if PARTS == 1 { packed } else { self.part(packed, part) };
                elements.store(short.as_mut_ptr());
                self.sinks[part].copy(short.as_ptr(), n, &mut Ahead::nothing());
            }
        }
    }

    /// Writes what is left.
    ///
    /// # Safety
    /// As for [`Sink`].
    #[inline(always)]
    pub(super) unsafe fn finish(&mut self) {
        for sink in &mut self.sinks {
            // SAFETY: the caller's promise.
            unsafe { sink.finish() };
        }
    }
}

/// Appends `bytes` bytes to rows.
#[inline(always)]
unsafe fn split<V: Vector, S: Sink<V>, const PARTS: usize>(
    rows: &mut Rows<V, S, PARTS>,
    mut from: *const u8,
    mut bytes: usize,
    ahead: &mut Ahead,
) {
    // SAFETY: `bytes` are valid at `from`, and in each row.
    unsafe {
        while bytes >= V::BYTES {
            ahead.read::<V>(from);
            rows.push(V::load(from));
            from = from.add(V::BYTES);
            bytes -= V::BYTES;
        }
        if bytes > 0 {
            let mut packed = [0; 64];
            copy_short(from, packed.as_mut_ptr(), bytes);
            rows.push_short(V::load(packed.as_ptr()), bytes);
        }
    }
}
