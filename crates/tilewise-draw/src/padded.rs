//! The array that a picture shows, grown to whole tiles so that padding has cells, and the block of each
//! tile that a cell is in.
//!
//! A *place* is an index of the padded array; all of it is read from [`Padded`] and [`TileLevel`].

use tilewise::{Padded, TileLevel, Tiled};

/// Nested tiles whose outlines are drawn differently.
pub(crate) const LEVELS: usize = 3;

/// A first tile longer than the rank by more than this adds no dimensions to the picture.
const MOST_ADDED: usize = 6;

/// The number of the block of each tile; [`NO_BLOCK`] for deeper tiles than there are, and for padding inside tiles.
pub(crate) type Blocks = [u64; LEVELS];

pub(crate) const NO_BLOCK: u64 = u64::MAX;

/// The padded array, and the tiles whose blocks are outlined.
pub(crate) struct PaddedArray {
    padded: Padded,
    levels: Vec<TileLevel>,
}

impl PaddedArray {
    pub(crate) fn of(tiled: &Tiled) -> Self {
        let padded = tiled.padded(MOST_ADDED);
        let mut levels = padded.tiled().tile_levels();
        levels.truncate(LEVELS);
        Self { padded, levels }
    }

    /// The bounds with padding, by dimension number, the added ones first.
    pub(crate) fn extents(&self) -> &[u64] {
        self.padded.tiled().logical_dimensions()
    }

    /// The bounds without padding.
    pub(crate) fn bounds(&self) -> &[u64] {
        self.padded.bounds()
    }

    /// How many dimensions stand in front of the array's own.
    pub(crate) fn added(&self) -> usize {
        self.padded.added_dimensions()
    }

    pub(crate) fn levels(&self) -> &[TileLevel] {
        &self.levels
    }

    /// Dimension numbers from the fastest-varying to the slowest.
    pub(crate) fn minor_to_major(&self) -> impl Iterator<Item = usize> + '_ {
        self.padded.tiled().array().major_to_minor().rev()
    }

    /// The place of an element of the array.
    pub(crate) fn place(&self, index: &[u64]) -> Vec<u64> {
        self.padded.padded_index_of(index)
    }

    /// The element at a place, or `None` for padding.
    pub(crate) fn index(&self, place: &[u64]) -> Option<Vec<u64>> {
        self.padded.index_of(place)
    }

    pub(crate) fn offset(&self, place: &[u64]) -> Option<u64> {
        self.padded.tiled().offset_of(place).ok()
    }

    /// The place at an offset; `None` inside padding of later tiles, and in the tail.
    pub(crate) fn place_at(&self, offset: u64) -> Option<Vec<u64>> {
        self.padded.tiled().index_of(offset).ok().flatten()
    }

    /// Offsets from one block of the first tile to the next, the padding that later tiles put between included.
    pub(crate) fn tile_length(&self) -> u64 {
        let last: Vec<u64> = self.extents().iter().map(|extent| extent.saturating_sub(1)).collect();
        let [tiles, ..] = self.blocks(&last);
        let length = tiles.checked_add(1).map(|tiles| self.padded.tiled().tiled_elements() / tiles);
        length.unwrap_or(self.padded.tiled().tiled_elements())
    }

    pub(crate) fn blocks(&self, place: &[u64]) -> Blocks {
        let mut blocks = [NO_BLOCK; LEVELS];
        for (block, level) in blocks.iter_mut().zip(&self.levels) {
            *block = level.block_of(place).unwrap_or(NO_BLOCK);
        }
        blocks
    }

    /// How far the first block of a tile reaches along a dimension; without such a tile, all of it.
    pub(crate) fn block_extent(&self, level: usize, dimension: usize) -> u64 {
        self.levels.get(level).map_or(self.extents()[dimension], |level| level.block_extent(dimension))
    }
}
