//! Ranges of the text.

use std::ops::Range;

/// A range of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// Both positions are within a source that [`check_size`](crate::error::check_size) has found to be shorter than 4 GiB.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}
