//! The array of a picture, grown to whole tiles so that padding has cells, and each cell's block of each tile.
//!
//! A *place* is an index of the padded array; all of it comes from [`Padded`] and [`TileLevel`].

use tilewise::{JoinedTiles, Padded, TileLevel, Tiled};

/// The most nested tiles whose outlines are drawn.
pub(crate) const LEVELS: usize = 3;

/// The index in [`Blocks`] of the joined tiles, and that of the tile.
pub(crate) const JOINED: usize = 0;
pub(crate) const TILE: usize = 1;
/// The index of the tile within it.
pub(crate) const INNER: usize = 2;

/// A first tile longer than the rank by more than this adds no dimensions to the picture.
const MOST_ADDED: usize = 6;

/// The number of the tiles that a later tile joins, then that of the block of each tile; [`NO_BLOCK`] without joined
/// tiles, for deeper tiles than exist, and for padding inside tiles.
pub(crate) type Blocks = [u64; LEVELS + 1];

pub(crate) const NO_BLOCK: u64 = u64::MAX;
pub(crate) const NO_BLOCKS: Blocks = [NO_BLOCK; LEVELS + 1];

/// The padded array, and the tiles whose blocks are outlined.
pub(crate) struct PaddedArray {
    padded: Padded,
    levels: Vec<TileLevel>,
    joined: Option<JoinedTiles>,
}

impl PaddedArray {
    pub(crate) fn of(tiled: &Tiled) -> Self {
        let padded = tiled.padded(MOST_ADDED);
        let levels = padded.tiled().first_tile_levels(LEVELS);
        let joined = padded.tiled().joined_tiles();
        Self { padded, levels, joined }
    }

    /// The bounds with padding, by dimension number, the added ones first.
    pub(crate) fn extents(&self) -> &[u64] {
        self.padded.tiled().logical_dimensions()
    }

    /// The bounds without padding.
    pub(crate) fn bounds(&self) -> &[u64] {
        self.padded.bounds()
    }

    /// The number of dimensions in front of the array's own.
    pub(crate) fn added(&self) -> usize {
        self.padded.added_dimensions()
    }

    pub(crate) fn levels(&self) -> &[TileLevel] {
        &self.levels
    }

    /// How later tiles join those of the first level.
    pub(crate) fn joined(&self) -> Option<&JoinedTiles> {
        self.joined.as_ref()
    }

    /// Whether each tile lies whole in memory, with nothing of another tile between its elements.
    pub(crate) fn has_whole_tiles(&self) -> bool {
        match (&self.joined, self.levels.first()) {
            (Some(joined), Some(first)) => joined.elements_of_each() >= first.block_elements(),
            _ => true,
        }
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

    /// The index of the tile that begins at a place, ⌊e/t⌋, along the axes that it covers; `None` inside a tile,
    /// without tiles, and for a layout with many tiles and axes.
    pub(crate) fn tile_beginning_at(&self, place: &[u64]) -> Option<Vec<u64>> {
        /// Tiles × axes.
        const LONGEST: usize = 200;
        let tiled = self.padded.tiled();
        let tiles = tiled.array().layout().map_or(0, |layout| layout.tiles().len());
        if tiles.saturating_mul(tiled.physical_dimensions().len()) > LONGEST {
            return None;
        }
        let worked = tiled.worked_offset(place).ok()?;
        let first = worked.tiles.first()?;
        let begins = first.within.iter().all(|(at, _)| *at == 0);
        begins.then(|| first.tile_index.iter().map(|(at, _)| *at).collect())
    }

    /// The place at an offset; `None` inside padding of later tiles, and in the tail.
    pub(crate) fn place_at(&self, offset: u64) -> Option<Vec<u64>> {
        self.padded.tiled().index_of(offset).ok().flatten()
    }

    /// Offsets from one block of the first tile to the next, including the padding that later tiles put between.
    pub(crate) fn tile_length(&self) -> u64 {
        let last: Vec<u64> = self.extents().iter().map(|extent| extent.saturating_sub(1)).collect();
        let length = self.blocks(&last)[TILE].checked_add(1).map(|tiles| self.padded.tiled().tiled_elements() / tiles);
        length.unwrap_or(self.padded.tiled().tiled_elements())
    }

    pub(crate) fn blocks(&self, place: &[u64]) -> Blocks {
        let mut blocks = NO_BLOCKS;
        blocks[JOINED] = self.joined.as_ref().and_then(|joined| joined.number_of(place).ok()).unwrap_or(NO_BLOCK);
        for (block, level) in blocks[TILE..].iter_mut().zip(&self.levels) {
            *block = level.block_of(place).unwrap_or(NO_BLOCK);
        }
        blocks
    }

    /// The blocks at an offset, for borders in memory; if elements of joined tiles alternate, the joining blocks.
    pub(crate) fn blocks_at(&self, offset: u64) -> Blocks {
        let mut blocks = self.place_at(offset).map_or(NO_BLOCKS, |place| self.blocks(&place));
        if let Some(joined) = self.joined.as_ref().filter(|_| offset < self.padded.tiled().tiled_elements()) {
            blocks[JOINED] = joined.number_at(offset).unwrap_or(NO_BLOCK);
            if !self.has_whole_tiles() {
                blocks[TILE] = blocks[JOINED];
            }
        }
        blocks
    }

    /// The size of a tile's first block along a dimension; without such a tile, all of the dimension.
    pub(crate) fn block_extent(&self, level: usize, dimension: usize) -> u64 {
        self.levels.get(level).map_or(self.extents()[dimension], |level| level.block_extent(dimension))
    }
}
