//! Tiles for any order of blocks: the layout whose memory is a given sequence of blocks of its dimensions.

use crate::{Error, Tile};
use alloc::{vec, vec::Vec};

/// A part of a dimension's index that memory holds as an axis of its own, inside the whole tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) dimension: usize,
    /// The number of values the part takes; at least 2.
    pub(crate) size: u64,
    /// The significance of the part in its dimension's index, 0 the most; unique within a dimension.
    pub(crate) level: usize,
}

/// Maximum number of blocks that are accepted, more than any handwritten layout has; each block may cost a tile with one size per
/// block.
pub(crate) const MOST_BLOCKS: usize = 64;

/// The axes that tiles have made so far: each a run of blocks of one dimension, from the most significant.
type Axes = Vec<Vec<Block>>;

/// The tiles that put `blocks`, major → minor, behind the quotients of the dimensions in `order`, major → minor.
///
/// The first tile cuts off each dimension's blocks together. Each further tile leaves the next blocks of memory in
/// place and moves the rest behind them; if the next block is not the first of its axis, the tile cuts the axis.
///
/// # Errors
/// [`ErrorKind::InvalidTile`](crate::ErrorKind::InvalidTile) if the blocks of a dimension multiply to more than 2^63 − 1.
pub(crate) fn tiles(order: &[usize], blocks: &[Block]) -> Result<Vec<Tile>, Error> {
    let mut axes: Axes = order
        .iter()
        .map(|&dimension| {
            let mut own: Vec<Block> = blocks.iter().filter(|block| block.dimension == dimension).copied().collect();
            own.sort_by_key(|block| block.level);
            own
        })
        .collect();
    let mut tiles = Vec::new();
    // The first tile is like the others, with nothing in place yet.
    let mut outer = vec![Vec::new(); axes.len()];
    let mut rest = blocks;
    loop {
        // Leading sizes of 1 change nothing.
        let start = axes.iter().position(|axis| !axis.is_empty()).unwrap_or(axes.len());
        if start == axes.len() {
            return Ok(tiles);
        }
        let sizes = axes[start..].iter().map(|axis| axis.iter().map(|block| block.size).fold(1, u64::saturating_mul));
        tiles.push(Tile::new(sizes)?);
        outer.extend(axes.drain(start..));
        // Leading axes that are in place need no further tile.
        let mut placed = 0;
        for axis in &outer {
            if !rest.starts_with(axis) {
                break;
            }
            rest = &rest[axis.len()..];
            placed += 1;
        }
        let axes_left = outer.split_off(placed);
        (outer, axes) = cut(axes_left, rest);
    }
}

/// Cuts each axis into the part that stays, (axis div size), and the part that the next tile moves behind, (axis mod
/// size).
fn cut(axes: Axes, mut rest: &[Block]) -> (Axes, Axes) {
    let is_first = |axis: &Vec<Block>| !axis.is_empty() && axis.first() == rest.first();
    if !axes.iter().any(is_first) {
        // The next block is inside an axis: cut the axis in front of it.
        return axes
            .into_iter()
            .map(|mut axis| {
                let at = axis.iter().position(|block| Some(block) == rest.first()).unwrap_or(0);
                let inner = axis.split_off(at);
                (axis, inner)
            })
            .unzip();
    }
    axes.into_iter()
        .map(|mut axis| {
            let next = axis.iter().zip(rest).take_while(|(block, next)| block == next).count();
            rest = &rest[next..];
            let inner = axis.split_off(next);
            (axis, inner)
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use proptest::prelude::*;

    fn printed(order: &[usize], blocks: &[(usize, u64, usize)]) -> String {
        let blocks: Vec<Block> =
            blocks.iter().map(|&(dimension, size, level)| Block { dimension, size, level }).collect();
        tiles(order, &blocks).expect("small").iter().map(alloc::string::ToString::to_string).collect()
    }

    #[test]
    fn known_layouts_come_out_as_they_are_written() {
        assert_eq!(printed(&[0, 1], &[]), "");
        assert_eq!(printed(&[0, 1], &[(0, 4, 0), (1, 128, 0), (0, 2, 1)]), "(8,128)(2,1)");
        assert_eq!(printed(&[0, 1], &[(0, 2, 0), (1, 2, 0), (0, 16, 1), (1, 16, 1)]), "(32,32)(16,16)");
        assert_eq!(printed(&[0, 1], &[(0, 32, 1), (0, 4, 0), (1, 4, 0)]), "(128,4)(32,4)(4,1,1,4)");
        assert_eq!(printed(&[0, 1, 2, 3], &[(1, 4, 0), (0, 16, 0), (1, 4, 1)]), "(16,16,1,1)(16,4,1,1)");
    }

    proptest! {
        /// Whatever the order of the blocks, the offset counts them as a mixed-radix number.
        #[test]
        fn memory_is_the_sequence_of_blocks(
            blocks in Just(vec![(0, 2, 0), (0, 3, 1), (0, 2, 2), (1, 3, 0), (1, 2, 1), (2, 2, 0)]).prop_shuffle(),
            order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
            bounds in [1..25_u64, 1..13_u64, 1..5_u64],
        ) {
            let minor_to_major: Vec<usize> = order.iter().rev().copied().collect();
            let blocks: Vec<Block> =
                blocks.into_iter().map(|(dimension, size, level)| Block { dimension, size, level }).collect();
            let layout = crate::Layout::new(minor_to_major)?.with_tiles(tiles(&order, &blocks)?)?;
            let shape = crate::Shape::array(crate::ElementType::S8, bounds)?.with_layout(layout)?;
            let tiled = crate::Tiled::new(&shape)?;
            let whole = [12, 6, 2];
            for element in 0..bounds.iter().product() {
                let index = [element / bounds[2] / bounds[1], element / bounds[2] % bounds[1], element % bounds[2]];
                let mut offset = 0;
                for &dimension in &order {
                    offset = offset * bounds[dimension].div_ceil(whole[dimension]) + index[dimension] / whole[dimension];
                }
                for block in &blocks {
                    let below = blocks.iter().filter(|b| b.dimension == block.dimension && b.level > block.level);
                    let divisor: u64 = below.map(|b| b.size).product();
                    offset = offset * block.size + index[block.dimension] / divisor % block.size;
                }
                prop_assert_eq!(tiled.offset_of(&index)?, offset, "{}", shape);
            }
        }
    }
}
