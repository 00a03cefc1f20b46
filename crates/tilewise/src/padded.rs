//! Arrays extended by their padding.

use crate::{ArrayShape, Dimension, Layout, Tiled};
use alloc::{vec, vec::Vec};

/// The array grown to whole tiles, so that padding has indices, and offsets from [`Tiled`].
///
/// Padding a dimension to its first tile by hand changes no offset, and neither does a leading dimension of size 1 for a tile that
/// is longer than the rank. Padding of later tiles, of merged dimensions (`*`) and of the tail is no part of it.
///
/// Made by [`Tiled::padded`].
#[derive(Clone, Debug)]
pub struct Padded {
    tiled: Tiled,
    added_dimensions: usize,
    /// The array's own bounds, behind a 1 for each added dimension.
    bounds: Vec<u64>,
}

impl Tiled {
    /// The array grown to whole tiles. A tile longer than the rank adds as many leading dimensions as are missing, unless
    /// those are more than `most_added`: then it adds none.
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let padded = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?.padded(0);
    /// assert_eq!(padded.tiled().logical_dimensions(), [4, 6]);
    /// assert_eq!(padded.tiled().offset_of(&[0, 5])?, 9); // padding, right of element (0,4)
    /// assert_eq!((padded.index_of(&[0, 5]), padded.index_of(&[0, 4])), (None, Some(vec![0, 4])));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn padded(&self, most_added: usize) -> Padded {
        let first_tile = self.array().layout().and_then(|layout| layout.tiles().first());
        let missing = first_tile.map_or(0, |tile| tile.dimensions().len().saturating_sub(self.array().rank()));
        let added_dimensions = if missing <= most_added { missing } else { 0 };
        let mut bounds = vec![1; added_dimensions];
        bounds.extend(self.logical_dimensions());
        // An array that can't be extended stays without its padding.
        match self.extended(added_dimensions, &bounds) {
            Some(longer) => Padded { tiled: longer.grown().unwrap_or(longer), added_dimensions, bounds },
            None => Padded { tiled: self.clone(), added_dimensions: 0, bounds: self.logical_dimensions().to_vec() },
        }
    }

    /// The layout with leading dimensions added, and other bounds; `None` if it is invalid or takes another number of
    /// elements.
    fn extended(&self, added: usize, bounds: &[u64]) -> Option<Self> {
        let layout = self.array().layout()?;
        let own = layout.minor_to_major().iter().map(|dimension| dimension + added);
        let mut extended =
            Layout::new(own.chain((0..added).rev())).ok()?.with_tiles(layout.tiles().iter().cloned()).ok()?;
        if let Some(bits) = layout.element_size_in_bits() {
            extended = extended.with_element_size_in_bits(bits).ok()?;
        }
        let dimensions: Option<_> = bounds.iter().map(|&bound| Dimension::fixed(bound).ok()).collect();
        let array = ArrayShape::new(self.array().element_type(), dimensions?, Some(extended)).ok()?;
        Self::of_array(&array).ok().filter(|new| new.tiled_elements() == self.tiled_elements())
    }

    /// The array with each bound that the first tile pads rounded up to its padded bound; `None` if physical bounds change.
    fn grown(&self) -> Option<Self> {
        let mut bounds = self.logical_dimensions().to_vec();
        for axis in self.padded_axes() {
            if let ([dimension], 0) = (&axis.dimensions[..], axis.level) {
                *bounds.get_mut(*dimension)? = axis.padded;
            }
        }
        self.extended(0, &bounds).filter(|grown| grown.physical_dimensions() == self.physical_dimensions())
    }
}

impl Padded {
    /// The grown array: its logical dimensions are the padded bounds, the added ones first.
    #[must_use]
    pub fn tiled(&self) -> &Tiled {
        &self.tiled
    }

    /// The number of dimensions of size 1 in front of the array's own.
    #[must_use]
    pub fn added_dimensions(&self) -> usize {
        self.added_dimensions
    }

    /// The bounds without padding, by dimension number, the added ones first.
    #[must_use]
    pub fn bounds(&self) -> &[u64] {
        &self.bounds
    }

    /// The index in the grown array of an element of the array.
    #[must_use]
    pub fn padded_index_of(&self, index: &[u64]) -> Vec<u64> {
        let mut padded = vec![0; self.added_dimensions];
        padded.extend(index);
        padded
    }

    /// The element at an index of the grown array; `None` for padding.
    #[must_use]
    pub fn index_of(&self, padded: &[u64]) -> Option<Vec<u64>> {
        let inside = padded.len() == self.bounds.len() && padded.iter().zip(&self.bounds).all(|(at, bound)| at < bound);
        inside.then(|| padded[self.added_dimensions..].to_vec())
    }
}
