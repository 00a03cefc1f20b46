//! A layout as a function of a position, and where two such functions part.

use crate::{Digit, Error, ErrorKind, Tiled, checked};
use alloc::{format, vec, vec::Vec};

/// Layouts that digits can't compare are compared at this many positions, one by one.
pub(crate) const MAX_COMPARED: u64 = 1 << 20;

/// Where the element at a position lies, the position being the row-major number of its index, with the dimensions in some order.
///
/// Without nested axes the function is a sum over greedy digits of the position p, as coins are counted out: for weights
/// w₀ < w₁ < … take p div w of the largest, then of the rest p mod w, and so on, each times a stride. Weights are the divisors of
/// the dimensions' digits times the bounds of all dimensions more minor.
#[derive(Clone, Debug)]
pub(crate) struct Positions<'a> {
    tiled: &'a Tiled,
    /// The dimensions that count, major → minor, and how far: at most to their bounds.
    dimensions: Vec<(usize, u64)>,
    /// Each element counts as so many positions, its parts.
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

    /// Each element as that many parts, which lie one after the other.
    #[must_use]
    pub(crate) fn in_parts(self, parts: u64) -> Self {
        Self { parts, ..self }
    }

    /// How many positions there are.
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

    /// The first position at which the offsets differ, of as many positions on both sides.
    ///
    /// # Errors
    /// [`ErrorKind::Undecided`] where digits can't tell and the first [`MAX_COMPARED`] positions agree.
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
        for position in 0..count.min(MAX_COMPARED.into()) {
            if self.offset(position)? != other.offset(position)? {
                return Ok(Some(position));
            }
        }
        if count <= MAX_COMPARED.into() { Ok(None) } else { Err(undecided(count)) }
    }

    /// Whether the two are written alike.
    fn is_alike(&self, other: &Self) -> bool {
        (&self.dimensions, self.parts) == (&other.dimensions, other.parts)
            && self.tiled.digits() == other.tiled.digits()
            && self.tiled.nested_axes() == other.tiled.nested_axes()
    }

    /// The levels that are no continuation of the one below; `None` with nested axes.
    fn levels(&self) -> Option<Vec<Level>> {
        if !self.tiled.nested_axes().is_empty() {
            return None;
        }
        let mut levels = Vec::new();
        let mut push = |weight: u128, stride: u128| {
            let continues = levels.last().is_some_and(|last: &Level| {
                weight % last.weight == 0 && last.stride.checked_mul(weight / last.weight) == Some(stride)
            });
            if !continues {
                levels.push(Level { weight, stride });
            }
        };
        let parts = u128::from(self.parts);
        if parts > 1 {
            push(1, 1);
        }
        let mut weight = parts;
        for &(dimension, bound) in self.dimensions.iter().rev() {
            let inside = |digit: &&Digit| digit.divisor < bound;
            for digit in self.tiled.digits_of(dimension).iter().take_while(inside) {
                push(weight * u128::from(digit.divisor), u128::from(digit.stride) * parts);
            }
            weight *= u128::from(bound);
        }
        Some(levels)
    }
}

fn undecided(count: u128) -> Error {
    let message = format!(
        "tiles that do not nest: the first {MAX_COMPARED} of {count} elements lie alike, the rest is not known"
    );
    Error::new(ErrorKind::Undecided, message)
        .with_help("digits compare layouts of any size, unless `*` or a tile of a tile cuts across them")
}
