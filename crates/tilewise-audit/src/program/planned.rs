//! A program with its plan.

use tilewise::tpu::Generation;
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
    /// The generation that the text was compiled for, where it is planned for another.
    pub(crate) other_generation: Option<Generation>,
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

    /// The generation that the text is of, if it isn't the one planned for and a third more than planned exceeds this memory: of
    /// 19 programs compiled for v5e and v6e, one needed a third more on a v5e than its text for a v6e takes there, and the others
    /// less than a twentieth.
    pub(crate) fn doubted_by(&self, limit: u64) -> Option<Generation> {
        let total = self.plan.as_ref().ok()?.total_bytes();
        self.other_generation.filter(|_| total <= limit && total.saturating_add(total / 3) > limit)
    }

    /// Bytes that a program has to stay below to fit without a doubt.
    pub(crate) fn sure_bytes(&self) -> Option<u64> {
        let limit = self.available_bytes()?;
        Some(if self.doubted_by(limit).is_some() { limit / 4 * 3 } else { limit })
    }
}
