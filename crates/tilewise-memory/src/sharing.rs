//! Which results may take the place of an operand that ends with them: the compiler's own note.

use std::collections::BTreeSet;

use crate::{
    buffers::Buffers,
    graph::Graph,
    index::{OpId, PlaceId, ValueId},
    opcode::Opcode,
    values::Values,
};

/// Whether the text (`"aliasing_operands"` in `backend_config`) lets a result lie where an operand does.
///
/// Its lists count the operands, then the results: those in one list may share.
pub(crate) fn may_share(graph: &Graph<'_>, result: PlaceId, operand: OpId) -> bool {
    let op = graph.places[result].op;
    let path = graph.path(result);
    if path.len() > 1 {
        return false;
    }
    let attributes = graph.attributes(op);
    let Some(lists) = attributes.rfind("\"aliasing_operands\"").map(|at| &attributes[at..]) else { return false };
    let operands = graph.operands(op);
    let result = operands.len() + path.first().copied().unwrap_or(0);
    lists.split("{\"indices\":[").skip(1).any(|list| {
        let list = list.split(']').next().unwrap_or_default();
        let numbers = || list.split(',').filter_map(|number| number.trim().trim_matches('"').parse::<usize>().ok());
        numbers().any(|number| number == result) && numbers().any(|number| operands.get(number) == Some(&operand))
    })
}

/// Whether two values can't lie in one place: they live at the same time, but for the moment at which one ends and the
/// other, which may share with it, starts.
pub(crate) fn interfere(graph: &Graph<'_>, values: &Values, buffers: &Buffers, a: ValueId, b: ValueId) -> bool {
    let (range_a, range_b) = (buffers.ranges[a], buffers.ranges[b]);
    if !range_a.overlaps(range_b) {
        return false;
    }
    let (before, after) = match () {
        () if range_a.end == range_b.start => (a, b),
        () if range_b.end == range_a.start => (b, a),
        () => return true,
    };
    let place = values.values[after].place;
    let op = graph.places[place].op;
    graph.ops[op].opcode == Opcode::Copy
        || !graph
            .operands(op)
            .iter()
            .any(|operand| values.at(graph.ops[*operand].place) == Some(before) && may_share(graph, place, *operand))
}

/// The SparseCores whose work area a value is: element {2,k} of an asynchronous start, in the default memory space.
pub(crate) fn work_area<'m>(graph: &Graph<'m>, values: &Values, value: ValueId) -> Option<BTreeSet<&'m str>> {
    let place = values.values[value].place;
    let data = graph.places[place];
    if graph.ops[data.op].opcode != Opcode::AsyncStart || data.memory_space != 0 || data.bytes == 0 {
        return None;
    }
    let path = graph.path(place);
    (path.len() == 2 && path[0] == 2).then(|| core_ids(graph.attributes(data.op)))
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
