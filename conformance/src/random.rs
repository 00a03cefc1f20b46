//! Reproducible random numbers: the same on every machine and with every version of every dependency.

/// `SplitMix64`.
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of one case of one run.
    pub(crate) fn new(seed: u64, case: u64) -> Self {
        Self(Self(seed).next() ^ case.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to one less than `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        // The remainder is below `bound`.
        usize::try_from(self.next() % bound as u64).unwrap_or(0)
    }

    /// Whether what happens in so many of a hundred cases happens.
    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i + 1));
        }
    }
}
