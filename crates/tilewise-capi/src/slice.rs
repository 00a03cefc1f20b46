//! Slices as runs of bits.

use crate::{
    error::{Result, answer, tw_error},
    layout::tw_layout,
    pointers::{handle, put, read, write},
};
use tilewise::{RunOrder, SliceRuns};

/// A run of a slice: bits of the buffer that lie one behind the other.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tw_run {
    /// Where the run begins, in bits from the start of the buffer.
    pub offset_bits: u64,
    /// How long it is, in bits.
    pub length_bits: u64,
}

/// The order in which runs come.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tw_order {
    /// By rising offset.
    TW_MEMORY_ORDER = 0,
    /// Row-major over the slice's indices: one behind the other, the runs are the slice as a row-major array.
    TW_SLICE_ORDER = 1,
}

/// Properties that all runs of a slice share.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tw_slice {
    /// How many runs there are; 1 where a single copy moves the slice.
    pub runs: u64,
    /// How many elements the slice has.
    pub elements: u64,
    /// Bits of all runs together.
    pub bits: u64,
    /// Bits of the shortest run.
    pub shortest_bits: u64,
    /// Bits of the longest run.
    pub longest_bits: u64,
    /// The largest number of bits that divides where every run begins and ends: 8 * 4096 and its multiples are whole pages.
    pub alignment_bits: u64,
}

/// The runs that elements start <= i < limit take, in order of memory, adjacent ones merged.
///
/// `count` is set to how many there are, which takes no longer for many. `runs` may be NULL; else at most `capacity` are written, from the
/// `first`'th on, which is found in one step.
///
/// # Safety
/// `layout` is a layout that is not freed; its rank of numbers may be read at `start` and at `limit`; `runs` is NULL or `capacity` of them
/// may be written there; `count` may be written; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_slice_runs(
    layout: *const tw_layout,
    start: *const u64,
    limit: *const u64,
    first: u64,
    runs: *mut tw_run,
    capacity: usize,
    count: *mut u64,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises are those of the other function.
    unsafe { tw_slice_runs_strided(layout, start, limit, std::ptr::null(), 0, first, runs, capacity, count, error) }
}

/// The runs of every `strides[d]`'th index from `start[d]` on (NULL: of every index), in a `tw_order`.
///
/// # Safety
/// As for `tw_slice_runs`; `strides` is NULL or the layout's rank of numbers may be read there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_slice_runs_strided(
    layout: *const tw_layout,
    start: *const u64,
    limit: *const u64,
    strides: *const u64,
    order: i32,
    first: u64,
    runs: *mut tw_run,
    capacity: usize,
    count: *mut u64,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller vouches for each pointer.
    answer(error, || unsafe {
        let found = of(layout, start, limit, strides, order)?;
        fill(found, first, runs, capacity, count)
    })
}

/// The shared properties of a slice's runs, without making any: whether it is one, their shortest, their alignment.
///
/// # Safety
/// As for `tw_slice_runs_strided`; `slice` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_slice_describe(
    layout: *const tw_layout,
    start: *const u64,
    limit: *const u64,
    strides: *const u64,
    slice: *mut tw_slice,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller vouches for each pointer.
    answer(error, || unsafe {
        let found = of(layout, start, limit, strides, 0)?;
        let described = tw_slice {
            runs: found.total(),
            elements: found.elements(),
            bits: found.bits(),
            shortest_bits: found.shortest(),
            longest_bits: found.longest(),
            alignment_bits: found.alignment(),
        };
        put(slice, described, "slice")
    })
}

/// # Safety
/// `layout` is NULL or a layout that is not freed; each other pointer is NULL or its rank of numbers may be read there.
unsafe fn of(
    layout: *const tw_layout,
    start: *const u64,
    limit: *const u64,
    strides: *const u64,
    order: i32,
) -> Result<SliceRuns> {
    // SAFETY: The caller's promise.
    let tiled = unsafe { handle(layout, "layout") }?.tiled();
    let rank = tiled.logical_dimensions().len();
    // SAFETY: The caller's promise.
    let (start, limit) = unsafe { (read(start, rank, "start")?, read(limit, rank, "limit")?) };
    let order = match order {
        0 => RunOrder::Memory,
        1 => RunOrder::Slice,
        _ => return Err(crate::error::Failure::argument(format!("{order} isn't a tw_order"))),
    };
    if strides.is_null() && order == RunOrder::Memory {
        return Ok(tiled.slice_runs(start, limit)?);
    }
    let ones = vec![1; rank];
    // SAFETY: The caller's promise.
    let strides = if strides.is_null() { &ones[..] } else { unsafe { read(strides, rank, "strides") }? };
    Ok(tiled.strided_slice_runs(start, limit, strides, order)?)
}

/// # Safety
/// `runs` is NULL or `capacity` of them may be written there; `count` is NULL or may be written.
unsafe fn fill(mut found: SliceRuns, first: u64, runs: *mut tw_run, capacity: usize, count: *mut u64) -> Result<()> {
    let capacity = if runs.is_null() { 0 } else { capacity };
    // SAFETY: The caller's promise.
    let places = unsafe { write(runs, capacity, "runs") }?;
    // SAFETY: The caller's promise.
    unsafe { put(count, found.total(), "count") }?;
    found.skip_runs(first);
    for (place, run) in places.iter_mut().zip(found) {
        *place = tw_run { offset_bits: run.start, length_bits: run.end - run.start };
    }
    Ok(())
}
