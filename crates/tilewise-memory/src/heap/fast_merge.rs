//! In the order of definition, each group goes into the smallest free chunk that holds it.
//!
//! Free chunks as in `FreeChunksManager` (xla/service/heap_simulator/free_chunks_manager.cc).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use super::Group;
use super::GroupId;
use tilewise_hlo::dataflow::Table;

/// Sets the offsets and returns the height of the heap; `None` if that exceeds 64 bits.
pub(super) fn pack(groups: &mut Table<Group, Group>, alignment: u64) -> Option<u64> {
    let mut order: Vec<GroupId> = groups.ids().filter(|group| groups[*group].bytes > 0).collect();
    order.sort_by_cached_key(|id| {
        let group = &groups[*id];
        (group.low, Reverse(group.bytes), group.members.first().map(|member| member.rank))
    });
    let mut free = FreeChunks::all(alignment);
    // The pieces in use, by their last event.
    let mut used = BinaryHeap::new();
    let mut height = 0;
    for id in order {
        let group = &mut groups[id];
        while let Some(&Reverse((high, start, end))) = used.peek() {
            if high > group.low {
                break;
            }
            used.pop();
            free.give_back(start, end);
        }
        let start = free.take(group.bytes)?;
        group.offset = start.checked_next_multiple_of(alignment)?;
        let end = group.offset.checked_add(group.bytes)?;
        free.give_rest(end);
        // The gap that alignment leaves in front belongs to the piece.
        used.push(Reverse((group.high, start, end)));
        height = height.max(end);
    }
    Some(height)
}

/// Free chunks; no two touch.
struct FreeChunks {
    /// The end of each chunk, by start.
    by_start: BTreeMap<u64, u64>,
    /// The room in each chunk after alignment, with its start.
    by_room: BTreeSet<(u64, u64)>,
    /// The end of the chunk that was taken last.
    taken_to: u64,
    alignment: u64,
}

impl FreeChunks {
    fn all(alignment: u64) -> Self {
        let mut this = Self { by_start: BTreeMap::new(), by_room: BTreeSet::new(), taken_to: 0, alignment };
        this.insert(0, u64::MAX);
        this
    }

    fn room(&self, start: u64, end: u64) -> u64 {
        start.checked_next_multiple_of(self.alignment).map_or(0, |start| end.saturating_sub(start))
    }

    fn insert(&mut self, start: u64, end: u64) {
        self.by_start.insert(start, end);
        self.by_room.insert((self.room(start, end), start));
    }

    fn remove(&mut self, start: u64) -> Option<u64> {
        let end = self.by_start.remove(&start)?;
        self.by_room.remove(&(self.room(start, end), start));
        Some(end)
    }

    /// Takes the whole chunk with the least sufficient room, the lowest if there are several, and returns its start.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let &(_, start) = self.by_room.range((bytes, 0)..).next()?;
        self.taken_to = self.remove(start)?;
        Some(start)
    }

    /// Gives back the rest of the chunk taken last, starting at `from`.
    fn give_rest(&mut self, from: u64) {
        if from < self.taken_to {
            self.insert(from, self.taken_to);
        }
    }

    fn give_back(&mut self, mut start: u64, mut end: u64) {
        if let Some(after) = self.remove(end) {
            end = after;
        }
        let before = self.by_start.range(..start).next_back().map(|(start, end)| (*start, *end));
        if let Some((before, _)) = before.filter(|before| before.1 >= start) {
            self.remove(before);
            start = before;
        }
        self.insert(start, end);
    }
}
