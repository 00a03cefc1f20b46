//! Layouts: made from texts, messages and parts, and asked for their sizes.

use crate::{
    error::{Failure, Result, answer, look, tw_code::TW_INVALID_LAYOUT, tw_error},
    pointers::{give, handle, put, put_text, read, take, text, word, write},
};
use prost::Message as _;
use std::{
    ffi::c_char,
    sync::{Arc, OnceLock},
};
use tilewise::{
    ElementType, Layout, Shape, Tiled,
    interop::PjrtTiled,
    proto::{LayoutProto, ShapeProto},
    tpu,
};

/// A shape with its layout: opaque, immutable, usable from any thread.
#[derive(Clone)]
pub struct tw_layout(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) shape: Shape,
    pub(crate) tiled: Tiled,
    /// The arrays that `tw_layout_pjrt` lends.
    pjrt: OnceLock<std::result::Result<PjrtTiled, tilewise::Error>>,
}

impl tw_layout {
    pub(crate) fn of(shape: Shape) -> Result<Self> {
        let tiled = Tiled::new(&shape)?;
        Ok(Self(Arc::new(Inner { shape, tiled, pjrt: OnceLock::new() })))
    }

    pub(crate) fn tiled(&self) -> &Tiled {
        &self.0.tiled
    }
}

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn tw_version() -> *const c_char {
    const { concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast() }
}

/// Reads XLA's text, such as `bf16[8,128]{1,0:T(8,128)(2,1)}`: `length` bytes, with or without a NUL behind them.
///
/// A missing layout is XLA's default, row-major without tiles. A tuple is TW_UNSUPPORTED.
///
/// # Safety
/// `length` bytes may be read at `text`; `out` may be written; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_parse(
    text: *const c_char,
    length: usize,
    out: *mut *mut tw_layout,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let text = self::text(text, length, "text")?;
        give(out, || tw_layout::of(text.parse()?))
    })
}

/// Reads the bytes of XLA's ShapeProto.
///
/// # Safety
/// `length` bytes may be read at `bytes`; `out` may be written; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_from_proto(
    bytes: *const u8,
    length: usize,
    out: *mut *mut tw_layout,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let bytes = read(bytes, length, "bytes")?;
        give(out, || tw_layout::of(Shape::decode_proto(bytes)?))
    })
}

/// Reads the bytes of XLA's LayoutProto, for an array of this element type (by XLA's name, NUL-terminated) and these dimensions.
///
/// # Safety
/// `element_type` ends with NUL; `rank` numbers may be read at `dimensions`, and `length` bytes at `bytes`; `out` may be written;
/// `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_from_layout_proto(
    element_type: *const c_char,
    dimensions: *const u64,
    rank: usize,
    bytes: *const u8,
    length: usize,
    out: *mut *mut tw_layout,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let shape = array(element_type, dimensions, rank)?;
        let bytes = read(bytes, length, "bytes")?;
        give(out, || {
            let layout =
                LayoutProto::decode(bytes).map_err(|error| Failure::new(TW_INVALID_LAYOUT, error.to_string()))?;
            tw_layout::of(Shape::from_proto(&ShapeProto { layout: Some(layout), ..shape.to_proto() })?)
        })
    })
}

/// A layout from the fields of `PJRT_Buffer_MemoryLayout_Tiled`: `minor_to_major`, the sizes of all tiles one behind the other (XLA's `*`
/// is INT64_MIN), and how many of them each tile has. Without tiles (`tile_count` 0) it is an order of dimensions, as hosts have.
///
/// # Safety
/// `element_type` ends with NUL; `rank` numbers may be read at `dimensions` and `minor_to_major`, `tile_count` at `tile_dim_sizes`, and as
/// many as those add up to at `tile_dims`; `out` may be written; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_from_pjrt(
    element_type: *const c_char,
    dimensions: *const u64,
    rank: usize,
    minor_to_major: *const i64,
    tile_dims: *const i64,
    tile_dim_sizes: *const usize,
    tile_count: usize,
    out: *mut *mut tw_layout,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let shape = array(element_type, dimensions, rank)?;
        let tile_dim_sizes = read(tile_dim_sizes, tile_count, "tile_dim_sizes")?;
        let tile_dims_count = tile_dim_sizes.iter().try_fold(0_usize, |sum, &size| sum.checked_add(size));
        let tile_dims_count = tile_dims_count.ok_or_else(|| Failure::argument("tile_dim_sizes overflow"))?;
        let parts = PjrtTiled {
            minor_to_major: read(minor_to_major, rank, "minor_to_major")?.to_vec(),
            tile_dims: read(tile_dims, tile_dims_count, "tile_dims")?.to_vec(),
            tile_dim_sizes: tile_dim_sizes.to_vec(),
        };
        give(out, || tw_layout::of(shape.with_layout(parts.layout()?)?))
    })
}

/// The layout that a TPU generation ("v5e") gives an array by default, as libtpu 0.0.51 does.
///
/// # Safety
/// `element_type` and `tpu` end with NUL; `rank` numbers may be read at `dimensions`; `out` may be written; `error` is NULL or may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_default(
    element_type: *const c_char,
    dimensions: *const u64,
    rank: usize,
    tpu: *const c_char,
    out: *mut *mut tw_layout,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let element_type: ElementType = word(element_type, "element_type")?.parse()?;
        let dimensions = read(dimensions, rank, "dimensions")?;
        let generation = word(tpu, "tpu")?.parse()?;
        give(out, || tw_layout::of(tpu::default_layout(element_type, dimensions, generation)?))
    })
}

/// The layout that a TPU generation gives an array whose order of dimensions is fixed.
///
/// # Safety
/// As for `tw_layout_default`, and `rank` numbers may be read at `minor_to_major`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_with_order(
    element_type: *const c_char,
    dimensions: *const u64,
    rank: usize,
    minor_to_major: *const u64,
    tpu: *const c_char,
    out: *mut *mut tw_layout,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let element_type: ElementType = word(element_type, "element_type")?.parse()?;
        let dimensions = read(dimensions, rank, "dimensions")?;
        let order = read(minor_to_major, rank, "minor_to_major")?.iter();
        let order: Vec<usize> = order.map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect();
        let generation = word(tpu, "tpu")?.parse()?;
        give(out, || tw_layout::of(tpu::layout_for_order(element_type, dimensions, &order, generation)?))
    })
}

/// The array as hosts have it: row-major, without tiles and element size.
///
/// # Safety
/// `layout` is a layout that is not freed; `out` may be written; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_row_major(
    layout: *const tw_layout,
    out: *mut *mut tw_layout,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let shape = &handle(layout, "layout")?.0.shape;
        give(out, || tw_layout::of(shape.with_layout(Layout::row_major(shape.dimensions().len()))?))
    })
}

/// Another handle of the same layout, to be freed on its own; NULL for NULL.
///
/// # Safety
/// `layout` is NULL or a layout that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_clone(layout: *const tw_layout) -> *mut tw_layout {
    look(std::ptr::null_mut(), || {
        // SAFETY: The caller's promise.
        unsafe { layout.as_ref() }.map_or(std::ptr::null_mut(), |layout| Box::into_raw(Box::new(layout.clone())))
    })
}

/// Frees a layout; NULL is fine.
///
/// # Safety
/// `layout` is NULL, or a layout that is not freed and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_free(layout: *mut tw_layout) {
    // SAFETY: The caller's promise.
    look((), || unsafe { take(layout) });
}

/// The answer to a question about a layout; `otherwise` for NULL.
///
/// # Safety
/// `layout` is NULL or a layout that is not freed.
unsafe fn ask<T: Copy>(layout: *const tw_layout, otherwise: T, question: impl FnOnce(&tw_layout) -> T) -> T {
    // SAFETY: The caller's promise.
    look(otherwise, || unsafe { layout.as_ref() }.map_or(otherwise, question))
}

/// The number of dimensions; 0 for NULL.
///
/// # Safety
/// `layout` is NULL or a layout that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_rank(layout: *const tw_layout) -> u32 {
    // SAFETY: The caller's promise. No text has 2^32 dimensions, and no array of more than 64 has an element in each.
    unsafe { ask(layout, 0, |layout| u32::try_from(layout.tiled().logical_dimensions().len()).unwrap_or(u32::MAX)) }
}

/// Bytes of the data alone, without padding; 0 for NULL.
///
/// # Safety
/// `layout` is NULL or a layout that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_logical_bytes(layout: *const tw_layout) -> u64 {
    // SAFETY: The caller's promise.
    unsafe { ask(layout, 0, |layout| layout.tiled().logical_bytes()) }
}

/// Bytes of the buffer, all padding included; 0 for NULL.
///
/// # Safety
/// `layout` is NULL or a layout that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_physical_bytes(layout: *const tw_layout) -> u64 {
    // SAFETY: The caller's promise.
    unsafe { ask(layout, 0, |layout| layout.tiled().physical_bytes()) }
}

/// Elements that the buffer holds, all padding included; 0 for NULL.
///
/// # Safety
/// `layout` is NULL or a layout that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_physical_elements(layout: *const tw_layout) -> u64 {
    // SAFETY: The caller's promise.
    unsafe { ask(layout, 0, |layout| layout.tiled().physical_elements()) }
}

/// Bits that an element takes in the buffer: 4 for `s4[…]{…E(4)}`, 8 for `s4` without; 0 for NULL.
///
/// # Safety
/// `layout` is NULL or a layout that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_stored_bits(layout: *const tw_layout) -> u64 {
    // SAFETY: The caller's promise.
    unsafe { ask(layout, 0, |layout| layout.tiled().stored_bits()) }
}

/// The bounds of the dimensions, `tw_layout_rank` of them.
///
/// # Safety
/// `layout` is a layout that is not freed; its rank of numbers may be written at `dimensions`; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_dimensions(
    layout: *const tw_layout,
    dimensions: *mut u64,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let bounds = handle(layout, "layout")?.tiled().logical_dimensions();
        write(dimensions, bounds.len(), "dimensions")?.copy_from_slice(bounds);
        Ok(())
    })
}

/// Whether two layouts put every element of equal arrays at the same bits of buffers of the same length; false for NULL, and where it
/// isn't known.
///
/// # Safety
/// Each is NULL or a layout that is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_same_bytes(a: *const tw_layout, b: *const tw_layout) -> bool {
    look(false, || {
        // SAFETY: The caller's promise.
        let both = unsafe { a.as_ref().zip(b.as_ref()) };
        both.is_some_and(|(a, b)| a.0.shape.same_bytes(&b.0.shape).unwrap_or(false))
    })
}

/// Writes XLA's text of the shape and its layout as snprintf does: what fits into `capacity` bytes, NUL-terminated. `length` is set to the
/// whole text's length without the NUL; it may be NULL.
///
/// # Safety
/// `layout` is a layout that is not freed; `capacity` bytes may be written at `buffer`; `length` and `error` are NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_text(
    layout: *const tw_layout,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe { put_text(&handle(layout, "layout")?.0.shape.to_string(), buffer, capacity, length) })
}

/// The fields of `PJRT_Buffer_MemoryLayout_Tiled`. What they point to is the layout's, and lives as long.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tw_pjrt_tiled {
    /// The order of dimensions, the fastest-varying first.
    pub minor_to_major: *const i64,
    /// How many there are.
    pub minor_to_major_size: usize,
    /// The sizes of all tiles, one tile behind the other; XLA's `*` is INT64_MIN.
    pub tile_dims: *const i64,
    /// How many of them each tile has.
    pub tile_dim_sizes: *const usize,
    /// How many tiles there are.
    pub num_tiles: usize,
}

/// The layout as PJRT's arrays. TW_UNSUPPORTED for what they can't say: an element size, a memory space, tail padding.
///
/// # Safety
/// `layout` is a layout that is not freed; `out` may be written; `error` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_layout_pjrt(
    layout: *const tw_layout,
    out: *mut tw_pjrt_tiled,
    error: *mut tw_error,
) -> i32 {
    // SAFETY: The caller's promises, each for one pointer.
    answer(error, || unsafe {
        let layout = handle(layout, "layout")?;
        let parts = layout.0.pjrt.get_or_init(|| layout.tiled().pjrt()).as_ref().map_err(Clone::clone)?;
        let lent = tw_pjrt_tiled {
            minor_to_major: parts.minor_to_major.as_ptr(),
            minor_to_major_size: parts.minor_to_major.len(),
            tile_dims: parts.tile_dims.as_ptr(),
            tile_dim_sizes: parts.tile_dim_sizes.as_ptr(),
            num_tiles: parts.tile_dim_sizes.len(),
        };
        put(out, lent, "out")
    })
}

/// An array without a layout of its own yet.
///
/// # Safety
/// `element_type` is NULL or ends with NUL; `dimensions` is NULL or `rank` numbers may be read there.
unsafe fn array(element_type: *const c_char, dimensions: *const u64, rank: usize) -> Result<Shape> {
    // SAFETY: The caller's promises, each for one pointer.
    let (name, bounds) = unsafe { (word(element_type, "element_type")?, read(dimensions, rank, "dimensions")?) };
    Ok(Shape::array(name.parse()?, bounds.iter().copied())?)
}
