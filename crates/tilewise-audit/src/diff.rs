//! What differs between two programs, such as one before and after a change.

use crate::{BufferRow, PeakRow, Report};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

/// Buffers that only one of two programs has, and whose bytes make the difference of their peaks.
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
    /// The buffers that only the first program has, the largest first.
    pub removed: Vec<BufferRow>,
    /// The buffers that only the second program has, the largest first.
    pub added: Vec<BufferRow>,
    /// What is alive at the peaks of HBM, by owner, where its bytes differ; the largest difference first.
    pub owners: Vec<OwnerChange>,
}

/// What an operation, an argument or a result holds at the peaks of two programs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerChange {
    /// The framework's name of the operation or argument, without the jitted function's; else what it is for.
    pub owner: String,
    /// Bytes at the first program's peak.
    pub before_bytes: u64,
    /// Bytes at the second program's peak.
    pub after_bytes: u64,
}

impl Diff {
    /// What differs.
    #[must_use]
    pub fn of(before: &Report, after: &Report) -> Self {
        Self { removed: only(before, after), added: only(after, before), owners: owners(before, after) }
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

fn owners(before: &Report, after: &Report) -> Vec<OwnerChange> {
    let mut bytes: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in at_peak(before) {
        let held = &mut bytes.entry(owner(row)).or_default().0;
        *held = held.saturating_add(row.bytes);
    }
    for row in at_peak(after) {
        let held = &mut bytes.entry(owner(row)).or_default().1;
        *held = held.saturating_add(row.bytes);
    }
    let mut changes: Vec<OwnerChange> = bytes
        .into_iter()
        .filter(|(_, (before, after))| before != after)
        .map(|(owner, (before_bytes, after_bytes))| OwnerChange { owner, before_bytes, after_bytes })
        .collect();
    changes.sort_by_key(|change| Reverse(change.before_bytes.abs_diff(change.after_bytes)));
    changes
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
