//! The report of an audit.

use super::{
    buffers::Buffers,
    rows::{Agreement, BufferRow, MemoryBounds, SpaceTotal},
    warning::ReportWarning,
    work::{Work, work},
};
use crate::{
    advice::{CopyReason, Findings, Recommendation, finding::SmallerBatch},
    copies::{self, CopyRow},
    program::{PlannedProgram, SourceLine, call_stack, has_gradient, has_sparse_core, names_under_checkpoints},
};
use std::sync::OnceLock;
use tilewise::tpu::{Generation, Libtpu};
use tilewise_memory::{Machine, MemoryPlan};
use tilewise_time::{NoTime, Time};

/// An audit of one module.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The source of its text, such as a path; empty if unknown.
    pub source: String,
    /// The machine that it is audited for; `None` if inferred.
    pub given: Option<Machine>,
    /// The module's name.
    pub module_name: String,
    /// The entry computation's name.
    pub entry: Option<String>,
    /// Whether the text is scheduled (`is_scheduled`).
    pub is_scheduled: bool,
    /// The machine it is compiled for, as given or [inferred](crate::infer_machine).
    pub machine: Machine,
    /// The version of libtpu that compiled it, if given or known from its file's name.
    pub libtpu: Option<Libtpu>,
    /// Devices that run the program together; all memory is that of each device.
    pub partitions: u64,
    /// Totals and peaks, by rising memory space.
    pub memory_spaces: Vec<SpaceTotal>,
    /// Every copy, in the order of the text.
    pub copies: Vec<CopyRow>,
    /// The program's bytes in the device's default memory, or bounds of them without a plan.
    pub memory_bounds: MemoryBounds,
    /// Warnings: parts that could not be read or sized, and doubts.
    pub warnings: Vec<ReportWarning>,
    /// A comparison of the plan with the compiler's own, if a dump has that: see [`agreement`](Self::agreement).
    pub compiler_plan: Option<Agreement>,
    pub(crate) buffers: Buffers,
    /// Computed on first use.
    pub(crate) findings: OnceLock<Findings>,
    /// Computed on first use.
    pub(crate) time: OnceLock<Result<Time, NoTime>>,
    /// The program, with its plan.
    pub(crate) planned: PlannedProgram,
}

impl Report {
    /// The memory plan: places and live ranges of values.
    ///
    /// # Errors
    /// A program without a schedule, or of another machine, has no plan.
    pub fn plan(&self) -> Result<&MemoryPlan, &tilewise_memory::Error> {
        self.planned.plan.as_ref()
    }

    /// The temporaries in `memory_analysis()` of the compiler that made the program (`temp_size_in_bytes`): the
    /// [planned bytes](MemoryBounds::temporary_bytes), and before libtpu 0.0.51
    /// [the gaps between them a second time](Libtpu::counts_gaps_twice). `None` without a plan.
    #[must_use]
    pub fn reported_temporary_bytes(&self) -> Option<u64> {
        let bytes = self.memory_bounds.temporary_bytes?;
        if !self.libtpu.is_some_and(Libtpu::counts_gaps_twice) {
            return Some(bytes);
        }
        let live = self.plan().ok()?.space(0).map_or(0, |space| space.peak_temporary_live_bytes);
        bytes.checked_add(bytes.saturating_sub(live))
    }

    /// Sets or removes the limit that the program should fit, in bytes. The plan stays: a TPU's compiler knew the size
    /// of its memory.
    #[must_use]
    pub fn with_limit(mut self, bytes: Option<u64>) -> Self {
        self.planned.limit = bytes;
        self.findings = OnceLock::new();
        self
    }

    /// Bytes of memory that it should fit, as asked; `None` without a limit.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.planned.limit
    }

    /// Bytes of memory that it is to fit: as asked, or those of the machine that its text shows.
    #[must_use]
    pub fn available_bytes(&self) -> Option<u64> {
        self.planned.available_bytes()
    }

    /// The generation of TPUs that the text was compiled for, where it is planned for another whose compiler may need more than
    /// this memory.
    #[must_use]
    pub fn doubted_by(&self, limit: u64) -> Option<Generation> {
        self.planned.doubted_by(limit)
    }

    /// Whether the machine is given, or shown by the text or its file's name; else it is the default.
    #[must_use]
    pub fn is_machine_shown(&self) -> bool {
        self.planned.is_machine_shown
    }

    /// Whether a part of the program runs on SparseCores, which own the unnamed memory spaces.
    #[must_use]
    pub fn has_sparse_core(&self) -> bool {
        has_sparse_core(&self.planned.module)
    }

    /// The Python calls that led to an instruction, the innermost first; empty if the text doesn't have them.
    #[must_use]
    pub fn call_stack(&self, instruction: &str) -> Vec<SourceLine> {
        let mut all = self.planned.module.computations().flat_map(|computation| computation.instructions());
        let found = all.find(|one| one.name() == instruction);
        found.map(|one| call_stack(&one)).unwrap_or_default()
    }

    /// Number of buffers that the module defines.
    #[must_use]
    pub fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    /// Every buffer the module defines, in the order of the text: one row for each leaf of an instruction's result,
    /// none for an alias.
    pub fn buffers(&self) -> impl Iterator<Item = BufferRow> {
        self.buffers.rows(&self.planned.module)
    }

    /// The buffers with padding, those with the most first.
    pub fn largest_padding(&self) -> impl Iterator<Item = BufferRow> {
        self.buffers.largest_padding(&self.planned.module)
    }

    /// The number of buffers with padding, and their padding in bytes.
    #[must_use]
    pub fn padded(&self) -> (usize, u64) {
        self.buffers.padded()
    }

    /// Bytes that the program moves: the operands and results of every instruction that runs, times the trip counts of
    /// the loops around it. Loops of an unknown trip count are counted once.
    ///
    /// It is a sum over the text. A fusion that uses a part of an operand counts the whole of it; slices and in-place
    /// updates count only the bytes that they move.
    #[must_use]
    pub fn moved_bytes(&self) -> u64 {
        copies::moved_bytes(&self.planned.flow)
    }

    /// The program's computation and communication, times the trip counts of loops.
    #[must_use]
    pub fn work(&self) -> Work {
        work(&self.planned.flow)
    }

    /// The program's text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.planned.module.source()
    }

    /// Whether the program takes a gradient.
    #[must_use]
    pub fn has_gradient(&self) -> bool {
        has_gradient(&self.planned.module)
    }

    /// Whether the program computes values again for its gradient, under `jax.checkpoint`.
    #[must_use]
    pub fn has_checkpoint(&self) -> bool {
        names_under_checkpoints(&self.planned.module).next().is_some()
    }

    /// The total of a memory space, if the module has buffers there.
    #[must_use]
    pub fn memory_space(&self, space: u8) -> Option<&SpaceTotal> {
        self.memory_spaces.iter().find(|total| total.memory_space == space)
    }
}

impl Report {
    /// Changes that reduce the program's memory, the best first; empty for a module without plan.
    ///
    /// Each saving assumes that all changes before it are made, so that savings add up: the drop in arguments, results
    /// that don't lie in them, and temporaries together.
    ///
    /// ```
    /// use tilewise_audit::recommendation::Saving;
    ///
    /// let module = tilewise_hlo::Module::parse("\
    /// HloModule jit_f, is_scheduled=true
    ///
    /// ENTRY main (x.1: f32[524288,8]) -> f32[524288] {
    ///   x.1 = f32[524288,8]{1,0:T(8,128)} parameter(0), metadata={op_name=\"x\"}
    ///   ROOT r = f32[524288]{0:T(1024)} custom-call(x.1), custom_call_target=\"sum\"
    /// }")?;
    /// let report = tilewise_audit::audit(&module);
    /// let advice = report.advice();
    /// assert_eq!((advice[0].change.as_str(), advice[0].target.as_str()), ("order", "argument"));
    /// // 512 bytes a row, which could be 32.
    /// assert_eq!(advice[0].saving, Saving::Exact(524_288 * (512 - 32)));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn advice(&self) -> &[Recommendation] {
        &self.findings().advice
    }

    /// The batch with which a program fits that doesn't fit now; `None` if it fits, or without a batch that is enough.
    #[must_use]
    pub fn smaller_batch(&self) -> Option<&SmallerBatch> {
        self.findings().smaller_batch.as_ref()
    }

    /// The reason for each of [`copies`](Self::copies), in their order.
    ///
    /// A fix is only given if recompiling with it removes the copy: nothing else reads the argument, the order is one
    /// of its own dimensions, and the program holds no more than before. Of very many copies, only the largest are
    /// examined.
    #[must_use]
    pub fn copy_reasons(&self) -> &[CopyReason] {
        &self.findings().copy_reasons
    }

    pub(super) fn are_samples_mixed(&self) -> bool {
        self.findings().are_samples_mixed
    }

    fn findings(&self) -> &Findings {
        self.findings.get_or_init(|| Findings::new(&self.planned, &self.copies))
    }
}
