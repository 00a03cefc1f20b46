//! Intervals of events, found by what they overlap.

use std::collections::BTreeMap;

/// Items by interval, both ends included. A query costs the number of its hits and a logarithm.
pub(super) struct IntervalIndex<T> {
    /// A segment tree over events: each interval is at the few nodes that it covers.
    covering: Vec<Vec<T>>,
    starting: BTreeMap<usize, Vec<T>>,
    leaves: usize,
}

impl<T: Copy> IntervalIndex<T> {
    /// An index for events before `length`.
    pub(super) fn new(length: usize) -> Self {
        let leaves = length.max(1).next_power_of_two();
        Self { covering: vec![Vec::new(); 2 * leaves], starting: BTreeMap::new(), leaves }
    }

    pub(super) fn insert(&mut self, low: usize, high: usize, item: T) {
        let (mut left, mut right) =
            (low.min(self.leaves - 1) + self.leaves, high.min(self.leaves - 1) + self.leaves + 1);
        while left < right {
            if left % 2 == 1 {
                self.covering[left].push(item);
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                self.covering[right].push(item);
            }
            left /= 2;
            right /= 2;
        }
        self.starting.entry(low).or_default().push(item);
    }

    /// Calls `found` once for each overlapping item.
    pub(super) fn overlapping(&self, low: usize, high: usize, mut found: impl FnMut(T)) {
        let mut node = low.min(self.leaves - 1) + self.leaves;
        while node > 0 {
            self.covering[node].iter().copied().for_each(&mut found);
            node /= 2;
        }
        if low < high {
            self.starting.range(low + 1..=high).flat_map(|(_, items)| items).copied().for_each(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_scan_finds() {
        let intervals: Vec<(usize, usize)> = (0..60).map(|k| ((k * 7) % 50, (k * 7) % 50 + (k * 5) % 13)).collect();
        let mut index = IntervalIndex::new(64);
        for (k, (low, high)) in intervals.iter().enumerate() {
            index.insert(*low, *high, k);
        }
        for low in 0..64 {
            for high in low..64 {
                let mut found = Vec::new();
                index.overlapping(low, high, |k| found.push(k));
                found.sort_unstable();
                let expected = (0..intervals.len()).filter(|k| intervals[*k].0 <= high && low <= intervals[*k].1);
                assert_eq!(found, expected.collect::<Vec<_>>(), "{low}..={high}");
            }
        }
    }
}
