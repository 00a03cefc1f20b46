//! Logical index → offset, offset → logical index or padding.

use crate::{Digit, DigitSource, Error, ErrorKind, Tiled, tiled::Step};
use alloc::{format, vec, vec::Vec};

impl Tiled {
    /// The offset of a logical index, in elements from the start of the buffer.
    ///
    /// # Errors
    /// [`ErrorKind::IndexRankMismatch`], [`ErrorKind::IndexOutOfBounds`].
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}".parse()?)?;
    /// assert_eq!(tiled.offset_of(&[1, 2, 3, 4, 5])?, 8307);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn offset_of(&self, index: &[u64]) -> Result<u64, Error> {
        let bounds = self.logical_dimensions();
        if index.len() != bounds.len() {
            return Err(rank_mismatch(index.len(), bounds.len()));
        }
        if let Some(dimension) = (0..index.len()).find(|&d| index[d] >= bounds[d]) {
            return Err(out_of_bounds(dimension, index[dimension], bounds[dimension]));
        }
        Ok(self.offset(index, &mut Vec::new()))
    }

    /// The offset of an index known to be inside the bounds.
    fn offset(&self, index: &[u64], nested: &mut Vec<u64>) -> u64 {
        nested.clear();
        for axis in self.nested_axes() {
            nested.push(sum(&axis.digits, index, nested));
        }
        sum(self.digits(), index, nested)
    }

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
        if Some(indices.len()) != offsets.len().checked_mul(rank) {
            return Err(Error::new(
                ErrorKind::BufferLengthMismatch,
                format!("{} numbers are not {} indices of rank {rank}", indices.len(), offsets.len()),
            ));
        }
        if rank == 0 {
            offsets.fill(0);
            return Ok(());
        }
        if !self.nested_axes().is_empty() {
            let mut nested = Vec::with_capacity(self.nested_axes().len());
            for (index, offset) in indices.chunks_exact(rank).zip(offsets) {
                self.check(index)?;
                *offset = self.offset(index, &mut nested);
            }
            return Ok(());
        }
        let lines: Vec<Line<'_>> = (0..rank).map(|d| Line::of(self, d, offsets.len())).collect();
        // A block of rows stays in the nearest cache while each dimension in turn adds its part.
        const BLOCK: usize = 512;
        for (rows, offsets) in indices.chunks(BLOCK * rank).zip(offsets.chunks_mut(BLOCK)) {
            let mut inside = true;
            for (dimension, line) in lines.iter().enumerate() {
                let bound = self.bounds[dimension];
                let column = rows.chunks_exact(rank).map(|index| index[dimension]);
                inside &= line.add(column, bound, offsets, dimension == 0);
            }
            if !inside {
                for index in rows.chunks_exact(rank) {
                    self.check(index)?;
                }
            }
        }
        Ok(())
    }

    fn check(&self, index: &[u64]) -> Result<(), Error> {
        let bounds = self.logical_dimensions();
        match (0..index.len()).find(|&d| index[d] >= bounds[d]) {
            None => Ok(()),
            Some(dimension) => Err(out_of_bounds(dimension, index[dimension], bounds[dimension])),
        }
    }

    /// The logical index of the element at an offset, or `None` where the offset holds padding, of any tile or of the tail.
    ///
    /// # Errors
    /// [`ErrorKind::OffsetOutOfRange`] at or past [`physical_elements`](Tiled::physical_elements).
    ///
    /// ```
    /// use tilewise::Tiled;
    ///
    /// let tiled = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// assert_eq!(tiled.index_of(8)?, Some(vec![0, 4]));
    /// assert_eq!(tiled.index_of(9)?, None);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn index_of(&self, offset: u64) -> Result<Option<Vec<u64>>, Error> {
        let Some(physical) = self.physical_index_of(offset)? else { return Ok(None) };
        let mut values = vec![0; self.bounds.len()];
        for (&axis, value) in self.physical_axes.iter().zip(physical) {
            values[axis] = value;
        }
        // Every axis is made by the step that is undone here, so its value is known by then.
        for step in self.steps.iter().rev() {
            match step {
                Step::Prepend { axis } => {
                    if values[*axis] != 0 {
                        return Ok(None);
                    }
                }
                &Step::Split { axis, tile, outer, inner } => {
                    values[axis] = values[outer] * tile + values[inner];
                    if values[axis] >= self.bounds[axis] {
                        return Ok(None);
                    }
                }
                Step::Merge { parts, merged } => {
                    let mut rest = values[*merged];
                    for &part in parts.iter().rev() {
                        values[part] = rest % self.bounds[part];
                        rest /= self.bounds[part];
                    }
                }
            }
        }
        values.truncate(self.array.rank());
        Ok(Some(values))
    }

    /// The index along each of [`physical_dimensions`](Tiled::physical_dimensions) at an offset; `None` in the tail padding.
    ///
    /// # Errors
    /// As for [`index_of`](Tiled::index_of).
    pub fn physical_index_of(&self, offset: u64) -> Result<Option<Vec<u64>>, Error> {
        if offset >= self.physical_elements() {
            return Err(Error::new(
                ErrorKind::OffsetOutOfRange,
                format!("offset {offset} is past the buffer's {} elements", self.physical_elements()),
            ));
        }
        if offset >= self.tiled_elements() {
            return Ok(None);
        }
        let mut rest = offset;
        let mut index = vec![0; self.physical_dimensions().len()];
        for (value, &bound) in index.iter_mut().zip(self.physical_dimensions()).rev() {
            *value = rest % bound;
            rest /= bound;
        }
        Ok(Some(index))
    }
}

fn sum(digits: &[Digit], index: &[u64], nested: &[u64]) -> u64 {
    let term = |digit: &Digit| {
        let source = match digit.source {
            DigitSource::Dimension(dimension) => index[dimension],
            DigitSource::Nested(axis) => nested[axis],
        };
        digit.value(source) * digit.stride
    };
    digits.iter().map(term).sum()
}

fn rank_mismatch(given: usize, rank: usize) -> Error {
    Error::new(ErrorKind::IndexRankMismatch, format!("the index has {given} components, the array {rank} dimensions"))
}

fn out_of_bounds(dimension: usize, index: u64, bound: u64) -> Error {
    Error::new(
        ErrorKind::IndexOutOfBounds,
        format!("index {index} is outside dimension {dimension}, which has bound {bound}"),
    )
}

/// What one dimension adds to the offset, in the form that is quickest for a batch.
enum Line<'a> {
    /// One digit, the whole index.
    Stride(u64),
    /// Two digits cut at a power of two, as TPU tiles do.
    Cut {
        shift: u32,
        inner: u64,
        outer: u64,
    },
    /// Three digits cut at powers of two, as tiles in tiles do.
    CutTwice {
        shifts: [u32; 2],
        strides: [u64; 3],
    },
    /// A short dimension's answers, worked out beforehand.
    Table(Vec<u64>),
    Digits(&'a [Digit]),
}

impl<'a> Line<'a> {
    fn of(tiled: &'a Tiled, dimension: usize, rows: usize) -> Self {
        /// Longer tables fall out of the nearest cache.
        const LONGEST_TABLE: u64 = 1 << 13;
        let source = DigitSource::Dimension(dimension);
        let digits = tiled.digits();
        let start = digits.partition_point(|digit| digit.source < source);
        let count = digits[start..].partition_point(|digit| digit.source == source);
        let digits = &digits[start..start + count];
        let bound = tiled.bounds[dimension];
        let is_short = bound <= LONGEST_TABLE && usize::try_from(bound).is_ok_and(|bound| bound <= rows);
        // Digits of one dimension follow each other from divisor 1 to the outermost, unless one of them adds nothing.
        let follow = digits
            .iter()
            .try_fold(1, |divisor, digit| (digit.divisor == divisor).then_some(divisor.saturating_mul(digit.count)));
        let complete = follow.is_some() && digits.last().is_some_and(|last| last.outermost);
        match digits {
            [] => Self::Stride(0),
            [whole] if complete => Self::Stride(whole.stride),
            [low, high] if complete && high.divisor.is_power_of_two() => {
                Self::Cut { shift: high.divisor.trailing_zeros(), inner: low.stride, outer: high.stride }
            }
            [low, middle, high] if complete && middle.divisor.is_power_of_two() && high.divisor.is_power_of_two() => {
                Self::CutTwice {
                    shifts: [middle.divisor.trailing_zeros(), high.divisor.trailing_zeros()],
                    strides: [low.stride, middle.stride, high.stride],
                }
            }
            _ if is_short => Self::Table((0..bound).map(|i| sum_of(digits, i)).collect()),
            _ => Self::Digits(digits),
        }
    }

    /// Adds the dimension's part to each offset (or starts the sums), and says whether every index was inside.
    fn add(&self, column: impl Iterator<Item = u64>, bound: u64, offsets: &mut [u64], first: bool) -> bool {
        match *self {
            Self::Stride(stride) => accumulate(column, bound, offsets, first, |i| i.wrapping_mul(stride)),
            Self::Cut { shift, inner, outer } => {
                let low = (1 << shift) - 1;
                accumulate(column, bound, offsets, first, |i| {
                    (i & low).wrapping_mul(inner).wrapping_add((i >> shift).wrapping_mul(outer))
                })
            }
            Self::CutTwice { shifts: [first_cut, second_cut], strides: [inner, middle, outer] } => {
                let (low, high) = ((1 << first_cut) - 1, (1 << (second_cut - first_cut)) - 1);
                accumulate(column, bound, offsets, first, |i| {
                    let within =
                        (i & low).wrapping_mul(inner).wrapping_add(((i >> first_cut) & high).wrapping_mul(middle));
                    within.wrapping_add((i >> second_cut).wrapping_mul(outer))
                })
            }
            Self::Table(ref table) => {
                let at = |i: u64| usize::try_from(i).ok().and_then(|i| table.get(i)).copied().unwrap_or(0);
                accumulate(column, bound, offsets, first, at)
            }
            Self::Digits(digits) => {
                accumulate(column, bound, offsets, first, |i| if i < bound { sum_of(digits, i) } else { 0 })
            }
        }
    }
}

fn sum_of(digits: &[Digit], index: u64) -> u64 {
    digits.iter().map(|digit| digit.value(index) * digit.stride).sum()
}

/// Sums wrap: an index outside may add anything, and is reported afterwards.
#[inline]
fn accumulate(
    column: impl Iterator<Item = u64>,
    bound: u64,
    offsets: &mut [u64],
    first: bool,
    part: impl Fn(u64) -> u64,
) -> bool {
    let mut outside = 0;
    if first {
        for (offset, index) in offsets.iter_mut().zip(column) {
            outside |= u64::from(index >= bound);
            *offset = part(index);
        }
    } else {
        for (offset, index) in offsets.iter_mut().zip(column) {
            outside |= u64::from(index >= bound);
            *offset = offset.wrapping_add(part(index));
        }
    }
    outside == 0
}
