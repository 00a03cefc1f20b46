//! The bytes that a TPU's compiler allocates for an array.

use crate::{ArrayShape, Error, checked, tiled::Tiling, tiled::too_large};

/// Arrays without tiles fill whole blocks of this size, except in the memory spaces that [`allocated_bytes`] names.
pub const UNTILED_BLOCK_BYTES: u64 = 4096;

/// Bytes that the TPU compiler allocates for an array, in the memory space of its layout.
///
/// For an array with tiles they are its layout's own, [`Sizes::physical_bytes`](crate::Sizes::physical_bytes), but
/// - in space 2, the semaphores, tiles and tail padding are ignored: `u32[]{:T(128)S(2)}` takes 4 bytes;
/// - an array without tiles fills blocks of [`UNTILED_BLOCK_BYTES`], save in space 2 and in the SparseCores' spaces
///   (8, 10, 11 and 12).
///
/// The bytes without data are this minus [`Sizes::logical_bytes`](crate::Sizes::logical_bytes), which is never larger.
///
/// Source: `argument_size` and `output_size` of `memory_analysis()`, and the sizes of values in dumped buffer
/// assignments, of 347 programs compiled by [`CHECKED_WITH`](super::CHECKED_WITH) for v2 to v7x; this gives all of
/// them. There each later tile divides the first; where one does not, as in `f32[7,130]{1,0:T(4,128)(3,1)}`, all levels
/// count. Tuples are no arrays: for their tables see
/// [`Generation::tuple_table_granule_bytes`](super::Generation::tuple_table_granule_bytes).
///
/// # Errors
/// As for [`Tiled::of_array`](crate::Tiled::of_array).
///
/// ```
/// use tilewise::{Shape, tpu::allocated_bytes};
///
/// let allocated = |text: &str| {
///     let shape: Shape = text.parse()?;
///     allocated_bytes(shape.as_array().expect("an array"))
/// };
/// assert_eq!(allocated("f32[7,130]{1,0:T(4,128)}")?, 8192); // its layout's own bytes
/// assert_eq!(allocated("s8[33]{0}")?, 4096);                // a block
/// assert_eq!(allocated("s32[14]{0:S(10)}")?, 56);
/// assert_eq!(allocated("u32[]{:T(128)S(2)}")?, 4);
/// # Ok::<(), tilewise::Error>(())
/// ```
pub fn allocated_bytes(array: &ArrayShape) -> Result<u64, Error> {
    let tiling = Tiling::of(array, |_| ())?;
    let physical = || Some(tiling.sizes(array)?.physical_bytes);
    let is_tiled = array.layout().is_some_and(|layout| !layout.tiles().is_empty());
    let bytes = match array.memory_space() {
        2 => tiling.logical_elements(array).and_then(|elements| checked::bytes(elements, array.stored_bits())),
        8 | 10 | 11 | 12 => physical(),
        _ if is_tiled => physical(),
        _ => physical().and_then(|bytes| checked::round_up(bytes, UNTILED_BLOCK_BYTES)),
    };
    bytes.ok_or_else(too_large)
}
