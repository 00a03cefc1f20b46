//! The blocks that each tile of a layout cuts memory into.

use crate::{Error, Layout, Tile, Tiled};
use alloc::vec::Vec;

/// A layout up to one of its tiles, which cuts memory into consecutive blocks of equal size.
///
/// Made by [`Tiled::tile_levels`].
#[derive(Clone, Debug)]
pub struct TileLevel {
    tile: Tile,
    /// The layout without the tiles behind this one.
    tiled: Tiled,
    /// The number of axes of memory inside a block.
    block_axes: usize,
    block_elements: u64,
}

impl Tiled {
    /// One level for each tile, the first tile first.
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"bf16[300,500]{1,0:T(8,128)(2,1)}".parse()?)?;
    /// let [blocks, words] = &tiled.tile_levels()[..] else { panic!("two tiles") };
    /// assert_eq!((blocks.block_elements(), words.block_elements()), (1024, 2));
    /// assert_eq!(blocks.block_of(&[8, 0])?, 4); // below the first row of four blocks
    /// assert_eq!((blocks.block_extent(0), blocks.block_extent(1)), (8, 128));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn tile_levels(&self) -> Vec<TileLevel> {
        self.first_tile_levels(usize::MAX)
    }

    /// The levels of the first `most` tiles, the first tile first. Each holds the bounds of memory so far: together,
    /// those of thousands of tiles take the square of their number.
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"bf16[300,500]{1,0:T(8,128)(2,1)}".parse()?)?;
    /// assert_eq!(tiled.first_tile_levels(1)[0].physical_dimensions(), [38, 4, 8, 128]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn first_tile_levels(&self, most: usize) -> Vec<TileLevel> {
        let tiles = self.array().layout().map_or(&[][..], Layout::tiles);
        let level = |(last, tile): (usize, &Tile)| {
            let mut array = self.array().clone();
            array.layout = Some(array.layout?.with_tiles(tiles.iter().take(last + 1).cloned()).ok()?);
            let tiled = Self::of_array(&array).ok()?;
            let sizes = tile.dimensions().iter().filter_map(|dimension| dimension.size());
            let block_axes = sizes.clone().count();
            let block_elements = sizes.fold(1, u64::saturating_mul);
            Some(TileLevel { tile: tile.clone(), tiled, block_axes, block_elements })
        };
        tiles.iter().enumerate().take(most).map_while(level).collect()
    }
}

impl TileLevel {
    /// The tile.
    #[must_use]
    pub fn tile(&self) -> &Tile {
        &self.tile
    }

    /// Elements in one block, the padding inside it included.
    #[must_use]
    pub fn block_elements(&self) -> u64 {
        self.block_elements
    }

    /// The number of axes of memory inside a block: the sizes of the tile that are not `*`.
    #[must_use]
    pub fn block_axes(&self) -> usize {
        self.block_axes
    }

    /// The bounds of memory after this tile, major → minor: first the axes that number the blocks, then the
    /// [`block_axes`](Self::block_axes) inside one.
    #[must_use]
    pub fn physical_dimensions(&self) -> &[u64] {
        self.tiled.physical_dimensions()
    }

    /// The number of the block an element is in, counted along memory.
    ///
    /// # Errors
    /// As for [`Tiled::offset_of`].
    pub fn block_of(&self, index: &[u64]) -> Result<u64, Error> {
        Ok(self.tiled.offset_of(index)? / self.block_elements)
    }

    /// The number of elements in the first block along a logical dimension, from index 0 on, at index 0 of all others.
    #[must_use]
    pub fn block_extent(&self, dimension: usize) -> u64 {
        let Some(&bound) = self.tiled.logical_dimensions().get(dimension) else { return 1 };
        if self.tiled.is_nested(dimension) {
            return self.search_extent(dimension, bound);
        }
        // A digit may go past the end of a block, since neighbours whose strides continue each other are one digit.
        let leaves = self.tiled.digits_of(dimension).iter().filter_map(|digit| {
            let steps = self.block_elements.div_ceil(digit.stride);
            (steps < digit.count).then(|| digit.divisor * steps)
        });
        leaves.min().unwrap_or(bound)
    }

    /// [`block_extent`](Self::block_extent) where digits of several dimensions are entangled.
    fn search_extent(&self, dimension: usize, bound: u64) -> u64 {
        let mut index = alloc::vec![0; self.tiled.logical_dimensions().len()];
        let mut is_inside = |at: u64| {
            index[dimension] = at;
            self.block_of(&index) == Ok(0)
        };
        let (mut inside, mut outside) = (0, 1);
        while outside < bound && is_inside(outside) {
            inside = outside;
            outside = outside.saturating_mul(2);
        }
        outside = outside.min(bound);
        while outside - inside > 1 {
            let middle = inside + (outside - inside) / 2;
            if is_inside(middle) { inside = middle } else { outside = middle }
        }
        outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares extents with a walk along each dimension.
    #[test]
    fn blocks_lie_together_and_reach_as_far_as_told() {
        for text in [
            "f32[20,300]{1,0:T(8,128)}",
            "f32[8,300]{1,0:T(8,128)}",
            "f32[20,100]{1,0:T(8,128)}",
            "f32[40,300]{0,1:T(8,128)}",
            "bf16[20,300]{1,0:T(8,128)(2,1)}",
            "f32[3,5,7]{2,1,0:T(2,2)(2,1)(3)}",
            "f32[3,5,14]{2,1,0:T(*,2,7)}",
            "f32[5,6,7]{2,1,0:T(2,*,5)(4)}",
            "f32[300]{0:T(128)}",
            "f32[7,9]{1,0:T(4,4,4)}",
        ] {
            let tiled = Tiled::new(&text.parse().expect(text)).expect(text);
            let bounds = tiled.logical_dimensions();
            for level in tiled.tile_levels() {
                for (dimension, &bound) in bounds.iter().enumerate() {
                    let block = |at: u64| {
                        let mut index = alloc::vec![0; bounds.len()];
                        index[dimension] = at;
                        level.block_of(&index).expect("inside")
                    };
                    let walked = (0..bound).find(|&at| block(at) != 0).unwrap_or(bound);
                    assert_eq!(level.block_extent(dimension), walked, "{text} {}, dimension {dimension}", level.tile());
                }
            }
        }
    }
}
