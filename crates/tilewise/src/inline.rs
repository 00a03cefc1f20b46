//! A short list that stays in place while it fits.
//!
//! Shapes are parsed by the hundred thousand, and nearly all of them have at most six dimensions and three tiles:
//! keeping those out of the heap makes parsing fast and cloning cheap.

use alloc::vec::Vec;
use core::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::{Deref, DerefMut},
};

/// Up to `N` items in place, any number on the heap.
#[derive(Clone)]
pub(crate) enum InlineVec<T, const N: usize> {
    Inline { len: u8, items: [T; N] },
    Heap(Vec<T>),
}

impl<T: Default, const N: usize> InlineVec<T, N> {
    #[inline]
    pub(crate) fn new() -> Self {
        Self::Inline { len: 0, items: core::array::from_fn(|_| T::default()) }
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        match self {
            Self::Inline { len, items } => {
                if let Some(slot) = items.get_mut(usize::from(*len)) {
                    *slot = item;
                    *len += 1;
                } else {
                    self.spill(item);
                }
            }
            Self::Heap(heap) => heap.push(item),
        }
    }

    /// Moves the items to the heap, and adds one.
    #[cold]
    fn spill(&mut self, item: T) {
        let mut heap = Vec::with_capacity(2 * N);
        heap.extend(self.iter_mut().map(core::mem::take));
        heap.push(item);
        *self = Self::Heap(heap);
    }
}

impl<T: Default, const N: usize> Extend<T> for InlineVec<T, N> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T, const N: usize> Deref for InlineVec<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Inline { len, items } => &items[..usize::from(*len)],
            Self::Heap(heap) => heap,
        }
    }
}

impl<T, const N: usize> DerefMut for InlineVec<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Inline { len, items } => &mut items[..usize::from(*len)],
            Self::Heap(heap) => heap,
        }
    }
}

impl<T: Default, const N: usize> FromIterator<T> for InlineVec<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = Self::new();
        list.extend(items);
        list
    }
}

impl<T: Default, const N: usize> Default for InlineVec<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: PartialEq, const N: usize> PartialEq for InlineVec<T, N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq, const N: usize> Eq for InlineVec<T, N> {}

impl<T: PartialOrd, const N: usize> PartialOrd for InlineVec<T, N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: Ord, const N: usize> Ord for InlineVec<T, N> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: Hash, const N: usize> Hash for InlineVec<T, N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for InlineVec<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spills_to_the_heap_and_keeps_its_order() {
        for count in 0..9u64 {
            let list: InlineVec<u64, 3> = (0..count).collect();
            assert_eq!(&*list, &*(0..count).collect::<Vec<_>>());
            assert_eq!(matches!(list, InlineVec::Heap(_)), count > 3);
        }
    }

    #[test]
    fn compares_by_content_wherever_it_is_kept() {
        let inline: InlineVec<u64, 3> = [1, 2].into_iter().collect();
        assert_eq!(inline, InlineVec::Heap(alloc::vec![1, 2]));
        assert!(inline < InlineVec::Heap(alloc::vec![1, 3]));
    }
}
