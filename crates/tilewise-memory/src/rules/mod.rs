//! What differs between machines: one set of rules for each.
//!
//! The default methods are XLA's own rules, as its sources have them (`BufferAssigner` in
//! xla/service/buffer_assignment.cc and what that calls). A machine's compiler overrides some.

mod cpu;
mod fusion;
mod gpu;
mod sharing;
mod tpu;

pub(crate) use tpu::HBM_ALIGNMENT;

use std::{collections::BTreeSet, fmt, sync::Arc};

use tilewise::{ArrayShape, Tiled};
use tilewise_hlo::dataflow::{Dataflow, Op, Position, Table, Value, ValueId};

use crate::{
    Machine, Packing,
    assign::{Assigner, Assignment, Interface, Part},
    buffers::Buffers,
    heap::Heap,
    order::{callers_first, control_predecessors, post_order},
    storage::Storages,
};

/// Host memory: charged to the host.
pub(crate) const HOST: u8 = 5;

/// The rules of a machine's compiler, for this program.
pub(crate) fn of(machine: Machine, flow: &Dataflow) -> Arc<dyn Rules> {
    match machine {
        Machine::Tpu(generation) => Arc::new(tpu::Tpu { generation }),
        Machine::Gpu(_) => Arc::new(gpu::Gpu::new(flow)),
        Machine::Cpu => Arc::new(cpu::Cpu::new(flow)),
    }
}

/// How a compiler sizes, orders, shares and lays out memory.
pub(crate) trait Rules: fmt::Debug + Send + Sync {
    /// Bytes of an array.
    fn array_bytes(&self, array: &ArrayShape) -> Result<u64, tilewise::Error> {
        Ok(Tiled::of_array(array)?.sizes().physical_bytes)
    }

    /// Bytes of the table of pointers that a tuple of so many elements is.
    fn table_bytes(&self, elements: usize) -> Option<u64> {
        u64::try_from(elements).ok()?.checked_mul(8)
    }

    /// What every allocation of a memory space starts at a multiple of, in bytes; `None` where that isn't known.
    fn alignment(&self, memory_space: u8) -> Option<u64>;

    /// Puts what lies elsewhere than its layout says where it does.
    fn move_contexts(&self, _: &Dataflow, _: &mut Storages) {}

    /// Puts the values of each buffer in one memory space: that of the first that names one.
    fn settle_spaces(&self, flow: &Dataflow, buffers: &Buffers, storages: &mut Storages) {
        for (_, members) in buffers.members.iter() {
            let mut spaces = members.iter().map(|value| storages[flow.values()[*value]].memory_space);
            if let Some(space) = spaces.find(|space| *space != 0) {
                members.iter().for_each(|value| storages[flow.values()[*value]].memory_space = space);
            }
        }
    }

    /// What orders values where nothing else does: those of computations that the text leaves out first, then as written,
    /// in each computation operands before users; values that join come last.
    fn ranks(&self, flow: &Dataflow) -> Table<Value, u32> {
        let places = post_order(flow, |op| control_predecessors(flow, op));
        let mut values: Vec<(ValueId, Position)> = flow.values().iter().map(|(value, at)| (value, *at)).collect();
        values.sort_by_cached_key(|(value, position)| {
            let op = flow.op_at(*position);
            let as_written = sharing::joins(flow, op);
            (
                as_written,
                !flow[op].is_hidden,
                if as_written { (value.index(), 0) } else { (flow[op].body.index(), places[op]) },
                *value,
            )
        });
        let mut ranks = Table::filled(values.len(), 0);
        for (rank, (value, _)) in (0..).zip(values) {
            ranks[value] = rank;
        }
        ranks
    }

    /// Where instructions come among buffers of one size: computations callers first, in each operands before users.
    fn places(&self, flow: &Dataflow) -> Table<Op, (usize, usize)> {
        let (computations, places) = (callers_first(flow), post_order(flow, |op| control_predecessors(flow, op)));
        places.iter().map(|(op, place)| (computations[flow[op].body], *place)).collect::<Vec<_>>().into()
    }

    /// Whether the value made at a position may lie where one of its instruction's operands does, which ends with it:
    /// the whole of one, or an element of it.
    fn may_share(&self, flow: &Dataflow, result: Position, operand: Position) -> bool;

    /// The same of two values, the second made when the first ends: looked at where the first is seen last.
    fn may_follow(&self, flow: &Dataflow, buffers: &Buffers, before: ValueId, after: ValueId) -> bool {
        let (result, place) = (flow.values()[after], buffers.last_seen(before));
        flow.operands(flow.op_at(result)).contains(&flow.op_at(place)) && self.may_share(flow, result, place)
    }

    /// The cores that have a value as their work area.
    fn work_area<'f>(&self, _: &'f Dataflow, _: &Storages, _: ValueId) -> Option<BTreeSet<&'f str>> {
        None
    }

    /// Whether an earlier pass has placed what is in a memory space.
    fn is_placed_before(&self, _memory_space: u8) -> bool {
        false
    }

    /// Gives buffers allocations of their own, or leaves them to the heaps.
    fn assign(&self, assigner: &mut Assigner<'_>, _: Packing) {
        assigner.assign_by_size();
    }

    /// The temporaries in the order in which they lie in the memory of their space: what is left where XLA partitions all
    /// allocations by swapping (`std::partition` in `BufferAssignment::CombineTempAllocations`). The `locals` are
    /// allocations of functions, which take no memory here, but move others.
    fn temporaries(&self, assignment: &Assignment, locals: usize) -> Vec<Part> {
        let allocations = assignment.allocations.iter().enumerate();
        let separate = allocations.map(|(at, allocation)| allocation.is_temporary.then_some(Part::Allocation(at)));
        let heaps = assignment.packed.keys().map(|space| Some(Part::Heap(*space)));
        let mut list: Vec<Option<Part>> = separate.chain(heaps).chain((0..locals).map(|_| None)).collect();
        let (mut front, mut back) = (0, list.len());
        loop {
            while front < back && list[front].is_none() {
                front += 1;
            }
            back = back.saturating_sub(1);
            while front < back && list[back].is_some() {
                back -= 1;
            }
            if front >= back {
                break;
            }
            list.swap(front, back);
            front += 1;
        }
        list.drain(front..).flatten().collect()
    }

    /// Bytes of a memory space's temporaries as the compiler reports them, which lie in so many.
    fn reported_bytes(
        &self,
        _flow: &Dataflow,
        _storages: &Storages,
        _assignment: &Assignment,
        _heap: &Heap,
        _memory_space: u8,
        layout_bytes: u64,
    ) -> Option<u64> {
        Some(layout_bytes)
    }

    /// Whether temporaries of this memory space are the device's, as the compiler reports them.
    fn is_device_memory(&self, memory_space: u8) -> bool {
        memory_space != HOST
    }

    /// Bytes of arguments and results: of allocations, each once.
    fn interface(&self, _: &Dataflow, _: &Storages, _: &Buffers, assignment: &Assignment) -> Option<Interface> {
        Interface::of_allocations(&assignment.allocations)
    }

    /// How close to the limit of memory the compiler begins to try [`Packing::BestFit`], in bytes; `None` if it doesn't.
    fn near_limit(&self) -> Option<u64> {
        None
    }

    /// Bytes of memory of a device's part that a program may be compiled for, where a text doesn't say so.
    fn core_memory_bytes(&self) -> Option<u64> {
        None
    }
}
