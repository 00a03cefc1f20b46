//! The dimensions of an array that gets other bounds while its elements stay in place.

use tilewise::{DigitSource, Tiled};

use super::{Array, FactorKind, Factors, Place};

/// (index div `divisor`) mod `count` of a dimension, whose values lie `stride` apart.
#[derive(Clone, Copy, Debug)]
struct Digit {
    dimension: usize,
    divisor: u64,
    count: u64,
    stride: u128,
}

/// Digits of two arrays that are the same number.
#[derive(Clone, Copy, Debug)]
struct Joint {
    from: (usize, u64),
    to: (usize, u64),
    count: u64,
}

/// Adds the factors of a `reshape`: elements are numbered row-major in both arrays.
pub(super) fn add_reshape(arrays: &[&Array], found: &mut Factors) {
    if let [from, to] = arrays {
        add(joint(row_major(&from.bounds), row_major(&to.bounds)), from, to, found);
    }
}

/// Adds the factors of a `bitcast`: bytes are the same in both arrays, and [`Tiled`] gives the place of each element.
pub(super) fn add_bitcast(arrays: &[&Array], found: &mut Factors) {
    if let [from, to] = arrays {
        let digits = in_memory(from).zip(in_memory(to));
        // A text without layouts has row-major ones.
        let digits = digits.unwrap_or_else(|| (row_major(&from.bounds), row_major(&to.bounds)));
        add(joint(digits.0, digits.1), from, to, found);
    }
}

fn row_major(bounds: &[u64]) -> Vec<Digit> {
    let mut stride = 1_u128;
    let digits = bounds.iter().enumerate().rev().map(|(dimension, count)| {
        let digit = Digit { dimension, divisor: 1, count: *count, stride };
        stride = stride.saturating_mul(u128::from(*count));
        digit
    });
    digits.filter(|digit| digit.count > 1).collect()
}

/// The digits of an array by rising stride, in bits.
fn in_memory(array: &Array) -> Option<Vec<Digit>> {
    let tiled = Tiled::new(&array.shape).ok()?;
    let bits = u128::from(tiled.stored_bits());
    let digits = tiled.digits().iter().filter_map(|digit| match digit.source {
        DigitSource::Dimension(dimension) => {
            let (divisor, count) = (digit.divisor, digit.count);
            Some(Digit { dimension, divisor, count, stride: u128::from(digit.stride) * bits })
        }
        DigitSource::Nested(_) => None,
    });
    let mut digits: Vec<Digit> = digits.collect();
    digits.sort_by_key(|digit| digit.stride);
    Some(digits)
}

/// The digits that two arrays, with digits by rising stride, have in common: both are cut where either begins another
/// digit. Parts that don't divide are in common with none.
fn joint(mut from: Vec<Digit>, mut to: Vec<Digit>) -> Vec<Joint> {
    from.reverse();
    to.reverse();
    let mut found = Vec::new();
    while let (Some(one), Some(other)) = (from.last_mut(), to.last_mut()) {
        let (is_one_done, is_other_done);
        if one.stride != other.stride {
            let (one_stride, other_stride) = (one.stride, other.stride);
            is_one_done = one_stride < other_stride && !raise(one, other_stride);
            is_other_done = other_stride < one_stride && !raise(other, one_stride);
        } else {
            let count = greatest_common_divisor(one.count, other.count);
            if count > 1 {
                let (from, to) = ((one.dimension, one.divisor), (other.dimension, other.divisor));
                found.push(Joint { from, to, count });
                (is_one_done, is_other_done) = (take(one, count), take(other, count));
            } else {
                // They have no digit in common up to the end of the first of them.
                is_one_done = one.count <= other.count;
                is_other_done = other.count <= one.count;
            }
        }
        if is_one_done {
            from.pop();
        }
        if is_other_done {
            to.pop();
        }
    }
    merged(found)
}

/// Drops the part of a digit below a stride; `false` if nothing is left, or no part of it begins there.
fn raise(digit: &mut Digit, stride: u128) -> bool {
    let times = stride / digit.stride.max(1);
    let Ok(times) = u64::try_from(times) else { return false };
    let is_cut = stride.is_multiple_of(digit.stride.max(1)) && times < digit.count && digit.count.is_multiple_of(times);
    if is_cut {
        take(digit, times);
    }
    is_cut
}

/// Takes the minor part of a digit away, and returns whether that was all.
fn take(digit: &mut Digit, count: u64) -> bool {
    digit.divisor = digit.divisor.saturating_mul(count);
    digit.stride = digit.stride.saturating_mul(u128::from(count));
    digit.count /= count.max(1);
    digit.count <= 1
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one.max(1)
}

/// Digits that follow one another in both arrays are one: a dimension in tiles is whole again.
fn merged(mut digits: Vec<Joint>) -> Vec<Joint> {
    digits.sort_by_key(|digit| digit.from);
    digits.dedup_by(|high, low| {
        let follows = |low: (usize, u64), high: (usize, u64), count: u64| {
            low.0 == high.0 && low.1.checked_mul(count) == Some(high.1)
        };
        let is_one = follows(low.from, high.from, low.count) && follows(low.to, high.to, low.count);
        if is_one {
            low.count = low.count.saturating_mul(high.count);
        }
        is_one
    });
    digits
}

/// Adds a factor for each digit that both arrays have, and a mixed one for each gap between them in a dimension.
fn add(mut digits: Vec<Joint>, from: &Array, to: &Array, found: &mut Factors) {
    // A padded dimension that stays whole: its last tile has fewer places.
    for digit in &mut digits {
        let bounds = (from.bounds.get(digit.from.0), to.bounds.get(digit.to.0));
        if let (Some(one), Some(other)) = bounds
            && one == other
            && (digit.from.1, digit.to.1) == (1, 1)
            && digit.count > *one
        {
            digit.count = *one;
        }
    }
    let mut sides = [Vec::new(), Vec::new()];
    for (array, (side, bounds)) in sides.iter_mut().zip([&from.bounds, &to.bounds]).enumerate() {
        let place = |joint: &Joint| if array == 0 { joint.from } else { joint.to };
        for (dimension, bound) in bounds.iter().enumerate() {
            let of_dimension = digits.iter().enumerate().filter(|(_, joint)| place(joint).0 == dimension);
            let own = of_dimension.map(|(number, joint)| (place(joint).1, joint.count, Some(number)));
            side.extend(filled(own.collect(), *bound).into_iter().map(|piece| (dimension, piece)));
        }
    }
    let mut numbers = vec![None; digits.len()];
    for (array, side) in sides.iter().enumerate() {
        for (dimension, (_, count, number)) in side {
            let is_it = |(_, piece): &(usize, Piece)| piece.2 == *number;
            let is_common = number.is_some() && sides.iter().all(|side| side.iter().any(is_it));
            let kind = if is_common { FactorKind::Pass } else { FactorKind::Mix };
            let factor = match number.filter(|_| is_common) {
                Some(number) => *numbers[number].get_or_insert_with(|| found.add(kind, *count, [])),
                None => found.add(kind, *count, []),
            };
            found.places.push(Place { array, dimension: *dimension, factor });
        }
    }
}

/// A digit of a dimension: its divisor, its count, and its number among the digits in common.
type Piece = (u64, u64, Option<usize>);

/// The digits of a dimension from the major one on, with the gaps between the known ones; the whole dimension, as
/// unknown, if one digit straddles another, or they don't divide its bound.
fn filled(mut own: Vec<Piece>, bound: u64) -> Vec<Piece> {
    let unknown = || (bound > 1).then_some((1, bound, None)).into_iter().collect();
    own.sort_unstable();
    let (mut all, mut covered) = (Vec::new(), 1_u64);
    for (divisor, count, number) in own {
        if divisor < covered || !divisor.is_multiple_of(covered) {
            return unknown();
        }
        all.extend((divisor > covered).then(|| (covered, divisor / covered, None)));
        all.push((divisor, count, number));
        covered = divisor.saturating_mul(count);
    }
    if bound == 0 || !bound.is_multiple_of(covered) {
        return unknown();
    }
    all.extend((covered < bound).then(|| (covered, bound / covered, None)));
    all.reverse();
    all
}
