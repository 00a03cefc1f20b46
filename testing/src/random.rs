//! Reproducible random numbers: the same on every machine and with every version of every dependency.

/// The `SplitMix64` generator. Every seed is as good as any other; tests name theirs.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of one seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The numbers of one case of a run with that seed, whatever other cases draw.
    #[must_use]
    pub fn for_case(seed: u64, case: u64) -> Self {
        Self(Self(seed).number() ^ case.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to one less than `bound`.
    ///
    /// # Panics
    ///
    /// If `bound` is not positive.
    pub fn below<N: TryFrom<u64> + TryInto<u64>>(&mut self, bound: N) -> N {
        let bound = bound.try_into().ok().expect("a positive bound");
        N::try_from(self.number() % bound).ok().expect("less than the bound")
    }

    /// True in `chance` of a hundred cases.
    pub fn percent(&mut self, chance: u32) -> bool {
        self.below(100_u32) < chance
    }

    /// One of the items.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Puts the items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }

    /// A buffer of that many random bytes.
    ///
    /// # Panics
    ///
    /// If they don't fit into memory.
    pub fn bytes(&mut self, count: u64) -> Vec<u8> {
        let count = usize::try_from(count).expect("a buffer in memory");
        let mut bytes: Vec<u8> = (0..count.div_ceil(8)).flat_map(|_| self.number().to_le_bytes()).collect();
        bytes.truncate(count);
        bytes
    }
}
