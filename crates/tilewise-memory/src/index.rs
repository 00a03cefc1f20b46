//! Typed indices: an instruction's number can't be taken for a value's.

use std::{
    marker::PhantomData,
    ops::{Index, IndexMut},
};

/// A 32-bit index into a [`Table`].
pub(crate) trait Key: Copy {
    fn new(at: usize) -> Self;
    fn at(self) -> usize;
}

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        impl Key for $name {
            fn new(at: usize) -> Self {
                // Tables are no longer than the text, which the reader keeps below 4 GiB.
                Self(u32::try_from(at).unwrap_or(u32::MAX))
            }

            fn at(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

keys! {
    /// An instruction of the graph.
    OpId
    /// A computation of the graph.
    ComputationId
    /// A node of an instruction's shape.
    PlaceId
    /// A value that places hold.
    ValueId
    /// Values that lie together.
    BufferId
    /// Values that share a piece of the heap.
    GroupId
}

impl PlaceId {
    /// The place so many nodes further on.
    pub(crate) fn plus(self, nodes: usize) -> Self {
        Self::new(self.at() + nodes)
    }

    /// How many nodes this is after an earlier one.
    pub(crate) fn since(self, earlier: Self) -> usize {
        self.at() - earlier.at()
    }
}

/// A vector with an index type of its own.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, T> {
    items: Vec<T>,
    key: PhantomData<K>,
}

impl<K: Key, T> Table<K, T> {
    pub(crate) fn new() -> Self {
        Vec::new().into()
    }

    pub(crate) fn filled(length: usize, item: T) -> Self
    where
        T: Clone,
    {
        vec![item; length].into()
    }

    pub(crate) fn push(&mut self, item: T) -> K {
        self.items.push(item);
        K::new(self.items.len() - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The index that the next item will have.
    pub(crate) fn next_key(&self) -> K {
        K::new(self.items.len())
    }

    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = K> + use<K, T> {
        (0..self.items.len()).map(K::new)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &T)> {
        self.items.iter().enumerate().map(|(at, item)| (K::new(at), item))
    }
}

impl<K, T> From<Vec<T>> for Table<K, T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, key: PhantomData }
    }
}

impl<K: Key, T> Index<K> for Table<K, T> {
    type Output = T;

    fn index(&self, key: K) -> &T {
        &self.items[key.at()]
    }
}

impl<K: Key, T> IndexMut<K> for Table<K, T> {
    fn index_mut(&mut self, key: K) -> &mut T {
        &mut self.items[key.at()]
    }
}
