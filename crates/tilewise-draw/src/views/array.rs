//! The array as a grid, each cell with its offset.

use super::{MOST_ROWS, Subject, most_columns};
use crate::{
    grid::{Colors, Kind, Source, Spot},
    scene::Panel,
    tracks::{Axis, Interest},
    whole::Blocks,
};

impl Subject<'_> {
    pub(super) fn array(&self, colors: &mut Colors) -> Panel {
        let digits = self.tiled.physical_elements().saturating_sub(1).to_string().len();
        self.array_within((MOST_ROWS, most_columns(digits)), colors)
    }

    /// The same with that many rows and columns, if not all.
    pub(super) fn array_within(&self, most: (usize, usize), colors: &mut Colors) -> Panel {
        let spot = |row, column| self.spot(&self.plane.place(row, column));
        let blocks = |row, column| Some(self.whole.blocks(&self.plane.place(row, column)));
        let heading = "The array: each cell's offset in memory";
        self.array_of("array", heading, most, &spot, &blocks, colors)
    }

    /// The plane's places, whatever is written in them.
    pub(super) fn array_of(
        &self,
        name: &'static str,
        heading: &str,
        most: (usize, usize),
        spot: &dyn Fn(u64, u64) -> Option<Spot>,
        blocks: &dyn Fn(u64, u64) -> Option<Blocks>,
        colors: &mut Colors,
    ) -> Panel {
        let rows = self.axis(self.plane.row, "row", most.0);
        let columns = self.axis(self.plane.column, "column", most.1);
        let source = Source { rows, columns, spot, blocks, inner_between_rows: true };
        Panel { name, heading: heading.to_owned(), grid: source.build(colors), beside: false }
    }

    /// What stands in a place: its offset, in the colour of its tile.
    pub(super) fn spot(&self, place: &[u64]) -> Option<Spot> {
        let offset = self.whole.offset(place)?;
        let kind = self.kind(offset);
        Some(Spot {
            kind,
            index: self.whole.index(place),
            offset: Some(offset),
            text: offset.to_string(),
            shade: if kind == Kind::Element { self.shade(place) } else { None },
            highlighted: self.highlighted == Some(offset),
            ..Spot::default()
        })
    }

    fn axis(&self, dimension: Option<usize>, noun: &'static str, most: usize) -> Axis {
        let Some(dimension) = dimension else {
            return Axis::new(1, 1, noun, &Interest { most: 1, ..Interest::default() }).with_names(|_| String::new());
        };
        let (extent, bound) = (self.whole.extents()[dimension], self.whole.bounds()[dimension]);
        let mut periods = self.periods(dimension);
        let own = dimension.checked_sub(self.whole.added());
        periods.extend(own.and_then(|own| self.periods.get(own)).into_iter().flatten());
        // The same order for both layouts of a comparison.
        periods.sort_unstable_by(|a, b| b.cmp(a));
        periods.dedup();
        let interest =
            Interest { most, periods, focus: self.plane.focus.iter().map(|place| place[dimension]).collect() };
        Axis::new(extent, bound, noun, &interest).with_label(self.dimension_label(Some(dimension)))
    }

    /// How far tiles reach along a dimension, those within tiles too.
    fn periods(&self, dimension: usize) -> Vec<u64> {
        (0..2).map(|level| self.whole.reach(level, dimension)).collect()
    }

    /// [`Subject::periods`] of the dimensions that are drawn.
    pub(super) fn periods_by_dimension(&self) -> Vec<Vec<u64>> {
        let drawn = [self.plane.row, self.plane.column];
        let own = self.whole.added()..self.whole.extents().len();
        own.map(|dimension| if drawn.contains(&Some(dimension)) { self.periods(dimension) } else { Vec::new() })
            .collect()
    }
}
