//! A layout as a function from positions to offsets, and the first difference of two such functions.

use crate::{Digit, DigitSource, Error, ErrorKind, NestedAxis, Tiled, checked};
use alloc::{collections::BTreeMap, format, vec, vec::Vec};
use core::ops::Range;

/// The number of positions at which layouts are compared one by one, if digits can't compare them.
pub(crate) const MAX_COMPARED: u64 = 1 << 12;

/// The offset of the element at a position: the row-major number of its index, with the dimensions in some order.
///
/// The function is a sum over greedy digits of the position p, as coins are counted out: for weights w₀ < w₁ < … take p div w of
/// the largest, then of the rest p mod w, and so on, each times a stride. Weights are the divisors of the dimensions' digits times the
/// bounds of all dimensions more minor. A nested axis has such digits, too, if its own follow one another in the position.
#[derive(Clone, Debug)]
pub(crate) struct Positions<'a> {
    tiled: &'a Tiled,
    /// The dimensions that positions count, major → minor, each with a bound of at most its own.
    dimensions: Vec<(usize, u64)>,
    /// Positions per element: one for each of its parts.
    parts: u64,
}

/// From position `weight` on, every `weight` positions are `stride` parts of elements apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    weight: u128,
    stride: u128,
}

impl<'a> Positions<'a> {
    /// All elements, in row-major order.
    pub(crate) fn new(tiled: &'a Tiled) -> Self {
        Self::in_order(tiled, 0..tiled.logical_dimensions().len())
    }

    /// Elements with the dimensions in that order, major → minor; along a dimension that is left out, those at 0.
    pub(crate) fn in_order(tiled: &'a Tiled, order: impl IntoIterator<Item = usize>) -> Self {
        let bounds = tiled.logical_dimensions();
        let dimensions = order.into_iter().filter_map(|dimension| Some((dimension, *bounds.get(dimension)?)));
        Self { tiled, dimensions: dimensions.collect(), parts: 1 }
    }

    /// Only elements below these bounds, one for each dimension.
    #[must_use]
    pub(crate) fn within(mut self, bounds: &[u64]) -> Self {
        self.dimensions.iter_mut().zip(bounds).for_each(|((_, own), &bound)| *own = bound.min(*own));
        self
    }

    /// Splits each element into `parts` consecutive parts.
    #[must_use]
    pub(crate) fn in_parts(self, parts: u64) -> Self {
        Self { parts, ..self }
    }

    /// The number of positions.
    pub(crate) fn count(&self) -> u128 {
        // At most an array's elements.
        let elements = checked::product(self.dimensions.iter().map(|&(_, bound)| bound)).unwrap_or(0);
        u128::from(elements) * u128::from(self.parts)
    }

    /// The index at a position.
    pub(crate) fn index(&self, position: u128) -> Vec<u64> {
        let mut rest = u64::try_from(position / u128::from(self.parts)).unwrap_or(u64::MAX);
        let mut index = vec![0; self.tiled.logical_dimensions().len()];
        for &(dimension, bound) in self.dimensions.iter().rev() {
            index[dimension] = rest % bound;
            rest /= bound;
        }
        index
    }

    /// The offset at a position, in parts of elements.
    pub(crate) fn offset(&self, position: u128) -> Result<u128, Error> {
        let parts = u128::from(self.parts);
        Ok(u128::from(self.tiled.offset_of(&self.index(position))?) * parts + position % parts)
    }

    /// [`Self::offset`] of several positions.
    fn offsets(&self, positions: Range<u64>) -> Result<impl Iterator<Item = u64>, Error> {
        let parts = self.parts;
        let elements = positions.start / parts..positions.end.div_ceil(parts);
        let mut index = self.index(positions.start.into());
        let mut indices = Vec::new();
        for _ in elements.clone() {
            indices.extend_from_slice(&index);
            for &(dimension, bound) in self.dimensions.iter().rev() {
                index[dimension] += 1;
                if index[dimension] < bound {
                    break;
                }
                index[dimension] = 0;
            }
        }
        let mut offsets: Vec<u64> = elements.clone().map(|_| 0).collect();
        self.tiled.fill_offsets(&indices, &mut offsets)?;
        let parts_of = move |(element, offset): (u64, u64)| {
            (0..parts).map(move |part| (element * parts + part, offset * parts + part))
        };
        let all = elements.zip(offsets).flat_map(parts_of);
        Ok(all.filter(move |(position, _)| positions.contains(position)).map(|(_, offset)| offset))
    }

    /// The first position at which the offsets differ, if any; both sides must have the same number of positions.
    ///
    /// # Errors
    /// [`ErrorKind::Undecided`] if digits can't decide and the first [`MAX_COMPARED`] positions agree.
    pub(crate) fn first_difference(&self, other: &Self) -> Result<Option<u128>, Error> {
        let count = self.count();
        if count == 0 || self.is_alike(other) {
            return Ok(None);
        }
        if let (Some(own), Some(others)) = (self.levels(), other.levels()) {
            let differing = (0..own.len().max(others.len())).find(|&at| own.get(at) != others.get(at));
            let Some(differing) = differing else { return Ok(None) };
            // Below the lower of the two weights both are the same sum.
            let weights = [&own, &others].into_iter().filter_map(|levels| Some(levels.get(differing)?.weight));
            let position = weights.min().unwrap_or(0);
            if self.offset(position)? != other.offset(position)? {
                return Ok(Some(position));
            }
        }
        // Most layouts that differ do so soon.
        let end = u64::try_from(count).unwrap_or(u64::MAX).min(MAX_COMPARED);
        for positions in [0..end.min(64), end.min(64)..end] {
            let pairs = self.offsets(positions.clone())?.zip(other.offsets(positions.clone())?);
            if let Some((position, _)) = positions.zip(pairs).find(|(_, (own, others))| own != others) {
                return Ok(Some(position.into()));
            }
        }
        if count <= MAX_COMPARED.into() { Ok(None) } else { Err(undecided(count)) }
    }

    /// Whether the two have equal dimensions, parts, digits and nested axes.
    fn is_alike(&self, other: &Self) -> bool {
        (&self.dimensions, self.parts) == (&other.dimensions, other.parts)
            && self.tiled.digits() == other.tiled.digits()
            && self.tiled.nested_axes() == other.tiled.nested_axes()
    }

    /// The levels that don't continue the one below; `None` if a nested axis isn't a stretch of the position.
    fn levels(&self) -> Option<Vec<Level>> {
        let sources = self.sources()?;
        let stretches =
            self.tiled.digits().iter().filter_map(|digit| Some((Stretch::of(digit, &sources)?, digit.stride)));
        let parts = u128::from(self.parts);
        let mut all: Vec<Level> = stretches
            .map(|(stretch, stride)| Level { weight: stretch.start, stride: u128::from(stride) * parts })
            .chain((parts > 1).then_some(Level { weight: 1, stride: 1 }))
            .collect();
        all.sort_by_key(|level| level.weight);
        all.dedup_by(|level, below| {
            level.weight % below.weight == 0
                && below.stride.checked_mul(level.weight / below.weight) == Some(level.stride)
        });
        Some(all)
    }

    /// The stretch of the position for each source of digits; `None` if a nested axis isn't one.
    fn sources(&self) -> Option<BTreeMap<DigitSource, Stretch>> {
        let mut sources = BTreeMap::new();
        let mut start = u128::from(self.parts);
        for &(dimension, bound) in self.dimensions.iter().rev() {
            let end = start * u128::from(bound);
            sources.insert(DigitSource::Dimension(dimension), Stretch { start, end });
            start = end;
        }
        for (number, axis) in self.tiled.nested_axes().iter().enumerate() {
            if let Some(stretch) = Stretch::joined(axis, &sources)? {
                sources.insert(DigitSource::Nested(number), stretch);
            }
        }
        Some(sources)
    }
}

/// The number (position mod `end`) div `start`.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: u128,
    end: u128,
}

impl Stretch {
    /// The stretch of a digit; `None` if it is always 0.
    fn of(digit: &Digit, sources: &BTreeMap<DigitSource, Self>) -> Option<Self> {
        let source = sources.get(&digit.source)?;
        let start = source.start.saturating_mul(digit.divisor.into());
        let end = if digit.outermost { source.end } else { source.end.min(start.saturating_mul(digit.count.into())) };
        (start < end).then_some(Self { start, end })
    }

    /// The stretch of a nested axis: `Some(None)` if it is always 0, `None` if its digits don't follow one another in
    /// the position.
    fn joined(axis: &NestedAxis, sources: &BTreeMap<DigitSource, Self>) -> Option<Option<Self>> {
        let mut joined: Option<Self> = None;
        for digit in &axis.digits {
            let Some(Self { start, end }) = Self::of(digit, sources) else { continue };
            let first = joined.map_or(start, |joined| joined.start);
            let follows = joined.is_none_or(|joined| joined.end == start);
            if !follows || start != first.saturating_mul(digit.stride.into()) {
                return None;
            }
            joined = Some(Self { start: first, end });
        }
        Some(joined)
    }
}

fn undecided(count: u128) -> Error {
    let message = format!(
        "tiles that do not nest: the first {MAX_COMPARED} of {count} elements lie alike, the rest is not known"
    );
    Error::new(ErrorKind::Undecided, message).with_help(
        "digits compare layouts of any size, unless a tile cuts across what `*` merged out of order or with padding",
    )
}
