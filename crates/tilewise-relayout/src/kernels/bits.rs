//! Runs whose elements are packed into bits, or unpacked from them.

use super::{
    Body, Job, KernelState, Span,
    copy::runs,
    prefetch::Prefetch,
    store::Store,
    vector::{Vector, copy_short},
};
use crate::{leaf::Convert, size::size};

/// *Safety*: the [job contract](super).
#[inline(always)]
pub(super) unsafe fn pack_runs<V: Vector, S: Store<V>, const WAYS: usize>(job: &Job, state: &mut KernelState) {
    runs!(job, state, S, |store, from, bytes, prefetch| pack::<V, S, WAYS>(&mut store, from, bytes, &mut prefetch));
}

/// *Safety*: the [job contract](super).
#[inline(always)]
pub(super) unsafe fn unpack_runs<V: Vector, S: Store<V>, const WAYS: usize>(job: &Job, state: &mut KernelState) {
    let Body::Run { convert: Convert::Unpack { signed, .. }, .. } = job.body else { return };
    runs!(job, state, S, |store, from, bytes, prefetch| unpack::<V, S, WAYS>(
        &mut store,
        from,
        bytes,
        signed,
        &mut prefetch
    ));
}

/// *Safety*: the [job contract](super).
#[inline(always)]
pub(super) unsafe fn merge_runs<V: Vector, S: Store<V>>(job: &Job, state: &mut KernelState) {
    let Body::Run { convert: Convert::Pack { bits, pitch }, .. } = job.body else { return };
    let pitch = size(pitch);
    runs!(job, state, S, |store, from, bytes, prefetch| {
        merge::<V, S>(&mut store, from, bytes, bits, pitch, &mut prefetch);
    });
}

/// *Safety*: the [job contract](super).
#[inline(always)]
pub(super) unsafe fn split_runs<V: Vector, S: Store<V>, const WAYS: usize>(job: &Job, state: &mut KernelState) {
    let Body::Run { each, last, convert } = job.body else { return };
    let [outer, inner] = job.repeats;
    let mut prefetch = state.prefetch;
    // SAFETY: by the job contract, each span's bytes are valid in the source, and in each row of the destination.
    unsafe {
        let mut rows = Rows::<V, S, WAYS>::start(job.destination_start, convert, state);
        for value in 0..outer.count {
            let mut from = job.source_start.wrapping_add(value * outer.source_stride);
            let mut to = job.destination_start.wrapping_add(value * outer.destination_stride);
            for left in (0..inner.count).rev() {
                let Span { bytes, .. } = if left == 0 { last } else { each };
                // The rows go on where they are if this run follows the one before.
                rows.seek(to);
                split(&mut rows, from, bytes, &mut prefetch);
                from = from.wrapping_add(inner.source_stride);
                to = to.wrapping_add(inner.destination_stride);
            }
        }
        rows.finish();
    }
    state.prefetch = prefetch;
}

/// The lower `BITS` of each byte of two vectors, two bytes into one. *Safety*: the CPU has the instructions.
#[inline(always)]
unsafe fn join<V: Vector, const BITS: i32>(a: V, b: V) -> V {
    // SAFETY: the CPU has the instructions.
    unsafe {
        let (even, odd) = a.deinterleave::<1>(b);
        let mask = V::splat((1 << BITS) - 1);
        even.and(mask).or(odd.and(mask).shift_left::<BITS>())
    }
}

/// The lower and the upper `BITS` of each byte, one byte into two. *Safety*: the CPU has the instructions.
#[inline(always)]
unsafe fn cut<V: Vector, const BITS: i32>(v: V) -> (V, V) {
    // SAFETY: the CPU has the instructions.
    unsafe {
        let mask = V::splat((1 << BITS) - 1);
        v.and(mask).interleave::<1>(v.shift_right::<BITS>().and(mask))
    }
}

/// One vector of packed bytes from `WAYS` vectors of elements.
/// *Safety*: the CPU has the instructions; `WAYS` vectors are readable at `from`.
#[inline(always)]
unsafe fn pack_vector<V: Vector, const WAYS: usize>(from: *const u8) -> V {
    // SAFETY: `WAYS` vectors are readable at `from`.
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

/// Appends `bytes` packed bytes. *Safety*: as for [`Store`]; `bytes · WAYS` bytes are readable at `from`.
#[inline(always)]
unsafe fn pack<V: Vector, S: Store<V>, const WAYS: usize>(
    store: &mut S,
    mut from: *const u8,
    mut bytes: usize,
    prefetch: &mut Prefetch,
) {
    // SAFETY: `bytes · WAYS` are readable at `from`, and the `bytes` appended are the caller's.
    unsafe {
        while bytes >= V::BYTES {
            for i in 0..WAYS {
                prefetch.read::<V>(from.wrapping_add(i * V::BYTES));
            }
            store.push(pack_vector::<V, WAYS>(from));
            from = from.add(WAYS * V::BYTES);
            bytes -= V::BYTES;
        }
        if bytes > 0 {
            let (mut elements, mut packed) = ([0; 8 * 64], [0; 64]);
            core::ptr::copy_nonoverlapping(from, elements.as_mut_ptr(), bytes * WAYS);
            pack_vector::<V, WAYS>(elements.as_ptr()).store(packed.as_mut_ptr());
            store.copy(packed.as_ptr(), bytes, &mut Prefetch::nothing());
        }
    }
}

/// `WAYS` vectors of elements, the sign not yet extended, from one of packed bytes.
/// *Safety*: the CPU has the instructions.
#[inline(always)]
unsafe fn unpack_vector<V: Vector, const WAYS: usize>(packed: V) -> [V; 8] {
    // SAFETY: the CPU has the instructions.
    unsafe {
        let mut out = [packed; 8];
        (out[0], out[1]) = cut::<V, 4>(packed);
        if WAYS >= 4 {
            (out[2], out[3]) = cut::<V, 2>(out[1]);
            (out[0], out[1]) = cut::<V, 2>(out[0]);
        }
        if WAYS == 8 {
            (out[6], out[7]) = cut::<V, 1>(out[3]);
            (out[4], out[5]) = cut::<V, 1>(out[2]);
            (out[2], out[3]) = cut::<V, 1>(out[1]);
            (out[0], out[1]) = cut::<V, 1>(out[0]);
        }
        out
    }
}

/// Appends `bytes` elements of a byte each from packed ones.
/// *Safety*: as for [`Store`]; `bytes / WAYS` bytes are readable at `from`.
#[inline(always)]
unsafe fn unpack<V: Vector, S: Store<V>, const WAYS: usize>(
    store: &mut S,
    mut from: *const u8,
    mut bytes: usize,
    signed: bool,
    prefetch: &mut Prefetch,
) {
    // SAFETY: `bytes / WAYS` are readable at `from`, and the `bytes` appended are the caller's.
    unsafe {
        // (x xor sign) − sign repeats the sign; with a sign of 0 it does nothing.
        let sign = V::splat(if signed { 1 << (8 / WAYS - 1) } else { 0 });
        while bytes >= WAYS * V::BYTES {
            prefetch.read::<V>(from);
            let out = unpack_vector::<V, WAYS>(V::load(from));
            for vector in &out[..WAYS] {
                store.push(vector.xor(sign).sub(sign));
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
            store.copy(elements.as_ptr(), bytes, &mut Prefetch::nothing());
        }
    }
}

/// Bytes of `8 / bits` rows, `pitch` apart, as one vector of packed bytes.
/// *Safety*: the CPU has the instructions; a vector is readable in each row.
#[inline(always)]
pub(super) unsafe fn merge_rows<V: Vector>(at: *const u8, bits: u32, pitch: usize) -> V {
    // SAFETY: a vector is readable in each row.
    unsafe {
        let row = |i: usize| V::load(at.wrapping_add(i * pitch));
        match bits {
            4 => {
                let mask = V::splat(15);
                row(0).and(mask).or(row(1).and(mask).shift_left::<4>())
            }
            2 => {
                let mask = V::splat(3);
                let low = row(0).and(mask).or(row(1).and(mask).shift_left::<2>());
                low.or(row(2).and(mask).shift_left::<4>()).or(row(3).and(mask).shift_left::<6>())
            }
            _ => {
                let mask = V::splat(1);
                let low = row(0).and(mask).or(row(1).and(mask).shift_left::<1>());
                let low = low.or(row(2).and(mask).shift_left::<2>()).or(row(3).and(mask).shift_left::<3>());
                let low = low.or(row(4).and(mask).shift_left::<4>()).or(row(5).and(mask).shift_left::<5>());
                low.or(row(6).and(mask).shift_left::<6>()).or(row(7).and(mask).shift_left::<7>())
            }
        }
    }
}

/// The first `n` bytes of [`merge_rows`], fewer than a vector.
/// *Safety*: the CPU has the instructions; `n` bytes are readable in each row.
#[inline(always)]
pub(super) unsafe fn merge_rows_short<V: Vector>(at: *const u8, n: usize, bits: u32, pitch: usize) -> V {
    let mut rows = [0; 8 * 64];
    // SAFETY: `n` bytes are readable in each row; the copies have room for whole vectors.
    unsafe {
        for row in 0..(8 / bits) as usize {
            copy_short(at.wrapping_add(row * pitch), rows.as_mut_ptr().add(row * 64), n);
        }
        merge_rows::<V>(rows.as_ptr(), bits, 64)
    }
}

/// Appends `bytes` bytes, each of several rows. *Safety*: as for [`Store`]; `bytes` bytes are readable in each row.
#[inline(always)]
unsafe fn merge<V: Vector, S: Store<V>>(
    store: &mut S,
    mut from: *const u8,
    mut bytes: usize,
    bits: u32,
    pitch: usize,
    prefetch: &mut Prefetch,
) {
    // SAFETY: `bytes` are valid in each row and those appended are the caller's.
    unsafe {
        while bytes >= V::BYTES {
            for row in 0..(8 / bits) as usize {
                prefetch.read::<V>(from.wrapping_add(row * pitch));
            }
            store.push(merge_rows::<V>(from, bits, pitch));
            from = from.add(V::BYTES);
            bytes -= V::BYTES;
        }
        if bytes > 0 {
            let mut packed = [0; 64];
            merge_rows_short::<V>(from, bytes, bits, pitch).store(packed.as_mut_ptr());
            store.copy(packed.as_ptr(), bytes, &mut Prefetch::nothing());
        }
    }
}

/// Splits bytes that hold an element of each of `PARTS` rows: a store for each row. With one part, bytes are unchanged.
pub(super) struct Rows<V, S, const PARTS: usize> {
    stores: [S; PARTS],
    /// Destination bytes from a row to the next.
    pitch: usize,
    /// The sign's bit in every byte, 0 if elements have none.
    sign: V,
}

impl<V: Vector, S: Store<V>, const PARTS: usize> Rows<V, S, PARTS> {
    /// Starts the first row at an address. *Safety*: the CPU has the instructions.
    #[inline(always)]
    pub(super) unsafe fn start(at: *mut u8, convert: Convert, state: &KernelState) -> Self {
        let (sign, pitch) = match convert {
            Convert::Unpack { bits, signed, pitch } => (u8::from(signed) << (bits - 1), pitch),
            _ => (0, 0),
        };
        let pitch = size(pitch);
        // SAFETY: the CPU has the instructions.
        unsafe {
            let stores = core::array::from_fn(|part| S::start(at.wrapping_add(part * pitch), state));
            Self { stores, pitch, sign: V::splat(sign) }
        }
    }

    /// Goes on with the first row at an address. *Safety*: as for [`Store::seek`], in each row.
    #[inline(always)]
    unsafe fn seek(&mut self, to: *mut u8) {
        for (part, store) in self.stores.iter_mut().enumerate() {
            // SAFETY: the contract of `Store`, in each row.
            unsafe { store.seek(to.wrapping_add(part * self.pitch)) };
        }
    }

    /// The elements of one row from a vector of bytes that pack all rows. *Safety*: the CPU has the instructions.
    #[inline(always)]
    unsafe fn part(&self, packed: V, part: usize) -> V {
        // SAFETY: the CPU has the instructions.
        unsafe {
            let shifted = match part * 8 / PARTS {
                0 => packed,
                1 => packed.shift_right::<1>(),
                2 => packed.shift_right::<2>(),
                3 => packed.shift_right::<3>(),
                4 => packed.shift_right::<4>(),
                5 => packed.shift_right::<5>(),
                6 => packed.shift_right::<6>(),
                _ => packed.shift_right::<7>(),
            };
            // (x xor sign) − sign repeats the sign, as in `unpack`.
            shifted.and(V::splat(u8::MAX >> (8 - 8 / PARTS))).xor(self.sign).sub(self.sign)
        }
    }

    /// Appends a vector of bytes. *Safety*: as for [`Store`], in each row.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, packed: V) {
        // SAFETY: the contract of `Store`, in each row.
        unsafe {
            if PARTS == 1 {
                return self.stores[0].push(packed);
            }
            for part in 0..PARTS {
                let elements = self.part(packed, part);
                self.stores[part].push(elements);
            }
        }
    }

    /// Appends the first `n` bytes of a vector. *Safety*: as for [`Store`], in each row.
    #[inline(always)]
    pub(super) unsafe fn push_short(&mut self, packed: V, n: usize) {
        let mut short = [0; 64];
        // SAFETY: the contract of `Store`, in each row; no vector is longer than the copy.
        unsafe {
            for part in 0..PARTS {
                let elements = if PARTS == 1 { packed } else { self.part(packed, part) };
                elements.store(short.as_mut_ptr());
                self.stores[part].copy(short.as_ptr(), n, &mut Prefetch::nothing());
            }
        }
    }

    /// Writes the pending bytes. *Safety*: as for [`Store`], in each row.
    #[inline(always)]
    pub(super) unsafe fn finish(&mut self) {
        for store in &mut self.stores {
            // SAFETY: the contract of `Store`, in each row.
            unsafe { store.finish() };
        }
    }
}

/// Appends `bytes` bytes to rows. *Safety*: as for [`Store`], in each row; `bytes` bytes are readable at `from`.
#[inline(always)]
unsafe fn split<V: Vector, S: Store<V>, const PARTS: usize>(
    rows: &mut Rows<V, S, PARTS>,
    mut from: *const u8,
    mut bytes: usize,
    prefetch: &mut Prefetch,
) {
    // SAFETY: `bytes` are readable at `from`, and in each row.
    unsafe {
        while bytes >= V::BYTES {
            prefetch.read::<V>(from);
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
