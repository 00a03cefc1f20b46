//! The buffers of two programs, their layouts and memories.

use super::{Amount, Change, Outcome, Owner, owners::without_function};
use foldhash::HashMap;
use std::{cmp::Reverse, collections::BTreeMap};
use tilewise::tpu::memory_space_name;
use tilewise_audit::{BufferRow, Report};

/// Buffers that only one program defines, and those that both define in different layouts.
///
/// Compilers number instructions anew, and a comment moves all lines: buffers are the same if the framework's name of their
/// operation, the opcode, the array and the memory space are.
pub(super) struct Layouts {
    /// The arrays whose layout differs, the largest first.
    pub(super) changes: Vec<Change>,
    /// Only in the first program, the largest first.
    pub(super) removed: Vec<Owner>,
    /// Only in the second program, the largest first.
    pub(super) added: Vec<Owner>,
}

impl Layouts {
    pub(super) fn of(before: &Report, after: &Report) -> Self {
        let (removed, added) = (only_in(before, after), only_in(after, before));
        let mut unpaired: BTreeMap<_, Vec<BufferRow>> = BTreeMap::new();
        // The largest is taken first.
        for row in removed.into_iter().rev() {
            unpaired.entry(key(&row)).or_default().push(row);
        }
        let (mut paired, mut alone) = (Vec::new(), Vec::new());
        for row in added {
            match unpaired.get_mut(&key(&row)).and_then(Vec::pop) {
                Some(was) => paired.push([was, row]),
                None => alone.push(row),
            }
        }
        paired.sort_by_key(|rows| Reverse(rows.iter().map(|row| row.sizes.physical_bytes).max()));
        let mut removed: Vec<_> = unpaired.into_values().flatten().collect();
        largest_first(&mut removed);
        Self {
            changes: paired.iter().map(changed).collect(),
            removed: removed.iter().map(Owner::of_buffer).collect(),
            added: alone.iter().map(Owner::of_buffer).collect(),
        }
    }
}

fn changed([was, is]: &[BufferRow; 2]) -> Change {
    let layout = |row: &BufferRow| Amount::Layout(split(row).1);
    let owner = Owner::of_buffer(is);
    Change {
        owner: Some(owner.name()),
        file: owner.file,
        line: owner.line,
        ..Change::of("layout", [layout(was), layout(is)], Outcome::Changed)
    }
}

/// Memories beside the default one that programs fill: VMEM, CMEM, SMEM and the host's.
const FILLED: [u8; 4] = [1, 3, 4, 5];

/// The peaks of these memories, where they differ.
pub(super) fn changed_memory(before: &Report, after: &Report) -> Vec<Change> {
    let peak =
        |report: &Report, space| report.memory_space(space).and_then(|total| Some(total.peak.as_ref()?.live_bytes));
    FILLED
        .into_iter()
        .filter_map(|space| {
            let [was, is] = [before, after].map(|report| peak(report, space).unwrap_or(0));
            (was != is).then(|| Change::of(&memory_space_name(space), [was, is].map(Amount::Number), Outcome::Changed))
        })
        .collect()
}

/// A buffer without its layout: operation, opcode, array and memory space.
fn key(row: &BufferRow) -> (Option<String>, String, String, u8) {
    let operation = row.op_name.as_deref().map(|name| without_function(name).to_owned());
    (operation, row.opcode.clone(), split(row).0, row.memory_space)
}

/// The array and its layout.
fn split(row: &BufferRow) -> (String, String) {
    let shape = row.shape.to_string();
    let (array, layout) = shape.split_at(shape.find('{').unwrap_or(shape.len()));
    (array.to_owned(), layout.to_owned())
}

/// The buffers of one report that the other has not, the largest first.
fn only_in(one: &Report, other: &Report) -> Vec<BufferRow> {
    let with_layout = |row: &BufferRow| (key(row), split(row).1);
    let mut left: HashMap<_, usize> = HashMap::default();
    for row in other.buffers() {
        *left.entry(with_layout(&row)).or_default() += 1;
    }
    let is_left = |row: &BufferRow| match left.get_mut(&with_layout(row)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    let mut rows: Vec<BufferRow> = one.buffers().filter(is_left).collect();
    largest_first(&mut rows);
    rows
}

fn largest_first(rows: &mut [BufferRow]) {
    rows.sort_by_key(|row| Reverse(row.sizes.physical_bytes));
}
