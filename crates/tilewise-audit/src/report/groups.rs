//! Groups arrays at a peak by their meaning.

use super::peak::{PeakRow, SpacePeak};
use crate::program::{Cause, Purpose};
use foldhash::{HashMap, HashSet};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};
use tilewise::PaddedAxis;
use tilewise_memory::Role;

/// Arrays at a peak with one meaning, such as values kept for the gradient, of one layer or of all.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PeakGroup<'a> {
    /// Their common meaning.
    pub meaning: Meaning<'a>,
    /// The arrays, the largest first.
    pub rows: Vec<&'a PeakRow>,
    /// Number of arrays.
    pub count: usize,
    /// Bytes they take together.
    pub bytes: u64,
    /// Bytes of data in them.
    pub logical_bytes: u64,
}

/// The common meaning of arrays at a peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning<'a> {
    /// Most of each is padding, along this axis.
    Padding(&'a PaddedAxis),
    /// Each is passed and returned, and its result takes separate memory.
    HeldTwice,
    /// They have this purpose.
    Purpose(Purpose),
}

/// The width of the elements in most bytes of some arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 8 bits or fewer.
    Byte,
    /// 16 bits or fewer, such as bfloat16.
    Half,
    /// More than 16 bits.
    Full,
}

impl PeakGroup<'_> {
    /// The width of most of its elements.
    #[must_use]
    pub fn width(&self) -> Width {
        let bits = |row: &PeakRow| row.shape.element_type().map_or(u32::MAX, |of| of.bits());
        let is_up_to = |most: u32| {
            let narrow = self.rows.iter().filter(|row| bits(row) <= most);
            narrow.map(|row| row.bytes).fold(0, u64::saturating_add) > self.bytes / 2
        };
        match [8, 16].map(is_up_to) {
            [true, _] => Width::Byte,
            [_, true] => Width::Half,
            _ => Width::Full,
        }
    }

    /// The part of the network that makes at least two thirds of their bytes, such as `MlpMixer/MixerBlock_0…11`, by the
    /// names of operations; `None` if that is the whole network, or unknown.
    #[must_use]
    pub fn module(&self) -> Option<String> {
        let paths = self.rows.iter().flat_map(|row| &row.modules).filter(|(path, _)| !path.is_empty());
        let mut within: Vec<(Vec<&str>, u64)> =
            paths.map(|(path, bytes)| (path.split('/').collect(), *bytes)).collect();
        let total = sum(&within);
        let (mut found, mut is_part) = (Vec::new(), false);
        loop {
            let at = |words: &[&str]| words.get(found.len()).map(|word| without_number(word).to_owned());
            let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
            for (name, bytes) in within.iter().filter_map(|(words, bytes)| Some((at(words)?, bytes))) {
                let size = sizes.entry(name).or_default();
                *size = size.saturating_add(*bytes);
            }
            let largest = sizes.into_iter().max_by_key(|(_, bytes)| *bytes);
            let Some((name, _)) = largest.filter(|(_, bytes)| is_most(*bytes, total)) else { break };
            let (inner, others): (Vec<_>, Vec<_>) =
                within.into_iter().partition(|(words, _)| at(words).as_ref() == Some(&name));
            let numbers: BTreeSet<u64> =
                inner.iter().filter_map(|(words, _)| words[found.len()][name.len()..].parse().ok()).collect();
            is_part |= !others.is_empty() || !found.is_empty();
            within = inner;
            found.push(match (numbers.first(), numbers.last()) {
                (Some(first), Some(last)) if first != last => format!("{name}{first}…{last}"),
                (Some(number), _) => format!("{name}{number}"),
                _ => name,
            });
        }
        (is_part && total >= self.bytes / 2).then(|| found.join("/"))
    }
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

    /// Whether a reader needs the shapes to tell arrays of this meaning apart.
    fn has_shapes(self) -> bool {
        use Purpose::{CopyOfArgument, Intermediate, LoopCarry, OtherArgument, Result};
        matches!(self, Self::Purpose(OtherArgument | Result | CopyOfArgument | LoopCarry | Intermediate))
    }

    /// The key of a meaning: different meanings have different ones.
    fn key(self) -> (&'static str, Option<(u64, u64, usize)>) {
        let axis = match self {
            Self::Padding(axis) => Some((axis.bound, axis.padded, axis.from_minor)),
            _ => None,
        };
        (self.as_str(), axis)
    }
}

impl SpacePeak {
    /// Groups live arrays by meaning, the largest group first. Arrays without a specific meaning are also grouped by
    /// the sizes of their dimensions, in any order.
    #[must_use]
    pub fn groups(&self) -> Vec<PeakGroup<'_>> {
        let twice = self.held_twice();
        let (mut groups, mut known): (Vec<PeakGroup<'_>>, HashMap<_, usize>) = (Vec::new(), HashMap::default());
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

    /// Shapes of states that are passed, and also of results that take separate memory.
    fn held_twice(&self) -> HashSet<String> {
        let passed: HashSet<String> = self.rows.iter().filter(|row| is_state(row)).map(bare).collect();
        let returned = self.rows.iter().filter(|row| row.role == Role::Output).map(bare);
        returned.filter(|shape| passed.contains(shape)).collect()
    }
}

fn sum(paths: &[(Vec<&str>, u64)]) -> u64 {
    paths.iter().fold(0, |all, (_, bytes)| all.saturating_add(*bytes))
}

/// Whether bytes are at least two thirds of all.
fn is_most(bytes: u64, all: u64) -> bool {
    u128::from(bytes) * 3 >= u128::from(all) * 2
}

/// `MixerBlock_` of `MixerBlock_11`
fn without_number(word: &str) -> &str {
    word.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

fn is_state(row: &PeakRow) -> bool {
    row.role == Role::Argument && matches!(row.purpose, Purpose::Parameter | Purpose::OptimizerState | Purpose::Cache)
}

/// Its shape without a layout.
fn bare(row: &PeakRow) -> String {
    row.shape.without_layout().to_string()
}

/// The sizes of an array's dimensions, sorted; large ones in whole lanes, as windows of several widths leave a few elements each.
fn dimensions(row: &PeakRow) -> Vec<u64> {
    const LARGE: u64 = 1024;
    const LANES: u64 = 128;
    let in_lanes = |size: u64| if size >= LARGE { size.div_ceil(LANES).saturating_mul(LANES) } else { size };
    let mut all: Vec<u64> = row.named_dimensions().into_iter().map(|(_, size)| in_lanes(size)).collect();
    all.sort_unstable();
    all
}
