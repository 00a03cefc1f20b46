//! One element followed through the tiles to its offset, in words.

use crate::{
    padded::PaddedArray,
    text::{grouped, tuple},
};
use tilewise::Tiled;

/// The most axes of memory in a formula.
const LONGEST_FORMULA: usize = 9;

/// The steps of the tiled-layout document's example: tile index, index within the tile, offset.
pub(crate) fn captions(tiled: &Tiled, padded: &PaddedArray, index: &[u64]) -> Vec<String> {
    let Ok(offset) = tiled.offset_of(index) else { return Vec::new() };
    let place = padded.place(index);
    let mut captions = Vec::new();
    let element = tuple(index);
    for (number, level) in padded.levels().iter().enumerate() {
        let Ok((outer, inner)) = level.index_in_block(&place) else { continue };
        // Later tiles cut the blocks of the tile before; the axes of that one are in its caption already.
        let new = if number == 0 { &outer[..] } else { &outer[outer.len().saturating_sub(level.block_axes())..] };
        let (tile, count) = pairs(new);
        let (within, _) = pairs(&inner);
        let text = level.tile();
        captions.push(match number {
            0 => format!("Tiles {text}: {element} is in tile {tile} of {count}, at {within} within it."),
            _ => format!("Then {text}: in block {tile} of {count}, at {within} within it."),
        });
    }
    let more = tiled.array().layout().map_or(0, |layout| layout.tiles().len()) - padded.levels().len();
    if more > 0 {
        captions.push(format!("Then {more} more of the layout's tiles."));
    }
    let Ok(Some(physical)) = tiled.physical_index_of(offset) else { return captions };
    let bounds = tiled.physical_dimensions();
    let counted: Vec<(u64, u64)> =
        physical.iter().copied().zip(bounds.iter().copied()).filter(|&(_, b)| b > 1).collect();
    let memory = format!("Memory is {}: {element} is at {} there.", tuple(bounds), tuple(&physical));
    captions.push(memory);
    captions.push(match &counted[..] {
        counted if counted.len() <= LONGEST_FORMULA => format!("Offset {}.", formula(counted, offset)),
        _ => format!("Offset {}.", grouped(offset)),
    });
    captions
}

fn pairs(axes: &[(u64, u64)]) -> (String, String) {
    let (index, bounds): (Vec<u64>, Vec<u64>) = axes.iter().copied().unzip();
    (tuple(&index), tuple(&bounds))
}

/// `((1·3 + 1)·2 + 0)·2 + 1 = 17`
fn formula(axes: &[(u64, u64)], offset: u64) -> String {
    let Some((&(first, _), rest)) = axes.split_first() else { return offset.to_string() };
    let mut sum = first.to_string();
    for (at, (index, bound)) in rest.iter().enumerate() {
        sum = if at == 0 { format!("{sum}·{bound} + {index}") } else { format!("({sum})·{bound} + {index}") };
    }
    if rest.is_empty() { sum } else { format!("{sum} = {offset}") }
}
