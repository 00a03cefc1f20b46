//! The parts of nests: loops, and the leaves that kernels run.

use crate::{
    joint_digits::{JointDigit, JointDigits},
    scalar::Elements,
};

/// One loop: a digit, and the distance of its values on both sides, in bytes (in elements if the leaf is
/// [`Leaf::Elements`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// The number whose limit bounds the digit; `None` if it always takes all its values.
    pub(crate) number: Option<usize>,
    pub(crate) divisor: u64,
    pub(crate) count: u64,
    pub(crate) source_stride: u64,
    pub(crate) destination_stride: u64,
}

impl Loop {
    /// A joint digit, its strides scaled from elements.
    pub(crate) fn of(joint: &JointDigits, digit: &JointDigit, scale: (u64, u64)) -> Self {
        let always_full = joint.bounds[digit.number].is_multiple_of(digit.divisor * digit.count);
        Self {
            number: (!always_full).then_some(digit.number),
            divisor: digit.divisor,
            count: digit.count,
            source_stride: digit.source_stride * scale.0,
            destination_stride: digit.destination_stride * scale.1,
        }
    }

    /// The destination bytes that belong to one value of the loop, when `room` belong to all of them.
    pub(crate) fn room(&self, room: u64, value: u64) -> u64 {
        self.destination_stride.min(room.saturating_sub(value * self.destination_stride))
    }

    /// How many values the digit takes under these limits.
    pub(crate) fn extent(&self, limits: &[u64]) -> u64 {
        match self.number {
            None => self.count,
            Some(number) => upper(self.count, limits[number], self.divisor),
        }
    }
}

/// min(count, ⌈limit / divisor⌉), with a division only where it matters.
fn upper(count: u64, limit: u64, divisor: u64) -> u64 {
    if limit >= count * divisor { count } else { limit.div_ceil(divisor) }
}

/// One digit, or two neighbours of one number, as a side of a [`Leaf::Transpose`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) inner: Loop,
    /// The outer digit: its divisor is the inner one's divisor times count.
    pub(crate) outer: Option<Loop>,
}

impl Chain {
    pub(crate) fn extent(&self, limits: &[u64]) -> u64 {
        let all = self.inner.count * self.outer.map_or(1, |outer| outer.count);
        let ragged = self.inner.number.or(self.outer.and_then(|outer| outer.number));
        ragged.map_or(all, |number| upper(all, limits[number], self.inner.divisor))
    }

    pub(crate) fn count(&self) -> u64 {
        self.inner.count * self.outer.map_or(1, |outer| outer.count)
    }
}

/// The conversion of a unit of one side into one of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Convert {
    /// Bytes stay bytes.
    Copy,
    /// `8 / bits` source bytes, `pitch` apart, become one.
    Pack { bits: u32, pitch: u64 },
    /// One byte becomes `8 / bits` destination bytes, `pitch` apart.
    Unpack { bits: u32, signed: bool, pitch: u64 },
}

impl Convert {
    /// Whether the elements of a packed byte are of different rows on the other side.
    pub(crate) fn is_across_rows(self) -> bool {
        matches!(self, Self::Pack { pitch, .. } | Self::Unpack { pitch, .. } if pitch > 1)
    }
}

/// The innermost digits, done by one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaf {
    /// A run that is contiguous on both sides: `run` units, or one.
    Run { source_unit: u64, unit: u64, run: Option<Loop>, convert: Convert },
    /// Units of 1, 2, 4, 8 or 16 bytes: `rows` is contiguous in the destination, `columns` in the source.
    Transpose { unit: u64, rows: Chain, columns: Chain, kind: Transpose, convert: Convert },
    /// Single elements of any width at any bit.
    Elements(Elements),
    /// No element exists.
    Nothing,
}

/// How a transpose fits into registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transpose {
    /// Columns follow each other in the destination, `ways` rows deep.
    Interleave { ways: usize },
    /// Rows follow each other in the source, `ways` columns wide.
    Deinterleave { ways: usize },
    /// Any other, in blocks of a cache line by a vector.
    Blocks,
}
