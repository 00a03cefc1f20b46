//! What differs between two programs, such as one before and after a change.

use super::{peak::PeakRow, rows::BufferRow, sections::Report};
use crate::{
    copies::{CopyClass, CopyRow},
    program::SourceLine,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

/// Buffers that only one of two programs has, whose bytes make the difference of their peaks, and copies that came or went.
///
/// Compilers number instructions anew, and a comment moves all lines: buffers are the same if the framework's name of
/// their operation, the opcode, the shape and the memory space are.
///
/// ```
/// use tilewise_audit::{Diff, audit};
///
/// let report = |layout| audit(&tilewise_hlo::Module::parse(format!("x = f32[400000,12]{layout} parameter(0)")).unwrap());
/// let diff = Diff::of(&report("{1,0:T(8,128)}"), &report("{0,1:T(8,128)}"));
/// assert_eq!(diff.removed[0].sizes.physical_bytes, 204_800_000);
/// assert_eq!(diff.added[0].sizes.physical_bytes, 25_600_000);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Diff {
    /// Bytes of the default memory that the first program holds at most.
    pub before_bytes: u64,
    /// Those of the second program.
    pub after_bytes: u64,
    /// The buffers that only the first program has, the largest first.
    pub removed: Vec<BufferRow>,
    /// The buffers that only the second program has, the largest first.
    pub added: Vec<BufferRow>,
    /// What is alive at the peaks of HBM, by owner, where its bytes differ; the largest difference first.
    pub owners: Vec<OwnerChange>,
    /// What the copies of one operation move, where that differs; the largest difference first.
    pub copies: Vec<CopyChange>,
}

/// What an operation, an argument or a result holds at the peaks of two programs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerChange {
    /// The framework's name of the operation or argument, without the jitted function's; else what it is for.
    pub owner: String,
    /// The line of the user's program, of the second program where that has the owner.
    pub source: Option<SourceLine>,
    /// Bytes at the first program's peak.
    pub before_bytes: u64,
    /// Bytes at the second program's peak.
    pub after_bytes: u64,
}

/// What the copies of one operation move in two programs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyChange {
    /// The framework's name of the operation, without the jitted function's; `None` for copies that the compiler names
    /// after none.
    pub owner: Option<String>,
    /// What they are for.
    pub class: CopyClass,
    /// The line of the user's program, of the second program where that has them.
    pub source: Option<SourceLine>,
    /// Bytes that they read and write in the first program.
    pub before_bytes: u64,
    /// Bytes that they read and write in the second program.
    pub after_bytes: u64,
}

impl Diff {
    /// What differs.
    #[must_use]
    pub fn of(before: &Report, after: &Report) -> Self {
        Self {
            before_bytes: before.memory_bounds.at_most_bytes,
            after_bytes: after.memory_bounds.at_most_bytes,
            removed: only(before, after),
            added: only(after, before),
            owners: owners(before, after),
            copies: copies(before, after),
        }
    }
}

type Key = (Option<String>, String, String, u8);

fn key(row: &BufferRow) -> Key {
    let operation = row.op_name.as_deref().map(|name| without_function(name).to_owned());
    (operation, row.opcode.clone(), row.shape.to_string(), row.memory_space)
}

/// The rows of one report that the other has not.
fn only(one: &Report, other: &Report) -> Vec<BufferRow> {
    let mut left: HashMap<Key, usize> = HashMap::new();
    for row in other.buffers() {
        *left.entry(key(&row)).or_default() += 1;
    }
    let is_left = |row: &BufferRow| match left.get_mut(&key(row)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    let mut rows: Vec<BufferRow> = one.buffers().filter(is_left).collect();
    rows.sort_by_key(|row| Reverse(row.sizes.physical_bytes));
    rows
}

/// What is summed by owner in two programs.
#[derive(Default)]
struct Sums {
    bytes: [u64; 2],
    source: Option<SourceLine>,
}

impl Sums {
    /// Adds to that of the first program (0) or the second (1).
    fn add(&mut self, which: usize, bytes: u64, source: Option<&SourceLine>) {
        self.bytes[which] = self.bytes[which].saturating_add(bytes);
        if let Some(source) = source.filter(|_| self.source.is_none() || self.bytes[which] == bytes) {
            self.source = Some(source.clone());
        }
    }
}

/// The owners whose sums differ, the largest difference first.
fn changed<K>(sums: BTreeMap<K, Sums>) -> Vec<(K, Sums)> {
    let mut changed: Vec<_> = sums.into_iter().filter(|(_, sums)| sums.bytes[0] != sums.bytes[1]).collect();
    changed.sort_by_key(|(_, sums)| Reverse(sums.bytes[0].abs_diff(sums.bytes[1])));
    changed
}

fn owners(before: &Report, after: &Report) -> Vec<OwnerChange> {
    let mut sums: BTreeMap<String, Sums> = BTreeMap::new();
    for (which, report) in [before, after].into_iter().enumerate() {
        for row in at_peak(report) {
            sums.entry(owner(row)).or_default().add(which, row.bytes, row.source.as_ref());
        }
    }
    let change = |(owner, Sums { bytes: [before_bytes, after_bytes], source })| OwnerChange {
        owner,
        source,
        before_bytes,
        after_bytes,
    };
    changed(sums).into_iter().map(change).collect()
}

fn copies(before: &Report, after: &Report) -> Vec<CopyChange> {
    let mut sums: BTreeMap<(Option<String>, CopyClass), Sums> = BTreeMap::new();
    for (which, report) in [before, after].into_iter().enumerate() {
        for CopyRow { op_name, class, moved_bytes, source, .. } in &report.copies {
            let owner = op_name.as_deref().map(|name| without_function(name).to_owned());
            sums.entry((owner, *class)).or_default().add(which, *moved_bytes, source.as_ref());
        }
    }
    let change = |((owner, class), Sums { bytes: [before_bytes, after_bytes], source })| CopyChange {
        owner,
        class,
        source,
        before_bytes,
        after_bytes,
    };
    changed(sums).into_iter().map(change).collect()
}

fn at_peak(report: &Report) -> impl Iterator<Item = &PeakRow> {
    report.memory_space(0).and_then(|total| total.peak.as_ref()).into_iter().flat_map(|peak| &peak.rows)
}

fn owner(row: &PeakRow) -> String {
    row.op_name.as_deref().map_or_else(|| row.role.as_str().to_owned(), |name| without_function(name).to_owned())
}

/// `jit(step)/dot_general` of a function that has another name after the change.
fn without_function(name: &str) -> &str {
    match name.split_once('/') {
        Some((first, rest)) if first.starts_with("jit(") => rest,
        _ => name,
    }
}
