//! Which results may take the place of an operand that ends with them: the compiler's own note.

use std::collections::BTreeSet;

use tilewise_hlo::{
    Opcode,
    dataflow::{Dataflow, OpId, Position, ValueId},
};

use crate::{buffers::Buffers, storage::Storages};

/// Whether the text (`"aliasing_operands"` in `backend_config`) lets a result lie where an operand does.
///
/// Its lists count the operands, then the results: those in one list may share.
pub(crate) fn may_share(flow: &Dataflow, result: Position, operand: OpId) -> bool {
    let op = flow.op_at(result);
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

/// Whether two values can't lie in one place: they live at the same time, but for the moment at which one ends and the
/// other, which may share with it, starts.
pub(crate) fn interfere(flow: &Dataflow, buffers: &Buffers, a: ValueId, b: ValueId) -> bool {
    let (range_a, range_b) = (buffers.ranges[a], buffers.ranges[b]);
    if !range_a.overlaps(range_b) {
        return false;
    }
    let (before, after) = match () {
        () if range_a.end == range_b.start => (a, b),
        () if range_b.end == range_a.start => (b, a),
        () => return true,
    };
    let position = flow.values()[after];
    let op = flow.op_at(position);
    flow[op].opcode == Opcode::Copy
        || !flow.operands(op).iter().any(|operand| {
            flow.value_at(flow[*operand].position) == Some(before) && may_share(flow, position, *operand)
        })
}

/// The SparseCores whose work area a value is: element {2,k} of an asynchronous start, in the default memory space.
pub(crate) fn work_area<'f>(flow: &'f Dataflow, storages: &Storages, value: ValueId) -> Option<BTreeSet<&'f str>> {
    let position = flow.values()[value];
    let (op, storage) = (flow.op_at(position), &storages[position]);
    if flow[op].opcode != Opcode::AsyncStart || storage.memory_space != 0 || storage.bytes == 0 {
        return None;
    }
    let path = flow.shape_index(position);
    (path.len() == 2 && path[0] == 2).then(|| core_ids(flow.attributes(op)))
}

/// The cores that a call on a SparseCore names in its `backend_config`; `?` where it names none.
fn core_ids(attributes: &str) -> BTreeSet<&str> {
    let lists = attributes.split("\"core_ids\":[\"").skip(1);
    let ids = lists.filter_map(|rest| {
        let (ids, rest) = rest.split_once("\"]")?;
        let same_object = rest.split(['{', '}']).next()?;
        same_object.contains("\"core_type\":\"CORE_TYPE_SC\"").then_some(ids)
    });
    ids.map(|ids| ids.split("\",\"").collect()).next().unwrap_or_else(|| BTreeSet::from(["?"]))
}
