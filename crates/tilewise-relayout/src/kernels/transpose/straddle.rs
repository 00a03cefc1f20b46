//! Lines of a transpose's destination in which one column ends and the next begins.

use super::{
    grid::{Columns, Grid, Piece, Strip},
    micro_kernel::{LINE, Rows, Scratch, column_vector, transpose_in_registers, transpose_lanes_to},
};
use crate::kernels::vector::{Vector, copy_short, short_line};

/// The state of a strip of columns that follow each other in the destination, where no column begins on a line.
///
/// Whole lines of a column start [`head`](Self::head) rows on. So the last line of each run of rows holds the end of
/// that run in one column, and the head of a run in the following column: the next one in the same run, or, after the
/// last column of a run, the first one in the rows below. Rows are read a line at a time, and the rows of such a line
/// are the end of one run and the head of the one below: its blocks hold both, at their places in the line. Heads are
/// kept until their line is written.
pub(super) struct Straddle {
    /// Rows before the first whole line of a run.
    pub(super) head: usize,
    /// Columns of a run.
    run: usize,
    /// A line for each column of the strip and the one behind it, from the end of the previous runs.
    before: Vec<Line>,
    /// The lines of the runs that end now. For units of 4 bytes and more, most are joined in registers: a load of the
    /// lines just stored would wait for all the stores before it.
    now: Vec<Line>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; LINE]);

impl Straddle {
    /// For strips of up to `widest` columns; all columns start `phase` bytes behind the start of a line.
    pub(super) fn new(grid: &Grid, phase: usize, widest: usize) -> Self {
        let room = vec![Line([0; LINE]); widest + 1];
        let run = grid.columns.run.min(grid.columns.count);
        Self { head: (LINE - phase) / grid.unit, run, before: room.clone(), now: room }
    }

    /// Bytes of the last line of a run, before the head of the next.
    #[inline(always)]
    fn tail<const U: usize>(&self) -> usize {
        LINE - self.head * U
    }

    /// Starts a strip with the heads of the first run of rows. Heads with no line end before them are written.
    /// *Safety*: the [job contract](crate::kernels); the strip is in the grid, which has a vector's width of columns.
    #[inline(always)]
    pub(super) unsafe fn begin<V: Vector, const U: usize, const K: usize, const N: usize>(
        &mut self,
        (source, destination): (*const u8, *mut u8),
        grid: &Grid,
        strip: &Strip,
        scratch: &mut Scratch,
    ) {
        let tail = self.tail::<U>();
        let mut rows: Rows = [source; LINE];
        let mut places = grid.rows.places(grid.rows.source_stride, 0);
        for row in &mut rows[tail / U..LINE / U] {
            *row = source.wrapping_add(places.next());
        }
        // SAFETY: the job contract; columns are in the grid, and what is in front of the first whole line of a column is its own.
        unsafe {
            let mut column = strip.first;
            while column < strip.end {
                let lines = self.keep::<N>(column, grid, strip);
                columns::<V, U, K, N>(&rows, column.min(grid.columns.count - N), lines, scratch);
                column += strip.group(column);
            }
            self.keep_behind::<U>(&rows, grid, strip);
            let columns = &grid.columns;
            for column in (strip.first.next_multiple_of(self.run)..strip.end).step_by(self.run) {
                let to = destination.wrapping_add(columns.place(columns.destination_stride, column));
                let line = self.now[column - strip.first].0.as_ptr();
                short_line::<V>(line.add(tail), to, self.head * U, true);
            }
        }
    }

    /// The kept lines of a group of columns.
    #[inline(always)]
    fn keep<const N: usize>(&mut self, column: usize, grid: &Grid, strip: &Strip) -> &mut [Line] {
        if column == strip.first {
            core::mem::swap(&mut self.before, &mut self.now);
        }
        &mut self.now[column.min(grid.columns.count - N) - strip.first..][..N]
    }

    /// Writes the lines in which runs of a group of columns end, except those of the last columns of runs.
    /// *Safety*: the [job contract](crate::kernels); [`begin`](Self::begin) was called for the strip, and then this for all pieces
    /// and groups before.
    #[inline(always)]
    pub(super) unsafe fn write<V: Vector, const U: usize, const K: usize, const N: usize>(
        &mut self,
        piece: &Piece,
        places: &Columns,
        grid: &Grid,
        strip: &Strip,
        scratch: &mut Scratch,
    ) {
        let mut rows: Rows = piece.rows;
        rows[piece.count..].fill(piece.rows[0]);
        let offset = grid.rows.place(grid.rows.destination_stride, piece.row);
        let (first, run, tail) = (places.first, self.run, self.tail::<U>());
        let lines = self.keep::<N>(first, grid, strip);
        // SAFETY: rows and columns are in the grid, and what a line has of the column that follows is in the grid too.
        unsafe {
            let join = join::<V>(tail);
            if U >= 4 && places.present == N {
                let columns = transpose_in_registers::<V, U, K, N>(&rows, first * U);
                for (line, column) in lines.iter_mut().zip(columns) {
                    column.store(line.0.as_mut_ptr());
                }
                let mut left = run - first % run;
                let followers = &self.before[first + 1 - strip.first..][..N];
                for ((column, follower), at) in columns.into_iter().zip(followers).zip(places.at) {
                    left -= 1;
                    if left > 0 {
                        join(column, follower).store_non_temporal_aligned(at.wrapping_add(offset));
                    } else {
                        left = run;
                    }
                }
                return;
            }
            columns::<V, U, K, N>(&rows, first.min(grid.columns.count - N), lines, scratch);
            for (i, at) in places.at.iter().enumerate().take(places.present) {
                let next = first + i + 1;
                if next % run != 0 {
                    let line = V::load(self.now[next - 1 - strip.first].0.as_ptr());
                    join(line, &self.before[next - strip.first]).store_non_temporal_aligned(at.wrapping_add(offset));
                }
            }
        }
    }

    /// Writes the lines of the last columns of runs, when all groups are done.
    /// *Safety*: the [job contract](crate::kernels); [`write`](Self::write) was called for all groups of the strip with this piece.
    #[inline(always)]
    pub(super) unsafe fn write_run_ends<V: Vector, const U: usize>(
        &mut self,
        piece: &Piece,
        destination: *mut u8,
        grid: &Grid,
        strip: &Strip,
    ) {
        let columns = &grid.columns;
        let tail = self.tail::<U>();
        let to = destination.wrapping_add(grid.rows.place(grid.rows.destination_stride, piece.row));
        // SAFETY: the job contract; rows and columns are in the grid.
        unsafe {
            self.keep_behind::<U>(&piece.rows, grid, strip);
            let join = join::<V>(tail);
            for next in ((strip.first + 1).next_multiple_of(self.run)..=strip.end).step_by(self.run) {
                let to = to.wrapping_add(columns.place(columns.destination_stride, next - 1));
                let line = self.now[next - 1 - strip.first].0.as_ptr();
                if piece.count * U == tail {
                    short_line::<V>(line, to, tail, true);
                    continue;
                }
                let mut below = Line([0; LINE]);
                match (next - self.run).checked_sub(strip.first) {
                    Some(first) => below = self.now[first],
                    None => gather::<U>(&piece.rows, next - self.run, &mut below),
                }
                join(V::load(line), &below).store_non_temporal_aligned(to);
            }
        }
    }

    /// Keeps the column behind the strip, which shares a line with the strip's last one.
    /// *Safety*: the rows and columns are in the grid.
    #[inline(always)]
    unsafe fn keep_behind<const U: usize>(&mut self, rows: &Rows, grid: &Grid, strip: &Strip) {
        if strip.end < grid.columns.count {
            // SAFETY: the column is in the grid.
            unsafe { gather::<U>(rows, strip.end, &mut self.now[strip.end - strip.first]) };
        }
    }
}

/// Replaces a line's bytes from `from` on by those of the line that follows it.
/// *Safety*: the CPU has the instructions; the vector has a line's length.
#[inline(always)]
unsafe fn join<V: Vector>(from: usize) -> impl Fn(V, &Line) -> V {
    let mut follows = [0; LINE];
    follows[from..].fill(0xff);
    // SAFETY: the CPU has the instructions.
    unsafe {
        let follows = V::load(follows.as_ptr());
        move |line, follower| line.xor(line.xor(V::load(follower.0.as_ptr())).and(follows))
    }
}

/// Writes a line of each of a vector's width of columns. *Safety*: rows and columns are in the grid.
#[inline(always)]
unsafe fn columns<V: Vector, const U: usize, const K: usize, const N: usize>(
    rows: &Rows,
    first: usize,
    lines: &mut [Line],
    scratch: &mut Scratch,
) {
    let lanes = scratch.lanes.0.as_mut_ptr();
    // SAFETY: the rows and columns are in the grid; whole lines are written.
    unsafe {
        transpose_lanes_to::<V, U, K>(rows, first * U, LINE / 16, lanes);
        for (column, line) in lines.iter_mut().enumerate() {
            column_vector::<V, K>(lanes, column, 0).store(line.0.as_mut_ptr());
        }
    }
}

/// Copies one column's line. *Safety*: the column is in the grid.
#[inline(always)]
unsafe fn gather<const U: usize>(rows: &Rows, column: usize, line: &mut Line) {
    for (unit, row) in line.0.chunks_exact_mut(U).zip(rows) {
        // SAFETY: the column is in the grid.
        unsafe { copy_short(row.wrapping_add(column * U), unit.as_mut_ptr(), U) };
    }
}
