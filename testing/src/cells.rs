//! The tiled-layout document's definition, written as it reads: pad, reshape and transpose an array of cells.
//!
//! Slow, and short enough to be obviously right; everything fast is compared with it.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use tilewise::{Layout, TileDimension};

/// An array of cells, each the row-major position of a logical element, or padding.
#[derive(Clone, Debug)]
pub struct Cells {
    /// The size of each dimension, the most major first.
    pub bounds: Vec<usize>,
    /// The cells in row-major order; `None` is padding.
    pub cells: Vec<Option<usize>>,
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

    /// Every dimension grown at its end to that bound.
    #[must_use]
    pub fn pad(self, bounds: Vec<usize>) -> Self {
        Self::with_bounds(bounds, |index| self.at(index))
    }

    /// The cells in row-major order, with other bounds.
    ///
    /// # Panics
    ///
    /// If the number of cells changes.
    #[must_use]
    pub fn reshape(self, bounds: Vec<usize>) -> Self {
        assert_eq!(bounds.iter().product::<usize>(), self.cells.len());
        Self { bounds, ..self }
    }

    /// NumPy's transpose: axis i of the result is axis `order[i]` of this.
    #[must_use]
    pub fn transpose(self, order: &[usize]) -> Self {
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

/// The cell at each offset of the buffer: the row-major position of a logical element, or padding.
#[must_use]
pub fn memory(bounds: &[usize], layout: &Layout) -> Cells {
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

/// The row-major position of an index.
#[must_use]
pub fn ravel(index: &[usize], bounds: &[usize]) -> usize {
    index.iter().zip(bounds).fold(0, |position, (i, bound)| position * bound + i)
}

/// The index at a row-major position.
#[must_use]
pub fn unravel(mut position: usize, bounds: &[usize]) -> Vec<usize> {
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
