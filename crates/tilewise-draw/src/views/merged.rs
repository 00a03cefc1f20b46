//! The array that `*` in a tile makes of another: its merged dimensions, each as one.

use super::{Drawing, MOST_ROWS};
use crate::{
    Options,
    grid::Colors,
    scene::Panel,
    text::{counted, list},
};
use tilewise::{Layout, Shape, Tile, TileDimension, Tiled};

/// The merged array of a layout whose first tile merges dimensions, and the highlighted element in it.
struct Merged {
    tiled: Tiled,
    highlight: Option<Vec<u64>>,
}

impl Merged {
    fn of(tiled: &Tiled, highlight: Option<&[u64]>) -> Option<Self> {
        let array = tiled.array();
        let tiles = array.layout()?.tiles();
        let (first, later) = tiles.split_first()?;
        let is_merging = first.dimensions().contains(&TileDimension::Combined);
        if !is_merging {
            return None;
        }
        let merged = |index: &[u64]| -> Option<(Vec<u64>, Vec<u64>)> {
            let worked = tiled.worked_offset(index).ok()?;
            let first = worked.tiles.first()?;
            let groups = first.untouched.iter().map(|&axis| vec![axis]).chain(first.covered.iter().cloned());
            let folded = |axes: Vec<(u64, u64)>| {
                axes.into_iter().try_fold((0_u64, 1_u64), |(at, bound), (index, size)| {
                    Some((at.checked_mul(size)?.checked_add(index)?, bound.checked_mul(size)?))
                })
            };
            groups.map(folded).collect::<Option<Vec<_>>>().map(|axes| axes.into_iter().unzip())
        };
        let (_, bounds) = merged(&vec![0; tiled.logical_dimensions().len()])?;
        let sizes: Vec<TileDimension> =
            first.dimensions().iter().copied().filter(|size| size.size().is_some()).collect();
        let tiles = [Tile::from_dimensions(sizes).ok()?].into_iter().chain(later.iter().cloned());
        let mut layout = Layout::row_major(bounds.len()).with_tiles(tiles).ok()?;
        if let Some(bits) = array.layout()?.element_size_in_bits() {
            layout = layout.with_element_size_in_bits(bits).ok()?;
        }
        let shape = Shape::array(array.element_type(), bounds).ok()?.with_layout(layout).ok()?;
        let own = Tiled::new(&shape).ok()?;
        let highlight = highlight.and_then(|index| Some(merged(index)?.0));
        (own.tiled_elements() == tiled.tiled_elements()).then_some(Self { tiled: own, highlight })
    }
}

impl Drawing<'_> {
    /// The merged array with the offset of each element, equal to that in the array.
    pub(super) fn merged(&self, colors: &mut Colors) -> Option<Panel> {
        let merged = Merged::of(self.tiled, self.highlighted_index.as_deref())?;
        let mut options = Options::default();
        if let Some(index) = merged.highlight {
            options = options.with_highlight(index);
        }
        let drawing = Drawing::of(&merged.tiled, &options).ok()?;
        let most = (MOST_ROWS, super::most_columns(4));
        let panel = drawing.array_within(most, colors);
        let sizes = merged.tiled.logical_dimensions();
        let heading = format!(
            "Merged by * to {}: [{}], each cell's offset",
            counted(sizes.len() as u64, "dimension"),
            list(sizes)
        );
        Some(Panel { name: "merged", heading, beside: true, ..panel })
    }
}
