//! What an audit finds.

use super::{
    buffers::Buffers,
    rows::{Agreement, BufferRow, MemoryBounds, SpaceTotal},
    warning::ReportWarning,
    work::{Work, work},
};
use crate::{
    advice::{CopyReason, Findings, Note, Recommendation},
    copies::{self, CopyRow},
    program::{PlannedProgram, SourceLine, call_stack, has_sparse_core},
};
use std::sync::OnceLock;
use tilewise::tpu::Libtpu;
use tilewise_memory::{Machine, MemoryPlan};
use tilewise_time::{NoTime, Time};

/// An audit of one module.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Where its text came from, such as a path; empty where nobody said.
    pub source: String,
    /// The machine that it is audited for; `None` where that is inferred.
    pub given: Option<Machine>,
    /// The module's name.
    pub module_name: String,
    /// The entry computation's name.
    pub entry: Option<String>,
    /// Whether the text says the module is scheduled.
    pub is_scheduled: bool,
    /// The machine it is compiled for, as given or [inferred](crate::infer_machine).
    pub machine: Machine,
    /// Whether that is given, or the text or its file's name shows it; else it is the default.
    pub is_machine_shown: bool,
    /// The version of libtpu that compiled it, where the caller or its file's name tells.
    pub libtpu: Option<Libtpu>,
    /// Devices that run the program together; what is said of memory is of each.
    pub partitions: u64,
    /// Totals and peaks, by rising memory space.
    pub memory_spaces: Vec<SpaceTotal>,
    /// Every copy, in the order of the text.
    pub copies: Vec<CopyRow>,
    /// What the program holds in the device's default memory, or bounds of it where there is no plan.
    pub memory_bounds: MemoryBounds,
    /// What could not be read or sized.
    pub warnings: Vec<ReportWarning>,
    /// How the plan compares with the compiler's own, where a dump has that: see [`agreement`](Self::agreement).
    pub compiler_plan: Option<Agreement>,
    pub(crate) buffers: Buffers,
    /// Worked out when it is first asked for.
    pub(crate) findings: OnceLock<Findings>,
    /// The same.
    pub(crate) time: OnceLock<Result<Time, NoTime>>,
    /// The program, with its plan.
    pub(crate) planned: PlannedProgram,
}

impl Report {
    /// What lies where, when; or why that can't be told.
    ///
    /// # Errors
    /// A program without a schedule, or of another machine, has no plan.
    pub fn plan(&self) -> Result<&MemoryPlan, &tilewise_memory::Error> {
        self.planned.plan.as_ref()
    }

    /// What `memory_analysis()` of the compiler that made the program says of its temporaries (`temp_size_in_bytes`): the
    /// [planned bytes](MemoryBounds::temporary_bytes), and before libtpu 0.0.51 [the gaps between them a second
    /// time](Libtpu::counts_gaps_twice). `None` without a plan.
    #[must_use]
    pub fn reported_temporary_bytes(&self) -> Option<u64> {
        let bytes = self.memory_bounds.temporary_bytes?;
        if !self.libtpu.is_some_and(Libtpu::counts_gaps_twice) {
            return Some(bytes);
        }
        let live = self.plan().ok()?.space(0).map_or(0, |space| space.peak_temporary_live_bytes);
        bytes.checked_add(bytes.saturating_sub(live))
    }

    /// The same report, of a program that is to fit so many bytes of memory or none in particular. Its plan stays: a TPU's compiler
    /// knew its memory, whoever asks.
    #[must_use]
    pub fn with_limit(mut self, bytes: Option<u64>) -> Self {
        self.planned.limit = bytes;
        self.findings = OnceLock::new();
        self
    }

    /// Bytes of memory that it is to fit.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.planned.limit
    }

    /// Whether a part of the program runs on SparseCores: memory spaces that have no name are theirs.
    #[must_use]
    pub fn has_sparse_core(&self) -> bool {
        has_sparse_core(&self.planned.module)
    }

    /// The Python calls that led to an instruction, the innermost first; none where the text doesn't have them.
    #[must_use]
    pub fn call_stack(&self, instruction: &str) -> Vec<SourceLine> {
        let mut all = self.planned.module.computations().flat_map(|computation| computation.instructions());
        let found = all.find(|one| one.name() == instruction);
        found.map(|one| call_stack(&one)).unwrap_or_default()
    }

    /// How many buffers the module defines.
    #[must_use]
    pub fn buffer_count(&self) -> usize {
        self.buffers.len()
    }

    /// Every buffer the module defines, in the order of the text: one row a leaf of each instruction's result, none for
    /// an alias.
    pub fn buffers(&self) -> impl Iterator<Item = BufferRow> {
        self.buffers.rows(&self.planned.module)
    }

    /// The buffers with padding, those with the most of it first.
    pub fn largest_padding(&self) -> impl Iterator<Item = BufferRow> {
        self.buffers.largest_padding(&self.planned.module)
    }

    /// How many buffers have padding, and how many bytes of it together.
    #[must_use]
    pub fn padded(&self) -> (usize, u64) {
        self.buffers.padded()
    }

    /// Bytes that the program moves: the operands and results of every instruction that runs, times the trip counts of
    /// the loops around it. Loops whose count can't be told are counted once.
    ///
    /// It is a sum over the text. A fusion that uses a part of an operand counts the whole of it; slices and in-place
    /// updates count only what they move.
    #[must_use]
    pub fn moved_bytes(&self) -> u64 {
        copies::moved_bytes(&self.planned.flow)
    }

    /// What the program computes and sends, loops times their trips.
    #[must_use]
    pub fn work(&self) -> Work {
        work(&self.planned.flow)
    }

    /// The program's text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.planned.module.source()
    }

    /// The total of a memory space, if the module has buffers there.
    #[must_use]
    pub fn memory_space(&self, space: u8) -> Option<&SpaceTotal> {
        self.memory_spaces.iter().find(|total| total.memory_space == space)
    }
}

impl Report {
    /// What to change so that the program holds less, the best first; nothing for a module without plan.
    ///
    /// Each frees its bytes once those before it are done, so that all together free their sum: bytes by which arguments,
    /// results that don't lie in them, and temporaries together fall.
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

    /// What fills the program's memory at its peak, by kind, the largest first. None of it has a price: what could be done
    /// changes what is computed, or where; nothing for a module without plan.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.findings().notes
    }

    /// Why each of [`copies`](Self::copies) is there, in their order.
    ///
    /// A fix is only given where the copy goes once the program is compiled again: nothing else reads the argument, the order is
    /// one of its own dimensions, and the program holds no more than before. Of very many only the largest are looked at.
    #[must_use]
    pub fn copy_reasons(&self) -> &[CopyReason] {
        &self.findings().copy_reasons
    }

    fn findings(&self) -> &Findings {
        self.findings.get_or_init(|| Findings::new(&self.planned, &self.copies))
    }
}
