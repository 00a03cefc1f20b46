//! The orders of dimensions in which a reshape is free on a TPU.

use super::{Generation, layout_for_order, slice_orders::permutations};
use crate::{Dimension, Error, Shape, Tiled};
use alloc::vec::Vec;

/// An array in an order for which a reshape is free; made by [`free_reshapes`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TpuReshape {
    /// The array, with the tiles that the TPU gives it in this order.
    pub from: Shape,
    /// The reshaped array, every element where it was, with the tiles that the TPU gives it in its order.
    pub to: Shape,
    /// Bytes of both, padding included.
    pub physical_bytes: u64,
}

/// The orders of an array's dimensions for which a reshape to other bounds is free with the tiles that a TPU of this
/// generation gives both, the fewest bytes first, then the most like row-major. Only one order of the reshaped array is
/// listed for each.
///
/// The array's own layout makes no difference. A program fixes an order by jax's `Layout(major_to_minor=…)`.
/// [`Shape::free_reshape`] is for one layout, and any tiles.
///
/// # Errors
/// [`ErrorKind::NotAnArray`](crate::ErrorKind::NotAnArray); as for [`layout_for_order`] and [`Shape::free_reshape`]; [`ErrorKind::Undecided`](crate::ErrorKind::Undecided) for more than six
/// dimensions.
///
/// ```
/// use tilewise::tpu::{self, Generation};
///
/// // Row-major, heads of 64 cut the 128 lanes of a tile. With the tokens on the lanes they don't.
/// let found = tpu::free_reshapes(&"bf16[8,512,768]".parse()?, &[8, 512, 12, 64], Generation::V6e)?;
/// assert_eq!(found[0].from.to_string(), "bf16[8,512,768]{1,2,0:T(8,128)(2,1)}");
/// assert_eq!(found[0].to.to_string(), "bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}");
/// # Ok::<(), tilewise::Error>(())
/// ```
pub fn free_reshapes(array: &Shape, wanted: &[u64], generation: Generation) -> Result<Vec<TpuReshape>, Error> {
    let array = array.array_or_error()?;
    let (element_type, bounds) = (array.element_type(), bounds_of(array.dimensions()));
    let mut found = Vec::new();
    for order in permutations(bounds.len())? {
        let from = layout_for_order(element_type, &bounds, &order, generation)?;
        for to in from.free_reshape(wanted)?.layouts {
            let Some(layout) = to.layout() else { continue };
            if layout_for_order(element_type, &bounds_of(to.dimensions()), layout.minor_to_major(), generation)? == to {
                let physical_bytes = Tiled::new(&from)?.physical_bytes();
                found.push(TpuReshape { from, to, physical_bytes });
                break;
            }
        }
    }
    found.sort_by_key(|one: &TpuReshape| one.physical_bytes);
    Ok(found)
}

fn bounds_of(dimensions: &[Dimension]) -> Vec<u64> {
    dimensions.iter().filter_map(|dimension| dimension.bound()).collect()
}
