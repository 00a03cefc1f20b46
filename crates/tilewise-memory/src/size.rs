//! Bytes of arrays and of the tables that tuples are.

use tilewise::{ArrayShape, Shape, ShapeKind, tpu::Generation};

/// Bytes of the table of pointers that a tuple of so many elements is.
pub(crate) fn table(elements: usize, generation: Generation) -> Option<u64> {
    u64::try_from(elements).ok()?.checked_mul(4)?.checked_next_multiple_of(generation.tuple_table_granule_bytes())
}

/// Bytes of anything but a tuple; tokens and opaque values take none.
pub(crate) fn leaf(shape: &Shape) -> Option<u64> {
    match shape.kind() {
        ShapeKind::Array(array) | ShapeKind::Buffer(array) => of_array(array),
        _ => Some(0),
    }
}

/// Bytes that the compiler sets aside for an array. This is not always what its layout takes: scalar memory ignores
/// tiles, and what has none fills blocks of 4096 bytes, but for the memories of SparseCores.
fn of_array(array: &ArrayShape) -> Option<u64> {
    const SCALAR_MEMORY: u8 = 2;
    let space = array.memory_space();
    let tile = array.layout().and_then(|layout| layout.tiles().first()).filter(|_| space != SCALAR_MEMORY);
    let bound = |at: usize| array.dimensions().get(at).and_then(|dimension| dimension.bound()).unwrap_or(1);
    let mut elements = 1_u64;
    match tile {
        None => {
            for at in 0..array.rank() {
                elements = elements.checked_mul(bound(at))?;
            }
        }
        Some(tile) => {
            let tile = tile.dimensions();
            let mut minor_to_major = array.major_to_minor().rev();
            // A tile of more dimensions than the array counts 1s in front of it.
            for tiled in tile.iter().rev() {
                let size = minor_to_major.next().map_or(1, bound);
                elements = elements.checked_mul(size.checked_next_multiple_of(tiled.size().unwrap_or(1))?)?;
            }
            for at in minor_to_major {
                elements = elements.checked_mul(bound(at))?;
            }
            let tail = array.layout().map_or(1, |layout| layout.tail_padding_alignment()).max(1);
            elements = elements.checked_next_multiple_of(tail)?;
        }
    }
    let bytes = elements.checked_mul(array.stored_bits())?.div_ceil(8);
    let in_blocks = tile.is_none() && !matches!(space, SCALAR_MEMORY | 8 | 10 | 11 | 12);
    if in_blocks { bytes.checked_next_multiple_of(4096) } else { Some(bytes) }
}
