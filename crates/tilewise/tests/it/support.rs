//! The tiled-layout document's definition, written as it reads: pad, reshape and transpose an array of cells. Slow, and short
//! enough to be obviously right; everything quick is compared with it.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]
#![allow(dead_code, reason = "each test uses a part")]

use proptest::prelude::*;
use tilewise::{ElementType, Layout, Shape, Tile, TileDimension};

/// An array of cells, row-major, each the row-major position of a logical element, or padding.
pub(crate) struct Cells {
    pub(crate) bounds: Vec<usize>,
    pub(crate) cells: Vec<Option<usize>>,
}

impl Cells {
    fn with_bounds(bounds: Vec<usize>, cell: impl Fn(&[usize]) -> Option<usize>) -> Self {
        let count = bounds.iter().product();
        let cells = (0..count).map(|position| cell(&unravel(position, &bounds))).collect();
        Self { bounds, cells }
    }

    fn at(&self, index: &[usize]) -> Option<usize> {
        let inside = index.iter().zip(&self.bounds).all(|(i, bound)| i < bound);
        if inside { self.cells[ravel(index, &self.bounds)] } else { None }
    }

    pub(crate) fn pad(self, bounds: Vec<usize>) -> Self {
        Self::with_bounds(bounds, |index| self.at(index))
    }

    pub(crate) fn reshape(self, bounds: Vec<usize>) -> Self {
        assert_eq!(bounds.iter().product::<usize>(), self.cells.len());
        Self { bounds, ..self }
    }

    /// NumPy's transpose: axis i of the result is axis `order[i]` of this.
    pub(crate) fn transpose(self, order: &[usize]) -> Self {
        Self::with_bounds(order.iter().map(|&axis| self.bounds[axis]).collect(), |index| {
            let mut source = vec![0; order.len()];
            for (&axis, &i) in order.iter().zip(index) {
                source[axis] = i;
            }
            self.at(&source)
        })
    }

    fn tile(self, tile: &[TileDimension]) -> Self {
        let missing = tile.len().saturating_sub(self.bounds.len());
        let mut bounds = vec![1; missing];
        bounds.extend(&self.bounds);
        let prefix = bounds.len() - tile.len();
        // Combine: `*` multiplies a bound into the next.
        let (mut merged, mut sizes, mut product) = (bounds[..prefix].to_vec(), Vec::new(), 1);
        for (bound, dimension) in bounds[prefix..].iter().zip(tile) {
            product *= bound;
            if let Some(size) = dimension.size() {
                sizes.push(size as usize);
                merged.push(std::mem::replace(&mut product, 1));
            }
        }
        let (mut padded, mut split) = (merged[..prefix].to_vec(), merged[..prefix].to_vec());
        for (bound, size) in merged[prefix..].iter().zip(&sizes) {
            padded.push(bound.div_ceil(*size) * size);
            split.extend([bound.div_ceil(*size), *size]);
        }
        let outer = (0..prefix).chain((0..sizes.len()).map(|i| prefix + 2 * i));
        let inner = (0..sizes.len()).map(|i| prefix + 2 * i + 1);
        let order: Vec<usize> = outer.chain(inner).collect();
        self.reshape(merged).pad(padded).reshape(split).transpose(&order)
    }
}

/// What lies at each offset of the buffer: the row-major position of a logical element, or padding.
pub(crate) fn memory(bounds: &[usize], layout: &Layout) -> Cells {
    let logical = Cells::with_bounds(bounds.to_vec(), |index| Some(ravel(index, bounds)));
    let order: Vec<usize> = layout.minor_to_major().iter().rev().copied().collect();
    let mut physical = logical.transpose(&order);
    for tile in layout.tiles() {
        physical = physical.tile(tile.dimensions());
    }
    let alignment = layout.tail_padding_alignment() as usize;
    physical.cells.resize(physical.cells.len().next_multiple_of(alignment), None);
    physical
}

pub(crate) fn ravel(index: &[usize], bounds: &[usize]) -> usize {
    index.iter().zip(bounds).fold(0, |position, (i, bound)| position * bound + i)
}

pub(crate) fn unravel(mut position: usize, bounds: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = bounds
        .iter()
        .rev()
        .map(|bound| {
            let i = position % bound;
            position /= bound;
            i
        })
        .collect();
    index.reverse();
    index
}

/// A tile of one to four dimensions, `*` among them.
fn tile() -> impl Strategy<Value = Tile> {
    let size = prop_oneof![4 => (1..6u64).prop_map(Some), 1 => Just(Some(8)), 2 => Just(None)];
    (prop::collection::vec(size, 0..4), 1..6u64).prop_map(|(major, minor)| {
        let dimension = |size: Option<u64>| match size {
            Some(size) => Tile::new([size]).expect("a size").dimensions()[0],
            None => TileDimension::Combined,
        };
        let dimensions = major.into_iter().chain([Some(minor)]).map(dimension);
        Tile::from_dimensions(dimensions).expect("ends in a size")
    })
}

/// Small arrays with every kind of layout: any order, up to four tiles (ragged, longer than the rank, merging and merging again),
/// tail padding, element sizes; a few thousand cells at most.
pub(crate) fn small_arrays() -> impl Strategy<Value = Shape> {
    let types = prop::sample::select(vec![ElementType::F32, ElementType::Bf16, ElementType::S4, ElementType::Pred]);
    let bounds = prop::collection::vec(prop_oneof![20 => 1..8u64, 1 => Just(0)], 0..5);
    let order = bounds.clone().prop_flat_map(|bounds| {
        let order: Vec<usize> = (0..bounds.len()).collect();
        (Just(bounds), Just(order).prop_shuffle())
    });
    let tiles = prop::collection::vec(tile(), 0..5);
    let tail = prop_oneof![3 => Just(1u64), 1 => 1..20u64];
    let bits = prop::sample::select(vec![0u64, 0, 0, 1, 4, 16, 32, 37]);
    (types, order, tiles, tail, bits).prop_filter_map(
        "too large for the oracle",
        |(element, order, tiles, tail, bits)| {
            let (bounds, order) = order;
            let layout = Layout::new(order).ok()?.with_tiles(tiles).ok()?;
            let layout = layout.with_tail_padding_alignment(tail).ok()?.with_element_size_in_bits(bits).ok()?;
            let shape = Shape::array(element, bounds).ok()?.with_layout(layout).ok()?;
            let elements = tilewise::Tiled::new(&shape).ok()?.physical_elements();
            (elements <= 4000).then_some(shape)
        },
    )
}
