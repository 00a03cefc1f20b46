//! A slice as digits: the values that each digit of the layout takes.
//!
//! Cut into digits, an interval of indices is a head, a middle and a tail: 3…28 by eights is (0; 3…7), (1…2; 0…7), (3; 0…4). Such
//! *pieces* are disjoint, and in each of them the digits vary independently. A nested axis joins the dimensions it is made of.

use crate::{Digit, DigitSource, Error, ErrorKind, Tiled};
use alloc::{format, vec, vec::Vec};

/// The values `first`, `first` + `step`, …: `count` of them, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Progression {
    pub(super) first: u64,
    pub(super) count: u64,
    /// 1 where there is one value.
    pub(super) step: u64,
}

impl Progression {
    pub(super) fn new(first: u64, step: u64, count: u64) -> Self {
        Self { first, count, step: if count == 1 { 1 } else { step } }
    }

    fn single(value: u64) -> Self {
        Self::new(value, 1, 1)
    }

    pub(super) fn last(self) -> u64 {
        self.first + (self.count - 1) * self.step
    }

    pub(super) fn contains(self, value: u64) -> bool {
        (self.first..=self.last()).contains(&value) && (value - self.first) % self.step == 0
    }
}

/// Digits that depend on each other and on no others, with the pieces of the slice.
pub(super) struct Group {
    /// The place of each digit.
    pub(super) digits: Vec<Place>,
    /// The pieces one after the other, a progression a digit.
    pub(super) progressions: Vec<Progression>,
}

/// The place where a digit counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the offset: the number of one of [`Tiled::digits`].
    Memory(usize),
    /// In the value of a nested axis.
    Axis { axis: usize, weight: u64 },
}

/// Maximum number of pieces; more are refused. Only a `*` whose merged dimensions a tile cuts across has more.
const MOST_PIECES: usize = 1 << 12;

/// The pieces of a slice that takes one progression of values along each dimension.
pub(super) fn pieces(tiled: &Tiled, slice: &[Progression]) -> Result<Vec<Group>, Error> {
    let mut groups = Vec::with_capacity(slice.len());
    for (dimension, &values) in slice.iter().enumerate() {
        let group = Group { digits: Vec::new(), progressions: vec![] };
        let digits = digits_of(tiled, DigitSource::Dimension(dimension))?;
        groups.push(group.cut(&digits, &[(Vec::new(), vec![values])])?);
    }
    for axis in 0..tiled.nested_axes().len() {
        nest(tiled, axis, &mut groups)?;
    }
    groups.retain(|group| !group.digits.is_empty());
    Ok(groups)
}

/// The digits that are cut from a source, the most significant first, each with its place.
fn digits_of(tiled: &Tiled, source: DigitSource) -> Result<Vec<(Digit, Place)>, Error> {
    let own = |digit: &&Digit| digit.source == source;
    let memory = tiled.digits().iter().enumerate().filter(|(_, digit)| own(digit));
    let mut digits: Vec<_> = memory.map(|(number, digit)| (*digit, Place::Memory(number))).collect();
    for (axis, nested) in tiled.nested_axes().iter().enumerate() {
        let parts = nested.digits.iter().filter(own);
        digits.extend(parts.map(|digit| (*digit, Place::Axis { axis, weight: digit.stride })));
    }
    digits.sort_by_key(|(digit, _)| core::cmp::Reverse(digit.divisor));
    let follows = |pair: &[(Digit, Place)]| pair[0].0.divisor == pair[1].0.divisor * pair[1].0.count;
    let complete = digits.windows(2).all(follows) && digits.last().is_none_or(|(digit, _)| digit.divisor == 1);
    // Every index has an offset of its own, so the digits are a mixed-radix number of it.
    if complete { Ok(digits) } else { Err(undecided()) }
}

impl Group {
    /// The group with other digits behind its own. Each row has the values of the digits it keeps, and those that the
    /// others are cut from.
    fn cut(mut self, digits: &[(Digit, Place)], rows: &[(Vec<Progression>, Vec<Progression>)]) -> Result<Self, Error> {
        self.digits.extend(digits.iter().map(|&(_, place)| place));
        self.progressions.clear();
        let width = self.digits.len();
        let mut piece = Vec::with_capacity(width);
        for (kept, values) in rows {
            for &value in values {
                piece.clone_from(kept);
                cut(value, digits, &mut piece, &mut self.progressions, width)?;
            }
        }
        Ok(self)
    }

    /// The pieces, each a progression for every digit.
    pub(super) fn pieces(&self) -> impl ExactSizeIterator<Item = &[Progression]> {
        self.progressions.chunks_exact(self.digits.len().max(1))
    }
}

/// Cuts values into digits, and adds to `out` a row for each piece: the contents of `piece`, then its digits.
fn cut(
    values: Progression,
    digits: &[(Digit, Place)],
    piece: &mut Vec<Progression>,
    out: &mut Vec<Progression>,
    width: usize,
) -> Result<(), Error> {
    let Some(((digit, _), lower)) = digits.split_first() else {
        if out.len() >= MOST_PIECES * width.max(1) {
            return Err(undecided());
        }
        out.extend_from_slice(piece);
        return Ok(());
    };
    let (divisor, Progression { first, step, count }) = (digit.divisor, values);
    let mut with = |upper: Progression, rest: Progression| {
        piece.push(upper);
        let done = cut(rest, lower, piece, out, width);
        piece.pop();
        done
    };
    if count == 1 || step % divisor == 0 {
        let upper = Progression::new(first / divisor, step / divisor, count);
        return with(upper, Progression::single(first % divisor));
    }
    let last = values.last();
    let (start, end) = (first / divisor, last / divisor);
    if start == end {
        return with(Progression::single(start), Progression::new(first % divisor, step, count));
    }
    // The part of the progression at one value of the digit.
    let part = |value: u64| {
        let base = value * divisor;
        let from = if base <= first { first } else { first + (base - first).div_ceil(step) * step };
        let to = (base + (divisor - 1)).min(last);
        (from <= to).then(|| Progression::new(from - base, step, (to - from) / step + 1))
    };
    if divisor % step != 0 {
        return (start..=end)
            .try_for_each(|value| part(value).map_or(Ok(()), |rest| with(Progression::single(value), rest)));
    }
    let whole = Progression::new(first % step, step, divisor / step);
    let (mut whole_start, mut whole_end) = (start, end + 1);
    if let Some(head) = part(start).filter(|&head| head != whole) {
        with(Progression::single(start), head)?;
        whole_start += 1;
    }
    if let Some(tail) = part(end).filter(|&tail| tail != whole) {
        with(Progression::single(end), tail)?;
        whole_end -= 1;
    }
    if whole_start < whole_end {
        with(Progression::new(whole_start, 1, whole_end - whole_start), whole)?;
    }
    Ok(())
}

/// Joins the groups that a nested axis is made of into one, with the axis' own digits instead of its parts.
fn nest(tiled: &Tiled, axis: usize, groups: &mut Vec<Group>) -> Result<(), Error> {
    let weight = |place: &Place| match *place {
        Place::Axis { axis: number, weight } if number == axis => Some(weight),
        _ => None,
    };
    let (parts, others): (Vec<Group>, Vec<Group>) =
        core::mem::take(groups).into_iter().partition(|group| group.digits.iter().any(|place| weight(place).is_some()));
    *groups = others;
    let joined = parts.into_iter().try_fold(None, |joined: Option<Group>, part| match joined {
        None => Ok(Some(part)),
        Some(joined) => joined.times(&part).map(Some),
    })?;
    let Some(joined) = joined else { return Ok(()) };
    // The axis' parts, the most significant first.
    let mut columns: Vec<(u64, usize)> =
        joined.digits.iter().enumerate().filter_map(|(column, place)| Some((weight(place)?, column))).collect();
    columns.sort_unstable_by(|a, b| b.cmp(a));
    let is_kept = |column: &usize| weight(&joined.digits[*column]).is_none();
    let mut rows = Vec::new();
    for piece in joined.pieces() {
        let kept = (0..piece.len()).filter(is_kept).map(|column| piece[column]).collect();
        rows.push((kept, values(columns.iter().map(|&(weight, column)| (weight, piece[column])))?));
    }
    let kept = (0..joined.digits.len()).filter(is_kept).map(|column| joined.digits[column]).collect();
    let group = Group { digits: kept, progressions: Vec::new() };
    groups.push(group.cut(&digits_of(tiled, DigitSource::Nested(axis))?, &rows)?);
    Ok(())
}

impl Group {
    /// Every piece of one group with every piece of the other.
    fn times(&self, other: &Self) -> Result<Self, Error> {
        if self.pieces().len() * other.pieces().len() > MOST_PIECES {
            return Err(undecided());
        }
        let digits = [&self.digits[..], &other.digits].concat();
        let pairs = self.pieces().flat_map(|a| other.pieces().map(move |b| [a, b].concat()));
        Ok(Self { digits, progressions: pairs.flatten().collect() })
    }
}

/// The values of Σ digit · weight, from the most significant digit on: one progression where the digits continue each other.
fn values(digits: impl DoubleEndedIterator<Item = (u64, Progression)>) -> Result<Vec<Progression>, Error> {
    let mut values = vec![Progression::single(0)];
    for (weight, digit) in digits.rev() {
        let (first, step) = (digit.first * weight, digit.step * weight);
        match values[..] {
            [Progression { first: low, count: 1, .. }] => values[0] = Progression::new(low + first, step, digit.count),
            [low] if digit.count == 1 || low.step.checked_mul(low.count) == Some(step) => {
                values[0] = Progression::new(low.first + first, low.step, low.count * digit.count);
            }
            _ => {
                if (values.len() as u64).saturating_mul(digit.count) > MOST_PIECES as u64 {
                    return Err(undecided());
                }
                let uppers = (0..digit.count).map(|number| first + number * step);
                let shifted = |upper| values.iter().map(move |low| Progression { first: low.first + upper, ..*low });
                values = uppers.flat_map(shifted).collect();
            }
        }
    }
    Ok(values)
}

/// The error of a slice in too many pieces.
pub(super) fn undecided() -> Error {
    let message = format!(
        "the slice is in more than {MOST_PIECES} pieces where tiles cut across what `*` merges or strides skip"
    );
    Error::new(ErrorKind::Undecided, message).with_help("ask for a part of it at a time")
}
