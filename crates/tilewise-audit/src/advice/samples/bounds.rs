//! Digits of arrays whose bounds change while their elements stay where they are.

use super::share::{Digit, Join, Start};
use tilewise::{Shape, TileDimension};

/// The bounds of an array, and how it lies in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    pub(super) bounds: Vec<u64>,
    /// Parts of dimensions in the order of memory, the slowest-varying first.
    axes: Vec<Axis>,
}

/// (index div `inner`) mod `size` of a dimension.
#[derive(Clone, Copy, Debug)]
struct Axis {
    dimension: usize,
    inner: u64,
    size: u64,
}

impl Leaf {
    pub(super) fn new(shape: &Shape) -> Self {
        let bounds: Vec<u64> = shape.dimensions().iter().map(|dimension| dimension.bound().unwrap_or(0)).collect();
        let Some(layout) = shape.layout().filter(|layout| layout.minor_to_major().len() == bounds.len()) else {
            return Self { axes: row_major(&bounds), bounds };
        };
        let order: Vec<usize> = layout.minor_to_major().iter().rev().copied().collect();
        // Further tiles change places within one.
        let tile: Vec<u64> = layout
            .tiles()
            .first()
            .map(|tile| tile.dimensions().iter().map(size_of).collect::<Vec<u64>>())
            .filter(|tile| tile.len() <= bounds.len())
            .unwrap_or_default();
        let (outer, tiled) = order.split_at(bounds.len() - tile.len());
        let whole = outer.iter().map(|at| Axis { dimension: *at, inner: 1, size: bounds[*at] });
        let blocks = tiled.iter().zip(&tile).map(|(at, size)| {
            let inner = (*size).max(1);
            Axis { dimension: *at, inner, size: bounds[*at].div_ceil(inner) }
        });
        let within = tiled.iter().zip(&tile).map(|(at, size)| Axis { dimension: *at, inner: 1, size: (*size).max(1) });
        Self { axes: whole.chain(blocks).chain(within).collect(), bounds }
    }

    /// The dimension of another array whose elements lie where those of this one's dimension do.
    fn place_in(&self, other: &Self, dimension: usize) -> Option<usize> {
        let bound = *self.bounds.get(dimension)?;
        let steps = self.steps(dimension);
        let is_it = |at: &usize| other.bounds[*at] == bound && other.steps(*at) == steps;
        (0..other.bounds.len())
            .find(is_it)
            .filter(|_| bound > 1 && self.elements(&self.axes) == other.elements(&other.axes))
    }

    /// The parts of a dimension, each with how many elements apart its indices lie; tiles that follow one another are one.
    fn steps(&self, dimension: usize) -> Vec<(u64, u64, u128)> {
        let mut minor = 1_u128;
        let mut steps: Vec<(u64, u64, u128)> = Vec::new();
        for axis in self.axes.iter().rev() {
            if axis.dimension == dimension && axis.size > 1 {
                match steps.last_mut() {
                    Some((inner, size, step))
                        if inner.saturating_mul(*size) == axis.inner
                            && step.saturating_mul(u128::from(*size)) == minor =>
                    {
                        *size = size.saturating_mul(axis.size);
                    }
                    _ => steps.push((axis.inner, axis.size, minor)),
                }
            }
            minor = minor.saturating_mul(u128::from(axis.size));
        }
        steps
    }

    /// So many elements with their padding.
    fn elements(&self, axes: &[Axis]) -> u128 {
        axes.iter().fold(1, |product: u128, axis| product.saturating_mul(u128::from(axis.size)))
    }
}

fn row_major(bounds: &[u64]) -> Vec<Axis> {
    bounds.iter().enumerate().map(|(dimension, size)| Axis { dimension, inner: 1, size: *size }).collect()
}

/// The digits that an array has under other bounds, its elements in the same order.
pub(super) fn reshaped(digits: &[Digit], from: &Leaf, to: &Leaf) -> Result<Vec<Digit>, Join> {
    along(digits, (from, &row_major(&from.bounds)), (to, &row_major(&to.bounds)))
}

/// The digits that an array has in another shape, its elements in the same places of memory.
pub(super) fn bitcast(digits: &[Digit], from: &Leaf, to: &Leaf) -> Result<Vec<Digit>, Join> {
    let is_same = |digit: &&Digit| from.place_in(to, digit.dimension).is_some();
    let (kept, moved): (Vec<&Digit>, Vec<&Digit>) = digits.iter().partition(is_same);
    let kept = kept.into_iter().filter_map(|digit| Some(digit.along(from.place_in(to, digit.dimension)?)));
    let moved: Vec<Digit> = moved.into_iter().copied().collect();
    let mut found = along(&moved, (from, &from.axes), (to, &to.axes))?;
    found.extend(kept);
    found.sort_by_key(|digit| (digit.dimension, digit.inner));
    Ok(found)
}

fn along(
    digits: &[Digit],
    (from, from_axes): (&Leaf, &[Axis]),
    (to, to_axes): (&Leaf, &[Axis]),
) -> Result<Vec<Digit>, Join> {
    let (before, after) = (from.elements(from_axes), to.elements(to_axes));
    let mut found = Vec::new();
    let mut rows = Vec::new();
    for digit in digits {
        let digit = if digit.is_of_rows() {
            if let Some(placed) = placed_rows(digit, from, to) {
                rows.push(placed);
                continue;
            }
            // Mostly, a sample's rows follow one another.
            let all = from.bounds.get(digit.dimension).copied().unwrap_or(0);
            Digit { inner: all / digit.size.max(1), ..*digit }
        } else {
            *digit
        };
        let mut minor = 1_u128;
        // All of a dimension is followed with its padding.
        let is_all = from.bounds.get(digit.dimension) == Some(&digit.extent());
        for axis in from_axes.iter().rev() {
            let end = axis.inner.saturating_mul(axis.size);
            let (low, high) = (digit.inner.max(axis.inner), if is_all { end } else { digit.extent().min(end) });
            if axis.dimension == digit.dimension && low < high {
                // A tile begins or ends within one of the digit's steps.
                if !low.is_multiple_of(axis.inner) || !low.is_multiple_of(digit.inner) || !high.is_multiple_of(low) {
                    return Err(Join::Unknown);
                }
                let size = high / low;
                let start = digit.start.over(low / digit.inner)?;
                let start = if high < digit.extent() { start.within(size)? } else { start };
                let part = Digit { size, start, ..digit };
                // Elements of another width.
                let stride = minor * u128::from(low / axis.inner) * after / before.max(1);
                placed(part, stride, to_axes, &mut found)?;
            }
            minor = minor.saturating_mul(u128::from(axis.size));
        }
    }
    let mut digits = merged(found);
    for digit in &mut digits {
        digit.size = digit.size.min(to.bounds[digit.dimension] / digit.inner);
    }
    digits.retain(|digit| digit.size > 1);
    digits.extend(rows);
    digits.sort_by_key(|digit| (digit.dimension, digit.inner));
    Ok(digits)
}

/// Where samples' rows lie under other bounds: along the dimension of all rows, or along that of the samples.
fn placed_rows(digit: &Digit, from: &Leaf, to: &Leaf) -> Option<Digit> {
    let place = |size: u64| to.bounds.iter().position(|bound| *bound == size);
    let of_rows = place(*from.bounds.get(digit.dimension)?).map(|at| digit.along(at));
    of_rows.or_else(|| place(digit.size).map(|at| Digit::new(at, 1, digit.size)))
}

/// The digits of so many samples that are `stride` elements apart.
fn placed(digit: Digit, mut stride: u128, axes: &[Axis], found: &mut Vec<Digit>) -> Result<(), Join> {
    let (mut left, mut start, mut minor) = (digit.size, digit.start, 1_u128);
    for axis in axes.iter().rev() {
        let end = minor.saturating_mul(u128::from(axis.size));
        if left > 1 && axis.size > 1 && stride < end {
            if !stride.is_multiple_of(minor) {
                return Err(Join::Unknown);
            }
            let step = u64::try_from(stride / minor).map_err(|_| Join::Unknown)?.max(1);
            let size = left.min(axis.size / step);
            if size == 0 || !left.is_multiple_of(size) {
                return Err(Join::Unknown);
            }
            let inner = axis.inner.saturating_mul(step);
            let first = if size < left { start.within(size)? } else { start };
            found.push(Digit { dimension: axis.dimension, inner, size, start: first });
            if size < left {
                start = start.over(size)?;
            }
            (left, stride) = (left / size, end);
        }
        minor = end;
    }
    if left > 1 { Err(Join::Unknown) } else { Ok(()) }
}

/// Digits of a dimension that follow one another are one.
fn merged(mut digits: Vec<Digit>) -> Vec<Digit> {
    digits.sort_by_key(|digit| (digit.dimension, digit.inner));
    digits.dedup_by(|high, low| {
        let is_next = low.dimension == high.dimension && low.extent() == high.inner;
        let (Start::At(0), Start::At(start), true) = (low.start, high.start, is_next) else { return false };
        let samples = i64::try_from(low.size).unwrap_or(i64::MAX);
        (low.size, low.start) = (low.size.saturating_mul(high.size), Start::At(start.saturating_mul(samples)));
        true
    });
    digits
}

fn size_of(dimension: &TileDimension) -> u64 {
    if let TileDimension::Size(size) = dimension { size.get() } else { 1 }
}
