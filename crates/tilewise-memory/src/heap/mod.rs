//! The heap of one memory space: which values share a piece, when each piece is alive, and where it lies.
//!
//! The events are those of `HeapSimulator::RunComputation` (xla/service/heap_simulator/heap_simulator.cc).

mod best_fit;
mod fast_merge;
mod interval_index;

use tilewise_hlo::{
    Opcode,
    dataflow::{Dataflow, Id, Table, Value, ValueId},
};

use crate::{
    Packing,
    buffers::{Buffer, BufferId, Buffers, sort_by_range},
    rules::Rules,
    storage::Storages,
};

pub(crate) type GroupId = Id<Group>;

/// Values that share one piece of the heap.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Each with its first and last event.
    pub(crate) members: Vec<Member>,
    pub(crate) bytes: u64,
    /// Offset from the start of the heap.
    pub(crate) offset: u64,
    /// The first event of its members.
    low: usize,
    /// The last event of its members.
    high: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) value: ValueId,
    /// Tie-break order of values.
    rank: u32,
    low: usize,
    high: usize,
}

impl Member {
    pub(crate) fn is_alive_at(&self, event: usize) -> bool {
        self.low <= event && event < self.high
    }
}

#[derive(Clone, Copy, Debug)]
struct Event {
    is_definition: bool,
    value: ValueId,
    group: GroupId,
}

/// The heap of a memory space.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) groups: Table<Group, Group>,
    /// Bytes from the start to the end of the highest piece.
    pub(crate) height: u64,
    /// Bytes of the pieces alive at the peak.
    pub(crate) peak_bytes: u64,
    /// The first event that reaches the peak, a definition.
    pub(crate) peak_event: Option<usize>,
    events: Vec<Event>,
}

impl Heap {
    /// Replays definitions and releases. `None` if the sizes add up to more than 64 bits.
    pub(crate) fn new(
        flow: &Dataflow,
        rules: &dyn Rules,
        storages: &Storages,
        buffers: &Buffers,
        packed: &[BufferId],
    ) -> Option<Self> {
        let mut replay = Replay {
            flow,
            rules,
            storages,
            buffers,
            groups: Table::new(),
            events: Vec::new(),
            first_of: Table::filled(buffers.members.len(), None),
            slots: Table::filled(flow.values().len(), None),
            ends: Table::filled(flow.values().len(), 0),
        };
        replay.run(packed);
        let mut heap =
            Self { groups: replay.groups, height: 0, peak_bytes: 0, peak_event: None, events: replay.events };
        heap.find_peak()?;
        Some(heap)
    }

    /// Lays the groups out; `None` if they don't fit in 64 bits.
    pub(crate) fn pack(&mut self, packing: Packing, alignment: u64) -> Option<()> {
        self.height = match packing {
            Packing::FastMerge => fast_merge::pack(&mut self.groups, alignment)?,
            Packing::BestFit => best_fit::pack(&mut self.groups, alignment)?,
        };
        Some(())
    }

    /// The value of an event.
    pub(crate) fn value_at(&self, event: usize) -> Option<ValueId> {
        self.events.get(event).map(|event| event.value)
    }

    /// The values alive after an event, one for each piece, each with its group.
    pub(crate) fn alive_at(&self, event: usize) -> impl Iterator<Item = (&Group, &Member)> {
        // Members follow one another: the last one alive is the current one.
        self.groups.iter().filter_map(move |(_, group)| {
            let member = group.members.iter().rev().find(|member| member.is_alive_at(event))?;
            Some((group, member))
        })
    }

    /// Finds the peak: the first event after which the groups alive take the most. `None` if they exceed 64 bits.
    fn find_peak(&mut self) -> Option<()> {
        let mut alive: Table<Group, usize> = Table::filled(self.groups.len(), 0);
        let mut live = 0_u64;
        for (at, event) in self.events.iter().enumerate() {
            let count = &mut alive[event.group];
            if event.is_definition {
                *count += 1;
                if *count == 1 {
                    live = live.checked_add(self.groups[event.group].bytes)?;
                }
            } else {
                *count -= 1;
                if *count == 0 {
                    live -= self.groups[event.group].bytes;
                }
            }
            if live > self.peak_bytes {
                (self.peak_bytes, self.peak_event) = (live, Some(at));
            }
        }
        Some(())
    }
}

/// Turns live ranges into events.
struct Replay<'a> {
    flow: &'a Dataflow,
    rules: &'a dyn Rules,
    storages: &'a Storages,
    buffers: &'a Buffers,
    groups: Table<Group, Group>,
    events: Vec<Event>,
    /// The value that opened a buffer's group.
    first_of: Table<Buffer, Option<ValueId>>,
    /// The group of each value, and its index among the members.
    slots: Table<Value, Option<(GroupId, usize)>>,
    /// The last logical time of each value; `usize::MAX` once it gave its place away.
    ends: Table<Value, usize>,
}

impl Replay<'_> {
    /// Replays each logical time: first the definitions, then the releases, each in the order of the values.
    fn run(&mut self, packed: &[BufferId]) {
        let mut born: Vec<ValueId> = packed.iter().flat_map(|buffer| &self.buffers.members[*buffer]).copied().collect();
        let ranges = &self.buffers.ranges;
        sort_by_range(&mut born, ranges, &self.buffers.ranks);
        let mut dying = born.clone();
        dying.sort_by_cached_key(|value| ranges[*value].end);
        for value in &born {
            self.ends[*value] = ranges[*value].end;
        }
        let (mut born, mut dying) = (born.into_iter().peekable(), dying.into_iter().peekable());
        while let Some(time) = dying.peek().map(|value| ranges[*value].end) {
            let time = born.peek().map_or(time, |value| time.min(ranges[*value].start));
            while let Some(value) = born.next_if(|value| ranges[*value].start == time) {
                self.define(value, time);
            }
            while let Some(value) = dying.next_if(|value| ranges[*value].end == time) {
                // A value that gave its place away is released already.
                if self.ends[value] == time {
                    self.release(value);
                }
            }
        }
    }

    fn define(&mut self, value: ValueId, time: usize) {
        let Some(buffer) = self.buffers.of(value) else { return };
        let is_first = self.first_of[buffer].is_none();
        let host = match self.first_of[buffer] {
            Some(first) => Some(first),
            None => self.donor(value, buffer, time).inspect(|donor| {
                self.release(*donor);
                // Larger than any logical time: never released again.
                self.ends[*donor] = usize::MAX;
            }),
        };
        let group = match host.and_then(|host| self.slots[host]) {
            Some((group, _)) => group,
            None => {
                self.first_of[buffer] = Some(value);
                let low = self.events.len();
                self.groups.push(Group { members: Vec::new(), bytes: 0, offset: 0, low, high: low })
            }
        };
        // Once per buffer: a loop's carry may have one value per instruction of the program.
        let bytes = if is_first { self.buffers.bytes(self.flow, self.storages, buffer) } else { 0 };
        let at = self.events.len();
        let group_data = &mut self.groups[group];
        group_data.bytes = group_data.bytes.max(bytes);
        self.slots[value] = Some((group, group_data.members.len()));
        group_data.members.push(Member { value, rank: self.buffers.ranks[value], low: at, high: at });
        self.events.push(Event { is_definition: true, value, group });
    }

    fn release(&mut self, value: ValueId) {
        let Some((group, member)) = self.slots[value] else { return };
        let at = self.events.len();
        self.groups[group].members[member].high = at;
        self.groups[group].high = at;
        self.events.push(Event { is_definition: false, value, group });
    }

    /// The operand that ends now and whose place this value may take.
    fn donor(&self, value: ValueId, buffer: BufferId, time: usize) -> Option<ValueId> {
        let position = self.flow.values()[value];
        let op = self.flow.op_at(position);
        if self.buffers.members[buffer].len() != 1 || self.flow[op].opcode == Opcode::Copy {
            return None;
        }
        self.flow.operands(op).iter().find_map(|operand| {
            let old = self.flow.value_at(self.flow[*operand].position)?;
            let is_its_own = self.flow.op_at(self.flow.values()[old]) == *operand;
            let is_alone = self.buffers.of(old).is_some_and(|buffer| self.buffers.members[buffer].len() == 1);
            let ends_now = self.slots[old].is_some() && self.ends[old] == time;
            let may_share = || self.rules.may_share(self.flow, position, self.flow[*operand].position);
            (is_its_own && is_alone && ends_now && may_share()).then_some(old)
        })
    }
}
