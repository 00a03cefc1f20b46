//! One element followed through the tiles to its offset, in words.

use crate::{
    padded::LEVELS,
    text::{grouped, tuple},
};
use tilewise::{AxisIndex, Tiled};

/// Tiles × axes of the longest derivation that is explained.
const LONGEST: usize = 10_000;

/// The steps of the tiled-layout document's example: tile index, index within the tile, offset.
pub(crate) fn captions(tiled: &Tiled, index: &[u64]) -> Vec<String> {
    let tiles = tiled.array().layout().map_or(0, |layout| layout.tiles().len());
    if tiles.saturating_mul(tiled.physical_dimensions().len()) > LONGEST {
        return tiled.offset_of(index).map(|offset| format!("Offset {}.", grouped(offset))).into_iter().collect();
    }
    let Ok(worked) = tiled.worked_offset(index) else { return Vec::new() };
    let element = tuple(index);
    let mut captions = Vec::new();
    for (number, tile) in worked.tiles.iter().enumerate().take(LEVELS) {
        let ((at, count), (within, _)) = (pairs(&tile.tile_index), pairs(&tile.within));
        let text = &tile.tile;
        captions.push(match number {
            0 => format!("Tiles {text}: {element} is in tile {at} of {count}, at {within} within it."),
            _ => format!("Then {text}: in block {at} of {count}, at {within} within it."),
        });
    }
    if let more @ 1.. = tiles.saturating_sub(LEVELS) {
        captions.push(format!("Then {more} more of the layout's tiles."));
    }
    let combined = worked.tiles.last().map_or_else(|| worked.physical_order.clone(), |last| last.combined());
    let (at, bounds) = pairs(&combined);
    captions.push(format!("Memory is {bounds}: {element} is at {at} there."));
    captions.push(format!("{}.", worked.formula()));
    captions
}

fn pairs(axes: &AxisIndex) -> (String, String) {
    let (index, bounds): (Vec<u64>, Vec<u64>) = axes.iter().copied().unzip();
    (tuple(&index), tuple(&bounds))
}
