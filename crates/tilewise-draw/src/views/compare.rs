//! Two layouts of one array: the elements that move, and their new places.

use super::{Drawing, title};
use crate::{
    Error, ErrorKind, Options,
    axis::{Axis, Selection},
    grid::{CellContent, Colors, Edge, Grid, GridBuilder, Kind, Link},
    padded::{NO_BLOCK, NO_BLOCKS, PaddedArray},
    plane::Plane,
    scene::{Panel, Sheet, Swatch},
    text::grouped,
};
use std::collections::HashMap;
use tilewise::Tiled;

/// Offsets in each of the strips that lines connect.
const STRIP: u64 = 16;

/// The most rows and columns drawn, so that two arrays fit side by side.
const MOST_CELLS: (usize, usize) = (8, 6);

/// The most elements that are compared one by one.
const MOST_COUNTED: u64 = 1 << 16;

pub(crate) fn sheet(from: &Tiled, to: &Tiled, options: &Options) -> Result<Sheet, Error> {
    let (a, b) = (from.array(), to.array());
    if from.logical_dimensions() != to.logical_dimensions() || a.element_type() != b.element_type() {
        let message = format!("only layouts of one array can be compared, not {} and {}", title(from), title(to));
        return Err(Error::new(ErrorKind::ShapeMismatch, message));
    }
    let mut before = Drawing::of(from, options)?;
    let padded = PaddedArray::of(to);
    let plane = moved_plane(&before, &padded);
    let highlighted_offset = options.highlight.as_ref().map(|index| to.offset_of(index)).transpose()?;
    let highlighted_index = options.highlight.clone();
    let mut after = Drawing { tiled: to, padded, plane, highlighted_index, highlighted_offset, periods: Vec::new() };
    // Both draw the same rows and columns.
    (before.periods, after.periods) = (after.periods_by_dimension(), before.periods_by_dimension());

    let mut colors = Colors::default();
    let mut panels = Vec::new();
    if from.tiled_elements() > 0 {
        let mut first = before.array_within(MOST_CELLS, &mut colors);
        first.heading = "A: each cell shows its offset".to_owned();
        first.grid.has_bytes = false;
        first.grid.tall = true;
        panels.push(first);
        panels.push(after.array_after(&before, &mut colors));
        panels.push(strips(&before, &after, &mut colors));
    }
    let mut legend = before.legend(&panels, false);
    for (_, text) in legend.iter_mut().filter(|(swatch, _)| matches!(swatch, Swatch::Tiles | Swatch::Runs)) {
        text.push_str(" in A");
    }
    legend.retain(|(swatch, _)| !matches!(swatch, Swatch::Inner | Swatch::Deepest | Swatch::Unmarked));
    if panels.iter().any(|panel| panel.grid.cells.iter().any(|cell| cell.content.moved)) {
        legend.push((Swatch::Moved, "at another offset in B".to_owned()));
    }
    let captions = match &options.highlight {
        None => Vec::new(),
        Some(index) => {
            let (a, b) = (grouped(from.offset_of(index)?), grouped(to.offset_of(index)?));
            vec![format!("Element {}: offset {a} in A, {b} in B.", crate::text::tuple(index))]
        }
    };
    Ok(Sheet {
        title: format!("A: {}\nB: {}", title(from), title(to)),
        summary: summary(from, to),
        sliders: before.sliders(),
        panels,
        legend,
        colors_repeat: colors.repeat(),
        captions,
    })
}

/// The plane of the array in the dimension numbers of the other layout.
fn moved_plane(before: &Drawing<'_>, padded: &PaddedArray) -> Plane {
    let old = before.padded.added();
    let moved = |dimension: Option<usize>| Some(dimension?.checked_sub(old)? + padded.added());
    let place = |place: &[u64]| padded.place(&place[old..]);
    let Plane { row, column, at, focus } = &before.plane;
    Plane { row: moved(*row), column: moved(*column), at: place(at), focus: focus.as_deref().map(place) }
}

/// The number of elements that move, in words.
fn summary(from: &Tiled, to: &Tiled) -> String {
    let bounds = from.logical_dimensions();
    let total = bounds.iter().fold(1, |product: u64, &bound| product.saturating_mul(bound));
    let bytes = format!("{} bytes in A, {} in B.", grouped(from.physical_bytes()), grouped(to.physical_bytes()));
    if total > MOST_COUNTED {
        return format!("{} elements; {bytes}", grouped(total));
    }
    let mut index = vec![0; bounds.len()];
    let mut moved = 0;
    for _ in 0..total {
        moved += u64::from(from.offset_of(&index).ok() != to.offset_of(&index).ok());
        for (at, bound) in index.iter_mut().zip(bounds).rev() {
            *at += 1;
            if *at < *bound {
                break;
            }
            *at = 0;
        }
    }
    match moved {
        0 => format!("All {} elements have the same offset; {bytes}", grouped(total)),
        _ => format!("{} of {} elements have another offset in B; {bytes}", grouped(moved), grouped(total)),
    }
}

impl Drawing<'_> {
    /// The array in this layout, with the offsets and colours of the other one.
    fn array_after(&self, before: &Drawing<'_>, colors: &mut Colors) -> Panel {
        let content = |row, column| {
            let content = self.content(&self.plane.place(row, column))?;
            let Some(index) = &content.index else { return Some(content) };
            let old = before.tiled.offset_of(index).ok();
            let moved = old != content.offset;
            let note = old.filter(|_| moved).map_or_else(String::new, |old| format!("was {old}"));
            let color_key = content.color_key.and_then(|_| before.color_key(&before.padded.place(index)));
            Some(CellContent { note, moved, color_key, ..content })
        };
        let blocks = |row, column| Some(self.padded.blocks(&self.plane.place(row, column)));
        let heading = "B: offsets, and what they were";
        Panel { beside: true, ..self.array_of("array-after", heading, MOST_CELLS, &content, &blocks, colors) }
    }
}

/// The start of memory in both layouts, with lines from each element's old offset to its new one.
fn strips(before: &Drawing<'_>, after: &Drawing<'_>, colors: &mut Colors) -> Panel {
    let both = [before, after];
    let longest = before.tiled.physical_elements().max(after.tiled.physical_elements());
    let length = longest.min(STRIP);
    let all = Selection { most: 32, ..Selection::default() };
    let rows = Axis::new(2, 2, "layout", &all).with_names(|row| if row == 0 { "A".to_owned() } else { "B".to_owned() });
    let columns = Axis::new(longest, longest, "offset", &Selection::default());
    let first = Axis::new(length, length, "offset", &all);
    let columns = Axis { tracks: first.tracks, ..columns }.with_label("offset");
    let content = |row: u64, column: u64| {
        let drawing = both[usize::from(row > 0)];
        if column >= drawing.tiled.physical_elements() {
            return None;
        }
        let content = drawing.content_at(column);
        let Some(index) = &content.index else { return Some(content) };
        let color_key = before.color_key(&before.padded.place(index));
        let other = both[usize::from(row == 0)].tiled.offset_of(index).ok()?;
        let moved = other != column;
        let note = match (moved, row) {
            (false, _) => String::new(),
            (true, 0) => format!("to {other}"),
            (true, _) => format!("was {other}"),
        };
        Some(CellContent { note, moved, color_key, ..content })
    };
    let blocks = |row: u64, column: u64| match both[usize::from(row > 0)].padded.blocks_at(column) {
        NO_BLOCKS => Some([NO_BLOCK, row | (1 << 63), NO_BLOCK, NO_BLOCK]),
        blocks => Some(blocks),
    };
    let builder = GridBuilder { rows, columns, content: &content, blocks: &blocks, inner_between_rows: false };
    let mut grid = builder.build(colors);
    for cell in &mut grid.cells {
        // Each of the two strips has its own border.
        (cell.edges.top, cell.edges.bottom) = (Edge::Tile, Edge::Tile);
    }
    grid.links = links(&grid);
    let heading = "The start of memory in A and in B".to_owned();
    Panel::of("strips", heading, grid)
}

fn links(grid: &Grid) -> Vec<Link> {
    let elements = |row: usize| {
        let cells = grid.cells.iter().enumerate();
        cells.filter(move |(_, cell)| cell.row == row && cell.content.kind == Kind::Element)
    };
    let targets: HashMap<_, _> = elements(1).map(|(at, cell)| (cell.content.index.clone(), at)).collect();
    let link = |(from, cell): (usize, &crate::grid::Cell)| {
        let to = *targets.get(&cell.content.index)?;
        Some(Link { from, to, moved: cell.content.moved })
    };
    elements(0).filter_map(link).collect()
}
