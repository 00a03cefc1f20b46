//! Transposes: [squares](super::square) taken in blocks that read long runs of the source and write whole lines.

use super::{
    Body, Job, Stream,
    ahead::Ahead,
    cross::Crossing,
    grid::{Columns, Grid, Piece, Places, Side, Strip},
    repeat,
    sink::Sink,
    square::{LINE, Scratch, Square, column_part, square, stage, turn},
    vector::{Vector, short_line},
};
use core::mem::MaybeUninit;

/// Lines of each column that are written together.
const LINES: usize = 4;

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
        unsafe { one::<V, U, K, N>(from, to, &grid, &mut scratch, (S::STREAMS, stream.tuning.strip)) }
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
        let strip = stream.tuning.columns_strip / U;
        repeat!(job, |from, to| {
            sink.seek(to);
            let skew = if S::STREAMS { skew::<V, U>(from, &grid.rows) } else { 0 };
            let (mut column, mut end) = (0, 0);
            let mut later = Later::new(from, grid.rows.places(grid.rows.source, 0), 0, 0);
            while column < grid.columns.count {
                if column >= end && strip != 0 {
                    end = if column == 0 { first_strip(from, U, strip, (skew, wide)) } else { end + strip };
                    let bytes = strip.min(grid.columns.count.saturating_sub(end)) * U;
                    later = Later::new(from.wrapping_add(end * U), grid.rows.places(grid.rows.source, 0), count, bytes);
                }
                let wanted = if column == 0 && skew != 0 { skew } else { wide };
                let present = wanted.min(grid.columns.count - column);
                let at = from.wrapping_add(column * U);
                if S::STREAMS {
                    later.read::<V>(count * V::BYTES / LINE);
                }
                for row in (0..count).step_by(deep) {
                    let present_rows = deep.min(count - row);
                    let mut rows = [at; LINE];
                    for (i, place) in rows.iter_mut().enumerate().take(present_rows) {
                        *place = at.wrapping_add((row + i) * pitch);
                        if S::STREAMS && strip == 0 {
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
    (past_caches, strip): (bool, usize),
) {
    /// Source bytes of one row that are read together, at least.
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
    let usual = (STRIP / U).max(wide).max(strip);
    let crosses = past_caches && V::BYTES == LINE && phase != 0 && columns.count >= wide && grid.columns_follow();
    let mut crossing = crosses.then(|| Crossing::new(grid, phase, 2 * usual));
    let run = rows.run.min(rows.count);
    // Only one run at a time ends.
    let lines = if crosses { LINES.min(run / deep) } else { LINES };
    let start = crossing.as_ref().map_or(0, |crossing| crossing.head);

    let mut pieces: [Piece; LINES] = core::array::from_fn(|_| Piece { row: 0, count: 0, rows: [source; LINE] });
    let mut places =
        Columns { at: [destination; LINE], first: 0, present: 0, in_lines: columns.is_in_lines(columns.destination) };
    let mut first = 0;
    while first < columns.count {
        let end = if first == 0 && shift { first_strip(source, U, usual, (skew, wide)) } else { first + usual };
        let end = if columns.count < end + usual / 2 { columns.count } else { end };
        let strip = Strip { first, end, wide, skew };
        if let Some(crossing) = &mut crossing {
            // SAFETY: passed on.
            unsafe { crossing.begin::<V, U, K, N>((source, destination), grid, &strip, scratch) };
        }
        let mut row = start;
        while row < rows.count {
            // A few lines of each column.
            let mut below = row;
            let mut next = rows.places(rows.source, row);
            for piece in &mut pieces[..lines] {
                piece.row = below;
                piece.count = match crosses {
                    _ if below >= rows.count => 0,
                    true => deep.min(rows.count - below),
                    false => grid.piece(below, phase),
                };
                for at in piece.rows.iter_mut().take(piece.count) {
                    *at = source.wrapping_add(next.next());
                }
                below += piece.count;
            }
            // Below, or at the top of the next strip.
            let (later_rows, later_columns) = if below < rows.count {
                ((next, rows.count - below), (first, strip.end))
            } else {
                ((rows.places(rows.source, 0), rows.count), (strip.end, columns.count.min(strip.end + usual)))
            };
            let mut later = Later::new(
                source.wrapping_add(later_columns.0 * U),
                later_rows.0,
                later_rows.1.min(below - row),
                (later_columns.1 - later_columns.0) * U,
            );
            let mut next_column = columns.places(columns.destination, first);
            let mut column = strip.first;
            while column < strip.end {
                let present = strip.group(column);
                (places.first, places.present) = (column, present);
                for at in places.at.iter_mut().take(present) {
                    *at = destination.wrapping_add(next_column.next());
                }
                // SAFETY: a prefetch may name any address; rows and columns of the pieces are inside the grid.
                unsafe {
                    for piece in pieces.iter().filter(|piece| piece.count > 0) {
                        if past_caches {
                            later.read::<V>(piece.count * V::BYTES / LINE);
                        }
                        match &mut crossing {
                            Some(crossing) if piece.row % run + deep > run => {
                                crossing.cross::<V, U, K, N>(piece, &places, grid, &strip, scratch);
                            }
                            _ => {
                                let offset = rows.place(rows.destination, piece.row);
                                line::<V, U, K, N>(piece, &places, offset, scratch, past_caches);
                            }
                        }
                    }
                }
                column += present;
            }
            if let Some(crossing) = &mut crossing {
                for piece in pieces.iter().filter(|piece| piece.count > 0 && piece.row % run + deep > run) {
                    // SAFETY: as above.
                    unsafe { crossing.cross_down::<V, U>(piece, destination, grid, &strip) };
                }
            }
            row = below;
        }
        first = strip.end;
    }
}

/// The end of the first strip: where a page may end too, since the CPU reads ahead inside of pages. What comes after the first `skew`
/// columns is a multiple of a vector.
fn first_strip(source: *const u8, unit: usize, strip: usize, (skew, wide): (usize, usize)) -> usize {
    let end = strip - source.addr() / unit % strip;
    let end = if end < strip / 2 { end + strip } else { end };
    end - (end - skew) % wide
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
    fn new(source: *const u8, rows: Places, count: usize, bytes: usize) -> Self {
        Self { source, rows, left: count, bytes, row: source, done: usize::MAX }
    }

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
