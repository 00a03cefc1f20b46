//! Compares two buffers element by element at the offsets of the core, independently of loops and kernels.

use crate::{
    Error, Plan,
    exec::MOST_THREADS,
    plan::length_mismatch,
    scalar::{Elements, get, mask},
    size::size,
};
use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
};
use tilewise::Tiled;

impl Plan {
    /// The index of an element that the destination does not hold as the plan writes it; `None` if it holds all.
    ///
    /// Elements are found by [`Tiled::fill_offsets`] and compared one by one, so the answer does not depend on the
    /// engine. Between different element sizes the source's low bits count, as many as the type has, and in a wider
    /// element their extension. Padding is ignored. The array is walked in boxes of up to 65536 elements along the
    /// source's memory; if several elements differ, the result is one in the first such box. `done` is called with the
    /// number of elements of each box without a difference, from any of the `threads`.
    ///
    /// # Errors
    /// [`ErrorKind::BufferLengthMismatch`](crate::ErrorKind::BufferLengthMismatch), as for [`run`](Plan::run).
    ///
    /// ```
    /// use tilewise_relayout::Plan;
    ///
    /// let plan = Plan::new(&"s8[2,3]{1,0}".parse()?, &"s8[2,3]{1,0:T(2,2)}".parse()?)?;
    /// let source = [1, 2, 3, 4, 5, 6];
    /// let mut destination = [0; 8];
    /// plan.run(&source, &mut destination)?;
    /// assert_eq!(plan.find_difference(&source, &destination, 1, |_| ())?, None);
    /// destination[4] = 7;
    /// assert_eq!(plan.find_difference(&source, &destination, 1, |_| ())?, Some(vec![0, 2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find_difference(
        &self,
        source: &[u8],
        destination: &[u8],
        threads: usize,
        done: impl Fn(u64) + Sync,
    ) -> Result<Option<Vec<u64>>, Error> {
        let buffers = [("source", source, self.source_bytes()), ("destination", destination, self.destination_bytes())];
        for (which, buffer, bytes) in buffers {
            if u64::try_from(buffer.len()) != Ok(bytes) {
                return Err(length_mismatch(which, buffer.len(), bytes));
            }
        }
        let comparison = Comparison::new(&self.tiled, self.elements);
        let (next, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        let found: Mutex<Vec<Found>> = Mutex::default();
        let work = || {
            while !ended.load(Relaxed) {
                // Boxes are taken in order and each is finished, so the first that differs is among those found.
                let number = next.fetch_add(1, Relaxed);
                let Some(bounds) = comparison.bounds_of(number) else { return };
                if bounds.iter().any(Range::is_empty) {
                    continue;
                }
                match comparison.difference_in(&bounds, [source, destination]).transpose() {
                    None => done(bounds.iter().map(|range| range.end - range.start).product()),
                    Some(difference) => {
                        ended.store(true, Relaxed);
                        found.lock().unwrap_or_else(PoisonError::into_inner).push((number, difference));
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads.min(MOST_THREADS) {
                // If the system has no more threads, the existing ones do all the work.
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.into_iter().min_by_key(|(number, _)| *number).map(|(_, difference)| difference).transpose()
    }
}

/// A box's number, and the index of a difference there.
type Found = (u64, Result<Vec<u64>, Error>);

/// Elements of a box, at most: its tables of offsets stay in the nearest caches.
const BOX: u64 = 1 << 16;

/// Bits that consecutive boxes read at a stretch in either buffer, before they go elsewhere: mapped files larger than
/// memory are read in such pieces.
const STRETCH: u64 = 8 << 16;

/// Two layouts of one array, and how the array is cut into boxes, and these grouped.
struct Comparison<'a> {
    sides: &'a [Tiled; 2],
    elements: Elements,
    /// The dimension along which elements lie closest in the source: the innermost loop. `None` in a scalar.
    row: Option<usize>,
    cuts: Vec<Cut>,
    /// The dimensions in which groups follow each other, and boxes in a group, the slowest first.
    order: Vec<usize>,
}

/// How a dimension is cut.
#[derive(Clone, Copy)]
struct Cut {
    bound: u64,
    /// The length of a box.
    length: u64,
    /// Boxes in a group; those past the bound are empty.
    boxes: u64,
}

impl<'a> Comparison<'a> {
    fn new(sides: &'a [Tiled; 2], elements: Elements) -> Self {
        let widths = [elements.source_bits, elements.destination_bits];
        let bounds = sides[0].logical_dimensions();
        let minor_to_major = |side: usize| -> Vec<usize> {
            let order = sides[side].array().major_to_minor().rev();
            let (long, short): (Vec<usize>, Vec<usize>) = order.partition(|&d| bounds[d] > 1);
            [long, short].concat()
        };
        let orders = [minor_to_major(0), minor_to_major(1)];
        let row = orders[0].first().copied();
        let column = orders[1].iter().copied().find(|&d| Some(d) != row);
        let mut lengths = vec![1; bounds.len()];
        let mut grow = |dimension: usize, limit: u64| {
            let around: u64 = lengths.iter().product::<u64>() / lengths[dimension];
            lengths[dimension] = bounds[dimension].min(limit).min(BOX / around).max(1);
        };
        // Offsets along one dimension imply those along another only in sums of one function per dimension.
        if sides.iter().all(|tiled| tiled.nested_axes().is_empty()) {
            row.into_iter().for_each(|d| grow(d, 1024));
            column.into_iter().for_each(|d| grow(d, 64));
            orders[0].iter().for_each(|&d| {
                if Some(d) != row && Some(d) != column {
                    grow(d, BOX)
                }
            });
            column.into_iter().for_each(|d| grow(d, BOX));
        }
        row.into_iter().for_each(|d| grow(d, BOX));
        let mut groups = lengths.clone();
        for (order, width) in orders.iter().zip(widths) {
            let mut stretch = width;
            for &d in order {
                groups[d] = groups[d].max(bounds[d].min(STRETCH.div_ceil(stretch)));
                stretch = stretch.saturating_mul(groups[d]);
            }
        }
        let cut = |d: usize| Cut { bound: bounds[d], length: lengths[d], boxes: groups[d].div_ceil(lengths[d]) };
        Self {
            elements,
            row,
            cuts: (0..bounds.len()).map(cut).collect(),
            order: orders[0].iter().rev().copied().collect(),
            sides,
        }
    }

    /// The indices of a box, or none past the last.
    fn bounds_of(&self, number: u64) -> Option<Vec<Range<u64>>> {
        let mut rest = number;
        let mut digit = |count: u64| {
            let digit = rest.checked_rem(count)?;
            rest /= count;
            Some(digit)
        };
        let mut boxes = vec![0; self.cuts.len()];
        for &d in self.order.iter().rev() {
            boxes[d] = digit(self.cuts[d].boxes)?;
        }
        for &d in self.order.iter().rev() {
            let Cut { bound, length, boxes: grouped } = self.cuts[d];
            boxes[d] += digit(bound.div_ceil(length).div_ceil(grouped))? * grouped;
        }
        let range = |(cut, number): (&Cut, &u64)| {
            let start = (cut.length * number).min(cut.bound);
            start..cut.bound.min(start + cut.length)
        };
        (rest == 0).then(|| self.cuts.iter().zip(&boxes).map(range).collect())
    }

    fn difference_in(&self, bounds: &[Range<u64>], buffers: [&[u8]; 2]) -> Result<Option<Vec<u64>>, Error> {
        let corner: Vec<u64> = bounds.iter().map(|range| range.start).collect();
        let along = |side: usize, dimension: Option<usize>| {
            let indices = dimension.map_or(0..1, |d| bounds[d].clone());
            let rows = indices.flat_map(|i| {
                let at = move |(d, &start): (usize, &u64)| if Some(d) == dimension { i } else { start };
                corner.iter().enumerate().map(at)
            });
            let count = dimension.map_or(1, |d| bounds[d].end - bounds[d].start);
            let mut offsets = vec![0; size(count)];
            self.sides[side].fill_offsets(&rows.collect::<Vec<_>>(), &mut offsets)?;
            Ok::<_, Error>(offsets)
        };
        let rows = [along(0, self.row)?, along(1, self.row)?];
        let mut columns = Vec::with_capacity(bounds.len());
        for d in (0..bounds.len()).filter(|&d| Some(d) != self.row) {
            columns.push((d, [along(0, Some(d))?, along(1, Some(d))?]));
        }
        let mut index = corner.clone();
        loop {
            // The shift of this row's offsets from the first row's; sums wrap, where a dimension's parts do not rise.
            let shift = |side: usize| {
                let more = |(d, offsets): &(usize, [Vec<u64>; 2])| {
                    offsets[side][size(index[*d] - corner[*d])].wrapping_sub(offsets[side][0])
                };
                columns.iter().map(more).fold(0, u64::wrapping_add)
            };
            if let Some(at) = self.difference_in_row(&rows, [shift(0), shift(1)], buffers) {
                if let Some(row) = self.row {
                    index[row] += at as u64;
                }
                return Ok(Some(index));
            }
            let Some(&(next, _)) = columns.iter().rev().find(|(d, _)| index[*d] + 1 < bounds[*d].end) else {
                return Ok(None);
            };
            index[next] += 1;
            for &(d, _) in columns.iter().filter(|(d, _)| *d > next) {
                index[d] = corner[d];
            }
        }
    }

    /// The place in a row of the first element that differs.
    fn difference_in_row(&self, rows: &[Vec<u64>; 2], shift: [u64; 2], buffers: [&[u8]; 2]) -> Option<usize> {
        match [self.elements.source_bits, self.elements.destination_bits] {
            [8, 8] => difference_in_bytes::<1>(rows, shift, buffers),
            [16, 16] => difference_in_bytes::<2>(rows, shift, buffers),
            [32, 32] => difference_in_bytes::<4>(rows, shift, buffers),
            [64, 64] => difference_in_bytes::<8>(rows, shift, buffers),
            [128, 128] => difference_in_bytes::<16>(rows, shift, buffers),
            _ => {
                let offsets = rows[0].iter().zip(&rows[1]);
                let mut offsets = offsets.map(|(from, to)| [from.wrapping_add(shift[0]), to.wrapping_add(shift[1])]);
                offsets.position(|offsets| !self.holds(offsets, buffers))
            }
        }
    }

    /// Whether the destination holds an element of any width unchanged, packed or widened.
    fn holds(&self, [from, to]: [u64; 2], [source, destination]: [&[u8]; 2]) -> bool {
        let Elements { bits, source_bits: from_width, destination_bits: to_width, signed } = self.elements;
        let (from, to) = (from * from_width, to * to_width);
        let kept = if from_width == to_width { from_width } else { bits };
        let is_negative = signed && get(source, from + kept - 1, 1) == 1;
        let extension = if is_negative { u64::MAX } else { 0 };
        (0..to_width).step_by(64).all(|at| {
            let bits = (to_width - at).min(64);
            let copied = kept.saturating_sub(at).min(bits);
            let expected = get(source, from + at, copied) | extension & !mask(copied) & mask(bits);
            get(destination, to + at, bits) == expected
        })
    }
}

fn difference_in_bytes<const WIDTH: usize>(
    [from, to]: &[Vec<u64>; 2],
    shift: [u64; 2],
    [source, destination]: [&[u8]; 2],
) -> Option<usize> {
    let element = |buffer: &[u8], offset: u64| -> Option<[u8; WIDTH]> {
        let start = size(offset).checked_mul(WIDTH)?;
        buffer.get(start..)?.first_chunk().copied()
    };
    from.iter().zip(to).position(|(from, to)| {
        let from = element(source, from.wrapping_add(shift[0]));
        from.is_none() || from != element(destination, to.wrapping_add(shift[1]))
    })
}
