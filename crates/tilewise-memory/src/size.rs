//! Sizes of positions.

use tilewise::{Layout, Shape};
use tilewise_hlo::dataflow::{Dataflow, Node, Table};

use crate::{
    Error, ErrorKind,
    rules::Rules,
    storage::{Storage, Storages},
};

/// The storage of each position by these rules.
pub(crate) fn storages(flow: &Dataflow, rules: &dyn Rules) -> Result<Storages, Error> {
    let nodes = of_nodes(flow, rules)?;
    let positions = flow.all_positions().iter();
    let mut storages: Storages = positions.map(|(_, (_, node))| nodes[*node]).collect::<Vec<_>>().into();
    rules.move_contexts(flow, &mut storages);
    Ok(storages)
}

/// The storage of the nodes of each distinct shape.
fn of_nodes(flow: &Dataflow, rules: &dyn Rules) -> Result<Table<Node, Storage>, Error> {
    let mut nodes = Table::filled(flow.nodes().len(), Storage::default());
    for (first, shape) in flow.shapes() {
        let mut leaves = shape.leaves();
        for (id, node) in flow.nodes_of(first) {
            if node.is_tuple() {
                nodes[id].bytes = rules.table_bytes(node.element_count()).ok_or(ErrorKind::Overflow)?;
                continue;
            }
            let Some((_, leaf)) = leaves.next() else { break };
            nodes[id].bytes = self::leaf(&leaf, rules)?;
            if let Some(array) = leaf.as_array() {
                nodes[id].memory_space = array.memory_space();
                nodes[id].fits_register = array.dimensions().iter().all(|dimension| dimension.bound() == Some(1));
            }
        }
    }
    Ok(nodes)
}

/// Bytes of a leaf, that is, anything but a tuple; tokens and opaque values take none. An array without a layout counts
/// as row-major.
pub(crate) fn leaf(shape: &Shape, rules: &dyn Rules) -> Result<u64, Error> {
    let Some(array) = shape.as_array() else { return Ok(0) };
    let bytes = match array.layout() {
        Some(_) => rules.array_bytes(array),
        None => shape
            .with_layout(Layout::row_major(array.rank()))
            .and_then(|shape| shape.as_array().map_or(Ok(0), |array| rules.array_bytes(array))),
    };
    bytes.map_err(|error| match error.kind() {
        tilewise::ErrorKind::Overflow => ErrorKind::Overflow.into(),
        _ => {
            let message = format!("the size of an array can't be told, `{shape}`: {error}");
            Error::new(ErrorKind::UnknownSize, message).caused_by(error)
        }
    })
}
