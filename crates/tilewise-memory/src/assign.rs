//! Which buffers have an allocation of their own, and which are packed into a heap.
//!
//! `BufferAssigner` (xla/service/buffer_assignment.cc).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use tilewise_hlo::{
    Opcode,
    dataflow::{BodyId, Dataflow, Op, OpId, Table, ValueId},
};

use crate::{
    buffers::{Buffer, BufferId, Buffers, LiveRange},
    heap::Packing,
    sharing::{interfere, work_area},
    storage::Storages,
};

/// What memory is for: the first of these that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A constant.
    Constant,
    /// An argument of the program, or a result that lies in a donated one.
    Argument,
    /// A tuple's table of pointers, of no result.
    Table,
    /// A result of the program.
    Output,
    /// Anything else.
    Temporary,
}

impl Role {
    /// Its name in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Argument => "argument",
            Self::Table => "table",
            Self::Output => "output",
            Self::Temporary => "temporary",
        }
    }

    /// Whether it is live for the whole run.
    #[must_use]
    pub fn is_resident(self) -> bool {
        matches!(self, Self::Constant | Self::Argument | Self::Output)
    }
}

/// The buffers of a program, by where they go.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) roles: Table<Buffer, Role>,
    /// Temporaries of the default memory space that lie outside its heap: each allocation's bytes and buffers.
    pub(crate) separate: Vec<(u64, Vec<BufferId>)>,
    /// The buffers of the heaps, by memory space.
    pub(crate) packed: BTreeMap<u8, Vec<BufferId>>,
    /// Whether a SparseCore has a work area.
    pub(crate) has_work_area: bool,
}

impl Assignment {
    pub(crate) fn new(flow: &Dataflow, storages: &Storages, buffers: &Buffers, packing: Packing) -> Self {
        Assigner::new(flow, storages, buffers).run(packing)
    }
}

/// Memory of its own, with what is in it.
struct Allocation<'f> {
    bytes: u64,
    memory_space: u8,
    buffers: Vec<BufferId>,
    /// Its values by the cores whose work area they are, and of those by start. Since none conflicts with another of no
    /// core, those are by end, too.
    values: BTreeMap<Cores<'f>, BTreeSet<(usize, usize, ValueId)>>,
    /// Whether it is SparseCores' work area.
    is_work_area: bool,
}

/// The SparseCores whose work area a value is; none for other values.
type Cores<'f> = BTreeSet<&'f str>;

/// What is asked of a buffer again and again.
struct Traits<'f> {
    bytes: u64,
    memory_space: u8,
    range: LiveRange,
    cores: Cores<'f>,
}

struct Assigner<'f> {
    flow: &'f Dataflow,
    storages: &'f Storages,
    buffers: &'f Buffers,
    is_output: Table<Buffer, bool>,
    roles: Table<Buffer, Role>,
    traits: Table<Buffer, Traits<'f>>,
    allocations: Vec<Allocation<'f>>,
    /// Which of the allocations each buffer is in.
    allocation_of: Table<Buffer, Option<usize>>,
}

impl<'f> Assigner<'f> {
    fn new(flow: &'f Dataflow, storages: &'f Storages, buffers: &'f Buffers) -> Self {
        let mut is_output = Table::filled(buffers.members.len(), false);
        let results = flow.entry().map(|entry| flow.positions(flow[entry].root));
        for position in results.into_iter().flatten() {
            if let Some(buffer) = buffers.at(flow, position) {
                is_output[buffer] = true;
            }
        }
        let mut this = Self {
            flow,
            storages,
            buffers,
            roles: Table::new(),
            traits: Table::new(),
            allocations: Vec::new(),
            allocation_of: Table::filled(buffers.members.len(), None),
            is_output,
        };
        for buffer in buffers.members.ids() {
            let (role, traits) = (this.role(buffer), this.traits_of(buffer));
            this.roles.push(role);
            this.traits.push(traits);
        }
        this
    }

    fn run(mut self, packing: Packing) -> Assignment {
        let mut separate = Vec::new();
        for buffer in self.buffers.members.ids() {
            match self.roles[buffer] {
                Role::Argument if self.is_donated(buffer) => {
                    self.allocate(buffer);
                }
                Role::Table if !self.is_output[buffer] && self.memory_space(buffer) == 0 => {
                    separate.push((self.bytes(buffer), vec![buffer]));
                }
                _ => {}
            }
        }
        let packed = match packing {
            Packing::FastMerge => self.assign_by_time(),
            Packing::BestFit => self.assign_by_size(),
        };
        for buffer in self.buffers.members.ids() {
            if self.roles[buffer] == Role::Table && self.is_output[buffer] {
                self.roles[buffer] = Role::Output;
            }
        }
        let areas = self.allocations.into_iter().filter(|allocation| allocation.is_work_area);
        let areas: Vec<_> = areas.map(|area| (area.bytes, area.buffers)).collect();
        let has_work_area = !areas.is_empty();
        separate.extend(areas);
        Assignment { roles: self.roles, separate, packed, has_work_area }
    }

    fn members(&self, buffer: BufferId) -> &'f [ValueId] {
        &self.buffers.members[buffer]
    }

    fn op(&self, value: ValueId) -> OpId {
        self.flow.op_at(self.flow.values()[value])
    }

    fn role(&self, buffer: BufferId) -> Role {
        let has = |holds: &dyn Fn(ValueId) -> bool| self.members(buffer).iter().any(|value| holds(*value));
        let op = |value| &self.flow[self.op(value)];
        if has(&|value| op(value).opcode == Opcode::Constant) {
            Role::Constant
        } else if has(&|value| self.is_argument(value)) {
            Role::Argument
        } else if has(&|value| self.flow.is_tuple(self.flow.values()[value])) {
            Role::Table
        } else if self.is_output[buffer] {
            Role::Output
        } else {
            Role::Temporary
        }
    }

    fn is_argument(&self, value: ValueId) -> bool {
        let op = &self.flow[self.op(value)];
        op.opcode == Opcode::Parameter && Some(op.body) == self.flow.entry()
    }

    fn is_donated(&self, buffer: BufferId) -> bool {
        self.members(buffer)
            .iter()
            .any(|value| self.is_argument(*value) && self.buffers.donated.contains(&self.flow.values()[*value]))
    }

    fn traits_of(&self, buffer: BufferId) -> Traits<'f> {
        let members = self.members(buffer);
        let ranges = || members.iter().map(|value| self.buffers.ranges[*value]);
        let first = members.first();
        Traits {
            bytes: self.buffers.bytes(self.flow, self.storages, buffer),
            memory_space: first.map_or(0, |value| self.storages[self.flow.values()[*value]].memory_space),
            range: LiveRange {
                start: ranges().map(|range| range.start).min().unwrap_or(0),
                end: ranges().map(|range| range.end).max().unwrap_or(0),
            },
            cores: members.iter().find_map(|value| work_area(self.flow, self.storages, *value)).unwrap_or_default(),
        }
    }

    fn bytes(&self, buffer: BufferId) -> u64 {
        self.traits[buffer].bytes
    }

    fn memory_space(&self, buffer: BufferId) -> u8 {
        self.traits[buffer].memory_space
    }

    fn is_work_area(&self, buffer: BufferId) -> bool {
        !self.traits[buffer].cores.is_empty()
    }

    /// The largest first, outputs before others of their size.
    fn size_key(&self, buffer: BufferId) -> (Reverse<u64>, bool) {
        (Reverse(self.bytes(buffer)), !self.is_output[buffer])
    }

    fn singles(&self) -> impl Iterator<Item = BufferId> {
        self.buffers.members.ids().filter(|buffer| matches!(self.roles[*buffer], Role::Output | Role::Temporary))
    }

    /// In the order of definition.
    fn assign_by_time(&mut self) -> BTreeMap<u8, Vec<BufferId>> {
        let mut singles: Vec<BufferId> = self.singles().collect();
        singles.sort_by_cached_key(|buffer| (self.traits[*buffer].range.start, self.size_key(*buffer), *buffer));
        let mut packed: BTreeMap<u8, Vec<BufferId>> = BTreeMap::new();
        let mut areas: Vec<usize> = Vec::new();
        // Allocations made here, by the end of what is in them; then those whose end has passed, by size.
        let mut active = BinaryHeap::new();
        let mut free: BTreeMap<u8, BTreeSet<(u64, usize)>> = BTreeMap::new();
        let given = self.allocations.len();
        for buffer in singles {
            let Traits { memory_space, range, .. } = self.traits[buffer];
            let is_work_area = self.is_work_area(buffer);
            if memory_space == VMEM {
                packed.entry(memory_space).or_default().push(buffer);
                continue;
            }
            let mut found = self.operand_allocation(buffer);
            if is_work_area {
                found = found.or_else(|| areas.iter().copied().find(|area| self.fits(*area, buffer)));
            }
            if found.is_none() {
                while let Some(&Reverse((end, at))) = active.peek() {
                    if end > range.start {
                        break;
                    }
                    active.pop();
                    let allocation: &Allocation<'_> = &self.allocations[at];
                    free.entry(allocation.memory_space).or_default().insert((allocation.bytes, at));
                }
                if let Some(pool) = free.get_mut(&memory_space) {
                    let large_enough = pool.range((self.bytes(buffer), 0)..).copied();
                    let hit = large_enough.into_iter().find(|(_, at)| self.fits(*at, buffer));
                    found = hit.filter(|hit| pool.remove(hit)).map(|(_, at)| at);
                }
            }
            match found {
                Some(at) => {
                    self.add(at, buffer);
                    if at >= given {
                        active.push(Reverse((range.end, at)));
                    }
                }
                None if self.is_output[buffer] || is_work_area => {
                    let at = self.allocate(buffer);
                    active.push(Reverse((range.end, at)));
                    if !self.is_output[buffer] {
                        self.allocations[at].is_work_area = is_work_area;
                        areas.push(at);
                    }
                }
                None => packed.entry(memory_space).or_default().push(buffer),
            }
        }
        packed
    }

    /// The largest first: as near the limit of memory.
    fn assign_by_size(&mut self) -> BTreeMap<u8, Vec<BufferId>> {
        let order = self.post_order();
        let mut listed: Vec<BufferId> = self.buffers.members.ids().collect();
        listed.retain(|buffer| match self.roles[*buffer] {
            Role::Argument => self.allocation_of[*buffer].is_some(),
            role => matches!(role, Role::Output | Role::Temporary),
        });
        listed.sort_by_cached_key(|buffer| {
            let position = self.members(*buffer).iter().map(|value| order[self.op(*value)]).min();
            let is_inner = !self.is_output[*buffer] && self.roles[*buffer] != Role::Argument;
            (Reverse(self.bytes(*buffer)), is_inner, position, *buffer)
        });
        let mut packed: BTreeMap<u8, Vec<BufferId>> = BTreeMap::new();
        let (mut met, mut areas): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for buffer in listed {
            if let (Role::Argument, Some(at)) = (self.roles[buffer], self.allocation_of[buffer]) {
                met.push(at);
                continue;
            }
            let (memory_space, is_work_area) = (self.memory_space(buffer), self.is_work_area(buffer));
            if memory_space == VMEM {
                packed.entry(memory_space).or_default().push(buffer);
                continue;
            }
            let candidates = if is_work_area { areas.iter() } else { met.iter() };
            let mut found = self.operand_allocation(buffer);
            found = if is_work_area {
                found.or_else(|| candidates.copied().find(|at| self.fits(*at, buffer)))
            } else {
                found.or_else(|| candidates.rev().copied().find(|at| self.fits(*at, buffer)))
            };
            match found {
                Some(at) => self.add(at, buffer),
                None if self.is_output[buffer] || is_work_area => {
                    let at = self.allocate(buffer);
                    met.push(at);
                    if !self.is_output[buffer] {
                        self.allocations[at].is_work_area = is_work_area;
                        areas.push(at);
                    }
                }
                None => packed.entry(memory_space).or_default().push(buffer),
            }
        }
        packed
    }

    /// Where each instruction stands: callees before callers, and operands before users, depth first.
    fn post_order(&self) -> Table<Op, (Reverse<BodyId>, usize)> {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            Not,
            Begun,
            Done,
        }
        let flow = self.flow;
        let mut order = Table::filled(flow.ops().len(), (Reverse(BodyId::new(0)), 0));
        let mut visits = Table::filled(flow.ops().len(), Visit::Not);
        let mut has_user = Table::filled(flow.ops().len(), false);
        for op in flow.ops().ids() {
            for operand in flow.operands(op) {
                has_user[*operand] = true;
            }
        }
        for (computation, body) in flow.bodies().iter().filter(|(_, body)| body.runs) {
            let mut position = 0;
            for last in body.ops().filter(|op| !has_user[*op]) {
                let mut waiting = vec![last];
                while let Some(&op) = waiting.last() {
                    match visits[op] {
                        Visit::Not => {
                            visits[op] = Visit::Begun;
                            let operands = flow.operands(op).iter().rev().copied();
                            waiting.extend(operands.filter(|operand| visits[*operand] == Visit::Not));
                        }
                        Visit::Begun => {
                            waiting.pop();
                            visits[op] = Visit::Done;
                            order[op] = (Reverse(computation), position);
                            position += 1;
                        }
                        Visit::Done => {
                            waiting.pop();
                        }
                    }
                }
            }
        }
        order
    }

    fn allocate(&mut self, buffer: BufferId) -> usize {
        let (bytes, memory_space) = (self.bytes(buffer), self.memory_space(buffer));
        let allocation =
            Allocation { bytes, memory_space, buffers: Vec::new(), values: BTreeMap::new(), is_work_area: false };
        self.allocations.push(allocation);
        self.add(self.allocations.len() - 1, buffer);
        self.allocations.len() - 1
    }

    fn add(&mut self, at: usize, buffer: BufferId) {
        self.allocation_of[buffer] = Some(at);
        let values = self.buffers.members[buffer].iter().map(|value| {
            let LiveRange { start, end } = self.buffers.ranges[*value];
            (start, end, *value)
        });
        let allocation = &mut self.allocations[at];
        allocation.buffers.push(buffer);
        allocation.values.entry(self.traits[buffer].cores.clone()).or_default().extend(values);
    }

    /// The first allocation of an operand that the buffer fits.
    fn operand_allocation(&self, buffer: BufferId) -> Option<usize> {
        let whole = self.members(buffer).iter().filter(|value| self.flow.is_top(self.flow.values()[**value]));
        let operands = whole.flat_map(|value| self.flow.operands(self.op(*value)));
        let positions = operands.map(|operand| self.flow[*operand].position);
        let mut buffers = positions.filter_map(|position| self.buffers.at(self.flow, position));
        buffers.find_map(|operand| self.allocation_of[operand].filter(|at| self.fits(*at, buffer)))
    }

    /// Whether the buffer may lie in the allocation, at its start.
    fn fits(&self, at: usize, buffer: BufferId) -> bool {
        let allocation = &self.allocations[at];
        let bytes = self.bytes(buffer);
        if allocation.memory_space != self.memory_space(buffer)
            || bytes > allocation.bytes
            || self.is_output[buffer] && bytes != allocation.bytes
        {
            return false;
        }
        let cores = &self.traits[buffer].cores;
        // One core runs its calls one after the other.
        let may_conflict = || allocation.values.iter().filter(|(others, _)| cores.is_disjoint(others));
        self.members(buffer).iter().all(|value| {
            let range = self.buffers.ranges[*value];
            may_conflict().all(|(others, values)| {
                let begun = values.range(..(range.end.saturating_add(1), 0, ValueId::new(0))).rev();
                let alive = begun.take_while(|(_, end, _)| !others.is_empty() || *end >= range.start);
                alive
                    .map(|(_, _, other)| *other)
                    .all(|other| !interfere(self.flow, self.buffers, *value, other) && !self.is_copy_of(*value, other))
            })
        })
    }

    /// A copy never takes the place of its operand.
    fn is_copy_of(&self, value: ValueId, other: ValueId) -> bool {
        let op = self.op(value);
        self.flow[op].opcode == Opcode::Copy
            && self.flow.operands(op).iter().any(|operand| {
                self.flow.positions(*operand).any(|position| self.flow.value_at(position) == Some(other))
            })
    }
}

/// VMEM, whose values an earlier pass of the compiler has placed.
const VMEM: u8 = 1;
