//! The rules that differ between machines: sizes of values, their order, and which of them share memory.
//!
//! The default methods follow XLA's sources (`BufferAssigner` in xla/service/buffer_assignment.cc and its callees). A
//! machine's compiler overrides some.

use std::{collections::BTreeSet, fmt};

use tilewise::{ArrayShape, Tiled};
use tilewise_hlo::dataflow::{Dataflow, Op, Position, Table, Value, ValueId};

use crate::{
    buffers::Buffers,
    order::{callers_first, control_predecessors, post_order},
    sharing,
    storage::Storages,
};

/// Host memory: charged to the host.
pub(crate) const HOST: u8 = 5;

/// How a compiler sizes and orders values, and lets them share memory.
pub(crate) trait Rules: fmt::Debug + Send + Sync {
    /// Bytes of an array.
    fn array_bytes(&self, array: &ArrayShape) -> Result<u64, tilewise::Error> {
        Ok(Tiled::of_array(array)?.sizes().physical_bytes)
    }

    /// Bytes of the table of pointers of a tuple with this number of elements; `None` if they exceed 64 bits.
    fn table_bytes(&self, elements: usize) -> Option<u64> {
        u64::try_from(elements).ok()?.checked_mul(8)
    }

    /// The alignment in bytes of allocations in a memory space; `None` if unknown.
    fn alignment(&self, memory_space: u8) -> Option<u64>;

    /// Corrects the memory space of values that don't lie where their layout says.
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

    /// Tie-break order of values: those of computations that the text leaves out first, then as written, in each
    /// computation operands before users; values that join come last.
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

    /// Tie-break order of instructions for buffers of one size: callers before callees, then operands before users.
    fn places(&self, flow: &Dataflow) -> Table<Op, (usize, usize)> {
        let (computations, places) = (callers_first(flow), post_order(flow, |op| control_predecessors(flow, op)));
        places.iter().map(|(op, place)| (computations[flow[op].body], *place)).collect::<Vec<_>>().into()
    }

    /// Whether the value at `result` may take the place of its instruction's operand, or an element of it, that ends.
    fn may_share(&self, flow: &Dataflow, result: Position, operand: Position) -> bool;

    /// Whether `after`, made when `before` ends, may take its place: checked where `before` is last seen.
    fn may_follow(&self, flow: &Dataflow, buffers: &Buffers, before: ValueId, after: ValueId) -> bool {
        let (result, place) = (flow.values()[after], buffers.last_seen(before));
        flow.operands(flow.op_at(result)).contains(&flow.op_at(place)) && self.may_share(flow, result, place)
    }

    /// The cores whose work area a value is; `None` for other values.
    fn work_area<'f>(&self, _: &'f Dataflow, _: &Storages, _: ValueId) -> Option<BTreeSet<&'f str>> {
        None
    }

    /// Whether an earlier pass of the compiler has placed the values of a memory space.
    fn is_placed_before(&self, _memory_space: u8) -> bool {
        false
    }

    /// Whether temporaries of this memory space are the device's, as the compiler reports them.
    fn is_device_memory(&self, memory_space: u8) -> bool {
        memory_space != HOST
    }

    /// How many bytes below the memory limit the compiler begins to try [`Packing::BestFit`]; `None` if it never does.
    fn near_limit(&self) -> Option<u64> {
        None
    }

    /// Bytes of memory of one core, if the program may be compiled for a single core without its text saying so.
    fn core_memory_bytes(&self) -> Option<u64> {
        None
    }
}
