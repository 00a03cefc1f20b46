//! What may be done to an array, and what it then takes.

use super::fixes::{FixKind, NewArray};
use std::ops::Range;
use tilewise::ElementType;

/// A register's lanes, what TPU tiles hold along the most minor dimension.
pub(super) const LANES: u64 = 128;
/// How many arrays one batch holds: enough to fill the lanes.
pub(super) const BATCH: u64 = LANES;

/// A change to the array, one of those that users make.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// The default order of dimensions.
    Order,
    /// The dimensions in this order, so that row-major is the default.
    Transpose { permutation: Vec<usize> },
    /// No dimensions of size 1.
    Squeeze,
    /// These dimensions as one.
    Merge { run: Range<usize> },
    /// The same, with `rows` of the dimension before the run.
    Fold { run: Range<usize>, rows: u64 },
    /// An array for each index along the dimension.
    Unstack { dimension: usize },
    /// Two arrays, cut at this index.
    Cut { dimension: usize, at: u64 },
    /// Many in one, along a new last dimension.
    Batch,
    /// The dimension made this size.
    Resize { dimension: usize, to: u64 },
    /// Elements of this type.
    Narrow { to: ElementType },
    /// A byte for a predicate that is stored in more.
    Byte,
}

/// A change and its price.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) change: Change,
    pub(super) arrays: Vec<NewArray>,
    /// Bytes of the new arrays; of a batch, the share of one.
    pub(super) after: u64,
    /// Bytes of data in them.
    pub(super) logical: u64,
}

impl Candidate {
    pub(super) fn kind(&self) -> FixKind {
        match self.change {
            Change::Order => FixKind::Order,
            Change::Transpose { .. } => FixKind::Transpose,
            Change::Squeeze | Change::Merge { .. } | Change::Fold { .. } => FixKind::Reshape,
            Change::Unstack { .. } | Change::Cut { .. } => FixKind::Split,
            Change::Batch => FixKind::Batch,
            Change::Resize { .. } => FixKind::Resize,
            Change::Narrow { .. } | Change::Byte => FixKind::Narrow,
        }
    }

    pub(super) fn changes_values(&self) -> bool {
        matches!(self.change, Change::Resize { .. } | Change::Narrow { .. })
    }
}
