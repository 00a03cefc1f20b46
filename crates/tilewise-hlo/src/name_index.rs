//! Finds things by name.

use std::hash::{BuildHasher, RandomState};

/// Indices in the order of the hashes of their names: built faster than an order of the names, and as small.
#[derive(Clone, Debug)]
pub(crate) struct NameIndex {
    hasher: RandomState,
    /// The high half of each hash, and the index.
    sorted: Vec<(u32, u32)>,
}

impl NameIndex {
    /// Of names by index. Names may be shared: the first counts.
    pub(crate) fn new<'n>(names: impl Iterator<Item = (usize, &'n str)>) -> Self {
        let hasher = RandomState::new();
        // A module is smaller than 4 GiB, so that indices fit.
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let keyed = names.map(|(at, name)| (hash(&hasher, name), index(at)));
        let mut sorted: Vec<(u32, u32)> = keyed.collect();
        sorted.sort_unstable();
        Self { hasher, sorted }
    }

    /// The first index whose name this is.
    pub(crate) fn find(&self, name: &str, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let hash = hash(&self.hasher, name);
        let first = self.sorted.partition_point(|(other, _)| *other < hash);
        let same = self.sorted.get(first..)?.iter().take_while(|(other, _)| *other == hash);
        same.map(|(_, index)| *index as usize).find(|index| is_it(*index))
    }
}

/// Hashes are seeded at random: no text can make many of them meet.
fn hash(hasher: &RandomState, name: &str) -> u32 {
    u32::try_from(hasher.hash_one(name) >> 32).unwrap_or_default()
}
