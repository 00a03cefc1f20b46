//! TPUs, by libtpu 0.0.51: sizes with tiles, and the compiler's deviations from XLA's defaults.

use std::collections::BTreeSet;

use tilewise::{
    ArrayShape,
    tpu::{Generation, allocated_bytes},
};
use tilewise_hlo::{
    Opcode,
    dataflow::{Dataflow, Op, OpId, Position, Table, Value, ValueId},
};

use super::Compiler;
use crate::{
    Packing,
    assign::{Assigner, Assignment, Interface, Part},
    buffers::Buffers,
    heap::Heap,
    machine::HBM_ALIGNMENT,
    order::post_order,
    rules::{HOST, Rules},
    sharing,
    storage::{Storage, Storages},
};

/// VMEM, whose values an earlier pass of the compiler has placed.
const VMEM: u8 = 1;

/// Scalar memory.
const SMEM: u8 = 2;

/// Memory of a SparseCore.
const SPARSE_CORE: u8 = 7;

/// How close to the limit the compiler begins to try [`Packing::BestFit`]: 2.5 GiB. Observed with
/// `xla_tpu_max_hbm_size_mib`.
const NEAR_LIMIT: u64 = 5 << 29;

#[derive(Debug)]
pub(super) struct Tpu {
    pub(super) generation: Generation,
}

impl Rules for Tpu {
    fn array_bytes(&self, array: &ArrayShape) -> Result<u64, tilewise::Error> {
        allocated_bytes(array)
    }

    fn table_bytes(&self, elements: usize) -> Option<u64> {
        let granule = self.generation.tuple_table_granule_bytes();
        u64::try_from(elements).ok()?.checked_mul(4)?.checked_next_multiple_of(granule)
    }

    /// `None` if another pass of the compiler packs the space, or packs it differently. In space 6, offsets agree in
    /// all 33 programs that were compared.
    fn alignment(&self, memory_space: u8) -> Option<u64> {
        match memory_space {
            0 => Some(HBM_ALIGNMENT),
            6 => Some(512),
            _ => None,
        }
    }

    /// The compiler keeps the context of a transfer in scalar memory even if its layout names another space, and the tuple
    /// tables of a call on a SparseCore in that core's memory (values of colour 7 in dumped buffer assignments, 0 bytes).
    fn move_contexts(&self, flow: &Dataflow, storages: &mut Storages) {
        for (id, op) in flow.ops().iter() {
            if matches!(op.opcode, Opcode::Send | Opcode::Recv)
                && let Some(context) = flow.element(op.position, 1)
            {
                storages[context].memory_space = SMEM;
            }
            if op.opcode == Opcode::AsyncStart && !op.is_hidden && runs_on_sparse_core(flow, id) {
                for position in flow.positions(id).filter(|position| flow.is_tuple(*position)) {
                    storages[position] = Storage { memory_space: SPARSE_CORE, bytes: 0, ..storages[position] };
                }
            }
        }
    }

    /// Each value's layout says where it lies.
    fn settle_spaces(&self, _: &Dataflow, _: &Buffers, _: &mut Storages) {}

    fn ranks(&self, flow: &Dataflow) -> Table<Value, u32> {
        (0..).take(flow.values().len()).collect::<Vec<_>>().into()
    }

    /// Computations in the reverse order of the text.
    fn places(&self, flow: &Dataflow) -> Table<Op, (usize, usize)> {
        let places = post_order(flow, |_| Vec::new());
        let last = flow.bodies().len();
        places.iter().map(|(op, place)| (last - flow[op].body.index(), *place)).collect::<Vec<_>>().into()
    }

    /// From `"aliasing_operands"` in `backend_config`: its lists number the operands, then the results, and the members
    /// of one list may share.
    fn may_share(&self, flow: &Dataflow, result: Position, operand: Position) -> bool {
        let (op, operand) = (flow.op_at(result), flow.op_at(operand));
        let path = flow.shape_index(result);
        if path.len() > 1 {
            return false;
        }
        let attributes = flow.attributes(op);
        let Some(lists) = attributes.rfind("\"aliasing_operands\"").map(|at| &attributes[at..]) else { return false };
        let operands = flow.operands(op);
        let result = operands.len() + path.first().copied().unwrap_or(0);
        lists.split("{\"indices\":[").skip(1).any(|list| {
            let list = list.split(']').next().unwrap_or_default();
            let numbers = || list.split(',').filter_map(|number| number.trim().trim_matches('"').parse::<usize>().ok());
            numbers().any(|number| number == result) && numbers().any(|number| operands.get(number) == Some(&operand))
        })
    }

    /// Checked at every operand whose outermost value is `before`.
    fn may_follow(&self, flow: &Dataflow, buffers: &Buffers, before: ValueId, after: ValueId) -> bool {
        let result = flow.values()[after];
        let is_untold = buffers.donated_beside.contains(&flow.values()[before]);
        let may_share =
            |place| self.may_share(flow, result, place) || is_untold && sharing::may_share(flow, result, place);
        flow.operands(flow.op_at(result)).iter().any(|operand| {
            let place = flow[*operand].position;
            flow.value_at(place) == Some(before) && may_share(place)
        })
    }

    /// The SparseCores whose work area a value is: element {2,k} of an asynchronous start, in the default memory space.
    fn work_area<'f>(&self, flow: &'f Dataflow, storages: &Storages, value: ValueId) -> Option<BTreeSet<&'f str>> {
        let position = flow.values()[value];
        let (op, storage) = (flow.op_at(position), &storages[position]);
        if flow[op].opcode != Opcode::AsyncStart || storage.memory_space != 0 || storage.bytes == 0 {
            return None;
        }
        let path = flow.shape_index(position);
        (path.len() == 2 && path[0] == 2).then(|| core_ids(flow.attributes(op)))
    }

    fn is_placed_before(&self, memory_space: u8) -> bool {
        memory_space == VMEM
    }

    fn is_device_memory(&self, memory_space: u8) -> bool {
        memory_space == 0
    }

    fn near_limit(&self) -> Option<u64> {
        Some(NEAR_LIMIT)
    }

    fn core_memory_bytes(&self) -> Option<u64> {
        self.generation.core_hbm_bytes()
    }
}

impl Compiler for Tpu {
    fn assign(&self, assigner: &mut Assigner<'_>, packing: Packing) {
        assigner.allocate_donated_and_tables();
        match packing {
            Packing::FastMerge => assigner.assign_by_time(),
            Packing::BestFit => assigner.assign_by_size(),
        }
    }

    /// The heap, then tables, then work areas.
    fn temporaries(&self, assignment: &Assignment, _: usize) -> Vec<Part> {
        let heaps = assignment.packed.keys().map(|space| Part::Heap(*space));
        let allocations = assignment.allocations.iter().enumerate();
        let separate = allocations.filter(|(_, allocation)| allocation.is_temporary);
        heaps.chain(separate.map(|(at, _)| Part::Allocation(at))).collect()
    }

    /// 0 for HBM if nothing there needs memory, although it is laid out.
    fn reported_bytes(
        &self,
        flow: &Dataflow,
        storages: &Storages,
        assignment: &Assignment,
        heap: &Heap,
        memory_space: u8,
        layout_bytes: u64,
    ) -> Option<u64> {
        if memory_space != 0 {
            return Some(layout_bytes);
        }
        let has_work_area = assignment.allocations.iter().any(|allocation| allocation.is_work_area);
        let is_used = has_work_area || needs_memory(flow, storages, heap);
        if is_used { layout_bytes.checked_next_multiple_of(HBM_ALIGNMENT) } else { Some(0) }
    }

    /// Sums positions, each counted.
    fn interface(&self, flow: &Dataflow, storages: &Storages, buffers: &Buffers, _: &Assignment) -> Option<Interface> {
        let entry = &flow[flow.entry()?];
        let sum = |positions: &mut dyn Iterator<Item = Position>, is_host: bool| {
            let storages = positions.map(|position| storages[position]);
            let here = storages.filter(|storage| (storage.memory_space == HOST) == is_host);
            here.map(|storage| storage.bytes).try_fold(0, u64::checked_add)
        };
        let arguments = |is_host| sum(&mut entry.parameters.iter().flat_map(|op| flow.positions(*op)), is_host);
        let outputs = |is_host| sum(&mut flow.positions(entry.root), is_host);
        let aliases = |is_host| sum(&mut buffers.donated.iter().copied(), is_host);
        Some(Interface {
            arguments: [arguments(false)?, arguments(true)?],
            outputs: [outputs(false)?, outputs(true)?],
            aliases: [aliases(false)?, aliases(true)?],
        })
    }
}

fn runs_on_sparse_core(flow: &Dataflow, op: OpId) -> bool {
    let thread = flow.instruction(op).and_then(|instruction| instruction.computation().execution_thread());
    thread == Some("sparsecore")
}

/// The cores that a call on a SparseCore names in its `backend_config`; `?` if it names none.
fn core_ids(attributes: &str) -> BTreeSet<&str> {
    let lists = attributes.split("\"core_ids\":[\"").skip(1);
    let ids = lists.filter_map(|rest| {
        let (ids, rest) = rest.split_once("\"]")?;
        let same_object = rest.split(['{', '}']).next()?;
        same_object.contains("\"core_type\":\"CORE_TYPE_SC\"").then_some(ids)
    });
    ids.map(|ids| ids.split("\",\"").collect()).next().unwrap_or_else(|| BTreeSet::from(["?"]))
}

/// Whether anything in the heap isn't a scalar in a register. If nothing is, the compiler reports no temporaries,
/// although it has laid them out.
fn needs_memory(flow: &Dataflow, storages: &Storages, heap: &Heap) -> bool {
    let mut members = heap.groups.iter().flat_map(|(_, group)| &group.members);
    members.any(|member| {
        let position = flow.values()[member.value];
        let opcode = flow[flow.op_at(position)].opcode;
        !(storages[position].fits_register && makes_scalars_in_registers(opcode))
    })
}

/// Whether an instruction's result of one element lies in a register rather than in memory. Seen alone in programs that
/// report no temporaries: copy, abs, add, subtract, multiply, compare, select, and, xor, convert, log, tanh, parameter,
/// while, conditional; the others are inferred.
fn makes_scalars_in_registers(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Copy
            | Opcode::Parameter
            | Opcode::While
            | Opcode::Conditional
            | Opcode::Add
            | Opcode::Subtract
            | Opcode::Multiply
            | Opcode::Compare
            | Opcode::Select
            | Opcode::And
            | Opcode::Or
            | Opcode::Not
            | Opcode::Xor
            | Opcode::Minimum
            | Opcode::Maximum
            | Opcode::Clamp
            | Opcode::Convert
            | Opcode::Negate
            | Opcode::Abs
            | Opcode::Divide
            | Opcode::Exponential
            | Opcode::IsFinite
            | Opcode::Log
            | Opcode::Power
            | Opcode::Remainder
            | Opcode::Rsqrt
            | Opcode::Sign
            | Opcode::Sqrt
            | Opcode::Tanh
            | Opcode::ShiftLeft
            | Opcode::ShiftRightLogical
            | Opcode::ShiftRightArithmetic
    )
}
