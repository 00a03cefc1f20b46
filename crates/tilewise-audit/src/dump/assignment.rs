//! Reports the compiler's own plan, without its program.

use std::{cmp::Reverse, collections::BTreeMap};
use tilewise::tpu::memory_space_name;
use tilewise_hlo::{BufferAllocation, BufferAssignment};

/// A program's memory according to a buffer assignment. With the `serde` feature it serialises as in `tilewise audit
/// --format json`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignmentReport {
    /// The source of its text, such as a path.
    pub source: String,
    /// Totals of each memory space, in the order of their numbers.
    pub memory_spaces: Vec<AssignmentSpace>,
    /// The allocations, the largest first.
    pub allocations: Vec<AssignmentRow>,
    /// Whether no allocation can be [missing at the end](BufferAssignment::is_whole).
    pub is_whole: bool,
}

/// The allocations of one memory space together, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignmentSpace {
    /// The memory space's number.
    pub memory_space: u64,
    /// Number of allocations.
    pub allocations: usize,
    /// Bytes of arguments.
    pub argument_bytes: u64,
    /// Bytes of results.
    pub output_bytes: u64,
    /// Bytes of constants.
    pub constant_bytes: u64,
    /// Bytes that temporaries share.
    pub temporary_bytes: u64,
}

/// One allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssignmentRow {
    /// Its number in the assignment.
    pub index: u64,
    /// The memory space's number.
    pub memory_space: u64,
    /// `argument`, `result`, `constant` or `temporaries`.
    pub kind: &'static str,
    /// Its size in bytes.
    pub bytes: u64,
    /// Number of values in it.
    pub values: usize,
    /// The instruction of the largest value in it, the first of equals.
    pub largest: Option<String>,
    /// Size of that value in bytes.
    pub largest_bytes: Option<u64>,
}

impl AssignmentReport {
    /// Reports an assignment: totals of all allocations, rows of all or of the `most_allocations` largest.
    ///
    /// ```
    /// use tilewise_audit::AssignmentReport;
    /// use tilewise_hlo::BufferAssignment;
    ///
    /// let assignment = BufferAssignment::parse("BufferAssignment:
    /// allocation 0: size 64, parameter 0, shape |f32[16]| at ShapeIndex {}:
    ///  value: <1 x @0> (size=64,offset=0): f32[16]{0}")?;
    /// let report = AssignmentReport::of(&assignment, "plan.txt", None);
    /// assert_eq!(report.memory_spaces[0].argument_bytes, 64);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn of(assignment: &BufferAssignment, source: &str, most_allocations: Option<usize>) -> Self {
        let mut spaces: BTreeMap<u64, AssignmentSpace> = BTreeMap::new();
        // Thread-local allocations belong to scalar functions, and take none of the program's memory.
        let owned = || assignment.allocations().iter().filter(|allocation| !allocation.is_thread_local);
        for allocation in owned() {
            let memory_space = allocation.memory_space;
            let empty = AssignmentSpace { memory_space, ..AssignmentSpace::default() };
            let space = spaces.entry(memory_space).or_insert(empty);
            space.allocations += 1;
            let sum = match kind(allocation) {
                "argument" => &mut space.argument_bytes,
                "result" => &mut space.output_bytes,
                "constant" => &mut space.constant_bytes,
                _ => &mut space.temporary_bytes,
            };
            *sum = sum.saturating_add(allocation.size);
        }
        let mut allocations: Vec<&BufferAllocation> = owned().collect();
        allocations.sort_by_cached_key(|allocation| Reverse(allocation.size));
        allocations.truncate(most_allocations.unwrap_or(usize::MAX));
        Self {
            source: source.to_owned(),
            memory_spaces: spaces.into_values().collect(),
            allocations: allocations.into_iter().map(AssignmentRow::of).collect(),
            is_whole: assignment.is_whole(),
        }
    }
}

impl AssignmentSpace {
    /// The memory space's name.
    #[must_use]
    pub fn memory_space_name(&self) -> String {
        let number = self.memory_space;
        u8::try_from(number).map_or_else(|_| format!("space_{number}"), |space| memory_space_name(space).into_owned())
    }

    /// Bytes of all its allocations.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        let parts = [self.argument_bytes, self.output_bytes, self.constant_bytes, self.temporary_bytes];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl AssignmentRow {
    fn of(allocation: &BufferAllocation) -> Self {
        // `max_by_key` returns the last of equals.
        let largest = allocation.values.iter().rev().max_by_key(|value| value.size);
        Self {
            index: allocation.index,
            memory_space: allocation.memory_space,
            kind: kind(allocation),
            bytes: allocation.size,
            values: allocation.values.len(),
            largest: largest.map(|value| value.instruction.clone()),
            largest_bytes: largest.map(|value| value.size),
        }
    }
}

fn kind(allocation: &BufferAllocation) -> &'static str {
    match allocation {
        BufferAllocation { parameter: Some(_), .. } => "argument",
        BufferAllocation { is_live_out: true, .. } => "result",
        BufferAllocation { is_constant: true, .. } => "constant",
        _ => "temporaries",
    }
}
