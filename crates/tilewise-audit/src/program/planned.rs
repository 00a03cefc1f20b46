//! A program with its plan.

use tilewise_hlo::{Module, dataflow::Dataflow};
use tilewise_memory::{Error, Machine, MemoryPlan, Planner};

/// A program with its plan: the input of all results.
#[derive(Clone, Debug)]
pub(crate) struct PlannedProgram {
    pub(crate) module: Module,
    /// Its dataflow.
    pub(crate) flow: Dataflow,
    /// The machine it is compiled for.
    pub(crate) machine: Machine,
    /// Devices that run it together.
    pub(crate) partitions: u64,
    /// Bytes of memory that it should fit.
    pub(crate) limit: Option<u64>,
    /// Offsets and live ranges of its values.
    pub(crate) plan: Result<MemoryPlan, Error>,
    /// The planner that made the plan, to plan changes.
    pub(crate) planner: Option<Planner>,
}
