//! Transposes: squares in registers, taken in blocks that read long runs of the source and write whole lines.

use super::{
    Body, Job, Stream,
    ahead::Ahead,
    repeat,
    vector::{Sink, Vector, copy, copy_short},
    zip::transpose,
};
use core::mem::MaybeUninit;

/// A transpose: `rows` are contiguous in the destination, `columns` in the source.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) unit: usize,
    pub(crate) rows: usize,
    /// Source bytes from a row to the next.
    pub(crate) pitch: usize,
    /// Rows after which the destination goes on elsewhere, and the distance from run to run.
    pub(crate) row_run: usize,
    pub(crate) row_jump: usize,
    pub(crate) columns: usize,
    /// Destination bytes from a column to the next, after how many columns that changes, and the distance from run to run.
    pub(crate) column_step: usize,
    pub(crate) column_run: usize,
    pub(crate) column_jump: usize,
}

const LINE: usize = 64;
/// Lines of each column that are written together.
const LINES: usize = 4;

impl Grid {
    /// Whether each column follows the one before it in the destination.
    fn is_linear(&self) -> bool {
        self.rows <= self.row_run && self.columns <= self.column_run && self.column_step == self.rows * self.unit
    }

    fn column(&self, column: usize) -> usize {
        column / self.column_run * self.column_jump + column % self.column_run * self.column_step
    }

    fn row(&self, row: usize) -> usize {
        row / self.row_run * self.row_jump + row % self.row_run * self.unit
    }

    /// Whether every column starts at the same place in a line.
    fn aligned_columns(&self) -> bool {
        (self.column_step.is_multiple_of(LINE) || self.column_run == 1)
            && (self.column_jump.is_multiple_of(LINE) || self.columns <= self.column_run)
    }

    /// Whether the runs of neighbouring columns follow each other in the destination without a gap, and all of them are whole.
    fn columns_follow(&self) -> bool {
        (self.row_run * self.unit).is_multiple_of(LINE)
            && self.column_step == self.row_run * self.unit
            && self.row_jump == self.column_run * self.column_step
            && self.rows.is_multiple_of(self.row_run)
            && self.columns.is_multiple_of(self.column_run)
            && self.rows > self.row_run
            && self.row_run * self.pitch >= self.column_run * self.unit
    }

    /// The rows from one on that make (at most) one line of each column.
    fn piece(&self, row: usize, phase: usize) -> usize {
        let to_line = (LINE - (phase + self.row(row)) % LINE).div_ceil(self.unit);
        to_line.min(self.row_run - row % self.row_run).min(self.rows - row)
    }
}

/// Destination addresses of neighbouring columns, as many as a square has.
struct Columns<const N: usize> {
    at: [*mut u8; N],
    present: usize,
}

/// Squares are of vectors `W`; what leaves in address order goes through the sink.
///
/// # Safety
/// As for [`super::run`]; `N` units of `U` bytes make a `W`.
#[inline(always)]
pub(super) unsafe fn blocks<V: Vector, S: Sink<V>, W: Vector, const U: usize, const N: usize>(
    job: &Job,
    stream: &mut Stream,
) {
    let Body::Blocks(grid) = job.body else { return };
    if grid.is_linear() && grid.rows * U <= ROW_BUFFER {
        // SAFETY: passed on.
        unsafe { linear::<V, S, W, U, N>(job, stream, &grid) };
        return;
    }
    repeat!(job, |from, to| {
        // SAFETY: passed on.
        unsafe { one::<W, U, N>(from, to, &grid, S::STREAMS) }
    });
}

/// Bytes of a column that [`linear`] has room for.
const ROW_BUFFER: usize = 1024;

/// Columns that follow each other in the destination: each square's worth of them is collected, and leaves in one piece.
#[inline(always)]
unsafe fn linear<V: Vector, S: Sink<V>, W: Vector, const U: usize, const N: usize>(
    job: &Job,
    stream: &mut Stream,
    grid: &Grid,
) {
    #[repr(align(64))]
    struct Buffer([MaybeUninit<u8>; 16 * ROW_BUFFER]);
    let mut buffer = Buffer([MaybeUninit::uninit(); 16 * ROW_BUFFER]);
    let buffer = buffer.0.as_mut_ptr().cast::<u8>();
    let length = grid.rows * U;
    // SAFETY: rows and columns are inside the grid; a buffer row is read no further than it was written.
    unsafe {
        let mut sink = S::resume(stream);
        repeat!(job, |from, to| {
            sink.seek(to);
            // Squares start on lines of the source, where all rows have them in the same places.
            let skew = if grid.pitch.is_multiple_of(LINE) && from.addr() % U == 0 {
                from.addr().wrapping_neg() % LINE / U % N
            } else {
                0
            };
            let mut column = 0;
            while column < grid.columns {
                let wanted = if column == 0 && skew != 0 { skew } else { N };
                let present = wanted.min(grid.columns - column);
                let at = from.wrapping_add(column * U);
                for row in (0..grid.rows).step_by(N) {
                    let rows = N.min(grid.rows - row);
                    let square = load_square::<W, U, N>(at.wrapping_add(row * grid.pitch), grid.pitch, rows, present);
                    if S::STREAMS {
                        for row in row..row + rows {
                            V::prefetch::<false>(at.wrapping_add(row * grid.pitch + AHEAD));
                        }
                    }
                    for (i, vector) in transpose::<W, U, N>(square).into_iter().enumerate() {
                        vector.store(buffer.add(i * ROW_BUFFER + row * U));
                    }
                }
                for i in 0..present {
                    sink.copy(buffer.add(i * ROW_BUFFER), length, &mut Ahead::nothing());
                }
                column += present;
            }
        });
        sink.save(stream);
    }
}

/// How far a row is read ahead of use.
const AHEAD: usize = 1024;

/// A square of whose rows and columns some may be missing; the missing ones are anything.
#[inline(always)]
unsafe fn load_square<W: Vector, const U: usize, const N: usize>(
    from: *const u8,
    pitch: usize,
    rows: usize,
    columns: usize,
) -> [W; N] {
    // SAFETY: `rows` rows of `columns` units are valid, and no more are read.
    unsafe {
        if rows == N && columns == N {
            return core::array::from_fn(|i| W::load(from.wrapping_add(i * pitch)));
        }
        let mut square = [W::zero(); N];
        for (i, row) in square.iter_mut().enumerate().take(rows) {
            let mut short = [0; LINE];
            copy_short(from.wrapping_add(i * pitch), short.as_mut_ptr(), columns * U);
            *row = W::load(short.as_ptr());
        }
        square
    }
}

/// # Safety
/// As for [`super::run`]; both addresses are where the grid begins.
#[inline(always)]
unsafe fn one<V: Vector, const U: usize, const N: usize>(
    source: *const u8,
    destination: *mut u8,
    grid: &Grid,
    past_caches: bool,
) {
    /// Source bytes of one row that are read together.
    const STRIP: usize = 1024;
    let per_line = LINE / U;
    // Start squares on lines, of the destination by rows and of the source by columns.
    let shift = past_caches && destination.addr().is_multiple_of(U) && source.addr().is_multiple_of(U);
    let phase = if shift && grid.aligned_columns() { destination.addr() % LINE } else { 0 };
    let skew = if shift && grid.pitch.is_multiple_of(LINE) { (source.addr().wrapping_neg() % LINE / U) % N } else { 0 };
    let strip = (STRIP / U).max(N);
    let crosses = past_caches && V::BYTES == LINE && phase != 0 && grid.columns_follow();
    let start = if crosses {
        // SAFETY: passed on.
        unsafe { first_pieces::<U>(source, destination, grid, (LINE - phase) / U) };
        (LINE - phase) / U
    } else {
        0
    };

    let mut first = 0;
    while first < grid.columns {
        let strip_end = if first == 0 { strip + skew } else { first + strip }.min(grid.columns);
        let mut row = start;
        while row < grid.rows {
            // A few lines of each column.
            let mut pieces = [(0, 0); LINES];
            let mut end = row;
            for piece in &mut pieces {
                let rows = match crosses {
                    _ if end >= grid.rows => 0,
                    true => per_line,
                    false => grid.piece(end, phase),
                };
                *piece = (end, rows);
                end += rows;
            }
            let taken = end.min(grid.rows) - row;
            let mut next = source.wrapping_add(end * grid.pitch + first * U);
            let (mut next_row, mut next_at) = (0, 0);
            let strip_bytes = (strip_end - first) * U;
            let mut column = first;
            // Where this column lies, how many are left of its run, and where the run starts.
            let mut run = first / grid.column_run * grid.column_jump;
            let mut place = grid.column(first);
            let mut run_left = grid.column_run - first % grid.column_run;
            while column < strip_end {
                let wanted = if column == 0 && skew != 0 { skew } else { N };
                let present = wanted.min(strip_end - column);
                let mut at = [destination; N];
                for at in at.iter_mut().take(present) {
                    *at = destination.wrapping_add(place);
                    (place, run_left) = (place + grid.column_step, run_left - 1);
                    if run_left == 0 {
                        run += grid.column_jump;
                        (place, run_left) = (run, grid.column_run);
                    }
                }
                let columns = Columns { at, present };
                if past_caches {
                    // The next lines of rows, in plain order, a share with every square.
                    for _ in 0..(taken * N * U).div_ceil(LINE) {
                        if next_row < taken {
                            // SAFETY: a prefetch may name any address.
                            unsafe { V::prefetch::<false>(next.wrapping_add(next_at)) };
                            next_at += LINE;
                            if next_at >= strip_bytes {
                                (next_row, next_at, next) = (next_row + 1, 0, next.wrapping_add(grid.pitch));
                            }
                        }
                    }
                }
                for (row, rows) in pieces {
                    let from = source.wrapping_add(row * grid.pitch + column * U);
                    // SAFETY: `rows` rows from `row` on and `present` columns from `column` on are inside the grid.
                    unsafe {
                        if crosses && rows > 0 && row % grid.row_run + per_line > grid.row_run {
                            cross::<V, U, N>(source, grid, (row, column), &columns);
                        } else if rows == per_line && present == N {
                            line::<V, U, N, true>(from, grid, rows, &columns, grid.row(row), past_caches);
                        } else if rows > 0 {
                            line::<V, U, N, false>(from, grid, rows, &columns, grid.row(row), past_caches);
                        }
                    }
                }
                column += present;
            }
            row = end;
        }
        first = strip_end;
    }
}

/// One line of each of up to `N` columns.
#[inline(always)]
unsafe fn line<V: Vector, const U: usize, const N: usize, const WHOLE: bool>(
    from: *const u8,
    grid: &Grid,
    rows: usize,
    columns: &Columns<N>,
    offset: usize,
    past_caches: bool,
) {
    #[repr(align(64))]
    struct Lines([[MaybeUninit<u8>; LINE]; 16]);
    let per_square = V::BYTES / U;
    // SAFETY: rows and columns are inside the grid, and whole vectors are read only where all `N` columns are.
    unsafe {
        if WHOLE && V::BYTES == LINE && N <= 16 {
            let rows = core::array::from_fn(|i| V::load(from.wrapping_add(i * grid.pitch)));
            for (vector, at) in transpose::<V, U, N>(rows).into_iter().zip(columns.at) {
                let to = at.wrapping_add(offset);
                if past_caches && to.addr() % 16 == 0 {
                    vector.stream(to);
                } else {
                    vector.store(to);
                }
            }
            return;
        }
        let mut lines = Lines([[MaybeUninit::uninit(); LINE]; 16]);
        for square in 0..rows.div_ceil(per_square) {
            let present = per_square.min(rows - square * per_square);
            let mut block = [V::zero(); N];
            for (i, row) in block.iter_mut().enumerate() {
                if WHOLE || i < present {
                    let at = from.wrapping_add((square * per_square + i) * grid.pitch);
                    *row = if WHOLE || columns.present == N {
                        V::load(at)
                    } else {
                        let mut short = [0; LINE];
                        copy_short(at, short.as_mut_ptr(), columns.present * U);
                        V::load(short.as_ptr())
                    };
                }
            }
            for (vector, line) in transpose::<V, U, N>(block).into_iter().zip(&mut lines.0) {
                vector.store(line.as_mut_ptr().cast::<u8>().add(square * V::BYTES));
            }
        }
        for (line, at) in lines.0.iter().zip(columns.at).take(columns.present) {
            let to = at.wrapping_add(offset);
            let line = line.as_ptr().cast::<u8>();
            if WHOLE && !(past_caches && to.addr() % 16 == 0) {
                copy::<V>(line, to, LINE);
            } else if WHOLE {
                for at in (0..LINE).step_by(V::BYTES) {
                    V::load(line.add(at)).stream(to.add(at));
                }
            } else {
                short_line::<V>(line, to, rows * U, past_caches);
            }
        }
    }
}

/// What lies before the first whole line of each run of columns that [`cross`] goes through.
///
/// # Safety
/// As for [`one`].
#[inline(always)]
unsafe fn first_pieces<const U: usize>(source: *const u8, destination: *mut u8, grid: &Grid, rows: usize) {
    for column in (0..grid.columns).step_by(grid.column_run) {
        for row in 0..rows {
            let from = source.wrapping_add(row * grid.pitch + column * U);
            // SAFETY: row and column are inside the grid.
            unsafe { copy_short(from, destination.wrapping_add(grid.column(column) + row * U), U) };
        }
    }
}

/// The lines of up to `N` columns in which one run of rows ends and that of the next column begins.
///
/// # Safety
/// As for [`one`], with [`Grid::columns_follow`]; `row` is less than a line from the end of its run, and the columns are in the grid.
#[inline(always)]
unsafe fn cross<V: Vector, const U: usize, const N: usize>(
    source: *const u8,
    grid: &Grid,
    (row, column): (usize, usize),
    columns: &Columns<N>,
) {
    let tail = grid.row_run - row % grid.row_run;
    let run = row - row % grid.row_run;
    let offset = grid.row(row);
    let run_end = run + grid.row_run;
    let at = |row: usize, column: usize| source.wrapping_add(row * grid.pitch + column * U);
    // SAFETY: rows and columns are inside the grid. The last of a run of columns is followed by the first in the next run of rows:
    // those are read to the left of `column`, which is inside the row or, from a whole run of rows on, at least inside the source.
    unsafe {
        if columns.present == N && column + N < grid.columns && run_end < grid.rows {
            // Ones for the last columns of their runs.
            let mut last = [0; LINE];
            let mut lane = grid.column_run - 1 - column % grid.column_run;
            while lane < N {
                last[lane * U..][..U].fill(0xff);
                lane += grid.column_run;
            }
            let last = V::load(last.as_ptr());
            let same = at(run, column + 1);
            let next = at(run_end, column).wrapping_sub((grid.column_run - 1) * U);
            let rows = core::array::from_fn(|i| {
                if i < tail {
                    V::load(at(row + i, column))
                } else {
                    let head = (i - tail) * grid.pitch;
                    let (same, next) = (V::load(same.wrapping_add(head)), V::load(next.wrapping_add(head)));
                    same.xor(same.xor(next).and(last))
                }
            });
            for (vector, to) in transpose::<V, U, N>(rows).into_iter().zip(columns.at) {
                vector.stream(to.wrapping_add(offset));
            }
            return;
        }
        for (k, to) in columns.at.iter().enumerate().take(columns.present) {
            let to = to.wrapping_add(offset);
            for i in 0..tail {
                copy_short(at(row + i, column + k), to.wrapping_add(i * U), U);
            }
            let (head, follower) = match (column + k + 1) % grid.column_run {
                0 => (run_end, column + k + 1 - grid.column_run),
                _ => (run, column + k + 1),
            };
            if head < grid.rows {
                for i in 0..LINE / U - tail {
                    copy_short(at(head + i, follower), to.wrapping_add((tail + i) * U), U);
                }
            }
        }
    }
}

/// Writes part of a line: past the caches in pieces of 16 bytes where they fit.
#[inline(always)]
unsafe fn short_line<V: Vector>(line: *const u8, to: *mut u8, bytes: usize, past_caches: bool) {
    // SAFETY: `bytes` bytes are valid on both sides.
    unsafe {
        if past_caches && (to.addr() | bytes).is_multiple_of(16) {
            for at in (0..bytes).step_by(16) {
                V::stream_16(line.add(at), to.add(at));
            }
        } else {
            copy::<V>(line, to, bytes);
        }
    }
}
