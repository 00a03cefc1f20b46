//! Best fit: in a fixed order, each group goes into the smallest gap between those alive at the same time.
//!
//! `GlobalDecreasingSizeBestFitHeap` in its two orders (xla/service/heap_simulator/heap_simulator.cc).

use std::cmp::Reverse;

use super::GroupId;
use super::{Group, interval_index::IntervalIndex};
use tilewise_hlo::dataflow::Table;

/// Sets the offsets and returns the height of the heap; `None` if that exceeds 64 bits.
pub(super) fn pack(groups: &mut Table<Group, Group>, alignment: u64) -> Option<u64> {
    let spatial = ordered(groups, &|group, length| [group.bytes, length].map(Reverse));
    let temporal = ordered(groups, &|group, _| [group.high as u64 - group.low as u64, group.bytes].map(Reverse));
    let by_size = place(groups, &spatial, alignment, u64::MAX)?;
    let (offsets, height) = place(groups, &temporal, alignment, by_size.1).unwrap_or(by_size);
    for (id, offset) in offsets {
        groups[id].offset = offset;
    }
    Some(height)
}

/// The groups by a key of each and how long its first member lives, then by that member's value.
fn ordered(groups: &Table<Group, Group>, key: &dyn Fn(&Group, u64) -> [Reverse<u64>; 2]) -> Vec<GroupId> {
    let first =
        |group: &Group| group.members.first().map_or((0, None), |m| (m.high as u64 - m.low as u64, Some(m.rank)));
    let mut order: Vec<GroupId> = groups.ids().filter(|group| groups[*group].bytes > 0).collect();
    order.sort_by_cached_key(|id| {
        let (length, rank) = first(&groups[*id]);
        (key(&groups[*id], length), rank)
    });
    order
}

/// The offsets of groups and the height of the heap, which is to be less than `most`.
fn place(
    groups: &Table<Group, Group>,
    order: &[GroupId],
    alignment: u64,
    most: u64,
) -> Option<(Vec<(GroupId, u64)>, u64)> {
    let events = order.iter().map(|id| groups[*id].high + 1).max().unwrap_or(0);
    let mut placed = IntervalIndex::new(events);
    let mut pieces: Vec<(u64, u64)> = Vec::with_capacity(order.len());
    // The number of the last group that a piece was found for: members of one group mostly overlap the same pieces.
    let mut found_for = vec![usize::MAX; order.len()];
    let mut height = 0;
    let mut used: Vec<(u64, u64)> = Vec::new();
    for (number, &id) in order.iter().enumerate() {
        let group = &groups[id];
        used.clear();
        for member in &group.members {
            placed.overlapping(member.low, member.high, |piece: usize| {
                if std::mem::replace(&mut found_for[piece], number) != number {
                    used.push(pieces[piece]);
                }
            });
        }
        used.sort_unstable_by_key(|(low, _)| *low);
        let offset = smallest_gap(&used, group.bytes, alignment)?;
        let end = offset.checked_add(group.bytes).filter(|end| *end < most)?;
        height = height.max(end);
        for member in &group.members {
            placed.insert(member.low, member.high, number);
        }
        pieces.push((offset, end));
    }
    let offsets = order.iter().zip(pieces).map(|(id, (offset, _))| (*id, offset)).collect();
    Some((offsets, height))
}

/// The start of the smallest gap of at least `bytes` bytes, the lowest if there are several. A gap starts at the
/// aligned end of the piece below.
fn smallest_gap(used: &[(u64, u64)], bytes: u64, alignment: u64) -> Option<u64> {
    let (mut free, mut best) = (0_u64, None::<(u64, u64)>);
    let mut at = 0;
    while let Some(&(low, mut high)) = used.get(at) {
        while let Some(&(_, next_high)) = used.get(at).filter(|next| next.0 < high || next.0 == low) {
            high = high.max(next_high);
            at += 1;
        }
        let gap = low.saturating_sub(free);
        if gap >= bytes && best.is_none_or(|best| gap < best.0) {
            best = Some((gap, free));
        }
        free = free.max(high.checked_next_multiple_of(alignment)?);
    }
    Some(best.map_or(free, |(_, start)| start))
}
