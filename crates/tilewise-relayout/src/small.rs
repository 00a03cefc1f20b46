//! Arrays of a few elements: a list of moves takes less time than the walk through any loops.

use crate::scalar::Elements;
use tilewise::Tiled;

/// Moves of whole elements: the byte offsets of each on both sides.
#[derive(Clone, Debug)]
pub(crate) struct SmallArray {
    bytes: usize,
    /// Whether the destination has more bytes than elements fill.
    padded: bool,
    places: Vec<(usize, usize)>,
}

impl SmallArray {
    /// Maximum elements; more are left to loops and their kernels.
    const MOST: u64 = 32;
    /// Maximum bytes of a padded destination: clearing all of it should take no longer than the moves.
    const LONGEST: u64 = 4096;

    /// The moves, if they are few and of whole, unconverted bytes.
    pub(crate) fn of(source: &Tiled, destination: &Tiled, elements: Elements, padded: bool) -> Option<Self> {
        let bounds = source.logical_dimensions();
        let count = bounds.iter().product();
        let few = count <= Self::MOST && (!padded || destination.physical_bytes() <= Self::LONGEST);
        let whole = elements.source_bits == elements.destination_bits && elements.source_bits.is_multiple_of(8);
        if !few || !whole || count == 0 {
            return None;
        }
        let bytes = usize::try_from(elements.source_bits / 8).ok()?;
        let place =
            |tiled: &Tiled, index: &[u64]| usize::try_from(tiled.offset_of(index).ok()?).ok()?.checked_mul(bytes);
        let mut places = Vec::with_capacity(usize::try_from(count).ok()?);
        let mut index = vec![0; bounds.len()];
        for mut flat in 0..count {
            for (digit, bound) in index.iter_mut().zip(bounds).rev() {
                (*digit, flat) = (flat % bound, flat / bound);
            }
            places.push((place(source, &index)?, place(destination, &index)?));
        }
        Some(Self { bytes, padded, places })
    }

    /// Converts buffers of the lengths that the layouts take.
    pub(crate) fn run(&self, source: &[u8], destination: &mut [u8]) {
        if self.padded {
            destination.fill(0);
        }
        let bytes = self.bytes;
        for &(from, to) in &self.places {
            destination[to..to + bytes].copy_from_slice(&source[from..from + bytes]);
        }
    }
}
