//! Views of an array that a kernel can read, or write, instead of a copy of it: row-major arrays with the same bytes.

use alloc::{vec, vec::Vec};
use core::cmp::Reverse;
use tilewise::{
    BitcastAs, Layout, Rearrangement, Shape,
    tpu::{self, Generation, LANES},
};

/// Maximum number of factors for which views are looked for: each cut between two factors doubles the number of views.
const MOST_FACTORS: usize = 9;

/// A row-major array with the bytes of another, which a kernel can take without a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// The array with its layout.
    pub shape: Shape,
    /// For each dimension of the view, the parts of the operand's dimensions that it is made of, major → minor; empty
    /// for a dimension of size 1.
    pub dimensions: Vec<Vec<ViewPart>>,
    /// The way a kernel reads a block of the view.
    pub access: ViewAccess,
}

impl View {
    /// The views of `array`'s bytes that a kernel can read instead of its operand, the rearrangement's second array, from
    /// the smallest change to the kernel to the largest. A kernel's operands are row-major, in the default tiles of their
    /// shape, or in the array's.
    ///
    /// Each is proved by [`Tiled::bitcast`](tilewise::Tiled::bitcast).
    ///
    /// ```
    /// use tilewise::{Rearrangement, Shape, tpu::Generation};
    /// use tilewise_kernel::{View, ViewAccess};
    ///
    /// // Weights [groups, k, n], which a kernel reads as [groups, n, k].
    /// let weights: Shape = "bf16[8,1024,512]{2,1,0:T(8,128)(2,1)}".parse()?;
    /// let swapped = Rearrangement::identity(&[8, 1024, 512]).transpose(&[0, 2, 1]).expect("a permutation");
    /// let views = View::of(&weights, &swapped, Generation::V6e);
    /// assert_eq!((views[0].shape.to_string(), views[0].access), (weights.to_string(), ViewAccess::Transposed));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn of(array: &Shape, rearrangement: &Rearrangement, generation: Generation) -> Vec<Self> {
        let Some(layout) = array.layout() else { return Vec::new() };
        let order: Vec<usize> = layout.minor_to_major().iter().rev().copied().collect();
        let Some(own) = in_order(array, layout, &order) else { return Vec::new() };
        let factors = rearrangement.factors_in(&order);
        let view = |dimensions: Vec<Vec<ViewPart>>| {
            let shape = row_major_as(&own, &bounds(&dimensions), generation)?;
            Some(Self { access: access(rearrangement, &dimensions), shape, dimensions })
        };
        let mut views: Vec<Self> = groups(rearrangement, &factors).filter_map(view).collect();
        views.sort_by_key(|view| (view.access, Reverse(view.dimensions.len())));
        views
    }

    /// The shapes, in their default layouts, in which a kernel's operand, the rearrangement's second array, could be stored
    /// to be read without a copy, at no more than `most_bytes`: dimensions are folded into one another, their order stays.
    /// The smallest first.
    #[must_use]
    pub fn stored(
        operand: &Shape,
        rearrangement: &Rearrangement,
        most_bytes: u64,
        generation: Generation,
    ) -> Vec<Self> {
        let Some(element_type) = operand.element_type() else { return Vec::new() };
        let view = |dimensions: Vec<Vec<ViewPart>>| {
            let bounds = bounds(&dimensions);
            let shape = tpu::default_layout(element_type, &bounds, generation).ok()?;
            let is_row_major = shape.layout()?.minor_to_major().iter().rev().copied().eq(0..bounds.len());
            let bytes = shape.as_array()?.sizes().ok()?.physical_bytes;
            let access = access(rearrangement, &dimensions);
            (is_row_major && bytes <= most_bytes && access < ViewAccess::Regrouped)
                .then_some((bytes, Self { shape, dimensions, access }))
        };
        let factors = rearrangement.operand_factors();
        let mut views: Vec<(u64, Self)> = groups(rearrangement, &factors).filter_map(view).collect();
        views.sort_by_key(|(bytes, view)| (*bytes, view.access, Reverse(view.dimensions.len())));
        views.into_iter().map(|(_, view)| view).collect()
    }

    /// Whether the view keeps the order of the operand's dimensions, so that it is only a reshape.
    #[must_use]
    pub fn keeps_order(&self) -> bool {
        let parts = self.dimensions.iter().flatten();
        parts.map(|part| (part.dimension, Reverse(part.below))).is_sorted()
    }
}

/// A dimension of a kernel's operand, or a part of it: (index div `below`) mod `size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ViewPart {
    /// The operand's dimension.
    pub dimension: usize,
    /// The number of indices of the part.
    pub size: u64,
    /// The product of the parts below it in that dimension; 1 for a whole dimension.
    pub below: u64,
}

/// How a kernel reads a view, the cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ViewAccess {
    /// Rows and lanes of a block are unchanged: only the index map changes.
    IndexMap,
    /// The rows stay, and other dimensions are folded into the lanes: a block takes a multiple of 128 of them.
    Lanes,
    /// The lanes stay, and the rows are those of another dimension.
    Rows,
    /// Rows and lanes of a block change places: it is read transposed, which a matrix product does by contracting its other dimension.
    Transposed,
    /// The rows, too, are folded into the lanes: a block's rows are slices of its lanes.
    Split,
    /// The lanes are those of another dimension.
    Regrouped,
}

impl ViewAccess {
    /// Its name in snake case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IndexMap => "index_map",
            Self::Lanes => "lanes",
            Self::Rows => "rows",
            Self::Transposed => "transposed",
            Self::Split => "split",
            Self::Regrouped => "regrouped",
        }
    }
}

/// The ways to group these factors, in their order, into the dimensions of a view: none for too many factors.
fn groups(rearrangement: &Rearrangement, factors: &[usize]) -> impl Iterator<Item = Vec<Vec<ViewPart>>> {
    let cuts = if factors.len() > MOST_FACTORS { 0 } else { 1u32 << factors.len().saturating_sub(1) };
    (0..cuts).map(|cuts| grouped(rearrangement, factors, cuts))
}

/// Bit k of `cuts` ends a dimension behind factor k.
fn grouped(rearrangement: &Rearrangement, factors: &[usize], cuts: u32) -> Vec<Vec<ViewPart>> {
    let mut dimensions: Vec<Vec<ViewPart>> = vec![Vec::new()];
    for (at, &factor) in factors.iter().enumerate() {
        let Some(last) = dimensions.last_mut() else { break };
        let Some((dimension, below)) = rearrangement.place(factor) else { continue };
        let size = rearrangement.size(factor);
        match last.last_mut() {
            Some(part) if part.dimension == dimension && part.below == below.saturating_mul(size) => {
                *part = ViewPart { dimension, size: part.size.saturating_mul(size), below };
            }
            _ => last.push(ViewPart { dimension, size, below }),
        }
        if cuts >> at & 1 == 1 && at + 1 < factors.len() {
            dimensions.push(Vec::new());
        }
    }
    // A block of one dimension has no rows.
    if dimensions.len() == 1 {
        dimensions.insert(0, Vec::new());
    }
    dimensions
}

fn access(rearrangement: &Rearrangement, dimensions: &[Vec<ViewPart>]) -> ViewAccess {
    let bounds = rearrangement.bounds();
    let [.., rows, lanes] = dimensions else { return ViewAccess::Regrouped };
    let [own_rows, own_lanes] = [2, 1].map(|from_end| bounds.len().checked_sub(from_end));
    // A dimension of size 1 needs no part.
    let size = |dimension: Option<usize>| dimension.and_then(|at| bounds.get(at)).copied().unwrap_or(1);
    let ends = |parts: &[ViewPart], dimension: Option<usize>| match parts.last() {
        Some(last) => Some(last.dimension) == dimension && last.size == size(dimension),
        None => size(dimension) == 1,
    };
    let is = |parts: &[ViewPart], dimension: Option<usize>| parts.len() < 2 && ends(parts, dimension);
    let folds = ends(lanes, own_lanes) && size(own_lanes).is_multiple_of(LANES);
    if is(lanes, own_lanes) && is(rows, own_rows) {
        ViewAccess::IndexMap
    } else if folds && is(rows, own_rows) {
        ViewAccess::Lanes
    } else if is(lanes, own_lanes) {
        ViewAccess::Rows
    } else if is(lanes, own_rows) && ends(rows, own_lanes) {
        ViewAccess::Transposed
    } else if ends(lanes, own_lanes) && product(lanes).is_multiple_of(LANES) {
        ViewAccess::Split
    } else {
        ViewAccess::Regrouped
    }
}

fn product(parts: &[ViewPart]) -> u64 {
    parts.iter().map(|part| part.size).fold(1, u64::saturating_mul)
}

fn bounds(dimensions: &[Vec<ViewPart>]) -> Vec<u64> {
    dimensions.iter().map(|parts| product(parts)).collect()
}

/// The array with its dimensions in this order, major → minor: the order of its bytes.
fn in_order(array: &Shape, layout: &Layout, order: &[usize]) -> Option<Shape> {
    let dimensions = array.dimensions();
    let bounds: Vec<u64> = order.iter().map(|at| dimensions.get(*at)?.bound()).collect::<Option<_>>()?;
    let layout = Layout::new((0..order.len()).rev()).ok()?.with_tiles(layout.tiles().iter().cloned()).ok()?;
    Shape::array(array.element_type()?, bounds).ok()?.with_layout(layout).ok()
}

/// A row-major array of these bounds with the bytes of `own`, if there is one.
fn row_major_as(own: &Shape, bounds: &[u64], generation: Generation) -> Option<Shape> {
    let order: Vec<usize> = (0..bounds.len()).rev().collect();
    let element_type = own.element_type()?;
    let default = tpu::layout_for_order(element_type, bounds, &order, generation).ok()?;
    let layout = Layout::new(order).ok()?.with_tiles(own.layout()?.tiles().iter().cloned()).ok()?;
    let tiled_alike = Shape::array(element_type, bounds.iter().copied()).ok()?.with_layout(layout).ok();
    let is_free = |shape: &Shape| own.bitcast(shape, BitcastAs::Reshape).is_ok_and(|relation| relation.is_bitcast());
    [Some(default), tiled_alike].into_iter().flatten().find(is_free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    fn shape(text: &str) -> Shape {
        text.parse().expect("a shape")
    }

    fn first(array: &str, rearrangement: Option<Rearrangement>) -> Option<(String, ViewAccess)> {
        let views = View::of(&shape(array), &rearrangement.expect("a rearrangement"), Generation::V6e);
        views.first().map(|view| (view.shape.to_string(), view.access))
    }

    fn identity(bounds: &[u64]) -> Rearrangement {
        Rearrangement::identity(bounds)
    }

    #[test]
    fn heads_of_whole_lanes_are_folded_into_them() {
        let heads = identity(&[2, 1024, 2048]).reshape(&[2, 1024, 16, 128]).and_then(|at| at.transpose(&[0, 2, 1, 3]));
        let expected = ("bf16[2,1024,2048]{2,1,0:T(8,128)(2,1)}".into(), ViewAccess::Lanes);
        assert_eq!(first("bf16[2,1024,2048]{2,1,0:T(8,128)(2,1)}", heads), Some(expected));
    }

    #[test]
    fn dimensions_outside_tiles_are_turned_by_the_index_map() {
        let turned = identity(&[64, 8, 256, 128]).transpose(&[1, 0, 2, 3]);
        let expected = ("bf16[64,8,256,128]{3,2,1,0:T(8,128)(2,1)}".into(), ViewAccess::IndexMap);
        assert_eq!(first("bf16[64,8,256,128]{3,2,1,0:T(8,128)(2,1)}", turned), Some(expected));
    }

    #[test]
    fn a_column_major_table_is_read_transposed() {
        let expected = ("f32[64,65536]{1,0:T(8,128)}".into(), ViewAccess::Transposed);
        assert_eq!(first("f32[65536,64]{0,1:T(8,128)}", Some(identity(&[65536, 64]))), Some(expected));
    }

    #[test]
    fn a_vector_is_a_row() {
        let column = identity(&[4096]).reshape(&[4096, 1]);
        let expected = ("f32[1,4096]{1,0:T(1,128)}".into(), ViewAccess::Transposed);
        assert_eq!(first("f32[4096]{0:T(1024)}", column), Some(expected));
    }

    #[test]
    fn narrow_rows_are_stored_with_their_heads_in_the_lanes() {
        let operand = shape("bf16[512,16,8,64]{3,2,1,0:T(8,128)(2,1)}");
        let stored = View::stored(&operand, &identity(&[512, 16, 8, 64]), 512 * 16 * 8 * 64 * 2, Generation::V6e);
        let found = stored.iter().map(|view| view.shape.to_string()).next();
        assert_eq!(found.as_deref(), Some("bf16[512,16,512]{2,1,0:T(8,128)(2,1)}"));
    }
}
