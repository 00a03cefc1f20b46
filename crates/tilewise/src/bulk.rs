//! Conversion of many indices or offsets at once, column by column.

use crate::{
    Digit, DigitSource, Error, ErrorKind, Tiled,
    tiled::{Axis, Step},
};
use alloc::{format, vec, vec::Vec};

/// Rows per block: they stay in the nearest cache while their columns are processed.
const BLOCK: usize = 512;

impl Tiled {
    /// Offsets of many indices at once: `indices` holds them one after the other, rank numbers each, and `offsets` takes one each.
    ///
    /// # Errors
    /// [`ErrorKind::BufferLengthMismatch`] unless `indices` is rank times as long as `offsets`; [`ErrorKind::IndexOutOfBounds`]
    /// for the first index outside, with what `offsets` then holds unspecified.
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let mut offsets = [0; 2];
    /// tiled.fill_offsets(&[0, 4, 2, 3], &mut offsets)?;
    /// assert_eq!(offsets, [8, 17]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn fill_offsets(&self, indices: &[u64], offsets: &mut [u64]) -> Result<(), Error> {
        let rank = self.array.rank();
        check_lengths(indices, rank, offsets)?;
        if rank == 0 {
            offsets.fill(0);
            return Ok(());
        }
        let sum_of = |digits| Sum::of(self, digits, offsets.len());
        let axes: Vec<Sum> = self.nested_axes().iter().map(|axis| sum_of(&axis.digits)).collect();
        let sum = sum_of(self.digits());
        let mut nested = vec![[0; BLOCK]; axes.len()];
        for (rows, offsets) in indices.chunks(BLOCK * rank).zip(offsets.chunks_mut(BLOCK)) {
            for (number, axis) in axes.iter().enumerate() {
                let (known, new) = nested.split_at_mut(number);
                axis.fill(rows, rank, known, &mut new[0][..offsets.len()]);
            }
            let inside = sum.fill(rows, rank, &nested, offsets);
            if !inside {
                rows.chunks_exact(rank).try_for_each(|index| self.check(index))?;
            }
        }
        Ok(())
    }

    /// Indices of the elements at many offsets at once: `indices` takes rank numbers for each offset, all [`u64::MAX`] where the
    /// offset holds padding.
    ///
    /// # Errors
    /// [`ErrorKind::BufferLengthMismatch`] unless `indices` is rank times as long as `offsets`; [`ErrorKind::OffsetOutOfRange`]
    /// for the first offset past the end, with what `indices` then holds unspecified.
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// let mut indices = [0; 4];
    /// tiled.fill_indices(&[8, 9], &mut indices)?;
    /// assert_eq!(indices, [0, 4, u64::MAX, u64::MAX]);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn fill_indices(&self, offsets: &[u64], indices: &mut [u64]) -> Result<(), Error> {
        let rank = self.array.rank();
        check_lengths(indices, rank, offsets)?;
        if rank == 0 {
            return offsets.iter().try_for_each(|&offset| self.check_offset(offset));
        }
        let mut block = Block::new(self, offsets.len().min(BLOCK));
        for (offsets, rows) in offsets.chunks(BLOCK).zip(indices.chunks_mut(BLOCK * rank)) {
            block.invert(offsets)?;
            for (number, row) in rows.chunks_exact_mut(rank).enumerate() {
                if block.is_padding(number) {
                    row.fill(u64::MAX);
                } else {
                    row.iter_mut().zip(block.index(number)).for_each(|(place, value)| *place = value);
                }
            }
        }
        Ok(())
    }
}

fn check_lengths(indices: &[u64], rank: usize, offsets: &[u64]) -> Result<(), Error> {
    if Some(indices.len()) == offsets.len().checked_mul(rank) {
        return Ok(());
    }
    let message = format!("{} numbers are not {} indices of rank {rank}", indices.len(), offsets.len());
    Err(Error::new(ErrorKind::BufferLengthMismatch, message))
}

/// A sum of digits, grouped by source.
struct Sum {
    parts: Vec<Part>,
}

struct Part {
    source: DigitSource,
    bound: u64,
    term: Term,
}

impl Sum {
    /// Every dimension has a part, if only to check the bound.
    fn of(tiled: &Tiled, digits: &[Digit], rows: usize) -> Self {
        let dimensions = tiled.logical_dimensions().iter().copied().enumerate();
        let dimensions = dimensions.map(|(number, bound)| (DigitSource::Dimension(number), bound));
        let nested = tiled.nested_axes().iter().enumerate();
        let nested = nested.map(|(number, axis)| (DigitSource::Nested(number), axis.bound));
        let part = |(source, bound)| {
            let digits = digits.iter().copied().filter(|digit| digit.source == source).collect();
            Part { source, bound, term: Term::of(digits, bound, rows) }
        };
        let is_used = |part: &Part| matches!(part.source, DigitSource::Dimension(_)) || !part.term.is_nothing();
        Self { parts: dimensions.chain(nested).map(part).filter(is_used).collect() }
    }

    /// Fills the sums of the rows; returns whether every index was in bounds. Sums of other rows are arbitrary.
    fn fill(&self, rows: &[u64], rank: usize, nested: &[[u64; BLOCK]], sums: &mut [u64]) -> bool {
        let mut inside = true;
        for (number, part) in self.parts.iter().enumerate() {
            let column = match part.source {
                DigitSource::Dimension(number) => Column { rows, rank, number },
                DigitSource::Nested(axis) => Column { rows: &nested[axis][..sums.len()], rank: 1, number: 0 },
            };
            inside &= part.term.add(column, part.bound, sums, number == 0);
        }
        inside
    }
}

/// One column of the rows.
#[derive(Clone, Copy)]
struct Column<'a> {
    rows: &'a [u64],
    rank: usize,
    number: usize,
}

/// The contribution of one source, in the form that is fastest for a batch.
enum Term {
    /// Digits cut at powers of two, as TPU tiles and tiles in tiles do.
    One([Cut; 1]),
    Two([Cut; 2]),
    Three([Cut; 3]),
    /// The values of a short dimension, precomputed.
    Table(Vec<u64>),
    Digits(Vec<Digit>),
}

/// ((source >> `shift`) & `mask`) · `stride`, with factors below 2^32: every processor multiplies several of those at
/// once.
#[derive(Clone, Copy, Default)]
struct Cut {
    shift: u32,
    mask: u64,
    stride: u64,
}

impl Cut {
    fn of(digit: &Digit, bound: u64) -> Option<Self> {
        let is_cut = digit.divisor.is_power_of_two() && (digit.outermost || digit.count.is_power_of_two());
        let is_narrow = bound.max(digit.stride) <= u64::from(u32::MAX);
        let mask = if digit.outermost { u64::MAX } else { digit.count.wrapping_sub(1) };
        (is_cut && is_narrow).then_some(Self { shift: digit.divisor.trailing_zeros(), mask, stride: digit.stride })
    }

    fn value(self, source: u64) -> u64 {
        const LOW: u64 = u32::MAX as u64;
        (((source >> self.shift) & self.mask) & LOW) * (self.stride & LOW)
    }
}

impl Term {
    fn of(digits: Vec<Digit>, bound: u64, rows: usize) -> Self {
        /// Longer tables fall out of the nearest cache.
        const LONGEST_TABLE: u64 = 1 << 13;
        let is_short = bound <= LONGEST_TABLE && usize::try_from(bound).is_ok_and(|bound| bound <= rows);
        let cuts: Option<Vec<Cut>> = digits.iter().map(|digit| Cut::of(digit, bound)).collect();
        match cuts.as_deref() {
            Some([]) => Self::One([Cut::default()]),
            Some(&[one]) => Self::One([one]),
            Some(&[low, high]) => Self::Two([low, high]),
            Some(&[low, middle, high]) => Self::Three([low, middle, high]),
            _ if is_short => Self::Table((0..bound).map(|value| sum_of(&digits, value)).collect()),
            _ => Self::Digits(digits),
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Self::One([cut]) if cut.stride == 0)
    }

    /// Sets the sums or adds to them; returns whether every number of the column is below the bound.
    fn add(&self, column: Column<'_>, bound: u64, sums: &mut [u64], first: bool) -> bool {
        match self {
            Self::One(cuts) => add_cuts(column, bound, sums, first, *cuts),
            Self::Two(cuts) => add_cuts(column, bound, sums, first, *cuts),
            Self::Three(cuts) => add_cuts(column, bound, sums, first, *cuts),
            Self::Table(table) => {
                let value = |i: u64| usize::try_from(i).ok().and_then(|i| table.get(i)).copied().unwrap_or(0);
                add::<0>(column, bound, sums, first, value)
            }
            Self::Digits(digits) => {
                add::<0>(column, bound, sums, first, |i| if i < bound { sum_of(digits, i) } else { 0 })
            }
        }
    }
}

fn sum_of(digits: &[Digit], value: u64) -> u64 {
    digits.iter().map(|digit| digit.value(value) * digit.stride).sum()
}

fn add_cuts<const N: usize>(column: Column<'_>, bound: u64, sums: &mut [u64], first: bool, cuts: [Cut; N]) -> bool {
    let value = |i| cuts.iter().fold(0, |sum: u64, cut| sum.wrapping_add(cut.value(i)));
    match column.rank {
        1 => add::<1>(column, bound, sums, first, value),
        2 => add::<2>(column, bound, sums, first, value),
        3 => add::<3>(column, bound, sums, first, value),
        4 => add::<4>(column, bound, sums, first, value),
        _ => add::<0>(column, bound, sums, first, value),
    }
}

/// `RANK` is the column's rank, or 0 for any: a stride known at compile time lets the compiler vectorise.
fn add<const RANK: usize>(
    column: Column<'_>,
    bound: u64,
    sums: &mut [u64],
    first: bool,
    value: impl Fn(u64) -> u64,
) -> bool {
    let Column { rows, rank, number } = column;
    let rank = if RANK == 0 { rank } else { RANK };
    if number >= rank {
        return false;
    }
    // Bounds are below 2^63: a number that isn't below the bound has its top bit set, or `last` minus the number has.
    let (last, mut outside) = (bound.wrapping_sub(1), 0);
    let mut checked = |row: &[u64]| {
        outside |= last.wrapping_sub(row[number]) | row[number];
        row[number]
    };
    let both = sums.iter_mut().zip(rows.chunks_exact(rank));
    // Two loops: a choice in one of them would cost more than it saves.
    if first {
        both.for_each(|(sum, row)| *sum = value(checked(row)));
    } else {
        both.for_each(|(sum, row)| *sum = sum.wrapping_add(value(checked(row))));
    }
    outside >> 63 == 0
}

/// A block of offsets being converted to indices.
pub(crate) struct Block<'a> {
    tiled: &'a Tiled,
    width: usize,
    /// The values of all offsets along each of the layout's axes, one axis after the other.
    values: Vec<u64>,
    padding: Vec<bool>,
    rest: Vec<u64>,
}

impl<'a> Block<'a> {
    /// Room for `width` offsets.
    pub(crate) fn new(tiled: &'a Tiled, width: usize) -> Self {
        let values = vec![0; tiled.bounds.len() * width];
        Self { tiled, width, values, padding: vec![false; width], rest: vec![0; width] }
    }

    /// Whether the block's offset `number` holds padding, of any tile or of the tail.
    pub(crate) fn is_padding(&self, number: usize) -> bool {
        self.padding[number]
    }

    /// The index of the element at the block's offset `number`.
    pub(crate) fn index(&self, number: usize) -> impl Iterator<Item = u64> + '_ {
        (0..self.tiled.array.rank()).map(move |axis| self.values[axis * self.width + number])
    }

    /// Follows offsets back through every tile.
    pub(crate) fn invert(&mut self, offsets: &[u64]) -> Result<(), Error> {
        let tiled = self.tiled;
        offsets.iter().try_for_each(|&offset| tiled.check_offset(offset))?;
        for ((&offset, rest), padding) in offsets.iter().zip(&mut self.rest).zip(&mut self.padding) {
            *padding = offset >= tiled.tiled_elements();
            // The tail has no index: any valid offset stands in for it.
            *rest = if *padding { 0 } else { offset };
        }
        self.separate(&tiled.physical_axes);
        // Steps are undone from last to first, so the axes that a step made have their values by then.
        for step in tiled.steps.iter().rev() {
            match step {
                Step::Prepend { axis } => self.pad(*axis, 1),
                &Step::Split { axis, tile, outer, .. } => {
                    // An axis is numbered before those it is split into.
                    let (before, after) = self.values.split_at_mut(outer * self.width);
                    let (outer, inner) = after.split_at(self.width);
                    let parts = outer.iter().zip(inner);
                    let whole = before[axis * self.width..].iter_mut();
                    whole.zip(parts).for_each(|(whole, (outer, inner))| *whole = outer * tile + inner);
                    self.pad(axis, tiled.bounds[axis]);
                }
                Step::Merge { parts, merged } => {
                    self.rest.copy_from_slice(column(&mut self.values, self.width, *merged));
                    self.separate(parts);
                }
            }
        }
        Ok(())
    }

    /// Splits `rest`, a row-major number over these axes, into their values.
    fn separate(&mut self, axes: &[Axis]) {
        let Some((&outermost, axes)) = axes.split_first() else { return };
        for &axis in axes.iter().rev() {
            let (bound, values) = (self.tiled.bounds[axis], column(&mut self.values, self.width, axis));
            let both = self.rest.iter_mut().zip(values);
            if bound.is_power_of_two() {
                let (shift, mask) = (bound.trailing_zeros(), bound - 1);
                both.for_each(|(rest, value)| (*rest, *value) = (*rest >> shift, *rest & mask));
            } else {
                both.for_each(|(rest, value)| (*rest, *value) = (*rest / bound, *rest % bound));
            }
        }
        column(&mut self.values, self.width, outermost).copy_from_slice(&self.rest);
    }

    /// Marks offsets as padding whose value along an axis is not below the bound.
    fn pad(&mut self, axis: Axis, bound: u64) {
        let values = column(&mut self.values, self.width, axis);
        self.padding.iter_mut().zip(values).for_each(|(padding, value)| *padding |= *value >= bound);
    }
}

/// The values of one axis.
fn column(values: &mut [u64], width: usize, axis: Axis) -> &mut [u64] {
    &mut values[axis * width..][..width]
}
