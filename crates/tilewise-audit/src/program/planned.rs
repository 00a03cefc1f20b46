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
    /// Whether its machine is given, named or shown by its text, not only assumed.
    pub(crate) is_machine_shown: bool,
    /// Bytes of memory that it should fit, as asked.
    pub(crate) limit: Option<u64>,
    /// Offsets and live ranges of its values.
    pub(crate) plan: Result<MemoryPlan, Error>,
    /// The planner that made the plan, to plan changes.
    pub(crate) planner: Option<Planner>,
}

impl PlannedProgram {
    /// Bytes that it is to fit: as asked, or those of the machine that its text shows.
    pub(crate) fn available_bytes(&self) -> Option<u64> {
        self.limit.or_else(|| self.machine.program_bytes().filter(|_| self.is_machine_shown))
    }
}
