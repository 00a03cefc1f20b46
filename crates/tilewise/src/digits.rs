//! The layout as a sum of digits: a closed form of its tiles.
//!
//! Cut a dimension's index into digits, (e div D) mod M. A tile size splits a digit in two, a merged dimension is a mixed-radix
//! number whose digits are those of its parts, and an offset is a sum of digits times strides. Where a tile size does not fit the
//! digits of a merged dimension, the merged value itself becomes a new source of digits, a [`NestedAxis`].

use alloc::vec::Vec;

/// The source of a [`Digit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DigitSource {
    /// The index along a logical dimension.
    Dimension(usize),
    /// The value of one of [`Tiled::nested_axes`](crate::Tiled::nested_axes).
    Nested(usize),
}

/// A term of the offset: ((source div `divisor`) mod `count`) · `stride`, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Digit {
    /// The value that the digit is cut from.
    pub source: DigitSource,
    /// Divides the source's value.
    pub divisor: u64,
    /// The number of values the digit takes, 0 … count − 1.
    pub count: u64,
    /// Whether the digit is the source's most significant: its quotient stays below `count` by itself, so mod changes nothing.
    pub outermost: bool,
    /// Elements between successive values of the digit; inside a nested axis, its weight in the axis's value.
    pub stride: u64,
}

impl Digit {
    fn whole(source: DigitSource, bound: u64) -> Self {
        Self { source, divisor: 1, count: bound, outermost: true, stride: 1 }
    }

    fn largest(&self) -> u64 {
        (self.count - 1) * self.stride
    }

    /// The digit's value for a value of its source, before the stride.
    #[must_use]
    pub const fn value(&self, source: u64) -> u64 {
        let quotient = source / self.divisor;
        if self.outermost { quotient } else { quotient % self.count }
    }

    /// Σ digit · stride: `index` has the value of each logical dimension, `nested` that of each nested axis the digits name.
    ///
    /// With [`Tiled::digits`](crate::Tiled::digits) this is the offset of `index`, in elements. The values of nested axes come from
    /// [`NestedAxis::value`], in the order of [`Tiled::nested_axes`](crate::Tiled::nested_axes).
    ///
    /// Values missing from `index` or `nested` count 0.
    ///
    /// ```
    /// use tilewise::{Digit, Tiled};
    ///
    /// let tiled = Tiled::new(&"f32[3,5]{1,0:T(2,2)}".parse()?)?;
    /// assert_eq!(Digit::sum(tiled.digits(), &[2, 3], &[]), tiled.offset_of(&[2, 3])?);
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    #[must_use]
    pub fn sum(digits: &[Self], index: &[u64], nested: &[u64]) -> u64 {
        let term = |digit: &Self| {
            let source = match digit.source {
                DigitSource::Dimension(dimension) => index.get(dimension),
                DigitSource::Nested(axis) => nested.get(axis),
            };
            source.map_or(0, |&source| digit.value(source) * digit.stride)
        };
        digits.iter().map(term).sum()
    }
}

/// The value of a merged dimension whose digits a tile size cut across: Σ digits, each cut from a dimension or an earlier nested axis.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NestedAxis {
    /// The terms of the value.
    pub digits: Vec<Digit>,
    /// The value is below this.
    pub bound: u64,
}

impl NestedAxis {
    /// The axis' value at an index, from the values of the nested axes before it.
    #[must_use]
    pub fn value(&self, index: &[u64], nested: &[u64]) -> u64 {
        Digit::sum(&self.digits, index, nested)
    }
}

/// An axis as a mixed-radix number: digits with rising strides, each stride above the largest sum of the lower digits.
pub(crate) type Mixed = Vec<Digit>;

/// Follows axes through merges and splits.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) nested: Vec<NestedAxis>,
}

impl Builder {
    pub(crate) fn dimension(number: usize, bound: u64) -> Mixed {
        significant(Digit::whole(DigitSource::Dimension(number), bound))
    }

    /// Parts from major to minor, each with its bound, as one row-major number.
    pub(crate) fn merge<'a>(parts: impl DoubleEndedIterator<Item = (&'a Mixed, u64)>) -> Mixed {
        let mut merged = Mixed::new();
        let mut weight = 1;
        for (part, bound) in parts.rev() {
            merged.extend(part.iter().map(|digit| Digit { stride: digit.stride * weight, ..*digit }));
            weight *= bound;
        }
        merged
    }

    /// (value div size, value mod size) of an axis with that bound.
    pub(crate) fn split(&mut self, axis: Mixed, bound: u64, size: u64) -> (Mixed, Mixed) {
        if let Some(halves) = split(&axis, size) {
            return halves;
        }
        let source = DigitSource::Nested(self.nested.len());
        self.nested.push(NestedAxis { digits: axis, bound });
        let whole = significant(Digit::whole(source, bound));
        // A single outermost digit splits by any size.
        split(&whole, size).unwrap_or_default()
    }

    /// The canonical sum: ordered by source and divisor, neighbours whose strides continue each other made one.
    pub(crate) fn canonical(&self, mut digits: Vec<Digit>, bounds: &[u64]) -> Vec<Digit> {
        digits.sort_by_key(|digit| (digit.source, digit.divisor));
        digits.dedup_by(|upper, lower| {
            let continues = upper.source == lower.source
                && !lower.outermost
                && upper.divisor == lower.divisor * lower.count
                && upper.stride == lower.stride * lower.count;
            if continues {
                let bound = match lower.source {
                    DigitSource::Dimension(d) => bounds[d],
                    DigitSource::Nested(n) => self.nested[n].bound,
                };
                lower.outermost = upper.outermost;
                lower.count = if upper.outermost { bound.div_ceil(lower.divisor) } else { lower.count * upper.count };
            }
            continues
        });
        digits
    }
}

/// The digit, or no digits if it is always 0.
fn significant(digit: Digit) -> Mixed {
    if digit.count > 1 { alloc::vec![digit] } else { Mixed::new() }
}

/// Splits a mixed-radix number at `size`; `None` if its digits don't allow it.
fn split(axis: &Mixed, size: u64) -> Option<(Mixed, Mixed)> {
    let (mut quotient, mut remainder) = (Mixed::new(), Mixed::new());
    // The largest sum of the digits so far, all in the remainder.
    let mut low = 0;
    for digit in axis {
        if low + digit.largest() < size {
            low += digit.largest();
            remainder.push(*digit);
        } else if digit.stride % size == 0 {
            quotient.push(Digit { stride: digit.stride / size, ..*digit });
        } else if size % digit.stride == 0 && low < digit.stride {
            // This digit straddles the cut: cut it too. The quotient takes its upper part from weight 1 on.
            let cut = size / digit.stride;
            if !digit.outermost && digit.count % cut != 0 {
                return None;
            }
            quotient.push(Digit {
                divisor: digit.divisor * cut,
                count: digit.count.div_ceil(cut),
                stride: 1,
                ..*digit
            });
            if cut > 1 {
                low += (cut - 1) * digit.stride;
                remainder.push(Digit { count: cut, outermost: false, ..*digit });
            }
        } else {
            return None;
        }
    }
    Some((quotient, remainder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Merging two dimensions and splitting three times, whatever the sizes, is div and mod.
        #[test]
        fn merge_and_split_are_div_and_mod(a in 1..9u64, b in 1..9u64, sizes in [1..13u64, 1..13u64, 1..13u64]) {
            let mut builder = Builder::default();
            let parts = [Builder::dimension(0, a), Builder::dimension(1, b)];
            let merged = Builder::merge(parts.iter().zip([a, b]));
            let mut axes = alloc::vec![(merged, a * b)];
            for size in sizes {
                let (axis, bound) = axes.pop().expect("an axis");
                let (quotient, remainder) = builder.split(axis, bound, size);
                axes.push((remainder, size));
                axes.push((quotient, bound.div_ceil(size)));
            }
            for x in 0..a {
                for y in 0..b {
                    let mut nested = Vec::new();
                    for axis in &builder.nested {
                        nested.push(axis.value(&[x, y], &nested));
                    }
                    let mut whole = x * b + y;
                    for (i, size) in sizes.into_iter().enumerate() {
                        prop_assert_eq!(Digit::sum(&axes[i].0, &[x, y], &nested), whole % size);
                        whole /= size;
                    }
                    prop_assert_eq!(Digit::sum(&axes[3].0, &[x, y], &nested), whole);
                }
            }
        }
    }
}
