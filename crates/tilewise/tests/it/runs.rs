//! Runs of slices, against the offsets of their elements one by one.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use proptest::prelude::*;
use std::ops::Range;
use tilewise::{Error, ErrorKind, RunOrder, Shape, SliceRuns, Tiled};
use tilewise_testing::{
    Random,
    cells::{memory, ravel},
    shapes::small_arrays,
};

/// A slice of an array: start, limit and stride of each dimension.
struct Slice {
    start: Vec<u64>,
    limit: Vec<u64>,
    strides: Vec<u64>,
}

impl Slice {
    fn random(random: &mut Random, bounds: &[u64]) -> Self {
        let strided = random.percent(40);
        let mut slice = Self { start: Vec::new(), limit: Vec::new(), strides: Vec::new() };
        for &bound in bounds {
            let (a, b) = match random.below(4_u32) {
                0 => (0, bound),
                1 => (0, random.below(bound + 1)),
                _ => (random.below(bound + 1), random.below(bound + 1)),
            };
            slice.start.push(a.min(b));
            slice.limit.push(a.max(b));
            slice.strides.push(if strided { 1 + random.below(4_u64) } else { 1 });
        }
        slice
    }

    /// Each index, row-major.
    fn indices(&self) -> Vec<Vec<u64>> {
        let mut indices = vec![Vec::new()];
        for ((&start, &limit), &stride) in self.start.iter().zip(&self.limit).zip(&self.strides) {
            let values = || (start..limit).step_by(stride as usize);
            indices = indices.iter().flat_map(|index| values().map(move |i| [&index[..], &[i]].concat())).collect();
        }
        indices
    }

    fn runs(&self, tiled: &Tiled, order: RunOrder) -> Result<SliceRuns, Error> {
        tiled.strided_slice_runs(&self.start, &self.limit, &self.strides, order)
    }
}

/// Offsets as runs of bits, each joined to the one before if it follows.
fn merged(offsets: impl IntoIterator<Item = u64>, bits: u64) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for offset in offsets {
        match runs.last_mut() {
            Some(run) if run.end == offset * bits => run.end += bits,
            _ => runs.push(offset * bits..(offset + 1) * bits),
        }
    }
    runs
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Everything that is told of some runs, against their list.
fn check(runs: &SliceRuns, wanted: &[Range<u64>], random: &mut Random) -> Result<(), TestCaseError> {
    prop_assert_eq!(runs.remaining(), wanted.len() as u64);
    prop_assert_eq!(runs.clone().collect::<Vec<_>>(), wanted);
    prop_assert_eq!(runs.bits(), wanted.iter().map(|run| run.end - run.start).sum::<u64>());
    let lengths = || wanted.iter().map(|run| run.end - run.start);
    prop_assert_eq!(runs.shortest(), lengths().min().unwrap_or(0));
    prop_assert_eq!(runs.longest(), lengths().max().unwrap_or(0));
    prop_assert_eq!(runs.alignment(), wanted.iter().flat_map(|run| [run.start, run.end]).fold(0, gcd));
    let first = random.below(wanted.len() + 2);
    let mut later = runs.clone();
    later.skip_runs(random.below(first + 1) as u64);
    later.skip_runs((first as u64).saturating_sub(wanted.len() as u64 - later.remaining()));
    prop_assert_eq!(later.remaining() as usize, wanted.len().saturating_sub(first));
    prop_assert_eq!(later.collect::<Vec<_>>(), wanted.get(first..).unwrap_or(&[]));
    Ok(())
}

proptest! {
    #![proptest_config(tilewise_testing::cases(3000))]

    #[test]
    fn runs_are_the_offsets_of_the_elements(shape in small_arrays(), seed: u64) {
        let tiled = Tiled::new(&shape)?;
        let mut random = Random::new(seed);
        let bounds: Vec<usize> = tiled.logical_dimensions().iter().map(|&b| b as usize).collect();
        // By the definition, not by `offset_of`.
        let mut offsets = vec![0; bounds.iter().product()];
        for (offset, cell) in memory(&bounds, shape.layout().expect("a layout")).cells.iter().enumerate() {
            if let Some(position) = *cell {
                offsets[position] = offset as u64;
            }
        }
        for _ in 0..10 {
            let slice = Slice::random(&mut random, tiled.logical_dimensions());
            let of = |index: &Vec<u64>| offsets[ravel(&index.iter().map(|&i| i as usize).collect::<Vec<_>>(), &bounds)];
            let mut own: Vec<u64> = slice.indices().iter().map(of).collect();
            match slice.runs(&tiled, RunOrder::Slice) {
                Ok(runs) => check(&runs, &merged(own.iter().copied(), tiled.stored_bits()), &mut random)?,
                Err(error) => prop_assert!(error.kind() == ErrorKind::Undecided && !tiled.nested_axes().is_empty()),
            }
            own.sort_unstable();
            check(&slice.runs(&tiled, RunOrder::Memory)?, &merged(own, tiled.stored_bits()), &mut random)?;
        }
    }
}

fn tiled(text: &str) -> Tiled {
    Tiled::new(&text.parse::<Shape>().expect(text)).expect(text)
}

/// Larger than any list: counted and skipped, not made.
#[test]
fn huge_slices_are_counted() {
    let tiled = tiled("bf16[1073741824,1024]{1,0:T(8,128)(2,1)}");
    let mut runs = tiled.slice_runs(&[1, 5], &[1_073_741_823, 1000]).expect("a slice");
    // Each row of tiles: in the first and the last tile runs of a few lanes, between them everything; the first and the last
    // row of tiles lack a row.
    assert_eq!(runs.elements(), 1_073_741_822 * 995);
    let total = runs.total();
    runs.skip_runs(total - 1);
    let last = runs.next().expect("a run");
    let offset = |row, column| tiled.offset_of(&[row, column]).expect("inside") * 16;
    assert_eq!(last, offset(1_073_741_822, 999)..offset(1_073_741_822, 999) + 16);
    assert_eq!(runs.next(), None);
}

#[test]
fn what_is_no_slice_is_named() {
    let tiled = tiled("f32[3,5]{1,0:T(2,2)}");
    let kind = |start: &[u64], limit: &[u64]| tiled.slice_runs(start, limit).expect_err("no slice").kind();
    assert_eq!(kind(&[0], &[3, 5]), ErrorKind::IndexRankMismatch);
    assert_eq!(kind(&[0, 0], &[3, 5, 1]), ErrorKind::IndexRankMismatch);
    assert_eq!(kind(&[0, 0], &[4, 5]), ErrorKind::IndexOutOfBounds);
    assert_eq!(kind(&[2, 0], &[1, 5]), ErrorKind::IndexOutOfBounds);
    let zero = tiled.strided_slice_runs(&[0, 0], &[3, 5], &[1, 0], RunOrder::Memory);
    assert_eq!(zero.expect_err("no stride").kind(), ErrorKind::InvalidDimension);
    assert_eq!(tiled.slice_runs(&[1, 5], &[3, 5]).expect("an empty slice").count(), 0);
}

/// A `*` that merges many rows which the next tile cuts across is refused, not followed for ever.
#[test]
fn too_many_pieces_are_refused() {
    let tiled = tiled("f32[1048576,1000003]{1,0:T(*,7)}");
    let error = tiled.slice_runs(&[0, 1], &[1_048_576, 5]).expect_err("too many");
    assert_eq!(error.kind(), ErrorKind::Undecided);
    assert_eq!(tiled.slice_runs(&[5, 0], &[1_048_576, 1_000_003]).expect("whole rows").total(), 1);
}
