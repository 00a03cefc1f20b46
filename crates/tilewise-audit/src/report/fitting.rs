//! The size of an input at which a program fits.

use super::{
    peak::{PeakRow, SpacePeak},
    sections::Report,
};
use crate::program::{AxisName, NamedAxis};
use std::collections::{BTreeMap, BTreeSet};
use tilewise::Shape;
use tilewise_memory::Role;

/// A size of an input at which a program should fit, and devices among which its present size would.
///
/// It is an estimate: arrays at the peak become smaller in their layouts, and the rest stays. The compiler may order a
/// smaller program otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FittingSize {
    /// The axis of the input.
    pub axis: AxisName,
    /// Whether more than one dimension of an array has that size, and all of them shrink.
    pub is_repeated: bool,
    /// Its size now.
    pub size: u64,
    /// The largest size that should fit, rounded down.
    pub fits: u64,
    /// Whether samples meet in a training step, as where they are normalized together: fewer have another loss.
    pub is_mixed: bool,
    /// The smallest number of devices that should hold the program, if they divide the axis.
    pub devices: u64,
}

/// Smallest size of an axis that isn't known to be the batch.
const LEAST: u64 = 64;
/// Maximum number of devices that are named.
const MOST_DEVICES: u64 = 1024;

impl Report {
    /// The size of an input at which the program fits, if it needs `bytes` now: of the axis that most bytes at its peak
    /// have, a batch before others. `None` if it fits, or no axis of an input has most of them.
    #[must_use]
    pub fn fitting_size(&self, bytes: u64) -> Option<FittingSize> {
        let (need, peak) = self.need(bytes)?;
        let mut axes: BTreeMap<(u8, u64), Vec<(&AxisName, u64)>> = BTreeMap::new();
        for row in &peak.rows {
            for axis in &row.axes {
                if let Some(rank) = rank(axis) {
                    axes.entry((rank, axis.size)).or_default().push((&axis.name, row.bytes));
                }
            }
        }
        // The sizes of pictures within a batch are the model's.
        let is_free = |rank: u8, names: &[(&AxisName, u64)]| rank < 2 || names.iter().any(|(name, _)| is_of_rows(name));
        let axes = axes.into_iter().filter(|((rank, _), names)| is_free(*rank, names));
        let candidates = axes.filter_map(|((rank, size), names)| {
            let rows = Rows::of(peak, rank, size);
            let bytes = rows.bytes();
            (bytes > need.total / 2).then_some((rank, bytes, names, rows))
        });
        let (_, _, names, rows) = candidates.min_by_key(|(rank, bytes, ..)| (*rank, u64::MAX - bytes))?;
        let (axis, _) = names.iter().max_by_key(|(_, bytes)| *bytes)?;
        let fits = need.fitting(&rows)?;
        let devices = (2..=MOST_DEVICES.min(rows.size)).find(|of| need.is_met(rows.bytes() - rows.bytes() / of))?;
        let is_mixed = self.are_samples_mixed() && names.iter().any(|(name, _)| is_of_rows(name));
        Some(FittingSize {
            is_mixed,
            axis: (*axis).clone(),
            is_repeated: rows.all.iter().any(|(_, dimensions)| dimensions.len() > 1),
            size: rows.size,
            fits,
            devices: devices.saturating_mul(self.partitions),
        })
    }

    /// Sizes that most bytes at the peak have in common and no argument has, such as the number of paths that a program
    /// draws, each with the size at which it fits if it needs `bytes` now; the largest first.
    #[must_use]
    pub fn fitting_made_sizes(&self, bytes: u64) -> Vec<[u64; 2]> {
        let Some((need, peak)) = self.need(bytes) else { return Vec::new() };
        let bounds = |row: &PeakRow| row.shape.dimensions().iter().filter_map(|dimension| dimension.bound()).collect();
        let of_arguments = peak.rows.iter().filter(|row| row.role == Role::Argument);
        let given: BTreeSet<u64> = of_arguments.flat_map(|row| -> Vec<u64> { bounds(row) }).collect();
        let named = peak.rows.iter().flat_map(|row| row.axes.iter().map(|axis| axis.size));
        let known: BTreeSet<u64> = given.into_iter().chain(named).collect();
        let all: BTreeSet<u64> = peak.rows.iter().flat_map(|row| -> Vec<u64> { bounds(row) }).collect();
        let made = all.into_iter().rev().filter(|size| *size >= LEAST && !known.contains(size));
        let found = made.filter_map(|size| {
            let rows = Rows::of_size(peak, size);
            let fits = need.fitting(&rows).filter(|_| rows.bytes() > need.total / 2)?;
            Some([size, fits])
        });
        found.collect()
    }

    /// The need of a program that doesn't fit, and its peak.
    fn need(&self, bytes: u64) -> Option<(Need, &SpacePeak)> {
        let limit = self.available_bytes().filter(|limit| bytes > *limit)?;
        let total = self.plan().ok()?.total_bytes();
        Some((Need { bytes, total, limit }, self.memory_space(0)?.peak.as_ref()?))
    }
}

/// Bytes that a program needs after other changes, those of its plan, and those that there are.
struct Need {
    bytes: u64,
    total: u64,
    limit: u64,
}

impl Need {
    /// Whether it fits once arrays free `freed` bytes; earlier changes are taken to free arrays in proportion.
    fn is_met(&self, freed: u64) -> bool {
        let freed = u128::from(freed) * u128::from(self.bytes) / u128::from(self.total.max(1));
        u128::from(self.bytes).saturating_sub(freed) <= u128::from(self.limit)
    }

    fn fitting(&self, rows: &Rows<'_>) -> Option<u64> {
        rows.largest(|to| self.is_met(rows.bytes().saturating_sub(rows.bytes_with(to))))
    }
}

/// The arrays at a peak that have an axis, each with the dimensions that are as long, or several times.
struct Rows<'r> {
    size: u64,
    all: Vec<(&'r PeakRow, Vec<usize>)>,
}

impl<'r> Rows<'r> {
    fn of(peak: &'r SpacePeak, rank: u8, size: u64) -> Self {
        let shrinking = |row: &PeakRow| {
            let shrink = row.axes.iter().filter(|axis| axis.size == size && self::rank(axis) == Some(rank));
            let named: Vec<usize> = shrink.map(|axis| axis.dimension).collect();
            // Beside the axis, a dimension without a name may be several times as long, such as that of a rolled array.
            let has_name = |at: usize| row.axes.iter().any(|axis| axis.dimension == at);
            let bounds =
                row.shape.dimensions().iter().map(|dimension| dimension.bound().unwrap_or_default()).enumerate();
            let alike = bounds.filter(|(at, bound)| *bound >= size && bound.is_multiple_of(size) && !has_name(*at));
            let others: Vec<usize> = alike.filter(|_| !named.is_empty()).map(|(at, _)| at).collect();
            [named, others].concat()
        };
        let all = peak.rows.iter().map(|row| (row, shrinking(row))).filter(|(_, dimensions)| !dimensions.is_empty());
        Self { size, all: all.collect() }
    }

    fn of_size(peak: &'r SpacePeak, size: u64) -> Self {
        let of_row = |row: &PeakRow| {
            let bounds = row.shape.dimensions().iter().enumerate();
            bounds.filter(|(_, dimension)| dimension.bound() == Some(size)).map(|(at, _)| at).collect::<Vec<_>>()
        };
        let all = peak.rows.iter().map(|row| (row, of_row(row))).filter(|(_, dimensions)| !dimensions.is_empty());
        Self { size, all: all.collect() }
    }

    /// Bytes that the arrays take.
    fn bytes(&self) -> u64 {
        self.all.iter().map(|(row, _)| row.bytes).fold(0, u64::saturating_add)
    }

    /// Bytes that they take with an axis of `to`, in their layouts.
    fn bytes_with(&self, to: u64) -> u64 {
        let taken = |(row, dimensions): &(&PeakRow, Vec<usize>)| {
            let shape = resized(&row.shape, dimensions, |bound| {
                let bound = u128::from(bound) * u128::from(to);
                u64::try_from(bound.div_ceil(u128::from(self.size))).unwrap_or(u64::MAX)
            });
            let sizes = shape.as_ref().and_then(|shape| shape.as_array()?.sizes().ok());
            let each = sizes.map_or(row.bytes, |sizes| sizes.physical_bytes.saturating_mul(row.count as u64));
            each.min(row.bytes)
        };
        self.all.iter().map(taken).fold(0, u64::saturating_add)
    }

    /// The largest size below the present one that is enough, rounded down as sizes are chosen; `None` if none is.
    fn largest(&self, is_enough: impl Fn(u64) -> bool) -> Option<u64> {
        let (mut low, mut high) = (0, self.size);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            *(if is_enough(middle) { &mut low } else { &mut high }) = middle;
        }
        // A multiple of tiles stays one; other sizes, and large ones, keep two digits.
        let is_of_tiles = |step: &u64| self.size.is_multiple_of(*step) && (step * 4..step * 64).contains(&low);
        let step = [128, 8].into_iter().find(is_of_tiles);
        let step = step.unwrap_or_else(|| 10_u64.pow(low.max(1).ilog10().saturating_sub(1)));
        Some(low - low % step).filter(|fits| *fits > 0)
    }
}

/// A shape with other bounds in some dimensions, in its layout.
fn resized(shape: &Shape, dimensions: &[usize], to: impl Fn(u64) -> u64) -> Option<Shape> {
    let bounds = shape.dimensions().iter().enumerate().map(|(at, dimension)| {
        let bound = dimension.bound()?;
        Some(if dimensions.contains(&at) { to(bound) } else { bound })
    });
    let bounds = bounds.collect::<Option<Vec<u64>>>()?;
    Shape::array(shape.element_type()?, bounds).ok()?.with_layout(shape.layout()?.clone()).ok()
}

/// Whether an axis may be of samples.
const fn is_of_rows(name: &AxisName) -> bool {
    matches!(name, AxisName::Batch(_) | AxisName::Dimension(_, 0))
}

/// The order in which to shrink the axes of inputs; `None` for those of the model.
fn rank(axis: &NamedAxis) -> Option<u8> {
    match axis.name {
        AxisName::Batch(_) => Some(0),
        AxisName::Tokens(_) => Some(1),
        AxisName::Dimension(..) => (axis.is_of_data && axis.size >= LEAST).then_some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Audit, Program};

    fn found(text: &str, limit: u64) -> Option<FittingSize> {
        let report = Audit::new(&Program::parse(text).expect("a module")).limit(Some(limit)).run();
        report.fitting_size(report.memory_bounds.at_most_bytes)
    }

    /// Edges of a graph, 512 bytes each in rows of 8 padded to 128, beside 1 MiB of weights.
    #[test]
    fn rows_that_fit() {
        let text = r#"HloModule jit_f, is_scheduled=true

ENTRY main (edges.1: f32[8192,8], params.1: f32[512,512]) -> f32[8192,8] {
  params.1 = f32[512,512]{1,0:T(8,128)} parameter(1), metadata={op_name="params['w']"}
  edges.1 = f32[8192,8]{1,0:T(8,128)} parameter(0), metadata={op_name="edges"}
  ROOT twice = f32[8192,8]{1,0:T(8,128)} add(edges.1, edges.1)
}"#;
        let size = found(text, 6 << 20).expect("a size");
        assert_eq!(size.axis, AxisName::Dimension("edges".to_owned(), 0));
        // 5 of 8 MiB are left.
        assert_eq!((size.size, size.fits, size.devices, size.is_repeated), (8192, 5120, 2, false));
        assert_eq!(found(text, 16 << 20), None);
    }

    /// A box of 384 × 384 × 384 takes as much of the lanes with 257 to 384.
    #[test]
    fn tiles_stay_whole() {
        let text = r#"HloModule jit_f, is_scheduled=true

ENTRY main (field.1: f32[384,384,384]) -> f32[384,384,384] {
  field.1 = f32[384,384,384]{2,1,0:T(8,128)} parameter(0), metadata={op_name="field"}
  ROOT next = f32[384,384,384]{2,1,0:T(8,128)} add(field.1, field.1)
}"#;
        let size = |mebibytes: u64| found(text, mebibytes << 20).expect("a size").fits;
        // 432 MiB in all; 128 with 256, and 204 with 264, whose rows take 384 lanes.
        assert_eq!([size(431), size(206), size(200)], [376, 264, 256]);
        assert!(found(text, 431 << 20).is_some_and(|size| size.is_repeated));
    }

    /// Paths that a program draws from one price; the argument's own size isn't one to take less of.
    #[test]
    fn sizes_of_what_is_made() {
        let text = r#"HloModule jit_f, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main (spot.1: f32[512]) -> f32[512] {
  spot.1 = f32[512]{0:T(512)} parameter(0), metadata={op_name="spot"}
  paths = f32[512,16384]{1,0:T(8,128)} broadcast(spot.1), dimensions={0}
  grown = f32[512,16384]{1,0:T(8,128)} exponential(paths)
  zero = f32[] constant(0)
  ROOT sums = f32[512]{0:T(512)} reduce(grown, zero), dimensions={1}, to_apply=add
}"#;
        let report = Audit::new(&Program::parse(text).expect("a module")).limit(Some(33 << 20)).run();
        let found = report.fitting_made_sizes(report.memory_bounds.at_most_bytes);
        assert_eq!(found, [[16384, 8300]]);
    }
}
