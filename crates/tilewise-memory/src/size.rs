//! Bytes of what no tuple is.

use tilewise::{ErrorKind, Layout, Shape};

use crate::{Error, rules::Rules};

/// Bytes of anything but a tuple; tokens and opaque values take none. An array that was written without a layout counts
/// as row-major.
pub(crate) fn leaf(shape: &Shape, rules: &dyn Rules) -> Result<u64, Error> {
    let Some(array) = shape.as_array() else { return Ok(0) };
    let bytes = match array.layout() {
        Some(_) => rules.array_bytes(array),
        None => shape
            .with_layout(Layout::row_major(array.rank()))
            .and_then(|shape| shape.as_array().map_or(Ok(0), |array| rules.array_bytes(array))),
    };
    bytes.map_err(|error| match error.kind() {
        ErrorKind::Overflow => Error::Overflow,
        _ => Error::UnknownSize(format!("`{shape}`: {error}")),
    })
}
