//! The sources and the uses of values.

mod axes;
mod chains;
mod classes;
mod events;
mod executions;
mod factors;
mod graph;
mod index;
mod load;
mod mismatch;
mod pieces;
mod positions;
mod reach;
mod trace;
mod users;
mod values;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use crate::Module;
use chains::Chains;
use executions::Executions;
use graph::Graph;
use trace::{Callers, Origins};
use users::Users;
use values::Values;

pub use axes::{Axes, Axis, Event};
pub use chains::Chain;
pub use events::EventKind;
pub use factors::{Factor, FactorKind, Factors, Place};
pub use graph::{Body, Gap, Op};
pub use index::{Id, Table};
pub use mismatch::Mismatch;
pub use positions::{Node, Slot};
pub use reach::Reached;
pub use trace::{REACH, Source, Use};
pub use users::User;
pub use values::Value;

/// An instruction.
pub type OpId = Id<Op>;
/// A computation.
pub type BodyId = Id<Body>;
/// The place of a value: an instruction and a path within its result (XLA's `HloPosition`).
///
/// The positions of an instruction follow one another, in pre-order: a tuple comes before its elements.
pub type Position = Id<Slot>;
/// A node of one of the module's distinct shapes.
pub type NodeId = Id<Node>;
/// An axis.
pub type AxisId = Id<Axis>;
/// A value.
pub type ValueId = Id<Value>;

/// The instructions that run in a module, and the flow of values through it: XLA's dataflow analysis, for any machine.
///
/// Clones share everything.
#[derive(Clone)]
pub struct Dataflow {
    data: Arc<Data>,
}

#[derive(Default)]
struct Known {
    chains: OnceLock<Chains>,
    values: OnceLock<Values>,
    users: OnceLock<Users>,
    callers: OnceLock<Callers>,
    origins: OnceLock<Origins>,
    executions: OnceLock<Executions>,
    axes: OnceLock<Axes>,
}

struct Data {
    module: Module,
    graph: Graph,
    /// Computed on first use.
    known: Known,
}

impl fmt::Debug for Dataflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataflow").field("module", &self.module().name()).finish_non_exhaustive()
    }
}

impl Dataflow {
    /// The dataflow of a module; [`gap`](Self::gap) is the first gap in its text.
    #[must_use]
    pub fn new(module: &Module) -> Self {
        let graph = load::load(module);
        let module = module.clone();
        Self { data: Arc::new(Data { module, graph, known: Known::default() }) }
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
        self.data.known.chains.get_or_init(|| Chains::new(self))
    }

    fn all_users(&self) -> &Users {
        self.data.known.users.get_or_init(|| Users::new(self))
    }

    fn all_callers(&self) -> &Callers {
        self.data.known.callers.get_or_init(|| Callers::new(self))
    }

    fn all_origins(&self) -> &Origins {
        self.data.known.origins.get_or_init(|| Origins::new(self))
    }

    fn all_executions(&self) -> &Executions {
        self.data.known.executions.get_or_init(|| Executions::new(self))
    }

    /// The axes of the module's arrays, computed on first use.
    #[must_use]
    pub fn axes(&self) -> &Axes {
        self.data.known.axes.get_or_init(|| Axes::of(self.module()))
    }

    fn analysed(&self) -> &Values {
        self.data.known.values.get_or_init(|| Values::new(self))
    }
}
