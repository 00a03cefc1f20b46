//! The micro-kernel: one block of a transpose, in registers.
//!
//! A block is as many rows as a line of the destination has units, and as many columns as a vector has. Each 16 bytes
//! of a vector are a *lane*. First, rows are transposed lane by lane, as many together as a lane has units; the result
//! is kept in a scratch that stays in the first-level cache. Then each column's lanes are put together to its line. If
//! a whole block fits into registers, both are done there.

use crate::kernels::vector::{Vector, copy_short};

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// The starts of the rows that make a line; entries beyond the units of a line are unused.
pub(super) type Rows = [*const u8; LINE];

/// A block of bytes; some may never be written.
#[repr(align(64))]
pub(super) struct ScratchLines(pub(super) [u8; LINE * LINE]);

impl ScratchLines {
    pub(super) fn new() -> Self {
        Self([0; LINE * LINE])
    }
}

/// Scratch space of blocks.
pub(super) struct Scratch {
    /// Rows too short for a vector.
    pub(super) staged: ScratchLines,
    /// Lanes, between the two steps.
    pub(super) lanes: ScratchLines,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self { staged: ScratchLines::new(), lanes: ScratchLines::new() }
    }
}

/// Transposes each lane: `K` units of as many rows. After a round, neighbours are twice as long.
/// *Safety*: the CPU has the instructions.
#[inline(always)]
unsafe fn transpose_lanes<V: Vector, const U: usize, const K: usize>(mut rows: [V; K]) -> [V; K] {
    let mut rounds = K;
    while rounds > 1 {
        let mut next = rows;
        for i in 0..K / 2 {
            // SAFETY: the CPU has the instructions.
            (next[2 * i], next[2 * i + 1]) = unsafe { rows[i].interleave_lanes::<U>(rows[i + K / 2]) };
        }
        rows = next;
        rounds /= 2;
    }
    rows
}

/// `K` rows, a vector of each from `skip` bytes on, transposed lane by lane.
/// *Safety*: the CPU has the instructions; a vector is readable in each row.
#[inline(always)]
unsafe fn load_transposed<V: Vector, const U: usize, const K: usize>(rows: &[*const u8; K], skip: usize) -> [V; K] {
    // SAFETY: a vector is readable in each row.
    unsafe {
        let mut lanes = [V::zero(); K];
        for i in 0..K {
            lanes[i] = V::load(rows[i].wrapping_add(skip));
        }
        transpose_lanes::<V, U, K>(lanes)
    }
}

/// The first step: `groups` times `K` rows, a vector of each from `skip` bytes on, transposed lane by lane.
/// *Safety*: the CPU has the instructions; a vector is readable in each row; `scratch` has room for as many vectors.
#[inline(always)]
pub(super) unsafe fn transpose_lanes_to<V: Vector, const U: usize, const K: usize>(
    rows: &Rows,
    skip: usize,
    groups: usize,
    scratch: *mut u8,
) {
    for (group, rows) in rows.as_chunks::<K>().0.iter().enumerate().take(groups) {
        // SAFETY: this function's contract.
        unsafe {
            for (i, vector) in load_transposed::<V, U, K>(rows, skip).into_iter().enumerate() {
                vector.store(scratch.add((group * K + i) * V::BYTES));
            }
        }
    }
}

/// The second step: the `part`th vector of a column's line.
/// *Safety*: the CPU has the instructions, and `scratch` is as [`transpose_lanes_to`] left it.
#[inline(always)]
pub(super) unsafe fn column_vector<V: Vector, const K: usize>(scratch: *const u8, column: usize, part: usize) -> V {
    let first = part * (V::BYTES / 16) * K + column % K;
    // SAFETY: inside the scratch.
    unsafe { V::load_strided_lanes(scratch.add(first * V::BYTES + column / K * 16), K * V::BYTES) }
}

/// Both steps at once, where a whole block fits into registers: a vector of each of `N` rows, `skip` bytes on.
/// *Safety*: the CPU has the instructions; a vector, of a line's length, is readable in each row.
#[inline(always)]
pub(super) unsafe fn transpose_in_registers<V: Vector, const U: usize, const K: usize, const N: usize>(
    rows: &Rows,
    skip: usize,
) -> [V; N] {
    // SAFETY: this function's contract.
    unsafe {
        let mut block = [V::zero(); N];
        for (group, rows) in rows.as_chunks::<K>().0.iter().enumerate().take(N / K) {
            block[group * K..][..K].copy_from_slice(&load_transposed::<V, U, K>(rows, skip));
        }
        let mut columns = block;
        for i in 0..K {
            let lanes = V::transpose_4x4_lanes([block[i], block[K + i], block[2 * K + i], block[3 * K + i]]);
            for (lane, vector) in lanes.into_iter().enumerate() {
                columns[lane * K + i] = vector;
            }
        }
        columns
    }
}

/// Copies rows shorter than a vector: `bytes` of each, from `skip` bytes on.
/// *Safety*: `bytes`, fewer than a line, are readable in each of `present` rows.
#[inline(always)]
pub(super) unsafe fn stage_short_rows(
    rows: &mut Rows,
    present: usize,
    bytes: usize,
    skip: usize,
    staged: &mut ScratchLines,
) {
    let staged = staged.0.as_mut_ptr();
    for (i, row) in rows.iter_mut().enumerate().take(present) {
        let copy = staged.wrapping_add(i * LINE);
        // SAFETY: the bytes are readable in each row; a line of the scratch is each row's.
        unsafe { copy_short(row.wrapping_add(skip), copy, bytes) };
        *row = copy;
    }
    rows[present..].fill(staged);
}
