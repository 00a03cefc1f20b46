//! The sides of a transpose, and the parts of it that are done together.

use super::micro_kernel::{LINE, Rows};

/// A transpose: `rows` are contiguous in the destination, `columns` in the source.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) unit: usize,
    pub(crate) rows: Side,
    pub(crate) columns: Side,
}

/// Rows or columns: runs of units.
#[derive(Clone, Copy)]
pub(crate) struct Side {
    pub(crate) count: usize,
    /// Units of a run; the last may be shorter.
    pub(crate) run: usize,
    pub(crate) source_stride: Stride,
    pub(crate) destination_stride: Stride,
}

/// Bytes from a unit to the next, and from a run to the next.
#[derive(Clone, Copy)]
pub(crate) struct Stride {
    pub(crate) step: usize,
    pub(crate) jump: usize,
}

impl Side {
    pub(super) fn place(&self, stride: Stride, at: usize) -> usize {
        at / self.run * stride.jump + at % self.run * stride.step
    }

    pub(super) fn places(&self, stride: Stride, at: usize) -> Places {
        let (start, inside) = (at / self.run * stride.jump, at % self.run);
        Places { stride, run: self.run, start, place: start + inside * stride.step, left: self.run - inside }
    }

    fn has_one_run(&self) -> bool {
        self.count <= self.run
    }

    /// Whether all places are a multiple of lines apart.
    pub(super) fn is_in_lines(&self, stride: Stride) -> bool {
        (stride.step.is_multiple_of(LINE) || self.run == 1) && (stride.jump.is_multiple_of(LINE) || self.has_one_run())
    }
}

/// The places of neighbouring units of a [`Side`], one after the other.
pub(super) struct Places {
    stride: Stride,
    run: usize,
    start: usize,
    place: usize,
    left: usize,
}

impl Places {
    #[inline(always)]
    pub(super) fn next(&mut self) -> usize {
        let place = self.place;
        (self.place, self.left) = (place + self.stride.step, self.left - 1);
        if self.left == 0 {
            self.start += self.stride.jump;
            (self.place, self.left) = (self.start, self.run);
        }
        place
    }
}

impl Grid {
    /// Whether each column follows the one before it in the destination.
    pub(super) fn is_linear(&self) -> bool {
        self.rows.has_one_run()
            && self.columns.has_one_run()
            && self.columns.destination_stride.step == self.rows.count * self.unit
    }

    /// Whether runs of rows follow each other in the destination.
    fn rows_follow(&self) -> bool {
        self.rows.has_one_run() || self.rows.destination_stride.jump == self.rows.run * self.unit
    }

    /// Whether each column follows the one before it in the destination without a gap, and each run of columns the run
    /// with the previous rows; all runs are whole.
    pub(super) fn columns_follow(&self) -> bool {
        let (rows, columns) = (&self.rows, &self.columns);
        let bytes = rows.run.min(rows.count) * self.unit;
        let runs_follow = rows.has_one_run()
            || (rows.count.is_multiple_of(rows.run)
                && rows.destination_stride.jump == columns.run.min(columns.count) * columns.destination_stride.step);
        bytes.is_multiple_of(LINE)
            && columns.destination_stride.step == bytes
            && (columns.has_one_run() || columns.count.is_multiple_of(columns.run))
            && runs_follow
    }

    /// The number of rows from `row` on that make at most one line of each column.
    pub(super) fn piece(&self, row: usize, phase: usize) -> usize {
        let rows = &self.rows;
        let to_line = (LINE - (phase + rows.place(rows.destination_stride, row)) % LINE).div_ceil(self.unit);
        let run = if self.rows_follow() { rows.count } else { rows.run - row % rows.run };
        to_line.min(run).min(rows.count - row)
    }
}

/// Columns that are taken together, in groups as wide as a vector; the grid's first group is narrower if that lets the
/// others start on cache lines.
pub(super) struct Strip {
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) wide: usize,
    pub(super) unaligned: usize,
}

impl Strip {
    /// The number of columns in the group that starts at `column`.
    #[inline(always)]
    pub(super) fn group(&self, column: usize) -> usize {
        let wanted = if column == 0 && self.unaligned != 0 { self.unaligned } else { self.wide };
        wanted.min(self.end - column)
    }
}

/// Rows that make a line of each column, or less.
pub(super) struct Piece {
    pub(super) row: usize,
    pub(super) count: usize,
    pub(super) rows: Rows,
}

/// Neighbouring columns: the first, how many there are, and where they lie in the destination.
pub(super) struct Columns {
    pub(super) first: usize,
    pub(super) present: usize,
    pub(super) at: [*mut u8; LINE],
    /// Whether they are whole lines apart.
    pub(super) in_lines: bool,
}
