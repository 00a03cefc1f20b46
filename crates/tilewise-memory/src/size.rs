//! Bytes of arrays and of the tables that tuples are.

use tilewise::{
    ErrorKind, Layout, Shape,
    tpu::{Generation, allocated_bytes},
};

use crate::Error;

/// Bytes of the table of pointers that a tuple of so many elements is.
pub(crate) fn table(elements: usize, generation: Generation) -> Option<u64> {
    u64::try_from(elements).ok()?.checked_mul(4)?.checked_next_multiple_of(generation.tuple_table_granule_bytes())
}

/// Bytes of anything but a tuple; tokens and opaque values take none. An array that was written without a layout counts
/// as row-major.
pub(crate) fn leaf(shape: &Shape) -> Result<u64, Error> {
    let Some(array) = shape.as_array() else { return Ok(0) };
    let bytes = match array.layout() {
        Some(_) => allocated_bytes(array),
        None => shape
            .with_layout(Layout::row_major(array.rank()))
            .and_then(|shape| shape.as_array().map_or(Ok(0), allocated_bytes)),
    };
    bytes.map_err(|error| match error.kind() {
        ErrorKind::Overflow => Error::Overflow,
        _ => Error::UnknownSize(format!("`{shape}`: {error}")),
    })
}
