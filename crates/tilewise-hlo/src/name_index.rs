//! An index of names.

use foldhash::fast::RandomState;
use hashbrown::{HashTable, hash_table::Entry};
use std::hash::BuildHasher;
use std::ops::Range;

/// Indices by their names, which stay in the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameIndex {
    random: RandomState,
    /// A module is smaller than 4 GiB, so that indices fit.
    indices: HashTable<u32>,
}

impl NameIndex {
    /// An empty index, with room for `count` names.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { random: RandomState::default(), indices: HashTable::with_capacity(count) }
    }

    /// The index of these names. Several may share a name: the first counts.
    pub(crate) fn new<'n>(indices: Range<usize>, name_of: impl Fn(usize) -> &'n str) -> Self {
        let mut index = Self::with_capacity(indices.len());
        for at in indices {
            index.insert(name_of(at), at, &name_of);
        }
        index
    }

    /// Adds a name, unless it is there: then its index is returned.
    pub(crate) fn insert<'n>(&mut self, name: &str, index: usize, name_of: impl Fn(usize) -> &'n str) -> Option<usize> {
        let hash = |name: &str| self.random.hash_one(name);
        let is_name = |at: &u32| name_of(*at as usize) == name;
        match self.indices.entry(hash(name), is_name, |at| hash(name_of(*at as usize))) {
            Entry::Occupied(known) => Some(*known.get() as usize),
            Entry::Vacant(free) => {
                free.insert(u32::try_from(index).ok()?);
                None
            }
        }
    }

    /// The index of this name.
    pub(crate) fn find<'n>(&self, name: &str, name_of: impl Fn(usize) -> &'n str) -> Option<usize> {
        let found = self.indices.find(self.random.hash_one(name), |at| name_of(*at as usize) == name);
        found.map(|at| *at as usize)
    }
}
