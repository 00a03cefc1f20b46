//! The compiler's own plan without its program: what it says.

use crate::output::human::{FAINT, STRONG, bytes, bytes_both, styled};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io::{self, Write},
};
use tilewise::tpu::memory_space_name;
use tilewise_hlo::{Allocation, BufferAssignment};

/// What a buffer assignment says of a program's memory.
#[derive(Serialize)]
pub(super) struct AssignmentReport {
    source: String,
    memory_spaces: Vec<Space>,
    allocations: Vec<Row>,
}

/// The allocations of one memory space together, in bytes.
#[derive(Default, Serialize)]
struct Space {
    memory_space: u64,
    memory_space_name: String,
    allocations: usize,
    argument_bytes: u64,
    output_bytes: u64,
    constant_bytes: u64,
    temporary_bytes: u64,
}

impl Space {
    fn total(&self) -> u64 {
        let parts = [self.argument_bytes, self.output_bytes, self.constant_bytes, self.temporary_bytes];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// One allocation.
#[derive(Serialize)]
struct Row {
    index: u64,
    memory_space: u64,
    kind: &'static str,
    bytes: u64,
    values: usize,
    /// The largest value in it, the first of equals.
    largest: Option<String>,
    largest_bytes: Option<u64>,
}

impl AssignmentReport {
    /// What it says: of all allocations, or of so many of the largest.
    pub(super) fn of(assignment: &BufferAssignment, source: String, most: Option<usize>) -> Self {
        let mut spaces: BTreeMap<u64, Space> = BTreeMap::new();
        // What belongs to scalar functions takes no memory of the program's.
        let owned = || assignment.allocations().iter().filter(|allocation| !allocation.is_thread_local);
        for allocation in owned() {
            let number = allocation.memory_space;
            let space = spaces.entry(number).or_insert_with(|| Space {
                memory_space: number,
                memory_space_name: u8::try_from(number)
                    .map_or_else(|_| format!("space_{number}"), |n| memory_space_name(n).into_owned()),
                ..Space::default()
            });
            space.allocations += 1;
            let sum = match kind(allocation) {
                "argument" => &mut space.argument_bytes,
                "result" => &mut space.output_bytes,
                "constant" => &mut space.constant_bytes,
                _ => &mut space.temporary_bytes,
            };
            *sum = sum.saturating_add(allocation.size);
        }
        let mut allocations: Vec<&Allocation> = owned().collect();
        allocations.sort_by_key(|allocation| std::cmp::Reverse(allocation.size));
        allocations.truncate(most.unwrap_or(usize::MAX));
        Self {
            source,
            memory_spaces: spaces.into_values().collect(),
            allocations: allocations.into_iter().map(row).collect(),
        }
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}  {}\n", styled(STRONG, "Buffer assignment"), styled(FAINT, &self.source))?;
        for space in &self.memory_spaces {
            writeln!(out, "{} holds {}:", space.memory_space_name, bytes_both(space.total()))?;
            let parts = [
                ("arguments", space.argument_bytes),
                ("results", space.output_bytes),
                ("constants", space.constant_bytes),
                ("temporaries", space.temporary_bytes),
            ];
            let parts = parts.iter().map(|(name, count)| format!("{} {name}", bytes(*count)));
            writeln!(out, "  {}", parts.collect::<Vec<_>>().join(", "))?;
        }
        writeln!(out, "\n{}", styled(STRONG, "Largest allocations"))?;
        for row in &self.allocations {
            let largest = match (&row.largest, row.largest_bytes) {
                (Some(name), Some(_)) if row.values == 1 => name.clone(),
                (Some(name), Some(size)) => format!("{} values, the largest {name} of {}", row.values, bytes(size)),
                _ => "no value".to_owned(),
            };
            writeln!(out, "  {:>10}  {} {}: {largest}", bytes(row.bytes), row.kind, row.index)?;
        }
        let hint =
            "The program itself (….after_optimizations.txt or .hlo.pb) tells source lines, padding and the peak.";
        writeln!(out, "\n{}\n", styled(FAINT, hint))
    }
}

fn kind(allocation: &Allocation) -> &'static str {
    match allocation {
        Allocation { parameter: Some(_), .. } => "argument",
        Allocation { is_live_out: true, .. } => "result",
        Allocation { is_constant: true, .. } => "constant",
        _ => "temporaries",
    }
}

fn row(allocation: &Allocation) -> Row {
    // Of equals `max_by_key` takes the last.
    let largest = allocation.values.iter().rev().max_by_key(|value| value.size);
    Row {
        index: allocation.index,
        memory_space: allocation.memory_space,
        kind: kind(allocation),
        bytes: allocation.size,
        values: allocation.values.len(),
        largest: largest.map(|value| value.instruction.clone()),
        largest_bytes: largest.map(|value| value.size),
    }
}
