//! What each position takes, and in which memory: all that depends on the machine and on layouts.

use tilewise::tpu::Generation;
use tilewise_hlo::{
    Opcode,
    dataflow::{Dataflow, Node, Slot, Table},
};

use crate::{Error, size};

/// Scalar memory.
const SMEM: u8 = 2;

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

/// What positions take on a TPU of this generation.
pub(crate) fn storages(flow: &Dataflow, generation: Generation) -> Result<Storages, Error> {
    let nodes = of_nodes(flow, generation)?;
    let positions = flow.all_positions().iter();
    let mut storages: Storages = positions.map(|(_, (_, node))| nodes[*node]).collect::<Vec<_>>().into();
    for (_, op) in flow.ops().iter() {
        // The compiler keeps the context in scalar memory, whatever its layout says.
        if matches!(op.opcode, Opcode::Send | Opcode::Recv)
            && let Some(context) = flow.element(op.position, 1)
        {
            storages[context].memory_space = SMEM;
        }
    }
    Ok(storages)
}

/// The same for the nodes of each distinct shape.
fn of_nodes(flow: &Dataflow, generation: Generation) -> Result<Table<Node, Storage>, Error> {
    let mut nodes = Table::filled(flow.nodes().len(), Storage::default());
    for (first, shape) in flow.shapes() {
        let mut leaves = shape.leaves();
        for (id, node) in flow.nodes_of(first) {
            if node.is_tuple() {
                nodes[id].bytes = size::table(node.element_count(), generation).ok_or(Error::Overflow)?;
                continue;
            }
            let Some((_, leaf)) = leaves.next() else { break };
            nodes[id].bytes = size::leaf(&leaf)?;
            if let Some(array) = leaf.as_array() {
                nodes[id].memory_space = array.memory_space();
                nodes[id].fits_register = array.dimensions().iter().all(|dimension| dimension.bound() == Some(1));
            }
        }
    }
    Ok(nodes)
}
