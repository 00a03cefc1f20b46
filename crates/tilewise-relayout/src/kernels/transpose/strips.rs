//! Any transpose, in strips of columns.

use super::{
    first_strip,
    grid::{Columns, Grid, Piece, Strip},
    micro_kernel::{LINE, Scratch, column_vector, stage_short_rows, transpose_in_registers, transpose_lanes_to},
    straddle::Straddle,
    strip_prefetch::StripPrefetch,
    unaligned_columns,
};
use crate::{
    kernels::vector::{Vector, short_line},
    tuning::{Mechanism, Tuning},
};

/// Lines of each column that are written together.
const LINES: usize = 4;

/// *Safety*: the [job contract](crate::kernels); both addresses are where the grid begins.
#[inline(always)]
pub(super) unsafe fn transpose<V: Vector, const U: usize, const K: usize, const N: usize>(
    source: *const u8,
    destination: *mut u8,
    grid: &Grid,
    scratch: &mut Scratch,
    non_temporal: bool,
    tuning: &Tuning,
) {
    /// Source bytes of one row that are read together, at least.
    const STRIP: usize = 1024;
    /// Least blocks on either side for which it pays to do those at the edges in pieces.
    const MANY: usize = 8;
    let prefetches = non_temporal && tuning.has(Mechanism::StripPrefetch);
    let Grid { rows, columns, .. } = grid;
    let (wide, deep) = (N, LINE / U);
    // Start blocks on lines, of the destination by rows and of the source by columns, where that leaves enough of them whole.
    let enough = non_temporal || (rows.count >= MANY * deep && columns.count >= MANY * wide);
    let shift = enough && destination.addr().is_multiple_of(U);
    let phase = if shift && columns.is_in_lines(columns.destination_stride) { destination.addr() % LINE } else { 0 };
    let unaligned = if shift { unaligned_columns::<V, U>(source, rows) } else { 0 };
    let usual = (STRIP / U).max(wide).max(tuning.strip_units);
    let straddles = tuning.has(Mechanism::StraddlingColumns)
        && non_temporal
        && V::BYTES == LINE
        && phase != 0
        && columns.count >= wide
        && grid.columns_follow();
    let mut straddle = straddles.then(|| Straddle::new(grid, phase, 2 * usual));
    let run = rows.run.min(rows.count);
    // Only one run at a time ends.
    let lines = if straddles { LINES.min(run / deep) } else { LINES };
    let start = straddle.as_ref().map_or(0, |straddle| straddle.head);

    let mut pieces: [Piece; LINES] = core::array::from_fn(|_| Piece { row: 0, count: 0, rows: [source; LINE] });
    let mut places = Columns {
        at: [destination; LINE],
        first: 0,
        present: 0,
        in_lines: columns.is_in_lines(columns.destination_stride),
    };
    let mut first = 0;
    while first < columns.count {
        let end = if first == 0 && shift { first_strip(source, U, usual, (unaligned, wide)) } else { first + usual };
        let end = if columns.count < end + usual / 2 { columns.count } else { end };
        let strip = Strip { first, end, wide, unaligned };
        if let Some(straddle) = &mut straddle {
            // SAFETY: the job contract; the strip is in the grid, whose columns are enough for a vector.
            unsafe { straddle.begin::<V, U, K, N>((source, destination), grid, &strip, scratch) };
        }
        let mut row = start;
        while row < rows.count {
            // A few lines of each column.
            let mut below = row;
            let mut next = rows.places(rows.source_stride, row);
            for piece in &mut pieces[..lines] {
                piece.row = below;
                piece.count = match straddles {
                    _ if below >= rows.count => 0,
                    true => deep.min(rows.count - below),
                    false => grid.piece(below, phase),
                };
                for at in piece.rows.iter_mut().take(piece.count) {
                    *at = source.wrapping_add(next.next());
                }
                below += piece.count;
            }
            // The next reads: below, or at the top of the next strip.
            let (later_rows, later_columns) = if below < rows.count {
                ((next, rows.count - below), (first, strip.end))
            } else {
                ((rows.places(rows.source_stride, 0), rows.count), (strip.end, columns.count.min(strip.end + usual)))
            };
            let mut later = StripPrefetch::new(
                source.wrapping_add(later_columns.0 * U),
                later_rows.0,
                later_rows.1.min(below - row),
                (later_columns.1 - later_columns.0) * U,
            );
            let mut next_column = columns.places(columns.destination_stride, first);
            let mut column = strip.first;
            while column < strip.end {
                let present = strip.group(column);
                (places.first, places.present) = (column, present);
                for at in places.at.iter_mut().take(present) {
                    *at = destination.wrapping_add(next_column.next());
                }
                // SAFETY: the job contract; rows and columns of the pieces are inside the grid.
                unsafe {
                    for piece in pieces.iter().filter(|piece| piece.count > 0) {
                        if prefetches {
                            later.read::<V>(piece.count * V::BYTES / LINE);
                        }
                        match &mut straddle {
                            Some(straddle) if piece.row % run + deep > run => {
                                straddle.write::<V, U, K, N>(piece, &places, grid, &strip, scratch);
                            }
                            _ => {
                                let offset = rows.place(rows.destination_stride, piece.row);
                                line::<V, U, K, N>(piece, &places, offset, scratch, non_temporal);
                            }
                        }
                    }
                }
                column += present;
            }
            if let Some(straddle) = &mut straddle {
                for piece in pieces.iter().filter(|piece| piece.count > 0 && piece.row % run + deep > run) {
                    // SAFETY: the job contract; all groups of the strip were written with this piece.
                    unsafe { straddle.write_run_ends::<V, U>(piece, destination, grid, &strip) };
                }
            }
            row = below;
        }
        first = strip.end;
    }
}

/// Writes one line, or less, of each of a few columns.
/// *Safety*: rows and columns are inside the grid; `offset` bytes into each column are those rows.
#[inline(always)]
unsafe fn line<V: Vector, const U: usize, const K: usize, const N: usize>(
    piece: &Piece,
    columns: &Columns,
    offset: usize,
    scratch: &mut Scratch,
    non_temporal: bool,
) {
    let (wide, deep) = (N, LINE / U);
    let lanes = scratch.lanes.0.as_mut_ptr();
    let skip = columns.first * U;
    // SAFETY: whole vectors are read only where all columns are, whole lines written only where all rows are.
    unsafe {
        if columns.present == wide && piece.count == deep {
            let aligned = columns.in_lines && columns.at[0].wrapping_add(offset).addr().is_multiple_of(LINE);
            if V::BYTES == LINE && U >= 4 && (aligned || !non_temporal) {
                let lines = transpose_in_registers::<V, U, K, N>(&piece.rows, skip);
                for (line, at) in lines.into_iter().zip(&columns.at) {
                    let to = at.wrapping_add(offset);
                    if non_temporal { line.store_non_temporal_aligned(to) } else { line.store(to) }
                }
                return;
            }
            transpose_lanes_to::<V, U, K>(&piece.rows, skip, LINE / 16, lanes);
            for (column, at) in columns.at.iter().enumerate().take(wide) {
                let to = at.wrapping_add(offset);
                for part in 0..LINE / V::BYTES {
                    let (vector, to) = (column_vector::<V, K>(lanes, column, part), to.wrapping_add(part * V::BYTES));
                    if non_temporal {
                        vector.store_non_temporal_or_plain(to);
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
            stage_short_rows(&mut rows, piece.count, columns.present * U, skip, &mut scratch.staged);
            0
        };
        transpose_lanes_to::<V, U, K>(&rows, skip, piece.count.div_ceil(K), lanes);
        for (column, at) in columns.at.iter().enumerate().take(columns.present) {
            let mut line = [0; LINE];
            for part in 0..LINE / V::BYTES {
                column_vector::<V, K>(lanes, column, part).store(line.as_mut_ptr().add(part * V::BYTES));
            }
            short_line::<V>(line.as_ptr(), at.wrapping_add(offset), piece.count * U, non_temporal);
        }
    }
}
