//! Transposes: [squares](super::square) taken in blocks that read long runs of the source and write whole lines.

use super::{
    Body, Job, Stream,
    ahead::Ahead,
    repeat,
    sink::Sink,
    square::{LINE, Rows, Scratch, Square, column_part, square, stage, turn},
    vector::{Vector, copy, copy_short},
};
use core::mem::MaybeUninit;

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
    pub(crate) source: Stride,
    pub(crate) destination: Stride,
}

/// Bytes from a unit to the next, and from a run to the next.
#[derive(Clone, Copy)]
pub(crate) struct Stride {
    pub(crate) step: usize,
    pub(crate) jump: usize,
}

impl Side {
    fn place(&self, stride: Stride, at: usize) -> usize {
        at / self.run * stride.jump + at % self.run * stride.step
    }

    fn places(&self, stride: Stride, at: usize) -> Places {
        let (start, inside) = (at / self.run * stride.jump, at % self.run);
        Places { stride, run: self.run, start, place: start + inside * stride.step, left: self.run - inside }
    }

    fn has_one_run(&self) -> bool {
        self.count <= self.run
    }

    /// Whether all places are a multiple of lines apart.
    fn is_in_lines(&self, stride: Stride) -> bool {
        (stride.step.is_multiple_of(LINE) || self.run == 1) && (stride.jump.is_multiple_of(LINE) || self.has_one_run())
    }
}

/// The places of neighbouring units of a [`Side`], one after the other.
struct Places {
    stride: Stride,
    run: usize,
    start: usize,
    place: usize,
    left: usize,
}

impl Places {
    #[inline(always)]
    fn next(&mut self) -> usize {
        let place = self.place;
        (self.place, self.left) = (place + self.stride.step, self.left - 1);
        if self.left == 0 {
            self.start += self.stride.jump;
            (self.place, self.left) = (self.start, self.run);
        }
        place
    }
}

/// Lines of each column that are written together.
const LINES: usize = 4;

impl Grid {
    /// Whether each column follows the one before it in the destination.
    fn is_linear(&self) -> bool {
        self.rows.has_one_run()
            && self.columns.has_one_run()
            && self.columns.destination.step == self.rows.count * self.unit
    }

    /// Whether runs of rows follow each other in the destination.
    fn rows_follow(&self) -> bool {
        self.rows.has_one_run() || self.rows.destination.jump == self.rows.run * self.unit
    }

    /// Whether the runs of neighbouring columns follow each other in the destination without a gap, and all of them are whole.
    fn columns_follow(&self) -> bool {
        let (rows, columns) = (&self.rows, &self.columns);
        (rows.run * self.unit).is_multiple_of(LINE)
            && columns.destination.step == rows.run * self.unit
            && rows.destination.jump == columns.run * columns.destination.step
            && rows.count.is_multiple_of(rows.run)
            && columns.count.is_multiple_of(columns.run)
            && rows.count > rows.run
            && rows.source.jump == rows.run * rows.source.step
            && rows.source.jump >= columns.run * self.unit
    }

    /// The rows from one on that make (at most) one line of each column.
    fn piece(&self, row: usize, phase: usize) -> usize {
        let rows = &self.rows;
        let to_line = (LINE - (phase + rows.place(rows.destination, row)) % LINE).div_ceil(self.unit);
        let run = if self.rows_follow() { rows.count } else { rows.run - row % rows.run };
        to_line.min(run).min(rows.count - row)
    }
}

/// # Safety
/// As for [`super::run`]; `K` units of `U` bytes make a lane, and `N` a vector.
#[inline(always)]
pub(super) unsafe fn blocks<V: Vector, S: Sink<V>, const U: usize, const K: usize, const N: usize>(
    job: &Job,
    stream: &mut Stream,
) {
    let Body::Blocks(grid) = job.body else { return };
    let whole_lines = grid.rows.count.is_multiple_of(LINE / U);
    if grid.is_linear() && grid.rows.count <= MOST_ROWS && (S::STREAMS || !whole_lines) {
        // SAFETY: passed on.
        unsafe { linear::<V, S, U, K, N>(job, stream, &grid) };
        return;
    }
    let mut scratch = Scratch { staged: Square::new(), turned: Square::new() };
    repeat!(job, |from, to| {
        // SAFETY: passed on.
        unsafe { one::<V, U, K, N>(from, to, &grid, &mut scratch, S::STREAMS) }
    });
}

/// Rows that [`linear`] has room for.
const MOST_ROWS: usize = 256;

/// Columns that follow each other in the destination leave in one piece.
#[inline(always)]
unsafe fn linear<V: Vector, S: Sink<V>, const U: usize, const K: usize, const N: usize>(
    job: &Job,
    stream: &mut Stream,
    grid: &Grid,
) {
    #[repr(align(64))]
    struct Squares([MaybeUninit<u8>; MOST_ROWS * LINE]);
    let mut squares = Squares([MaybeUninit::uninit(); MOST_ROWS * LINE]);
    let squares = squares.0.as_mut_ptr().cast::<u8>();
    let mut staged = Square::new();
    let (wide, deep) = (N, LINE / U);
    let (pitch, count) = (grid.rows.source.step, grid.rows.count);
    // SAFETY: rows and columns are inside the grid; the squares are read where they were written, the last one also where not all
    // rows are there.
    unsafe {
        if !count.is_multiple_of(deep) {
            squares.add(count / deep * deep * V::BYTES).write_bytes(0, deep * V::BYTES);
        }
        let mut sink = S::resume(stream);
        repeat!(job, |from, to| {
            sink.seek(to);
            let skew = if S::STREAMS { skew::<V, U>(from, &grid.rows) } else { 0 };
            let mut column = 0;
            while column < grid.columns.count {
                let wanted = if column == 0 && skew != 0 { skew } else { wide };
                let present = wanted.min(grid.columns.count - column);
                let at = from.wrapping_add(column * U);
                for row in (0..count).step_by(deep) {
                    let present_rows = deep.min(count - row);
                    let mut rows = [at; LINE];
                    for (i, place) in rows.iter_mut().enumerate().take(present_rows) {
                        *place = at.wrapping_add((row + i) * pitch);
                        if S::STREAMS {
                            V::prefetch::<false>(place.wrapping_add(AHEAD));
                        }
                    }
                    if present < wide {
                        stage(&mut rows, present_rows, present * U, 0, &mut staged);
                    }
                    turn::<V, U, K>(&rows, 0, present_rows.div_ceil(K), squares.add(row * V::BYTES));
                }
                for column in 0..present {
                    for row in (0..count).step_by(deep) {
                        let square = squares.add(row * V::BYTES);
                        let mut rest = deep.min(count - row) * U;
                        for part in 0..rest.div_ceil(V::BYTES) {
                            let vector = column_part::<V, K>(square, column, part);
                            if rest >= V::BYTES {
                                sink.push(vector);
                                rest -= V::BYTES;
                            } else {
                                let mut short = [0; LINE];
                                vector.store(short.as_mut_ptr());
                                sink.copy(short.as_ptr(), rest, &mut Ahead::nothing());
                            }
                        }
                    }
                }
                column += present;
            }
        });
        sink.save(stream);
    }
}

/// How far a row is read ahead of use.
const AHEAD: usize = 1024;

/// The columns before the first that lies on a line in all rows; 0 if there is none.
fn skew<V: Vector, const U: usize>(source: *const u8, rows: &Side) -> usize {
    let possible = rows.is_in_lines(rows.source) && source.addr().is_multiple_of(U);
    if possible { source.addr().wrapping_neg() % LINE / U % (V::BYTES / U) } else { 0 }
}

/// # Safety
/// As for [`super::run`]; both addresses are where the grid begins.
#[inline(always)]
unsafe fn one<V: Vector, const U: usize, const K: usize, const N: usize>(
    source: *const u8,
    destination: *mut u8,
    grid: &Grid,
    scratch: &mut Scratch,
    past_caches: bool,
) {
    /// Source bytes of one row that are read together.
    const STRIP: usize = 1024;
    /// So many squares on either side are worth it that those at the edges are done in pieces.
    const MANY: usize = 8;
    let Grid { rows, columns, .. } = grid;
    let (wide, deep) = (N, LINE / U);
    // Start squares on lines, of the destination by rows and of the source by columns, where that leaves enough of them whole.
    let enough = past_caches || (rows.count >= MANY * deep && columns.count >= MANY * wide);
    let shift = enough && destination.addr().is_multiple_of(U);
    let phase = if shift && columns.is_in_lines(columns.destination) { destination.addr() % LINE } else { 0 };
    let skew = if shift { skew::<V, U>(source, rows) } else { 0 };
    let strip = (STRIP / U).max(wide);
    let crosses = past_caches && V::BYTES == LINE && phase != 0 && grid.columns_follow();
    let start = if crosses { (LINE - phase) / U } else { 0 };
    if crosses {
        // SAFETY: passed on.
        unsafe { first_pieces::<U>(source, destination, grid, start) };
    }

    let mut pieces: [Piece; LINES] = core::array::from_fn(|_| Piece { row: 0, count: 0, rows: [source; LINE] });
    let mut places =
        Columns { at: [destination; LINE], first: 0, present: 0, in_lines: columns.is_in_lines(columns.destination) };
    let mut first = 0;
    while first < columns.count {
        let strip_end = if first == 0 { strip + skew } else { first + strip }.min(columns.count);
        let mut row = start;
        while row < rows.count {
            // A few lines of each column.
            let mut end = row;
            let mut next = rows.places(rows.source, row);
            for piece in &mut pieces {
                piece.row = end;
                piece.count = match crosses {
                    _ if end >= rows.count => 0,
                    true => deep.min(rows.count - end),
                    false => grid.piece(end, phase),
                };
                for at in piece.rows.iter_mut().take(piece.count) {
                    *at = source.wrapping_add(next.next());
                }
                end += piece.count;
            }
            let taken = (end - row).min(rows.count - end);
            let strip_start = source.wrapping_add(first * U);
            let mut later = Later {
                source: strip_start,
                rows: next,
                left: taken,
                bytes: (strip_end - first) * U,
                row: strip_start,
                done: usize::MAX,
            };
            let mut next_column = columns.places(columns.destination, first);
            let mut column = first;
            while column < strip_end {
                let wanted = if column == 0 && skew != 0 { skew } else { wide };
                places.first = column;
                places.present = wanted.min(strip_end - column);
                for at in places.at.iter_mut().take(places.present) {
                    *at = destination.wrapping_add(next_column.next());
                }
                // SAFETY: a prefetch may name any address; rows and columns of the pieces are inside the grid.
                unsafe {
                    for piece in pieces.iter().filter(|piece| piece.count > 0) {
                        if past_caches {
                            later.read::<V>(piece.count * V::BYTES / LINE);
                        }
                        if crosses && piece.row % rows.run + deep > rows.run {
                            cross::<V, U, K, N>(source, grid, piece.row, &places, scratch);
                        } else {
                            let offset = rows.place(rows.destination, piece.row);
                            line::<V, U, K, N>(piece, &places, offset, scratch, past_caches);
                        }
                    }
                }
                column += places.present;
            }
            row = end;
        }
        first = strip_end;
    }
}

/// Rows that make a line of each column, or less.
struct Piece {
    row: usize,
    count: usize,
    rows: Rows,
}

/// Neighbouring columns: the first, how many there are, and where they lie in the destination.
struct Columns {
    first: usize,
    present: usize,
    at: [*mut u8; LINE],
    /// Whether they are whole lines apart.
    in_lines: bool,
}

/// What is read after this block: rows of a strip, one after the other.
struct Later {
    source: *const u8,
    rows: Places,
    left: usize,
    /// Bytes of each row.
    bytes: usize,
    /// Where the row is, and how much of it has been asked for.
    row: *const u8,
    done: usize,
}

impl Later {
    /// Asks for the next lines.
    ///
    /// # Safety
    /// `V` is available.
    #[inline(always)]
    unsafe fn read<V: Vector>(&mut self, lines: usize) {
        for _ in 0..lines {
            if self.done >= self.bytes {
                if self.left == 0 {
                    return;
                }
                (self.left, self.done) = (self.left - 1, 0);
                self.row = self.source.wrapping_add(self.rows.next());
            }
            // SAFETY: a prefetch may name any address.
            unsafe { V::prefetch::<false>(self.row.wrapping_add(self.done)) };
            self.done += LINE;
        }
    }
}

/// One line, or less, of each of a few columns.
///
/// # Safety
/// Rows and columns are inside the grid; `offset` bytes into each column are those rows.
#[inline(always)]
unsafe fn line<V: Vector, const U: usize, const K: usize, const N: usize>(
    piece: &Piece,
    columns: &Columns,
    offset: usize,
    scratch: &mut Scratch,
    past_caches: bool,
) {
    let (wide, deep) = (N, LINE / U);
    let turned = scratch.turned.0.as_mut_ptr();
    let skip = columns.first * U;
    // SAFETY: whole vectors are read only where all columns are, whole lines written only where all rows are.
    unsafe {
        if columns.present == wide && piece.count == deep {
            let aligned = columns.in_lines && columns.at[0].wrapping_add(offset).addr().is_multiple_of(LINE);
            if V::BYTES == LINE && U >= 4 && (aligned || !past_caches) {
                let lines = square::<V, U, K, N>(&piece.rows, skip);
                for (line, at) in lines.into_iter().zip(&columns.at) {
                    let to = at.wrapping_add(offset);
                    if past_caches { line.stream_aligned(to) } else { line.store(to) }
                }
                return;
            }
            turn::<V, U, K>(&piece.rows, skip, LINE / 16, turned);
            for (column, at) in columns.at.iter().enumerate().take(wide) {
                let to = at.wrapping_add(offset);
                for part in 0..LINE / V::BYTES {
                    let (vector, to) = (column_part::<V, K>(turned, column, part), to.wrapping_add(part * V::BYTES));
                    if past_caches {
                        vector.stream_or_store(to);
                    } else {
                        vector.store(to);
                    }
                }
            }
            return;
        }
        let mut rows = piece.rows;
        let skip = if columns.present == wide {
            let first = rows[0];
            rows[piece.count..].fill(first);
            skip
        } else {
            stage(&mut rows, piece.count, columns.present * U, skip, &mut scratch.staged);
            0
        };
        turn::<V, U, K>(&rows, skip, piece.count.div_ceil(K), turned);
        for (column, at) in columns.at.iter().enumerate().take(columns.present) {
            let mut line = [0; LINE];
            for part in 0..LINE / V::BYTES {
                column_part::<V, K>(turned, column, part).store(line.as_mut_ptr().add(part * V::BYTES));
            }
            short_line::<V>(line.as_ptr(), at.wrapping_add(offset), piece.count * U, past_caches);
        }
    }
}

/// What lies before the first whole line of each run of columns that [`cross`] goes through.
///
/// # Safety
/// As for [`one`].
#[inline(always)]
unsafe fn first_pieces<const U: usize>(source: *const u8, destination: *mut u8, grid: &Grid, count: usize) {
    let Grid { rows, columns, .. } = grid;
    for column in (0..columns.count).step_by(columns.run) {
        for row in 0..count {
            let from = source.wrapping_add(row * rows.source.step + column * U);
            let to = destination.wrapping_add(columns.place(columns.destination, column) + row * U);
            // SAFETY: row and column are inside the grid.
            unsafe { copy_short(from, to, U) };
        }
    }
}

/// The lines of a few columns in which one run of rows ends and that of the next column begins.
///
/// # Safety
/// As for [`one`], with [`Grid::columns_follow`]; `row` is less than a line from the end of its run, and the columns are in the grid.
#[inline(always)]
unsafe fn cross<V: Vector, const U: usize, const K: usize, const N: usize>(
    source: *const u8,
    grid: &Grid,
    row: usize,
    columns: &Columns,
    scratch: &mut Scratch,
) {
    let (rows, run_of_columns) = (&grid.rows, grid.columns.run);
    let (wide, column) = (N, columns.first);
    let tail = rows.run - row % rows.run;
    let run = row - row % rows.run;
    let offset = rows.place(rows.destination, row);
    let run_end = run + rows.run;
    let at = |row: usize, column: usize| source.wrapping_add(row * rows.source.step + column * U);
    // SAFETY: rows and columns are inside the grid. The last of a run of columns is followed by the first in the next run of rows:
    // those are read to the left of `column`, which is inside the row or, from a whole run of rows on, at least inside the source.
    unsafe {
        if columns.present == wide && column + wide < grid.columns.count && run_end < rows.count {
            // Ones for the last columns of their runs.
            let mut last = [0; LINE];
            let mut lane = run_of_columns - 1 - column % run_of_columns;
            while lane < wide {
                last[lane * U..][..U].fill(0xff);
                lane += run_of_columns;
            }
            let last = V::load(last.as_ptr());
            let same = at(run, column + 1);
            let next = at(run_end, column).wrapping_sub((run_of_columns - 1) * U);
            let staged = scratch.staged.0.as_mut_ptr();
            let mut pieces: Rows = [staged.cast_const(); LINE];
            for (i, piece) in pieces.iter_mut().enumerate().take(LINE / U) {
                if i < tail {
                    *piece = at(row + i, column);
                } else {
                    let head = (i - tail) * rows.source.step;
                    let (same, next) = (V::load(same.wrapping_add(head)), V::load(next.wrapping_add(head)));
                    let joined = staged.add(i * LINE);
                    same.xor(same.xor(next).and(last)).store(joined);
                    *piece = joined;
                }
            }
            let turned = scratch.turned.0.as_mut_ptr();
            turn::<V, U, K>(&pieces, 0, LINE / 16, turned);
            for (column, to) in columns.at.iter().enumerate().take(wide) {
                column_part::<V, K>(turned, column, 0).stream(to.wrapping_add(offset));
            }
            return;
        }
        for (k, to) in columns.at.iter().enumerate().take(columns.present) {
            let to = to.wrapping_add(offset);
            for i in 0..tail {
                copy_short(at(row + i, column + k), to.wrapping_add(i * U), U);
            }
            let (head, follower) = match (column + k + 1) % run_of_columns {
                0 => (run_end, column + k + 1 - run_of_columns),
                _ => (run, column + k + 1),
            };
            if head < rows.count {
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
