//! Offsets of small arrays against the tiled-layout document's definition.

use tilewise::{ElementType, Layout, Shape, Tile, TileDimension, Tiled};

/// The largest buffer whose offsets are all checked.
const LARGEST: u64 = 1024;

/// A small array with any layout, made from the bytes: every index has the offset that the definition gives it, that
/// offset has the index, and all other offsets are padding.
pub fn index_round_trip(data: &[u8]) {
    let Some(shape) = array(&mut data.iter().copied()) else { return };
    let Ok(tiled) = Tiled::new(&shape) else { return };
    if tiled.physical_elements() > LARGEST {
        return;
    }
    let bounds = tiled.logical_dimensions().to_vec();
    let layout = tiled.array().layout().expect("an array that was built has a layout");
    let elements: u64 = bounds.iter().product();
    let mut indices = Vec::new();
    let mut offsets = Vec::new();
    for position in 0..elements {
        let index = unravel(position, &bounds);
        let offset = tiled.offset_of(&index).expect("inside");
        assert_eq!(offset, naive_offset(&bounds, layout, &index), "{shape} at {index:?}");
        assert_eq!(tiled.index_of(offset).expect("inside").as_ref(), Some(&index), "{shape} @{offset}");
        indices.extend(index);
        offsets.push(offset);
    }
    let mut filled = vec![0; offsets.len()];
    tiled.fill_offsets(&indices, &mut filled).expect("all inside");
    assert_eq!(filled, offsets, "{shape}");
    let mut found = vec![0; indices.len()];
    tiled.fill_indices(&offsets, &mut found).expect("all inside");
    assert_eq!(found, indices, "{shape}");
    let found = (0..tiled.physical_elements()).filter(|&offset| tiled.index_of(offset).expect("inside").is_some());
    assert_eq!(found.count() as u64, elements, "{shape}");
    assert!(tiled.index_of(tiled.physical_elements()).is_err());
}

/// Up to five dimensions below 8, in any order, with up to six tiles of up to five dimensions and perhaps a tail.
pub(crate) fn array(bytes: &mut impl Iterator<Item = u8>) -> Option<Shape> {
    let mut below = |count: u8| bytes.next().map_or(0, |byte| byte % count);
    let rank = usize::from(below(6));
    let bounds: Vec<u64> = (0..rank).map(|_| u64::from(below(8))).collect();
    let mut left: Vec<usize> = (0..rank).collect();
    let order: Vec<usize> = (0..rank).map(|_| left.remove(usize::from(below(6)) % left.len())).collect();
    let mut tiles = Vec::new();
    for _ in 0..below(7) {
        let mut dimensions = Vec::new();
        for _ in 0..below(5) {
            dimensions.push(tile_dimension(below(10)));
        }
        dimensions.push(tile_dimension(below(9) + 1));
        tiles.push(Tile::from_dimensions(dimensions).ok()?);
    }
    let layout = Layout::new(order).ok()?.with_tiles(tiles).ok()?;
    let layout = layout.with_tail_padding_alignment(u64::from(below(20)) + 1).ok()?;
    Shape::array(ElementType::U8, bounds).ok()?.with_layout(layout).ok()
}

/// 0 is `*`.
fn tile_dimension(size: u8) -> TileDimension {
    std::num::NonZeroU64::new(size.into()).map_or(TileDimension::Combined, TileDimension::Size)
}

pub(crate) fn unravel(mut position: u64, bounds: &[u64]) -> Vec<u64> {
    let mut index = vec![0; bounds.len()];
    for (i, bound) in index.iter_mut().zip(bounds).rev() {
        (*i, position) = (position % bound, position / bound);
    }
    index
}

/// The definition for one index: physical order, then for each tile combine, divide and append the remainders.
pub(crate) fn naive_offset(bounds: &[u64], layout: &Layout, index: &[u64]) -> u64 {
    // (bound, index) of each axis, major → minor.
    let mut axes: Vec<(u64, u64)> = layout.minor_to_major().iter().rev().map(|&d| (bounds[d], index[d])).collect();
    for tile in layout.tiles() {
        let dimensions = tile.dimensions();
        while axes.len() < dimensions.len() {
            axes.insert(0, (1, 0));
        }
        let tiled = axes.split_off(axes.len() - dimensions.len());
        let mut inner = Vec::new();
        let mut combined = (1, 0);
        for ((bound, index), dimension) in tiled.into_iter().zip(dimensions) {
            combined = (combined.0 * bound, combined.1 * bound + index);
            if let Some(size) = dimension.size() {
                axes.push((combined.0.div_ceil(size), combined.1 / size));
                inner.push((size, combined.1 % size));
                combined = (1, 0);
            }
        }
        axes.append(&mut inner);
    }
    axes.iter().fold(0, |offset, (bound, index)| offset * bound + index)
}
