//! Cells in rows and columns, with the borders of tiles between them.

use crate::{
    axis::Axis,
    padded::{Blocks, INNER, JOINED, NO_BLOCK, NO_BLOCKS, TILE},
};
use std::collections::HashMap;

/// A grid of cells, all of the same size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    pub(crate) rows: Axis,
    pub(crate) columns: Axis,
    /// The cells, row by row.
    pub(crate) cells: Vec<Cell>,
    /// Lines between cells, by their numbers.
    pub(crate) links: Vec<Link>,
    /// Whether pictures, which have more space than terminals, show each cell's byte below its text.
    pub(crate) has_bytes: bool,
    /// Whether rows have the height of rows with notes, to align with a grid beside this one.
    pub(crate) tall: bool,
}

/// A line between two cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) moved: bool,
}

/// One cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// Its track in [`Grid::rows`].
    pub(crate) row: usize,
    /// Its track in [`Grid::columns`].
    pub(crate) column: usize,
    pub(crate) content: CellContent,
    /// The number of its colour, if it has one.
    pub(crate) color: Option<usize>,
    pub(crate) edges: Edges,
}

/// The content of a cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellContent {
    pub(crate) kind: Kind,
    /// The logical index of the element.
    pub(crate) index: Option<Vec<u64>>,
    /// The element's offset in memory, in elements,
    pub(crate) offset: Option<u64>,
    /// of this many bits each; 0 if bits don't matter here.
    pub(crate) bits: u64,
    /// The number of its tile, counted along memory.
    pub(crate) tile: Option<u64>,
    /// Whether that tile continues outside the drawn plane.
    pub(crate) is_open: bool,
    /// The text in the cell.
    pub(crate) text: String,
    /// Smaller text below.
    pub(crate) note: String,
    /// In the first cell of a tile, the tile's index, which pictures show in its corner.
    pub(crate) tile_index: String,
    /// Cells with the same key get the same colour.
    pub(crate) color_key: Option<u64>,
    pub(crate) highlighted: bool,
    pub(crate) moved: bool,
}

impl CellContent {
    /// The byte it starts in, and the bit of that byte.
    pub(crate) fn byte(&self) -> Option<(u128, u128)> {
        let bit = u128::from(self.offset?) * u128::from(self.bits);
        (self.bits > 0).then_some((bit / 8, bit % 8))
    }
}

/// `68`, or `68:4` for an element that starts inside a byte.
pub(crate) fn byte_label((byte, bit): (u128, u128)) -> String {
    if bit == 0 { byte.to_string() } else { format!("{byte}:{bit}") }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Element,
    /// Padding of a tile.
    Padding,
    /// Padding behind the last tile.
    Tail,
}

/// The border on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    pub(crate) left: Edge,
    pub(crate) top: Edge,
    pub(crate) right: Edge,
    pub(crate) bottom: Edge,
}

/// A border; if several meet at one place, the first is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Edge {
    #[default]
    None,
    /// Around tiles that a later one joins.
    Joined,
    /// The border of a tile, or of the grid.
    Tile,
    /// The border of a tile within a tile,
    Inner,
    /// and of one within that.
    Deepest,
}

impl Edge {
    fn of(level: usize) -> Self {
        match level {
            JOINED => Self::Joined,
            TILE => Self::Tile,
            INNER => Self::Inner,
            _ => Self::Deepest,
        }
    }
}

/// Builds a grid from the contents of its cells.
pub(crate) struct GridBuilder<'a> {
    pub(crate) rows: Axis,
    pub(crate) columns: Axis,
    /// The content at a row and column; `None` behind the end of memory.
    pub(crate) content: &'a dyn Fn(u64, u64) -> Option<CellContent>,
    /// The blocks at a row and column: borders run where they change.
    pub(crate) blocks: &'a dyn Fn(u64, u64) -> Option<Blocks>,
    /// Whether tiles within tiles are outlined from row to row, too.
    pub(crate) inner_between_rows: bool,
}

impl GridBuilder<'_> {
    pub(crate) fn build(self, colors: &mut Colors) -> Grid {
        let mut cells: Vec<Cell> = Vec::with_capacity(self.rows.tracks.len() * self.columns.tracks.len());
        let mut neighbours = Vec::with_capacity(cells.capacity());
        // Deeper tiles are outlined only where a block has cells side by side.
        let mut outlined = [false; NO_BLOCKS.len()];
        for (row, row_track) in self.rows.tracks.iter().enumerate() {
            for (column, column_track) in self.columns.tracks.iter().enumerate() {
                let (y, x) = (row_track.position, column_track.position);
                let Some(content) = (self.content)(y, x) else { continue };
                let blocks = (self.blocks)(y, x).unwrap_or(NO_BLOCKS);
                let at = |y: Option<u64>, x: Option<u64>| {
                    let (y, x) = (y?, x?);
                    if y < self.rows.extent && x < self.columns.extent { (self.blocks)(y, x) } else { None }
                };
                let around = [
                    at(Some(y), x.checked_sub(1)),
                    at(y.checked_sub(1), Some(x)),
                    at(Some(y), Some(x + 1)),
                    at(Some(y + 1), Some(x)),
                ];
                for other in around.iter().flatten() {
                    for (level, outlined) in outlined.iter_mut().enumerate() {
                        *outlined |= blocks[level] != NO_BLOCK && blocks[level] == other[level];
                    }
                }
                let color = content.color_key.map(|color_key| {
                    let beside = |row: usize, column: usize| {
                        let cell = cells.iter().rev().take(self.columns.tracks.len());
                        cell.into_iter()
                            .find(|cell| (cell.row, cell.column) == (row, column))
                            .and_then(|cell| cell.color)
                    };
                    let left = column.checked_sub(1).and_then(|column| beside(row, column));
                    let above = row.checked_sub(1).and_then(|row| beside(row, column));
                    colors.of(color_key, [left, above])
                });
                cells.push(Cell { row, column, content, color, edges: Edges::default() });
                neighbours.push((blocks, around));
            }
        }
        for (cell, (blocks, [left, top, right, bottom])) in cells.iter_mut().zip(&neighbours) {
            let edge = |other: &Option<Blocks>, levels: usize| match other {
                None if blocks[JOINED] != NO_BLOCK => Edge::Joined,
                None => Edge::Tile,
                Some(other) => {
                    let changed = (0..levels).find(|&l| blocks[l] != other[l] && (l <= TILE || outlined[l]));
                    changed.map_or(Edge::None, Edge::of)
                }
            };
            let all = NO_BLOCKS.len();
            let down = if self.inner_between_rows { all } else { TILE + 1 };
            cell.edges = Edges {
                left: edge(left, all),
                top: edge(top, down),
                right: edge(right, all),
                bottom: edge(bottom, down),
            };
        }
        Grid { rows: self.rows, columns: self.columns, cells, ..Grid::default() }
    }
}

impl Grid {
    /// The grid with at most `most` columns.
    pub(crate) fn narrowed(&self, most: usize) -> Self {
        if self.columns.tracks.len() <= most {
            return self.clone();
        }
        let kept = self.columns.narrowed(most);
        let columns =
            Axis { tracks: kept.iter().map(|&at| self.columns.tracks[at].clone()).collect(), ..self.columns.clone() };
        let cells = self.cells.iter().filter_map(|cell| {
            let column = kept.binary_search(&cell.column).ok()?;
            Some(Cell { column, ..cell.clone() })
        });
        Self { rows: self.rows.clone(), columns, cells: cells.collect(), ..Self::default() }
    }

    /// The cells by row and column.
    pub(crate) fn table(&self) -> Vec<Option<&Cell>> {
        let width = self.columns.tracks.len();
        let mut table = vec![None; self.rows.tracks.len() * width];
        for cell in &self.cells {
            table[cell.row * width + cell.column] = Some(cell);
        }
        table
    }

    pub(crate) fn highlighted(&self) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.content.highlighted)
    }

    /// Whether some border is of that kind.
    pub(crate) fn has(&self, edge: Edge) -> bool {
        self.cells.iter().any(|cell| {
            let Edges { left, top, right, bottom } = cell.edges;
            [left, top, right, bottom].contains(&edge)
        })
    }
}

/// Colours for blocks, the same in all grids of a scene; neighbours get different ones.
#[derive(Debug, Default)]
pub(crate) struct Colors {
    of: HashMap<u64, usize>,
    next: usize,
}

impl Colors {
    /// Whether there are more blocks than colours.
    pub(crate) fn repeat(&self) -> bool {
        self.of.len() > crate::palette::TILES
    }

    fn of(&mut self, color_key: u64, beside: [Option<usize>; 2]) -> usize {
        const COUNT: usize = crate::palette::TILES;
        if let Some(&color) = self.of.get(&color_key) {
            return color;
        }
        let candidates = (0..COUNT).map(|step| (self.next + step) % COUNT);
        let color = candidates.into_iter().find(|color| !beside.contains(&Some(*color))).unwrap_or(self.next);
        self.next = (color + 1) % COUNT;
        self.of.insert(color_key, color);
        color
    }
}
