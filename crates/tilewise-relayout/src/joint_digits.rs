//! The digits two layouts have in common.
//!
//! Each layout cuts a dimension's index into digits of its own. Cut at the breakpoints of both, and every joint digit has one
//! stride in the source and one in the destination: a loop. That works wherever each breakpoint divides the next.

use tilewise::{Digit, DigitSource, NestedAxis, Tiled};

/// A joint digit: ((index div `divisor`) mod `count`), with its stride on both sides in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JointDigit {
    /// The index in [`JointDigits::bounds`] of the number that the digit is cut from.
    pub(crate) number: usize,
    pub(crate) divisor: u64,
    pub(crate) count: u64,
    pub(crate) source_stride: u64,
    pub(crate) destination_stride: u64,
}

/// Both layouts as one list of loops, and the dimensions that do not fit into loops.
#[derive(Debug, Default)]
pub(crate) struct JointDigits {
    /// Joint digits, each number's from minor to major.
    pub(crate) digits: Vec<JointDigit>,
    /// The bounds of the numbers that digits are cut from: dimensions, or several that move as one.
    pub(crate) bounds: Vec<u64>,
    /// The dimensions whose digits have no common loops.
    pub(crate) irregular: Vec<usize>,
}

impl JointDigits {
    pub(crate) fn of(from: &Tiled, to: &Tiled) -> Self {
        let dimensions = from.logical_dimensions();
        let mut joint = Self { digits: Vec::with_capacity(3 * dimensions.len()), ..Self::default() };
        for (dimension, &bound) in dimensions.iter().enumerate() {
            let regular = !from.is_nested(dimension) && !to.is_nested(dimension);
            let (source, destination) = (from.digits_of(dimension), to.digits_of(dimension));
            if !(regular && joint.push_dimension(bound, source, destination)) {
                joint.irregular.push(dimension);
            }
        }
        joint.join_dimensions();
        joint
    }

    /// Cuts one dimension at the breakpoints of both sides; false, and nothing done, if they do not divide each other.
    fn push_dimension(&mut self, bound: u64, source: &[Digit], destination: &[Digit]) -> bool {
        let start = self.digits.len();
        let number = self.bounds.len();
        let divisor_after = |digits: &[Digit], divisor: u64| {
            digits.iter().map(|digit| digit.divisor).find(|&next| next > divisor).unwrap_or(u64::MAX)
        };
        let mut divisor = 1;
        while divisor < bound {
            let next = divisor_after(source, divisor).min(divisor_after(destination, divisor));
            let count = if next == u64::MAX { bound.div_ceil(divisor) } else { next / divisor };
            let strides = (stride_at(source, divisor), stride_at(destination, divisor));
            let (Some(source_stride), Some(destination_stride), true) =
                (strides.0, strides.1, next == u64::MAX || next % divisor == 0)
            else {
                self.digits.truncate(start);
                return false;
            };
            self.digits.push(JointDigit { number, divisor, count, source_stride, destination_stride });
            divisor = next;
        }
        self.bounds.push(bound);
        true
    }

    /// Whether the digits of a number take all their values, so that no loop over them ends early.
    pub(crate) fn is_full(&self, number: usize) -> bool {
        let mut digits = self.digits.iter().filter(|digit| digit.number == number);
        digits.next_back().is_none_or(|outermost| outermost.divisor * outermost.count == self.bounds[number])
    }

    /// Cuts a number in two at `at`: the part below it remains here; returns the rest and its two start offsets.
    ///
    /// `at` must be a multiple of the divisor and of the reach of every digit that the rest has left.
    pub(crate) fn cut(&mut self, number: usize, at: u64) -> (Self, u64, u64) {
        let mut rest = Self { digits: self.digits.clone(), bounds: self.bounds.clone(), irregular: Vec::new() };
        let (mut source, mut destination) = (0, 0);
        for digit in self.digits.iter().filter(|digit| digit.number == number) {
            let outermost = digit.divisor.saturating_mul(digit.count) >= self.bounds[number];
            let value = if outermost { at / digit.divisor } else { at / digit.divisor % digit.count };
            source += value * digit.source_stride;
            destination += value * digit.destination_stride;
        }
        rest.bound(number, self.bounds[number] - at);
        self.bound(number, at);
        (rest, source, destination)
    }

    /// Lowers the bound of a number.
    fn bound(&mut self, number: usize, bound: u64) {
        self.bounds[number] = bound;
        self.digits.retain_mut(|digit| {
            if digit.number == number {
                digit.count = digit.count.min(bound.div_ceil(digit.divisor));
            }
            digit.count > 1
        });
    }

    /// Joins numbers whose strides continue each other on both sides: `f32[8,9]` to itself is one run of 72.
    fn join_dimensions(&mut self) {
        'again: loop {
            for minor in 0..self.bounds.len() {
                let Some(top) = self.digits.iter().rposition(|digit| digit.number == minor) else { continue };
                if !self.is_full(minor) {
                    continue;
                }
                let upper = self.digits[top];
                let continues = |digit: &JointDigit| {
                    digit.number != minor
                        && digit.divisor == 1
                        && Some(digit.source_stride) == upper.source_stride.checked_mul(upper.count)
                        && Some(digit.destination_stride) == upper.destination_stride.checked_mul(upper.count)
                };
                if let Some(low) = self.digits.iter().position(continues) {
                    self.join(minor, top, low);
                    continue 'again;
                }
            }
            return;
        }
    }

    /// Puts the number whose lowest digit is at `low` on top of the number `minor`, whose highest digit is at `top`.
    fn join(&mut self, minor: usize, top: usize, low: usize) {
        let JointDigit { number: major, count, .. } = self.digits[low];
        let weight = self.bounds[minor];
        self.digits[top].count *= count;
        let mut joined: Vec<JointDigit> = self.digits.iter().filter(|digit| digit.number == minor).copied().collect();
        let above = self.digits.iter().filter(|digit| digit.number == major).skip(1);
        joined.extend(above.map(|digit| JointDigit { number: minor, divisor: digit.divisor * weight, ..*digit }));
        self.digits.retain(|digit| digit.number != minor && digit.number != major);
        self.digits.extend(joined);
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

    /// The number of nested axes that [`offset`](Self::offset) needs room for.
    pub(crate) fn nested_axes(&self) -> usize {
        self.nested.len()
    }

    /// This part of the offset, in elements. `index` has an entry for every dimension.
    pub(crate) fn offset(&self, index: &[u64], nested: &mut [u64]) -> u64 {
        for (at, axis) in self.nested.iter().enumerate() {
            nested[at] = axis.value(index, nested);
        }
        Digit::sum(&self.digits, index, nested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joint_digits(from: &str, to: &str) -> JointDigits {
        let tiled = |text: &str| Tiled::new(&text.parse().expect("a shape")).expect("a layout");
        JointDigits::of(&tiled(from), &tiled(to))
    }

    #[test]
    fn breakpoints_of_both_sides() {
        let joint = joint_digits("f32[32,512]{1,0:T(8,128)}", "f32[32,512]{1,0:T(16,256)}");
        let digits: Vec<_> =
            joint.digits.iter().map(|d| (d.divisor, d.count, d.source_stride, d.destination_stride)).collect();
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
        let joint = joint_digits("f32[7,8,9]{2,1,0}", "f32[7,8,9]{0,2,1}");
        assert_eq!(joint.digits.len(), 2);
        assert!(joint.bounds.contains(&72));
        assert_eq!(joint_digits("f32[7,8,9]", "f32[7,8,9]").digits.len(), 1);
    }

    #[test]
    fn what_does_not_nest_is_irregular() {
        assert_eq!(joint_digits("f32[30]{0:T(2)}", "f32[30]{0:T(3)}").irregular, [0; 0], "a rank-1 tile small nothing");
        assert_eq!(joint_digits("f32[4,30]{1,0:T(2,2)}", "f32[4,30]{1,0:T(2,3)}").irregular, [1]);
        assert_eq!(joint_digits("f32[4,5,30]{2,1,0:T(2,*,7)}", "f32[4,5,30]").irregular.len(), 2);
    }
}
