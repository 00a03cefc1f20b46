//! Where values come from, and where they go.

mod chains;
mod graph;
mod index;
mod load;
mod positions;
mod values;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use crate::Module;
use chains::Chains;
use graph::Graph;
use values::Values;

pub use chains::Chain;
pub use graph::{Body, Gap, Op, Slot};
pub use index::{Id, Table};
pub use positions::Node;
pub use values::Value;

/// An instruction.
pub type OpId = Id<Op>;
/// A computation.
pub type BodyId = Id<Body>;
/// Where a value is: an instruction and a path within its result (XLA's `HloPosition`).
///
/// Those of an instruction follow one another, in pre-order: a tuple comes before its elements.
pub type Position = Id<Slot>;
/// A node of one of the module's distinct shapes.
pub type NodeId = Id<Node>;
/// A value.
pub type ValueId = Id<Value>;

/// What runs in a module, and how values flow through it: XLA's dataflow analysis, for any machine.
///
/// Clones share everything.
#[derive(Clone)]
pub struct Dataflow {
    data: Arc<Data>,
}

struct Data {
    module: Module,
    graph: Graph,
    chains: OnceLock<Chains>,
    values: OnceLock<Values>,
}

impl fmt::Debug for Dataflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataflow").field("module", &self.module().name()).finish_non_exhaustive()
    }
}

impl Dataflow {
    /// Of a module. What the text leaves open is said by [`gap`](Self::gap).
    #[must_use]
    pub fn new(module: &Module) -> Self {
        let graph = Graph::new(module);
        let module = module.clone();
        Self { data: Arc::new(Data { module, graph, chains: OnceLock::new(), values: OnceLock::new() }) }
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.data.module
    }

    fn graph(&self) -> &Graph {
        &self.data.graph
    }

    fn chains(&self) -> &Chains {
        self.data.chains.get_or_init(|| Chains::new(self))
    }

    fn analysed(&self) -> &Values {
        self.data.values.get_or_init(|| Values::new(self))
    }
}
