//! Arrays at a peak that have one meaning.

use super::peak::{PeakRow, SpacePeak};
use crate::program::{Cause, Purpose};
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};
use tilewise::PaddedAxis;
use tilewise_memory::Role;

/// Arrays at a peak that have one meaning: what is kept for the gradient, say, be it of one layer or of all.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PeakGroup<'a> {
    /// What they have in common.
    pub meaning: Meaning<'a>,
    /// The arrays, the largest first.
    pub rows: Vec<&'a PeakRow>,
    /// How many there are.
    pub count: usize,
    /// Bytes they take together.
    pub bytes: u64,
    /// Bytes of data in them.
    pub logical_bytes: u64,
}

/// What arrays at a peak have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning<'a> {
    /// Most of each is padding, along such an axis.
    Padding(&'a PaddedAxis),
    /// Each is passed and returned, and its result takes memory of its own.
    HeldTwice,
    /// They are for this.
    Purpose(Purpose),
}

impl Meaning<'_> {
    /// A stable name in snake case, for machines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Padding(_) => "padding",
            Self::HeldTwice => "held_twice",
            Self::Purpose(purpose) => purpose.as_str(),
        }
    }

    /// Whether arrays that this is said of differ in nothing that a reader calls them by.
    fn has_shapes(self) -> bool {
        use Purpose::{CopyOfArgument, Intermediate, LoopCarry, OtherArgument, Result};
        matches!(self, Self::Purpose(OtherArgument | Result | CopyOfArgument | LoopCarry | Intermediate))
    }

    /// What tells meanings apart.
    fn key(self) -> (&'static str, Option<(u64, u64, usize)>) {
        let axis = match self {
            Self::Padding(axis) => Some((axis.bound, axis.padded, axis.from_minor)),
            _ => None,
        };
        (self.as_str(), axis)
    }
}

impl SpacePeak {
    /// What is alive, by its meaning, the largest first. Arrays of which no more is known are together where their dimensions are
    /// alike, in any order.
    #[must_use]
    pub fn groups(&self) -> Vec<PeakGroup<'_>> {
        let twice = self.held_twice();
        let (mut groups, mut known): (Vec<PeakGroup<'_>>, HashMap<_, usize>) = (Vec::new(), HashMap::new());
        for row in &self.rows {
            let meaning = match row.causes.first() {
                Some(Cause::Axis(axis)) if row.padding_bytes > row.bytes / 2 && axis.level == 0 => {
                    Meaning::Padding(axis)
                }
                _ if (is_state(row) || row.role == Role::Output) && twice.contains(&bare(row)) => Meaning::HeldTwice,
                _ => Meaning::Purpose(row.purpose),
            };
            let dimensions = if meaning.has_shapes() { dimensions(row) } else { Vec::new() };
            let at = *known.entry((meaning.key(), dimensions)).or_insert_with(|| {
                groups.push(PeakGroup { meaning, rows: Vec::new(), count: 0, bytes: 0, logical_bytes: 0 });
                groups.len() - 1
            });
            let group = &mut groups[at];
            group.rows.push(row);
            group.count += row.count;
            group.bytes = group.bytes.saturating_add(row.bytes);
            group.logical_bytes = group.logical_bytes.saturating_add(row.logical_bytes);
        }
        groups.sort_by_key(|group| Reverse(group.bytes));
        groups
    }

    /// Shapes of states that are passed, and of results that take memory of their own.
    fn held_twice(&self) -> HashSet<String> {
        let passed: HashSet<String> = self.rows.iter().filter(|row| is_state(row)).map(bare).collect();
        let returned = self.rows.iter().filter(|row| row.role == Role::Output).map(bare);
        returned.filter(|shape| passed.contains(shape)).collect()
    }
}

fn is_state(row: &PeakRow) -> bool {
    row.role == Role::Argument && matches!(row.purpose, Purpose::Parameter | Purpose::OptimizerState | Purpose::Cache)
}

/// Its shape without a layout.
fn bare(row: &PeakRow) -> String {
    row.shape.without_layout().to_string()
}

/// The sizes and names of an array's dimensions, in an order of their own.
type Dimensions = Vec<(u64, String)>;

fn dimensions(row: &PeakRow) -> Dimensions {
    let mut all: Dimensions =
        row.named_dimensions().into_iter().map(|(name, size)| (size, format!("{name:?}"))).collect();
    all.sort();
    all
}
