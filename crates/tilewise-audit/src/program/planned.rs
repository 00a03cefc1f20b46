//! A program with its plan.

use tilewise_hlo::{Module, dataflow::Dataflow};
use tilewise_memory::{Error, Machine, MemoryPlan, Planner};

/// What everything that is said of a program follows from.
#[derive(Clone, Debug)]
pub(crate) struct PlannedProgram {
    pub(crate) module: Module,
    /// How its values flow.
    pub(crate) flow: Dataflow,
    /// The machine it is compiled for.
    pub(crate) machine: Machine,
    /// Devices that run it together.
    pub(crate) partitions: u64,
    /// Bytes of memory that it should fit.
    pub(crate) limit: Option<u64>,
    /// What lies where, when.
    pub(crate) plan: Result<MemoryPlan, Error>,
    /// What made the plan, and plans it otherwise.
    pub(crate) planner: Option<Planner>,
}
