//! The digits two layouts have in common.
//!
//! Each layout cuts a dimension's index into digits of its own. Cut at the breakpoints of both, and every joint digit has one
//! stride in the source and one in the destination: a loop. That works wherever each breakpoint divides the next.

use tilewise::{Digit, DigitSource, NestedAxis, Tiled};

/// A joint digit: ((index div `divisor`) mod `count`), with its stride on both sides in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// The place in [`Axes::bounds`] of the number the digit is cut from.
    pub(crate) number: usize,
    pub(crate) divisor: u64,
    pub(crate) count: u64,
    pub(crate) source: u64,
    pub(crate) destination: u64,
}

/// Both layouts as one list of loops, and what does not fit into loops.
#[derive(Debug, Default)]
pub(crate) struct Axes {
    /// Joint digits, each number's from minor to major.
    pub(crate) axes: Vec<Axis>,
    /// The numbers that digits are cut from stay below these: dimensions, or several that move as one.
    pub(crate) bounds: Vec<u64>,
    /// The dimensions whose digits have no common loops.
    pub(crate) irregular: Vec<usize>,
}

impl Axes {
    pub(crate) fn of(from: &Tiled, to: &Tiled) -> Self {
        let dimensions = from.logical_dimensions();
        let mut joint = Self { axes: Vec::with_capacity(3 * dimensions.len()), ..Self::default() };
        for (dimension, &bound) in dimensions.iter().enumerate() {
            let regular = !is_nested(from, dimension) && !is_nested(to, dimension);
            let (source, destination) = (digits_of(from, dimension), digits_of(to, dimension));
            if !(regular && joint.push_dimension(bound, source, destination)) {
                joint.irregular.push(dimension);
            }
        }
        joint.join_dimensions();
        joint
    }

    /// Cuts one dimension at the breakpoints of both sides; false, and nothing done, where they do not divide each other.
    fn push_dimension(&mut self, bound: u64, source: &[Digit], destination: &[Digit]) -> bool {
        let start = self.axes.len();
        let number = self.bounds.len();
        let divisor_after = |digits: &[Digit], divisor: u64| {
            digits.iter().map(|digit| digit.divisor).find(|&next| next > divisor).unwrap_or(u64::MAX)
        };
        let mut divisor = 1;
        while divisor < bound {
            let next = divisor_after(source, divisor).min(divisor_after(destination, divisor));
            let count = if next == u64::MAX { bound.div_ceil(divisor) } else { next / divisor };
            let strides = (stride_at(source, divisor), stride_at(destination, divisor));
            let (Some(source), Some(destination), true) =
                (strides.0, strides.1, next == u64::MAX || next % divisor == 0)
            else {
                self.axes.truncate(start);
                return false;
            };
            self.axes.push(Axis { number, divisor, count, source, destination });
            divisor = next;
        }
        self.bounds.push(bound);
        true
    }

    /// Whether the digits of a number take all their values, so that no loop over them ends early.
    pub(crate) fn is_full(&self, number: usize) -> bool {
        let mut digits = self.axes.iter().filter(|axis| axis.number == number);
        digits.next_back().is_none_or(|outermost| outermost.divisor * outermost.count == self.bounds[number])
    }

    /// Cuts a number in two, below `at` and from `at` on: what remains here, and the rest with the offsets it starts at.
    ///
    /// `at` must be a multiple of the divisor and of the reach of every digit that the rest has left.
    pub(crate) fn cut(&mut self, number: usize, at: u64) -> (Self, u64, u64) {
        let mut rest = Self { axes: self.axes.clone(), bounds: self.bounds.clone(), irregular: Vec::new() };
        let (mut source, mut destination) = (0, 0);
        for axis in self.axes.iter().filter(|axis| axis.number == number) {
            let outermost = axis.divisor.saturating_mul(axis.count) >= self.bounds[number];
            let value = if outermost { at / axis.divisor } else { at / axis.divisor % axis.count };
            source += value * axis.source;
            destination += value * axis.destination;
        }
        rest.bound(number, self.bounds[number] - at);
        self.bound(number, at);
        (rest, source, destination)
    }

    /// Lowers the bound of a number.
    fn bound(&mut self, number: usize, bound: u64) {
        self.bounds[number] = bound;
        self.axes.retain_mut(|axis| {
            if axis.number == number {
                axis.count = axis.count.min(bound.div_ceil(axis.divisor));
            }
            axis.count > 1
        });
    }

    /// Makes one number of two whose strides continue each other on both sides: `f32[8,9]` to itself is one run of 72.
    fn join_dimensions(&mut self) {
        'again: loop {
            for minor in 0..self.bounds.len() {
                let Some(top) = self.axes.iter().rposition(|axis| axis.number == minor) else { continue };
                if !self.is_full(minor) {
                    continue;
                }
                let upper = self.axes[top];
                let continues = |axis: &Axis| {
                    axis.number != minor
                        && axis.divisor == 1
                        && Some(axis.source) == upper.source.checked_mul(upper.count)
                        && Some(axis.destination) == upper.destination.checked_mul(upper.count)
                };
                if let Some(low) = self.axes.iter().position(continues) {
                    self.join(minor, top, low);
                    continue 'again;
                }
            }
            return;
        }
    }

    /// Puts the number whose lowest digit is at `low` on top of the number `minor`, whose highest digit is at `top`.
    fn join(&mut self, minor: usize, top: usize, low: usize) {
        let Axis { number: major, count, .. } = self.axes[low];
        let weight = self.bounds[minor];
        self.axes[top].count *= count;
        let mut joined: Vec<Axis> = self.axes.iter().filter(|axis| axis.number == minor).copied().collect();
        let above = self.axes.iter().filter(|axis| axis.number == major).skip(1);
        joined.extend(above.map(|axis| Axis { number: minor, divisor: axis.divisor * weight, ..*axis }));
        self.axes.retain(|axis| axis.number != minor && axis.number != major);
        self.axes.extend(joined);
        self.bounds[minor] *= self.bounds[major];
        self.bounds[major] = 1;
    }
}

/// The stride of the digit that starts at `divisor` inside one layout's digits.
fn stride_at(digits: &[Digit], divisor: u64) -> Option<u64> {
    let digit = digits.iter().rev().find(|digit| digit.divisor <= divisor)?;
    let inside = divisor / digit.divisor;
    (divisor.is_multiple_of(digit.divisor) && (digit.outermost || inside < digit.count)).then(|| digit.stride * inside)
}

fn digits_of(tiled: &Tiled, dimension: usize) -> &[Digit] {
    let source = DigitSource::Dimension(dimension);
    let digits = tiled.digits();
    let start = digits.partition_point(|digit| digit.source < source);
    let count = digits[start..].partition_point(|digit| digit.source == source);
    &digits[start..start + count]
}

fn is_nested(tiled: &Tiled, dimension: usize) -> bool {
    let inside = |axis: &NestedAxis| axis.digits.iter().any(|d| d.source == DigitSource::Dimension(dimension));
    tiled.nested_axes().iter().any(inside)
}

/// One side's offset as a function of the irregular dimensions alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    digits: Vec<Digit>,
    nested: Vec<NestedAxis>,
}

impl Terms {
    pub(crate) fn of(tiled: &Tiled, irregular: &[usize]) -> Self {
        let belongs = |digit: &&Digit| match digit.source {
            DigitSource::Dimension(dimension) => irregular.contains(&dimension),
            DigitSource::Nested(_) => true,
        };
        let digits = tiled.digits().iter().filter(belongs).copied().collect();
        Self { digits, nested: tiled.nested_axes().to_vec() }
    }

    /// How many nested axes [`offset`](Self::offset) needs room for.
    pub(crate) fn nested_axes(&self) -> usize {
        self.nested.len()
    }

    /// The part of the offset, in elements. `index` has a place for every dimension.
    pub(crate) fn offset(&self, index: &[u64], nested: &mut [u64]) -> u64 {
        for (at, axis) in self.nested.iter().enumerate() {
            nested[at] = sum(&axis.digits, index, nested);
        }
        sum(&self.digits, index, nested)
    }
}

fn sum(digits: &[Digit], index: &[u64], nested: &[u64]) -> u64 {
    let source = |digit: &Digit| match digit.source {
        DigitSource::Dimension(dimension) => index[dimension],
        DigitSource::Nested(axis) => nested[axis],
    };
    digits.iter().map(|digit| digit.value(source(digit)) * digit.stride).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(from: &str, to: &str) -> Axes {
        let tiled = |text: &str| Tiled::new(&text.parse().expect("a shape")).expect("a layout");
        Axes::of(&tiled(from), &tiled(to))
    }

    #[test]
    fn breakpoints_of_both_sides() {
        let joint = axes("f32[32,512]{1,0:T(8,128)}", "f32[32,512]{1,0:T(16,256)}");
        let digits: Vec<_> = joint.axes.iter().map(|a| (a.divisor, a.count, a.source, a.destination)).collect();
        assert_eq!(
            digits,
            [
                (1, 8, 128, 256),
                (8, 2, 4096, 2048),
                (16, 2, 8192, 8192),
                (1, 128, 1, 1),
                (128, 2, 1024, 128),
                (256, 2, 2048, 4096)
            ]
        );
        assert!(joint.irregular.is_empty());
    }

    #[test]
    fn dimensions_that_move_as_one_are_one() {
        let joint = axes("f32[7,8,9]{2,1,0}", "f32[7,8,9]{0,2,1}");
        assert_eq!(joint.axes.len(), 2);
        assert!(joint.bounds.contains(&72));
        assert_eq!(axes("f32[7,8,9]", "f32[7,8,9]").axes.len(), 1);
    }

    #[test]
    fn what_does_not_nest_is_irregular() {
        assert_eq!(axes("f32[30]{0:T(2)}", "f32[30]{0:T(3)}").irregular, [0; 0], "a rank-1 tile moves nothing");
        assert_eq!(axes("f32[4,30]{1,0:T(2,2)}", "f32[4,30]{1,0:T(2,3)}").irregular, [1]);
        assert_eq!(axes("f32[4,5,30]{2,1,0:T(2,*,7)}", "f32[4,5,30]").irregular.len(), 2);
    }
}
