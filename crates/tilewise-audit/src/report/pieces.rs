//! What a timeline is made of.

use tilewise_memory::Role;

/// A part of a training step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pass {
    /// `forward pass`, `backward pass`.
    pub name: &'static str,
    /// The moment of its first operation.
    pub first: usize,
    /// That of the last one.
    pub last: usize,
}

/// What one module of the network holds at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleRow {
    /// `Model/layer_3`, or of arguments the part of their tree, `params/layer_3`; empty where names have none.
    pub module: String,
    /// How many arrays.
    pub count: usize,
    /// Bytes they take.
    pub bytes: u64,
    /// How many of them hold no data.
    pub padding_bytes: u64,
}

/// Memory in use for a part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelinePiece {
    /// Whose it is, of [`Timeline::owners`](crate::Timeline::owners).
    pub owner: usize,
    /// The framework's name of the operation, of [`Timeline::paths`](crate::Timeline::paths).
    pub path: Option<usize>,
    /// The layer that it is of, of [`Timeline::layers`](crate::Timeline::layers).
    pub layer: Option<usize>,
    /// What lies there, of [`Timeline::shapes`](crate::Timeline::shapes).
    pub shape: Option<usize>,
    /// The instruction that makes it.
    pub instruction: String,
    /// Bytes from the start of the temporaries' memory, where that is known.
    pub offset: Option<u64>,
    /// Bytes it takes.
    pub bytes: u64,
    /// How many of them hold no data: those of the shape that lies there and of its allocation.
    pub padding_bytes: u64,
    /// The first moment at which it is in use.
    pub first: usize,
    /// The last one.
    pub last: usize,
}

/// Equal arrays that are there for the whole run: arguments, results, constants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StandingRow {
    /// Whose it is, of [`Timeline::owners`](crate::Timeline::owners).
    pub owner: usize,
    /// The framework's name, of [`Timeline::paths`](crate::Timeline::paths).
    pub path: Option<usize>,
    /// Their shape, of [`Timeline::shapes`](crate::Timeline::shapes).
    pub shape: usize,
    /// Of equal arguments whose names differ only in numbers, the number in [`Timeline::families`](crate::Timeline::families).
    pub family: Option<usize>,
    /// What they are for.
    pub role: Role,
    /// The instruction that makes the first of them.
    pub instruction: String,
    /// How many there are.
    pub count: usize,
    /// Bytes they take together.
    pub bytes: u64,
    /// How many of them hold no data.
    pub padding_bytes: u64,
}
