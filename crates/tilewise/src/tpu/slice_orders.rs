//! The runs of a slice, and the bytes of the array, in each order of dimensions.

use super::{Generation, layout_for_order};
use crate::{ElementType, Error, ErrorKind, Shape, Tiled};
use alloc::{format, vec::Vec};

/// A slice of an array whose dimensions are in one order; made by [`slice_orders`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SliceOrder {
    /// The array, with the tiles that the TPU gives it in this order.
    pub shape: Shape,
    /// The number of runs of the slice; 1 if a single copy moves it.
    pub runs: u64,
    /// Bits of the shortest run.
    pub shortest: u64,
    /// Bytes of the whole array, padding included.
    pub physical_bytes: u64,
}

/// Maximum number of dimensions whose orders are all tried.
const MOST_DIMENSIONS: usize = 6;

/// Every order of an array's dimensions, with the tiles that a TPU of this generation then gives it, and the runs of a slice: the fewest runs
/// first, then the fewest bytes.
///
/// For a KV cache this finds the order that keeps a block of tokens together, and its padding.
///
/// # Errors
/// As for [`layout_for_order`] and [`Tiled::slice_runs`]; [`ErrorKind::Undecided`] for more than six dimensions.
///
/// ```
/// use tilewise::{ElementType, tpu::{self, Generation}};
///
/// // 1024 pages of 16 tokens, 4 heads of 128: which order makes a page one run?
/// let (page, next) = ([7, 0, 0, 0], [8, 16, 4, 128]);
/// let orders = tpu::slice_orders(ElementType::Bf16, &[1024, 16, 4, 128], &page, &next, Generation::V5e)?;
/// let best = &orders[0];
/// assert_eq!((best.runs, best.shape.to_string().as_str()), (1, "bf16[1024,16,4,128]{3,2,1,0:T(4,128)(2,1)}"));
/// assert_eq!(best.physical_bytes, 2 * 1024 * 16 * 4 * 128); // and costs no padding
/// # Ok::<(), tilewise::Error>(())
/// ```
pub fn slice_orders(
    element_type: ElementType,
    bounds: &[u64],
    start: &[u64],
    limit: &[u64],
    generation: Generation,
) -> Result<Vec<SliceOrder>, Error> {
    let mut orders = Vec::new();
    for order in permutations(bounds.len())? {
        let shape = layout_for_order(element_type, bounds, &order, generation)?;
        let tiled = Tiled::new(&shape)?;
        let runs = tiled.slice_runs(start, limit)?;
        let (runs, shortest) = (runs.total(), runs.shortest());
        orders.push(SliceOrder { shape, runs, shortest, physical_bytes: tiled.physical_bytes() });
    }
    // Row-major comes first among equals.
    orders.sort_by_key(|one| (one.runs, one.physical_bytes));
    Ok(orders)
}

/// All orders of `rank` dimensions, minor to major, row-major first.
///
/// # Errors
/// [`ErrorKind::Undecided`] for more than six dimensions.
pub(super) fn permutations(rank: usize) -> Result<Vec<Vec<usize>>, Error> {
    if rank > MOST_DIMENSIONS {
        let message = format!("{rank} dimensions have too many orders; at most {MOST_DIMENSIONS} are tried");
        return Err(Error::new(ErrorKind::Undecided, message));
    }
    let mut orders = Vec::from([Vec::new()]);
    for dimension in 0..rank {
        // The next dimension is more minor than those before it, or goes between them.
        let with = |order: &Vec<usize>| {
            (0..=order.len()).map(|at| [&order[..at], &[dimension], &order[at..]].concat()).collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(with).collect();
    }
    Ok(orders)
}
