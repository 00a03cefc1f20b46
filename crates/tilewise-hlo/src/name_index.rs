//! An index of names.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Indices by the hashes of their names, in a table with open addressing.
#[derive(Clone, Debug)]
pub(crate) struct NameIndex {
    hasher: NameHasher,
    /// A part of each hash, and the index; a power of two of them.
    slots: Vec<(u32, u32)>,
}

const FREE: u32 = u32::MAX;

impl NameIndex {
    /// An empty index, with room for `count` names.
    pub(crate) fn with_capacity(count: usize) -> Self {
        let mut index = Self { hasher: NameHasher::new(), slots: Vec::new() };
        index.reset(count);
        index
    }

    /// The index of these names. Several may share a name: the first counts.
    pub(crate) fn new<'n>(indices: Range<usize>, name_of: impl Fn(usize) -> &'n str) -> Self {
        let mut index = Self::with_capacity(indices.len());
        for at in indices {
            index.insert(name_of(at), at, &name_of);
        }
        index
    }

    /// Forgets all names, and makes room for `count`.
    pub(crate) fn reset(&mut self, count: usize) {
        self.slots.clear();
        self.slots.resize((count * 3 / 2 + 1).next_power_of_two(), (0, FREE));
    }

    /// Adds a name, unless it is there: then its index is returned. There must be room.
    pub(crate) fn insert<'n>(&mut self, name: &str, index: usize, name_of: impl Fn(usize) -> &'n str) -> Option<usize> {
        match self.slot(name, name_of) {
            Ok(known) => Some(known),
            Err((slot, tag)) => {
                // A module is smaller than 4 GiB, so that indices fit.
                self.slots[slot] = (tag, u32::try_from(index).unwrap_or(FREE));
                None
            }
        }
    }

    /// The index of this name.
    pub(crate) fn find<'n>(&self, name: &str, name_of: impl Fn(usize) -> &'n str) -> Option<usize> {
        self.slot(name, name_of).ok()
    }

    /// The index of a name, or its free slot, and the part of its hash to store there.
    fn slot<'n>(&self, name: &str, name_of: impl Fn(usize) -> &'n str) -> Result<usize, (usize, u32)> {
        let (hash, tag) = self.hasher.hash(name.as_bytes());
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                (_, FREE) => return Err((slot, tag)),
                (known, index) if known == tag && name_of(index as usize) == name => return Ok(index as usize),
                _ => slot = (slot + 1) & mask,
            }
        }
    }
}

/// Hashes short names fast. It is seeded at random, so that no text can make many of them collide.
#[derive(Clone, Copy, Debug)]
struct NameHasher {
    seed: u64,
    factor: u64,
}

impl NameHasher {
    fn new() -> Self {
        let random = RandomState::new();
        Self { seed: random.hash_one(0), factor: random.hash_one(1) | 1 }
    }

    /// Two hashes.
    fn hash(self, name: &[u8]) -> (u32, u32) {
        let mut state = self.seed ^ name.len() as u64;
        let mut rest = name;
        while let Some((word, more)) = rest.split_first_chunk::<8>().filter(|(_, more)| !more.is_empty()) {
            state = self.fold(state ^ u64::from_le_bytes(*word));
            rest = more;
        }
        let hash = self.fold(state ^ last_word(name, rest));
        let [low, high] = [hash & u64::from(u32::MAX), hash >> 32].map(|half| u32::try_from(half).unwrap_or_default());
        (low, high)
    }

    /// The halves of a product mixed: each bit of the state reaches most bits of the result.
    fn fold(self, state: u64) -> u64 {
        let product = u128::from(state) * u128::from(self.factor);
        let [low, high] =
            [product & u128::from(u64::MAX), product >> 64].map(|half| u64::try_from(half).unwrap_or_default());
        low ^ high
    }
}

/// The last 8 bytes of a name, whose `rest` is not read yet; a shorter name is packed into them.
fn last_word(name: &[u8], rest: &[u8]) -> u64 {
    if let Some(word) = name.last_chunk() {
        u64::from_le_bytes(*word)
    } else if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
    } else {
        rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}
