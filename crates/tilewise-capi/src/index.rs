//! Indices and offsets, one by one and many at once.

use crate::{
    error::{Failure, answer, tw_error},
    layout::tw_layout,
    pointers::{handle, put, read, write},
};

/// The offset of an index, in elements from the start of the buffer.
///
/// # Safety
/// `layout` is a layout that is not freed; its rank of numbers may be read at `index`; `offset` may be written; `error` is NULL or may
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_offset_of(
    layout: *const tw_layout,
    index: *const u64,
    offset: *mut u64,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let tiled = handle(layout, "layout")?.tiled();
        let index = read(index, tiled.logical_dimensions().len(), "index")?;
        put(offset, tiled.offset_of(index)?, "offset")
    })
}

/// The index of the element at an offset, or that padding lies there: then `is_padding` is set, and `index` left alone.
///
/// # Safety
/// `layout` is a layout that is not freed; its rank of numbers may be written at `index`; `is_padding` may be written; `error` is NULL or
/// may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_index_of(
    layout: *const tw_layout,
    offset: u64,
    index: *mut u64,
    is_padding: *mut bool,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let tiled = handle(layout, "layout")?.tiled();
        let found = tiled.index_of(offset)?;
        let place = write(index, tiled.logical_dimensions().len(), "index")?;
        put(is_padding, found.is_none(), "is_padding")?;
        if let Some(found) = found {
            place.copy_from_slice(&found);
        }
        Ok(())
    })
}

/// The offsets of `count` indices, which lie one behind the other at `indices`. On an error, what `offsets` holds is unspecified.
///
/// # Safety
/// `layout` is a layout that is not freed; `count` times its rank of numbers may be read at `indices`, and `count` may be written at
/// `offsets`, elsewhere; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_offsets(
    layout: *const tw_layout,
    indices: *const u64,
    count: usize,
    offsets: *mut u64,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let tiled = handle(layout, "layout")?.tiled();
        let numbers = numbers(count, tiled.logical_dimensions().len())?;
        Ok(tiled.fill_offsets(read(indices, numbers, "indices")?, write(offsets, count, "offsets")?)?)
    })
}

/// The indices at `count` offsets, one behind the other; all numbers of an index are UINT64_MAX where padding lies. On an error, what
/// `indices` holds is unspecified.
///
/// # Safety
/// `layout` is a layout that is not freed; `count` numbers may be read at `offsets`, and `count` times its rank written at `indices`,
/// elsewhere; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_indices(
    layout: *const tw_layout,
    offsets: *const u64,
    count: usize,
    indices: *mut u64,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let tiled = handle(layout, "layout")?.tiled();
        let numbers = numbers(count, tiled.logical_dimensions().len())?;
        Ok(tiled.fill_indices(read(offsets, count, "offsets")?, write(indices, numbers, "indices")?)?)
    })
}

fn numbers(count: usize, rank: usize) -> crate::error::Result<usize> {
    count.checked_mul(rank).ok_or_else(|| Failure::argument("more indices than memory holds"))
}
