//! The array that is to take less.

use tilewise::{ArrayShape, Shape, tpu::Generation};

/// The array a fix is sought for.
pub(super) struct Subject<'a> {
    pub(super) array: &'a ArrayShape,
    /// Its bounds; a dynamic dimension counts with its own.
    pub(super) bounds: &'a [u64],
    pub(super) generation: Generation,
    pub(super) now: Now,
    /// The shape as the compiler would lay it out.
    pub(super) usual: &'a Shape,
}

impl Subject<'_> {
    /// Bits of an element as it is stored, which may be more than the type has.
    pub(super) fn stored_bits(&self) -> u64 {
        let natural = u64::from(self.array.element_type().natural_bits());
        self.array.layout().and_then(|layout| layout.element_size_in_bits()).unwrap_or(natural)
    }
}

/// What the array takes now, and what of it is data.
#[derive(Clone, Copy)]
pub(super) struct Now {
    pub(super) physical: u64,
    pub(super) logical: u64,
    /// Whether its dimensions are in the order that the compiler prefers.
    pub(super) is_usual: bool,
}

impl Now {
    /// Whether leaving `after` bytes frees this many hundredths of what leaving `best` frees.
    pub(super) fn frees(self, hundredths: u128, after: u64, best: u64) -> bool {
        let freed = |after: u64| u128::from(self.physical.saturating_sub(after));
        freed(after) * 100 >= freed(best) * hundredths
    }

    /// Whether that is little more than the data, and frees nearly as much.
    pub(super) fn is_as_tight(self, after: u64, best: u64) -> bool {
        self.is_reached(after) && self.frees(80, after, best)
    }

    /// Whether a simpler kind that leaves `after` bytes is to be preferred.
    pub(super) fn is_as_good(self, after: u64, best: u64) -> bool {
        let is_fair = u128::from(after) * 2 <= u128::from(self.logical) * 3;
        self.is_as_tight(after, best) || after == best || is_fair && self.frees(96, after, best)
    }

    /// Whether at most a tenth of the data comes on top in padding.
    pub(super) fn is_reached(self, after: u64) -> bool {
        u128::from(after) * 10 <= u128::from(self.logical) * 11
    }
}
