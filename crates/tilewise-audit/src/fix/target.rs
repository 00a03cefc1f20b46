//! The array that is to take less.

use tilewise::{ArrayShape, Shape, Sizes, tpu::Generation};

/// The array a fix is sought for.
pub(super) struct Target<'a> {
    pub(super) array: &'a ArrayShape,
    /// Its bounds; a dynamic dimension counts with its own.
    pub(super) bounds: &'a [u64],
    pub(super) generation: Generation,
    pub(super) baseline: Baseline,
    /// The shape as the compiler would lay it out.
    pub(super) default_layout: &'a Shape,
}

/// What the array takes as it is: what every change is compared with.
#[derive(Clone, Copy)]
pub(super) struct Baseline {
    pub(super) sizes: Sizes,
    /// Whether its dimensions are in the order that the compiler prefers.
    pub(super) has_default_order: bool,
}

impl Baseline {
    /// Whether leaving `after` bytes frees this many hundredths of what leaving `best` frees.
    pub(super) fn frees(self, hundredths: u128, after: u64, best: u64) -> bool {
        let freed = |after: u64| u128::from(self.sizes.physical_bytes.saturating_sub(after));
        freed(after) * 100 >= freed(best) * hundredths
    }

    /// Whether that is little more than the data, and frees nearly as much.
    pub(super) fn is_as_tight(self, after: u64, best: u64) -> bool {
        self.is_reached(after) && self.frees(80, after, best)
    }

    /// Whether a simpler kind that leaves `after` bytes is to be preferred.
    pub(super) fn is_as_good(self, after: u64, best: u64) -> bool {
        let is_fair = u128::from(after) * 2 <= u128::from(self.sizes.logical_bytes) * 3;
        self.is_as_tight(after, best) || after == best || is_fair && self.frees(96, after, best)
    }

    /// Whether the padding is at most a tenth of the data.
    pub(super) fn is_reached(self, after: u64) -> bool {
        u128::from(after) * 10 <= u128::from(self.sizes.logical_bytes) * 11
    }
}
