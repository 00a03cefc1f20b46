//! The array as a grid, each cell with its offset.

use super::{Drawing, MOST_ROWS, most_columns};
use crate::{
    axis::{Axis, Selection},
    grid::{CellContent, Colors, Grid, GridBuilder, Kind},
    padded::Blocks,
    register::Register,
    scene::Panel,
    text::tuple,
};

impl Drawing<'_> {
    pub(super) fn array(&self, colors: &mut Colors) -> Panel {
        let digits = self.tiled.physical_elements().saturating_sub(1).to_string().len();
        self.explained(self.array_within((MOST_ROWS, most_columns(digits)), colors))
    }

    /// The array with its map, and its tiles' shape in a TPU's registers.
    pub(super) fn explained(&self, panel: Panel) -> Panel {
        let extent = |dimension: Option<usize>| dimension.map_or(1, |dimension| self.padded.block_extent(0, dimension));
        let mapped_tile = match self.padded.levels() {
            [] => (0, 0),
            _ => (extent(self.plane.row), extent(self.plane.column)),
        };
        let mapped_tile = Some(mapped_tile);
        Panel { register: Register::of(self.tiled, &self.padded, &self.plane), mapped_tile, ..panel }
    }

    /// The array with at most that many rows and columns.
    pub(super) fn array_within(&self, most: (usize, usize), colors: &mut Colors) -> Panel {
        let content = |row, column| self.content(&self.plane.place(row, column));
        let blocks = |row, column| Some(self.padded.blocks(&self.plane.place(row, column)));
        let heading = "The array: each cell's offset in memory";
        let panel = self.array_of("array", heading, most, &content, &blocks, colors);
        Panel { grid: Grid { has_bytes: self.tiled.stored_bits() != 8, ..panel.grid }, ..panel }
    }

    /// The plane's cells, with any content.
    pub(super) fn array_of(
        &self,
        name: &'static str,
        heading: &str,
        most: (usize, usize),
        content: &dyn Fn(u64, u64) -> Option<CellContent>,
        blocks: &dyn Fn(u64, u64) -> Option<Blocks>,
        colors: &mut Colors,
    ) -> Panel {
        let rows = self.axis(self.plane.row, "row", most.0);
        let columns = self.axis(self.plane.column, "column", most.1);
        let builder = GridBuilder { rows, columns, content, blocks, inner_between_rows: true };
        Panel::of(name, heading, builder.build(colors))
    }

    /// The content of a place: its offset, in the colour of its tile.
    pub(super) fn content(&self, place: &[u64]) -> Option<CellContent> {
        let offset = self.padded.offset(place)?;
        let kind = self.kind(offset);
        Some(CellContent {
            kind,
            index: self.padded.index(place),
            offset: Some(offset),
            bits: self.tiled.stored_bits(),
            tile: self.tile(place),
            is_open: self.is_open(place),
            text: offset.to_string(),
            color_key: if kind == Kind::Element { self.color_key(place) } else { None },
            highlighted: self.highlighted_offset == Some(offset),
            tile_index: self.padded.tile_beginning_at(place).map_or_else(String::new, |index| tuple(&index)),
            ..CellContent::default()
        })
    }

    fn axis(&self, dimension: Option<usize>, noun: &'static str, most: usize) -> Axis {
        let Some(dimension) = dimension else {
            return Axis::new(1, 1, noun, &Selection { most: 1, ..Selection::default() }).with_names(|_| String::new());
        };
        let (extent, bound) = (self.padded.extents()[dimension], self.padded.bounds()[dimension]);
        let mut periods = self.periods(dimension);
        let own = dimension.checked_sub(self.padded.added());
        periods.extend(own.and_then(|own| self.periods.get(own)).into_iter().flatten());
        // Both layouts of a comparison need the same order.
        periods.sort_unstable_by(|a, b| b.cmp(a));
        periods.dedup();
        let selection =
            Selection { most, periods, focus: self.plane.focus.iter().map(|place| place[dimension]).collect() };
        Axis::new(extent, bound, noun, &selection).with_label(self.dimension_label(Some(dimension)))
    }

    /// The sizes of tiles along a dimension, and of tiles within tiles.
    fn periods(&self, dimension: usize) -> Vec<u64> {
        (0..2).map(|level| self.padded.block_extent(level, dimension)).collect()
    }

    /// [`Drawing::periods`] of the drawn dimensions; none for the others.
    pub(super) fn periods_by_dimension(&self) -> Vec<Vec<u64>> {
        let drawn = [self.plane.row, self.plane.column];
        let own = self.padded.added()..self.padded.extents().len();
        own.map(|dimension| if drawn.contains(&Some(dimension)) { self.periods(dimension) } else { Vec::new() })
            .collect()
    }
}
