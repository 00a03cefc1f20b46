//! The parts of a timeline.

use tilewise_memory::Role;

/// A part of a training step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pass {
    /// `forward pass`, `backward pass`.
    pub name: &'static str,
    /// The moment of its first operation.
    pub first: usize,
    /// The moment of its last operation.
    pub last: usize,
}

/// A module of the network, and its bytes at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleRow {
    /// `Model/layer_3`, or for arguments the subtree, `params/layer_3`; empty if names have none.
    pub module: String,
    /// Number of arrays.
    pub count: usize,
    /// Bytes they take.
    pub bytes: u64,
    /// Bytes of padding in them.
    pub padding_bytes: u64,
}

/// Memory in use for a part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelinePiece {
    /// The index of its owner in [`Timeline::owners`](crate::Timeline::owners).
    pub owner: usize,
    /// The framework's name of the operation, as an index in [`Timeline::paths`](crate::Timeline::paths).
    pub path: Option<usize>,
    /// The index of its layer in [`Timeline::layers`](crate::Timeline::layers).
    pub layer: Option<usize>,
    /// The index of its shape in [`Timeline::shapes`](crate::Timeline::shapes).
    pub shape: Option<usize>,
    /// The instruction that makes it.
    pub instruction: String,
    /// Bytes from the start of the temporaries' memory, if known.
    pub offset: Option<u64>,
    /// Bytes it takes.
    pub bytes: u64,
    /// Bytes of padding, both of the shape and of its allocation.
    pub padding_bytes: u64,
    /// The first moment at which it is in use.
    pub first: usize,
    /// The last moment at which it is in use.
    pub last: usize,
}

/// Equal arrays that are live for the whole run: arguments, results, constants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StandingRow {
    /// The index of their owner in [`Timeline::owners`](crate::Timeline::owners).
    pub owner: usize,
    /// The framework's name, as an index in [`Timeline::paths`](crate::Timeline::paths).
    pub path: Option<usize>,
    /// The index of their shape in [`Timeline::shapes`](crate::Timeline::shapes).
    pub shape: usize,
    /// For equal arguments whose names differ only in numbers, the index in
    /// [`Timeline::families`](crate::Timeline::families).
    pub family: Option<usize>,
    /// Their role in the plan.
    pub role: Role,
    /// The instruction that makes the first of them.
    pub instruction: String,
    /// Number of arrays.
    pub count: usize,
    /// Bytes they take together.
    pub bytes: u64,
    /// Bytes of padding in them.
    pub padding_bytes: u64,
}
