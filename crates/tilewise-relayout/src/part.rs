//! How the work of one run is divided.

/// Where the work is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    None,
    Loop(usize),
    /// The bytes of a run, or the columns of a transpose.
    Leaf,
    /// The rows of a transpose.
    Rows,
}

/// A share of the work.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) index: usize,
    pub(crate) of: usize,
}

impl Part {
    /// This part's share of `0..n`, in whole multiples of `grain` except at the end.
    pub(crate) fn share(self, n: u64, grain: u64) -> (u64, u64) {
        let bound = |index: usize| {
            let cut = u128::from(n.div_ceil(grain)) * index as u128 / self.of as u128;
            u64::try_from(cut).map_or(n, |cut| (cut * grain).min(n))
        };
        (bound(self.index), bound(self.index + 1))
    }

    pub(crate) fn is_last(self) -> bool {
        self.index + 1 == self.of
    }
}
