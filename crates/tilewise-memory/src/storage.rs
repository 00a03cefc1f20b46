//! What each position takes, and in which memory.

use tilewise_hlo::dataflow::{Dataflow, Node, Slot, Table};

use crate::{Error, rules::Rules, size};

/// What the value at a position takes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Storage {
    pub(crate) bytes: u64,
    pub(crate) memory_space: u8,
    /// Whether it is an array of one element, which a register can hold.
    pub(crate) fits_register: bool,
}

/// What each position of a program takes.
pub(crate) type Storages = Table<Slot, Storage>;

/// What positions take by these rules.
pub(crate) fn storages(flow: &Dataflow, rules: &dyn Rules) -> Result<Storages, Error> {
    let nodes = of_nodes(flow, rules)?;
    let positions = flow.all_positions().iter();
    let mut storages: Storages = positions.map(|(_, (_, node))| nodes[*node]).collect::<Vec<_>>().into();
    rules.move_contexts(flow, &mut storages);
    Ok(storages)
}

/// The same for the nodes of each distinct shape.
fn of_nodes(flow: &Dataflow, rules: &dyn Rules) -> Result<Table<Node, Storage>, Error> {
    let mut nodes = Table::filled(flow.nodes().len(), Storage::default());
    for (first, shape) in flow.shapes() {
        let mut leaves = shape.leaves();
        for (id, node) in flow.nodes_of(first) {
            if node.is_tuple() {
                nodes[id].bytes = rules.table_bytes(node.element_count()).ok_or(Error::Overflow)?;
                continue;
            }
            let Some((_, leaf)) = leaves.next() else { break };
            nodes[id].bytes = size::leaf(&leaf, rules)?;
            if let Some(array) = leaf.as_array() {
                nodes[id].memory_space = array.memory_space();
                nodes[id].fits_register = array.dimensions().iter().all(|dimension| dimension.bound() == Some(1));
            }
        }
    }
    Ok(nodes)
}
