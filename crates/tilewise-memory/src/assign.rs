//! Which buffers have an allocation of their own, and which are packed into a heap.
//!
//! `BufferAssigner` (xla/service/buffer_assignment.cc).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use tilewise_hlo::{
    Opcode,
    dataflow::{Dataflow, OpId, Table, ValueId},
};

use crate::{
    buffers::{Buffer, BufferId, Buffers, LiveRange},
    rules::{HOST, Rules},
    storage::Storages,
};

/// The use of memory: the first of these that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A constant.
    Constant,
    /// An argument of the program, or a result that lies in a donated one.
    Argument,
    /// A tuple's table of pointers, unless it is a result's.
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
    /// The allocations outside the heaps, in the order in which they are made.
    pub(crate) allocations: Vec<Allocation>,
    /// The buffers of the heaps, by memory space.
    pub(crate) packed: BTreeMap<u8, Vec<BufferId>>,
}

impl Assignment {
    pub(crate) fn new(
        flow: &Dataflow,
        rules: &dyn Rules,
        storages: &Storages,
        buffers: &Buffers,
        assign: impl FnOnce(&mut Assigner<'_>),
    ) -> Self {
        let mut assigner = Assigner::new(flow, rules, storages, buffers);
        assign(&mut assigner);
        assigner.finish()
    }
}

/// An allocation outside the heaps, with its buffers.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) bytes: u64,
    pub(crate) memory_space: u8,
    pub(crate) buffers: Vec<BufferId>,
    is_argument: bool,
    /// Whether it is a donated argument.
    is_donated: bool,
    is_output: bool,
    /// Whether it lies in the temporaries' memory: a table that isn't a result's, or a work area.
    pub(crate) is_temporary: bool,
    /// Whether it is a work area of SparseCores.
    pub(crate) is_work_area: bool,
}

/// A part of the temporaries' memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// The heap of a memory space.
    Heap(u8),
    /// An allocation, by number.
    Allocation(usize),
}

/// Bytes of a program's arguments, results and aliases: on the device, then on the host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interface {
    pub(crate) arguments: [u64; 2],
    pub(crate) outputs: [u64; 2],
    pub(crate) aliases: [u64; 2],
}

impl Interface {
    /// Sums allocations, each once. `None` if they exceed 64 bits.
    pub(crate) fn of_allocations(allocations: &[Allocation]) -> Option<Self> {
        let sum = |counts: fn(&Allocation) -> bool| {
            let mut sums = [0_u64; 2];
            for allocation in allocations.iter().filter(|allocation| counts(allocation)) {
                let sum = &mut sums[usize::from(allocation.memory_space == HOST)];
                *sum = sum.checked_add(allocation.bytes)?;
            }
            Some(sums)
        };
        Some(Self {
            arguments: sum(|allocation| allocation.is_argument)?,
            outputs: sum(|allocation| allocation.is_output)?,
            aliases: sum(|allocation| allocation.is_donated)?,
        })
    }
}

/// An allocation in the making.
struct Draft<'f> {
    allocation: Allocation,
    /// Whether it may hold further buffers.
    is_shared: bool,
    /// Its values, by the cores whose work area they are, then by start. Values of no core never conflict, so their
    /// order by start is also their order by end.
    values: BTreeMap<Cores<'f>, BTreeSet<(usize, usize, ValueId)>>,
}

/// The SparseCores whose work area a value is; empty for other values.
type Cores<'f> = BTreeSet<&'f str>;

/// Properties of a buffer, computed once.
struct Traits<'f> {
    bytes: u64,
    memory_space: u8,
    range: LiveRange,
    cores: Cores<'f>,
}

/// Gives buffers allocations.
pub(crate) struct Assigner<'f> {
    flow: &'f Dataflow,
    rules: &'f dyn Rules,
    storages: &'f Storages,
    buffers: &'f Buffers,
    is_output: Table<Buffer, bool>,
    roles: Table<Buffer, Role>,
    traits: Table<Buffer, Traits<'f>>,
    drafts: Vec<Draft<'f>>,
    /// The allocation of each buffer, by number.
    allocation_of: Table<Buffer, Option<usize>>,
    packed: BTreeMap<u8, Vec<BufferId>>,
}

impl<'f> Assigner<'f> {
    fn new(flow: &'f Dataflow, rules: &'f dyn Rules, storages: &'f Storages, buffers: &'f Buffers) -> Self {
        let mut is_output = Table::filled(buffers.members.len(), false);
        let results = flow.entry().map(|entry| flow.positions(flow[entry].root));
        for position in results.into_iter().flatten() {
            if let Some(buffer) = buffers.at(flow, position) {
                is_output[buffer] = true;
            }
        }
        let mut this = Self {
            flow,
            rules,
            storages,
            buffers,
            roles: Table::new(),
            traits: Table::new(),
            drafts: Vec::new(),
            allocation_of: Table::filled(buffers.members.len(), None),
            is_output,
            packed: BTreeMap::new(),
        };
        for buffer in buffers.members.ids() {
            let (role, traits) = (this.role(buffer), this.traits_of(buffer));
            this.roles.push(role);
            this.traits.push(traits);
        }
        this
    }

    /// Allocates donated arguments, and tables that aren't results', before anything else.
    pub(crate) fn allocate_donated_and_tables(&mut self) {
        for buffer in self.buffers.members.ids() {
            let is_first = match self.roles[buffer] {
                Role::Argument => self.is_donated(buffer),
                Role::Table => !self.is_output[buffer] && self.memory_space(buffer) == 0,
                _ => false,
            };
            if is_first {
                self.allocate(buffer);
            }
        }
    }

    fn finish(mut self) -> Assignment {
        for buffer in self.buffers.members.ids() {
            if self.roles[buffer] == Role::Table && self.is_output[buffer] {
                self.roles[buffer] = Role::Output;
            }
        }
        let allocations = self.drafts.into_iter().map(|draft| draft.allocation).collect();
        Assignment { roles: self.roles, allocations, packed: self.packed }
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
            cores: members
                .iter()
                .find_map(|value| self.rules.work_area(self.flow, self.storages, *value))
                .unwrap_or_default(),
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

    /// Sort key: the largest first, outputs before others of their size.
    fn size_key(&self, buffer: BufferId) -> (Reverse<u64>, bool) {
        (Reverse(self.bytes(buffer)), !self.is_output[buffer])
    }

    fn singles(&self) -> impl Iterator<Item = BufferId> {
        self.buffers.members.ids().filter(|buffer| matches!(self.roles[*buffer], Role::Output | Role::Temporary))
    }

    /// Assigns buffers in the order of definition.
    pub(crate) fn assign_by_time(&mut self) {
        let mut singles: Vec<BufferId> = self.singles().collect();
        singles.sort_by_cached_key(|buffer| (self.traits[*buffer].range.start, self.size_key(*buffer), *buffer));
        let mut areas: Vec<usize> = Vec::new();
        // Allocations made here, by the end of their latest buffer; then those whose end has passed, by size.
        let mut active: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
        let mut free: BTreeMap<u8, BTreeSet<(u64, usize)>> = BTreeMap::new();
        let given = self.drafts.len();
        for buffer in singles {
            let Traits { memory_space, range, .. } = self.traits[buffer];
            let is_work_area = self.is_work_area(buffer);
            if self.rules.is_placed_before(memory_space) {
                self.packed.entry(memory_space).or_default().push(buffer);
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
                    let allocation = &self.drafts[at].allocation;
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
                        areas.push(at);
                    }
                }
                None => self.packed.entry(memory_space).or_default().push(buffer),
            }
        }
    }

    /// Assigns buffers, the largest first.
    pub(crate) fn assign_by_size(&mut self) {
        let places = self.rules.places(self.flow);
        let mut listed: Vec<BufferId> = self.buffers.members.ids().collect();
        listed.sort_by_cached_key(|buffer| {
            let place = self.members(*buffer).iter().map(|value| places[self.op(*value)]).min();
            let is_inner = !self.is_output[*buffer] && self.roles[*buffer] != Role::Argument;
            (Reverse(self.bytes(*buffer)), is_inner, place, *buffer)
        });
        let (mut met, mut areas): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for buffer in listed {
            if matches!(self.roles[buffer], Role::Constant | Role::Argument | Role::Table) {
                let at = self.allocation_of[buffer].unwrap_or_else(|| self.allocate(buffer));
                met.extend(self.drafts[at].is_shared.then_some(at));
                continue;
            }
            let (memory_space, is_work_area) = (self.memory_space(buffer), self.is_work_area(buffer));
            if self.rules.is_placed_before(memory_space) {
                self.packed.entry(memory_space).or_default().push(buffer);
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
                        areas.push(at);
                    }
                }
                None => self.packed.entry(memory_space).or_default().push(buffer),
            }
        }
    }

    fn allocate(&mut self, buffer: BufferId) -> usize {
        let (role, is_output) = (self.roles[buffer], self.is_output[buffer]);
        let is_donated = role == Role::Argument && self.is_donated(buffer);
        let is_work_area = !is_output && self.is_work_area(buffer);
        let allocation = Allocation {
            bytes: self.bytes(buffer),
            memory_space: self.memory_space(buffer),
            buffers: Vec::new(),
            is_argument: role == Role::Argument,
            is_donated,
            is_output: false,
            is_temporary: is_work_area || role == Role::Table && !is_output,
            is_work_area,
        };
        let is_shared = is_donated || !matches!(role, Role::Constant | Role::Argument | Role::Table);
        self.drafts.push(Draft { allocation, is_shared, values: BTreeMap::new() });
        self.add(self.drafts.len() - 1, buffer);
        self.drafts.len() - 1
    }

    fn add(&mut self, at: usize, buffer: BufferId) {
        self.allocation_of[buffer] = Some(at);
        let draft = &mut self.drafts[at];
        draft.allocation.buffers.push(buffer);
        draft.allocation.is_output |= self.is_output[buffer];
        // Only shared allocations are checked for conflicts: a program may have one table per value.
        if draft.is_shared {
            let values = self.buffers.members[buffer].iter().map(|value| {
                let LiveRange { start, end } = self.buffers.ranges[*value];
                (start, end, *value)
            });
            draft.values.entry(self.traits[buffer].cores.clone()).or_default().extend(values);
        }
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
        let Draft { allocation, is_shared, values } = &self.drafts[at];
        let bytes = self.bytes(buffer);
        if !is_shared
            || allocation.memory_space != self.memory_space(buffer)
            || bytes > allocation.bytes
            || self.is_output[buffer] && bytes != allocation.bytes
        {
            return false;
        }
        let cores = &self.traits[buffer].cores;
        // One core runs its calls one after the other.
        let may_conflict = || values.iter().filter(|(others, _)| cores.is_disjoint(others));
        self.members(buffer).iter().all(|value| {
            let range = self.buffers.ranges[*value];
            may_conflict().all(|(others, values)| {
                let begun = values.range(..(range.end.saturating_add(1), 0, ValueId::new(0))).rev();
                let alive = begun.take_while(|(_, end, _)| !others.is_empty() || *end >= range.start);
                alive
                    .map(|(_, _, other)| *other)
                    .all(|other| !self.interfere(*value, other) && !self.is_copy_of(*value, other))
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

    /// Whether two values can't share memory: their live ranges overlap, and not just where one ends as the other,
    /// which may take its place, starts.
    fn interfere(&self, a: ValueId, b: ValueId) -> bool {
        let (range_a, range_b) = (self.buffers.ranges[a], self.buffers.ranges[b]);
        if !range_a.overlaps(range_b) {
            return false;
        }
        let (before, after) = match () {
            () if range_a.end == range_b.start => (a, b),
            () if range_b.end == range_a.start => (b, a),
            () => return true,
        };
        self.flow[self.op(after)].opcode == Opcode::Copy
            || !self.rules.may_follow(self.flow, self.buffers, before, after)
    }
}
