//! Typed indices: an instruction's number can't be taken for a value's.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
    ops::{Index, IndexMut},
};

use crate::steps;

/// The number of one of many `T`, in 32 bits.
pub struct Id<T> {
    number: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> Id<T> {
    /// The id of this index.
    #[must_use]
    pub fn new(index: usize) -> Self {
        // Tables are no longer than the text, which the reader keeps below 4 GiB.
        Self { number: u32::try_from(index).unwrap_or(u32::MAX), of: PhantomData }
    }

    /// The index, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.number as usize
    }

    /// The id `count` further on.
    #[must_use]
    pub fn plus(self, count: usize) -> Self {
        Self::new(self.index() + count)
    }

    /// The distance from an earlier id.
    #[must_use]
    pub fn since(self, earlier: Self) -> usize {
        self.index() - earlier.index()
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Id<T> {}

impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

/// A `V` for each `T`, found by its [`Id`].
pub struct Table<T, V> {
    items: Vec<V>,
    of: PhantomData<fn() -> T>,
}

impl<T, V> Table<T, V> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Vec::new().into()
    }

    /// A table of `length` equal items.
    #[must_use]
    pub fn filled(length: usize, item: V) -> Self
    where
        V: Clone,
    {
        vec![item; length].into()
    }

    /// Adds an item and returns its id.
    pub fn push(&mut self, item: V) -> Id<T> {
        self.items.push(item);
        Id::new(self.items.len() - 1)
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The id of the next item.
    #[must_use]
    pub fn next_id(&self) -> Id<T> {
        Id::new(self.items.len())
    }

    /// The numbers, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = Id<T>> + ExactSizeIterator + use<T, V> {
        (0..self.items.len()).map(Id::new)
    }

    /// Each with its number, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Id<T>, &V)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(index, item)| (Id::new(index), item))
    }

    /// The item of this id, if there is one.
    #[must_use]
    pub fn get(&self, id: Id<T>) -> Option<&V> {
        self.items.get(id.index())
    }
}

impl<T, V: Clone> Clone for Table<T, V> {
    fn clone(&self) -> Self {
        self.items.clone().into()
    }
}

impl<T, V: fmt::Debug> fmt::Debug for Table<T, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.fmt(f)
    }
}

impl<T, V> Default for Table<T, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, V> From<Vec<V>> for Table<T, V> {
    fn from(items: Vec<V>) -> Self {
        Self { items, of: PhantomData }
    }
}

impl<T, V> Index<Id<T>> for Table<T, V> {
    type Output = V;

    fn index(&self, id: Id<T>) -> &V {
        steps::take(1);
        &self.items[id.index()]
    }
}

impl<T, V> IndexMut<Id<T>> for Table<T, V> {
    fn index_mut(&mut self, id: Id<T>) -> &mut V {
        steps::take(1);
        &mut self.items[id.index()]
    }
}
