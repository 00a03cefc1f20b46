//! A change of an array on its way to or from a kernel.

use crate::program::SourceLine;
use tilewise::Shape;
use tilewise_hlo::Opcode;

/// One instruction that changes the layout, shape, type or memory space of an array, and computes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoundaryChange {
    /// The instruction, without `%`.
    pub instruction: String,
    /// Its opcode.
    pub opcode: Opcode,
    /// Whether elements move: not in a transfer between memory spaces, nor in a bitcast or a conversion.
    pub is_relayout: bool,
    /// Whether it duplicates the array in the same memory space, as before a kernel that overwrites it.
    pub is_duplicate: bool,
    /// The array that it reads.
    pub from: Shape,
    /// The array that it writes.
    pub to: Shape,
    /// Bytes that it reads and writes; 0 for a bitcast.
    pub bytes: u64,
    /// Number of runs; `None` in a loop of unknown trip count.
    pub trips: Option<u64>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

/// Bytes that the copies among these changes read and write, in all their runs.
pub(super) fn copied_bytes(changes: &[BoundaryChange]) -> u64 {
    let copies = changes.iter().filter(|change| change.is_copy());
    copies.map(BoundaryChange::moved_bytes).fold(0, u64::saturating_add)
}

impl BoundaryChange {
    /// Whether it copies: a relayout or a duplicate.
    #[must_use]
    pub const fn is_copy(&self) -> bool {
        self.is_relayout || self.is_duplicate
    }

    /// Bytes that it reads and writes in all its runs.
    #[must_use]
    pub fn moved_bytes(&self) -> u64 {
        self.bytes.saturating_mul(self.trips.unwrap_or(1))
    }
}
