//! What an array has of the samples of a batch.

use std::cmp::min_by_key;

/// What an array has of the samples of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// The same for all samples. Where numbers of samples are what it holds, `counted` says along which digits.
    Same { of_weights: bool, counted: Vec<Digit> },
    /// Each sample has elements of its own: those at its index along the digits. Where `numbered`, they are worked out of the
    /// sample's number, such as the number of a row of its own; where `is_made`, of nothing else and what all have in common.
    Each { of_weights: bool, numbered: bool, is_made: bool, digits: Vec<Digit> },
    /// Something of all samples, such as a sum.
    All { of_weights: bool },
}

/// A digit of a dimension's index that counts samples: (index div `inner`) mod `size`, from the sample `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digit {
    pub(crate) dimension: usize,
    /// 0 for rows of which each sample has as many, and nothing tells which: see [`Digit::of_rows`].
    pub(crate) inner: u64,
    pub(crate) size: u64,
    pub(crate) start: Start,
}

/// The first sample of a digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    At(i64),
    /// A loop's step decides.
    OfStep,
}

impl Start {
    /// The first of groups of so many samples; unknown where a group is begun before.
    pub(super) fn over(self, samples: u64) -> Result<Self, Join> {
        let samples = i64::try_from(samples).map_err(|_| Join::Unknown)?;
        match self {
            Self::At(start) if samples > 0 && start % samples == 0 => Ok(Self::At(start / samples)),
            Self::OfStep if samples == 1 => Ok(self),
            _ => Err(Join::Unknown),
        }
    }

    /// The first within such a group.
    pub(super) fn within(self, samples: u64) -> Result<Self, Join> {
        match self.over(samples)? {
            Self::At(_) => Ok(Self::At(0)),
            Self::OfStep => Ok(self),
        }
    }
}

/// What joins samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// A value has one for each two samples.
    Pairs,
    /// What is worked out of all samples is used for each of them.
    Sum,
    /// Samples at different places meet.
    Neighbours,
    /// The text doesn't tell.
    Unknown,
}

impl Share {
    pub(crate) const SAME: Self = Self::Same { of_weights: false, counted: Vec::new() };

    /// Of samples along whole dimensions, whatever else is known.
    pub(crate) fn each(digits: Vec<Digit>) -> Self {
        Self::Each { of_weights: false, numbered: false, is_made: false, digits }
    }

    /// Whether its elements are worked out of their sample's number.
    pub(crate) const fn is_numbered(&self) -> bool {
        matches!(self, Self::Each { numbered: true, .. })
    }

    pub(crate) const fn of_weights(&self) -> bool {
        let (Self::Same { of_weights, .. } | Self::Each { of_weights, .. } | Self::All { of_weights }) = self;
        *of_weights
    }

    pub(crate) fn marked(mut self, marked: bool) -> Self {
        let (Self::Same { of_weights, .. } | Self::Each { of_weights, .. } | Self::All { of_weights }) = &mut self;
        *of_weights |= marked;
        self
    }

    /// The digits that count samples.
    pub(crate) fn digits(&self) -> &[Digit] {
        if let Self::Each { digits, .. } = self { digits } else { &[] }
    }

    /// The digits along which its elements are samples, or samples' numbers.
    pub(crate) fn all_digits(&self) -> &[Digit] {
        match self {
            Self::Each { digits, .. } | Self::Same { counted: digits, .. } => digits,
            Self::All { .. } => &[],
        }
    }

    /// The same share at other digits.
    pub(crate) fn at(&self, digits: Vec<Digit>) -> Self {
        match self {
            Self::Same { of_weights, .. } => Self::Same { of_weights: *of_weights, counted: digits },
            Self::Each { of_weights, numbered, is_made, .. } => {
                Self::Each { of_weights: *of_weights, numbered: *numbered, is_made: *is_made, digits }
            }
            Self::All { .. } => self.clone(),
        }
    }

    /// What an operation has of the samples that is done with two arrays' elements at the same indices.
    pub(crate) fn with(&self, other: &Self) -> Result<Self, Join> {
        let of_weights = self.of_weights() || other.of_weights();
        let is_number = |share: &Self| match share {
            Self::Same { counted, .. } => !counted.is_empty(),
            share => share.is_numbered(),
        };
        let numbered = is_number(self) || is_number(other);
        Ok(match (self, other) {
            (Self::Same { counted: left, .. }, Self::Same { counted: right, .. }) => {
                // Numbers of samples compared with one another, as for a mask of pairs, are numbers no longer.
                let counted = match (&left[..], &right[..]) {
                    (digits, []) | ([], digits) => digits.to_vec(),
                    (left, right) if left == right => left.to_vec(),
                    _ => Vec::new(),
                };
                Self::Same { of_weights, counted }
            }
            (Self::All { .. }, Self::All { .. } | Self::Same { .. }) | (Self::Same { .. }, Self::All { .. }) => {
                Self::All { of_weights }
            }
            (Self::Each { digits, is_made, .. }, Self::Same { .. })
            | (Self::Same { .. }, Self::Each { digits, is_made, .. }) => {
                Self::Each { of_weights, numbered, is_made: *is_made, digits: digits.clone() }
            }
            (Self::Each { digits: left, is_made, .. }, Self::Each { digits: right, is_made: is_other_made, .. }) => {
                let is_made = *is_made && *is_other_made;
                let digits = match together(left, right) {
                    // A picture's rows and columns, counted alike: parts are of the outer ones.
                    Err(Join::Pairs) if is_made => {
                        min_by_key(left, right, |digits| digits.first().map(|at| at.dimension)).clone()
                    }
                    digits => digits?,
                };
                Self::Each { of_weights, numbered, is_made, digits }
            }
            (Self::Each { digits, is_made, .. }, Self::All { of_weights: is_learned })
            | (Self::All { of_weights: is_learned }, Self::Each { digits, is_made, .. }) => {
                if *is_learned {
                    return Err(Join::Sum);
                }
                Self::Each { of_weights, numbered, is_made: *is_made, digits: digits.clone() }
            }
        })
    }
}

/// The digits of two arrays of samples that meet index by index.
fn together(left: &[Digit], right: &[Digit]) -> Result<Vec<Digit>, Join> {
    if left == right || right.is_empty() {
        return Ok(left.to_vec());
    }
    if left.is_empty() {
        return Ok(right.to_vec());
    }
    let are_all = |is: &dyn Fn(&Digit, &Digit) -> bool| {
        left.len() == right.len() && left.iter().zip(right).all(|(one, other)| is(one, other))
    };
    // Where rows lie is known once one of two arrays tells.
    let is_placed = |one: &Digit, other: &Digit| one == other || other.is_of_rows() && one.dimension == other.dimension;
    if are_all(&is_placed) {
        return Ok(left.to_vec());
    }
    if are_all(&|one, other| is_placed(other, one)) {
        return Ok(right.to_vec());
    }
    let is_same = are_all(&|one, other| (one.dimension, one.inner) == (other.dimension, other.inner));
    Err(if is_same { Join::Neighbours } else { Join::Pairs })
}

impl Digit {
    pub(crate) const fn new(dimension: usize, inner: u64, size: u64) -> Self {
        Self { dimension, inner, size, start: Start::At(0) }
    }

    /// Rows that a scatter writes at numbers worked out of samples' own: where samples' dimension and that of the rows are
    /// apart again, their bounds tell where each lies.
    pub(crate) const fn of_rows(dimension: usize, size: u64) -> Self {
        Self::new(dimension, 0, size)
    }

    pub(crate) const fn is_of_rows(&self) -> bool {
        self.inner == 0
    }

    pub(crate) const fn along(self, dimension: usize) -> Self {
        Self { dimension, ..self }
    }

    /// How many indices of the dimension its samples take together.
    pub(crate) const fn extent(&self) -> u64 {
        self.size.saturating_mul(self.inner)
    }

    /// The digit of a part of its dimension, of `length` indices from `start` on; `None` for the start is one that a loop's
    /// step decides.
    pub(crate) fn cut(self, bound: u64, start: Option<i64>, length: u64) -> Result<Self, Join> {
        let extent = self.extent();
        if length == bound && start == Some(0) {
            return Ok(self);
        }
        if self.is_of_rows() {
            return Err(Join::Unknown);
        }
        // What is outside of the samples, such as a step of time, is cut.
        let signed = i64::try_from(extent).unwrap_or(i64::MAX).max(1);
        if bound > extent && length.is_multiple_of(extent.max(1)) && start.is_none_or(|start| start % signed == 0) {
            return Ok(self);
        }
        let inner = i64::try_from(self.inner).unwrap_or(i64::MAX).max(1);
        if bound > extent || !length.is_multiple_of(self.inner) || start.is_some_and(|start| start % inner != 0) {
            return Err(Join::Neighbours);
        }
        let start = match (self.start, start) {
            (Start::At(before), Some(start)) => Start::At(before.saturating_add(start / inner)),
            _ => Start::OfStep,
        };
        Ok(Self { size: length / self.inner, start, ..self })
    }
}
