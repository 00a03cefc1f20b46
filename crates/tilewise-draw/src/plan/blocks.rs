//! Allocations as rectangles over moments and addresses: the largest drawn one by one, the others as a coarse picture.

use super::{
    MemoryPicture, Owners, Piece,
    profile::{PARTS, part, slot},
};
use crate::figure::{class::Part, mark::Point};

/// The most rectangles drawn one by one: an SVG of them stays below half a megabyte.
pub(super) const MOST_BLOCKS: usize = 1500;

/// The side of a cell of the coarse picture.
const CELL: f64 = 3.0;

/// The least share of a cell that is drawn.
const VISIBLE: f64 = 0.1;

/// Allocations with an address, at their positions in a plot of some size.
pub(super) struct Blocks<'a> {
    /// The largest allocations, in decreasing order.
    pub(super) single: Vec<Block<'a>>,
    /// The part that covers most of each cell with other allocations.
    pub(super) coarse: Vec<(Part, Vec<Vec<Point>>)>,
    /// The number of other allocations.
    pub(super) others: usize,
    /// The end of the highest allocation.
    pub(super) top: u64,
}

/// One allocation.
pub(super) struct Block<'a> {
    pub(super) piece: &'a Piece<'a>,
    pub(super) offset: u64,
    pub(super) corner: Point,
    pub(super) size: Point,
}

/// The pieces with an address.
fn placed<'a>(picture: &'a MemoryPicture<'a>) -> impl Iterator<Item = (&'a Piece<'a>, u64)> {
    let pieces = picture.pieces.iter().filter(|piece| piece.bytes > 0);
    pieces.filter_map(|piece| Some((piece, piece.offset?)))
}

impl<'a> Blocks<'a> {
    /// The end of the highest allocation.
    pub(super) fn top(picture: &'a MemoryPicture<'a>) -> u64 {
        placed(picture).map(|(piece, offset)| offset.saturating_add(piece.bytes)).max().unwrap_or(0)
    }

    pub(super) fn of(picture: &'a MemoryPicture<'a>, owners: &Owners, (width, height): Point) -> Self {
        let top = Self::top(picture);
        #[expect(clippy::cast_precision_loss, reason = "positions in a picture")]
        let (across, down) = (width / picture.moments() as f64, height / top.max(1) as f64);
        let mut single: Vec<Block<'a>> = placed(picture)
            .map(|(piece, offset)| {
                let (first, end) = picture.span(piece);
                #[expect(clippy::cast_precision_loss, reason = "positions in a picture")]
                let (first, moments, from, bytes) =
                    (first as f64, (end - first) as f64, offset as f64, piece.bytes as f64);
                let size = (moments * across, bytes * down);
                Block { piece, offset, corner: (first * across, (height - from * down - size.1).max(0.0)), size }
            })
            .collect();
        let area = |block: &Block<'_>| block.size.0 * block.size.1;
        single.sort_by(|a, b| area(b).total_cmp(&area(a)));
        let others = single.split_off(single.len().min(MOST_BLOCKS));
        let coarse = if others.is_empty() { Vec::new() } else { coarse(&others, owners, (width, height)) };
        Self { single, coarse, others: others.len(), top }
    }
}

/// The coverage of each cell by each part, as differences between neighbours: a rectangle changes sixteen of them,
/// however large it is.
struct Coverage {
    columns: usize,
    /// The parts of each cell, row by row.
    cells: Vec<[f64; PARTS]>,
}

impl Coverage {
    /// The change of the coverage of successive cells by a stretch, relative to the cell before.
    fn differences(from: f64, length: f64) -> [(usize, f64); 4] {
        let (from, to) = (from / CELL, (from + length) / CELL);
        let steps = |at: f64| {
            let cell = at.floor().max(0.0);
            let rest = 1.0 - (at - cell);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number of a cell")]
            let cell = cell as usize;
            [(cell, rest), (cell + 1, 1.0 - rest)]
        };
        let ([a, b], [c, d]) = (steps(from), steps(to));
        [a, b, (c.0, -c.1), (d.0, -d.1)]
    }

    fn add(&mut self, block: &Block<'_>, part: usize) {
        for (column, across) in Self::differences(block.corner.0, block.size.0) {
            for (row, down) in Self::differences(block.corner.1, block.size.1) {
                // A stretch at the edge of the plot changes cells beyond it.
                let cell = (column < self.columns).then(|| self.cells.get_mut(row * self.columns + column)).flatten();
                if let Some(share) = cell.and_then(|cell| cell.get_mut(part)) {
                    *share += across * down;
                }
            }
        }
    }

    /// The part that covers the most of each cell, row by row.
    fn largest(mut self) -> Vec<Option<usize>> {
        const NOTHING: [f64; PARTS] = [0.0; PARTS];
        let before = |cells: &[[f64; PARTS]], at: usize, back: usize| {
            at.checked_sub(back).and_then(|at| cells.get(at)).copied().unwrap_or(NOTHING)
        };
        for at in 0..self.cells.len() {
            // This cell's difference, and the sums to the left and above; the corner between is in both.
            let is_first = at % self.columns == 0;
            let left = if is_first { NOTHING } else { before(&self.cells, at, 1) };
            let corner = if is_first { NOTHING } else { before(&self.cells, at, self.columns + 1) };
            let above = before(&self.cells, at, self.columns);
            for (part, share) in self.cells[at].iter_mut().enumerate() {
                *share += left[part] + above[part] - corner[part];
            }
        }
        let largest = |cell: &[f64; PARTS]| {
            let part = (0..PARTS).max_by(|a, b| cell[*a].total_cmp(&cell[*b]))?;
            (cell.iter().sum::<f64>() >= VISIBLE).then_some(part)
        };
        self.cells.iter().map(largest).collect()
    }
}

fn coarse(blocks: &[Block<'_>], owners: &Owners, (width, height): Point) -> Vec<(Part, Vec<Vec<Point>>)> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundred cells")]
    let (columns, rows) = ((width / CELL).ceil() as usize, (height / CELL).ceil() as usize);
    let mut coverage = Coverage { columns, cells: vec![[0.0; PARTS]; columns * rows] };
    for block in blocks {
        coverage.add(block, slot(owners.part(block.piece.owner)));
    }
    let mut areas = vec![Vec::new(); PARTS];
    for (row, cells) in coverage.largest().chunks(columns.max(1)).enumerate() {
        let mut column = 0;
        for run in cells.chunk_by(|a, b| a == b) {
            if let Some(areas) = run.first().copied().flatten().and_then(|part| areas.get_mut(part)) {
                let (left, top) = (column as f64 * CELL, row as f64 * CELL);
                let (right, bottom) = ((left + run.len() as f64 * CELL).min(width), (top + CELL).min(height));
                areas.push(vec![(left, top), (right, top), (right, bottom), (left, bottom)]);
            }
            column += run.len();
        }
    }
    areas.into_iter().enumerate().map(|(slot, areas)| (part(slot), areas)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_know_how_much_of_them_is_covered() {
        // Half of the first cell, all of the second, a third of the third.
        let mut covered = [0.0; 5];
        for (cell, change) in Coverage::differences(1.5, 1.5 + 3.0 + 1.0) {
            covered[cell] += change;
        }
        let sums: Vec<f64> = covered
            .iter()
            .scan(0.0, |sum, change| {
                *sum += change;
                Some(*sum)
            })
            .collect();
        let expected = [0.5, 1.0, 1.0 / 3.0, 0.0, 0.0];
        assert!(sums.iter().zip(expected).all(|(sum, expected)| (sum - expected).abs() < 1e-9), "{sums:?}");
    }
}
