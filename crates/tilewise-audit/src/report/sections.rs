//! What an audit finds.

use super::{
    agreement::Agreement,
    buffers::Buffers,
    peak::SpacePeak,
    work::{Work, work},
};
use crate::{
    advice::{CopyReason, Findings, Recommendation},
    copies::{self, CopyRow},
    program::{PlannedProgram, SourceLine, share},
};
use std::{borrow::Cow, ops::Range, sync::OnceLock};
use tilewise::{Shape, Sizes, tpu::{Libtpu, memory_space_name}};
use tilewise_memory::{Machine, MemoryPlan};

/// An audit of one module.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The module's name.
    pub module_name: String,
    /// The entry computation's name.
    pub entry: Option<String>,
    /// Whether the text says the module is scheduled.
    pub is_scheduled: bool,
    /// The machine it is compiled for, as given or [inferred](crate::infer_machine).
    pub machine: Machine,
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
    pub warnings: Vec<Warning>,
    /// How the plan compares with the compiler's own, where a dump has that: see [`agreement`](Self::agreement).
    pub compiler_plan: Option<Agreement>,
    pub(crate) buffers: Buffers,
    /// Worked out when it is first asked for.
    pub(crate) findings: OnceLock<Findings>,
    /// The program, with its plan.
    pub(crate) planned: PlannedProgram,
}

/// The buffers of one memory space together. Their sum is what the program defines; what it holds at once is the peak.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SpaceTotal {
    /// The memory space's number, 0 for the device's default memory.
    pub memory_space: u8,
    /// How many buffers.
    pub buffers: usize,
    /// Bytes of data.
    pub logical_bytes: u64,
    /// Bytes taken.
    pub physical_bytes: u64,
    /// What is held when that is the most; `None` for a module without plan.
    pub peak: Option<SpacePeak>,
}

impl SpaceTotal {
    pub(crate) fn empty(memory_space: u8) -> Self {
        Self { memory_space, buffers: 0, logical_bytes: 0, physical_bytes: 0, peak: None }
    }

    /// The memory space's name, such as `hbm`.
    #[must_use]
    pub fn memory_space_name(&self) -> Cow<'static, str> {
        memory_space_name(self.memory_space)
    }

    /// Bytes that hold no data.
    #[must_use]
    pub fn padding_bytes(&self) -> u64 {
        self.physical_bytes - self.logical_bytes
    }

    /// Padding as a share of the bytes taken, 0 … 1.
    #[must_use]
    pub fn padding_share(&self) -> f64 {
        share(self.padding_bytes(), self.physical_bytes)
    }
}

/// What a program holds in the device's default memory: bounds, which meet where there is a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryBounds {
    /// Bytes of the entry's arguments.
    pub argument_bytes: u64,
    /// Bytes of its results.
    pub output_bytes: u64,
    /// Bytes of the results that donated arguments provide.
    pub alias_bytes: u64,
    /// Bytes of constants, each an allocation of its own.
    pub constant_bytes: u64,
    /// Bytes of temporaries as the compiler reports them (`temp_size`); `None` without a plan.
    pub temporary_bytes: Option<u64>,
    /// Bytes of all buffers, no two sharing memory but those of donated arguments; with a plan, what it holds.
    pub at_most_bytes: u64,
    /// Whether all of the program was read and sized; else it may hold more than is said here.
    pub is_complete: bool,
    /// Whether the machine is only assumed, because neither the text nor the caller tells it: temporaries may then differ.
    pub is_assumed: bool,
}

impl MemoryBounds {
    pub(crate) fn of_plan(plan: &MemoryPlan) -> Self {
        Self {
            argument_bytes: plan.argument_bytes,
            output_bytes: plan.output_bytes,
            alias_bytes: plan.alias_bytes,
            constant_bytes: plan.constant_bytes,
            temporary_bytes: Some(plan.temporary_bytes()),
            at_most_bytes: plan.total_bytes(),
            is_complete: true,
            is_assumed: false,
        }
    }

    /// Bytes the program holds at the least: arguments, results, constants, and temporaries where they are known.
    #[must_use]
    pub fn at_least_bytes(&self) -> u64 {
        let standing = self.argument_bytes.saturating_add(self.output_bytes).saturating_sub(self.alias_bytes);
        standing.saturating_add(self.constant_bytes).saturating_add(self.temporary_bytes.unwrap_or(0))
    }

    /// Whether that fits a memory of so many bytes; `None` where it depends on how temporaries share, on the machine, or on
    /// parts that could not be read or sized.
    ///
    /// Code and the compiler's own reserve are not counted.
    #[must_use]
    pub fn fits(&self, limit: u64) -> Option<bool> {
        if self.is_assumed {
            None
        } else if self.at_least_bytes() > limit {
            Some(false)
        } else {
            (self.is_complete && self.at_most_bytes <= limit).then_some(true)
        }
    }

    /// What is left of a memory of so many bytes that it [fits](Self::fits).
    #[must_use]
    pub fn headroom(&self, limit: u64) -> Option<u64> {
        self.fits(limit).filter(|fits| *fits).and_then(|_| limit.checked_sub(self.at_most_bytes))
    }
}

/// One buffer: an array that an instruction defines.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BufferRow {
    /// The instruction that defines it, without `%`.
    pub instruction: String,
    /// The computation the instruction is in, without `%`.
    pub computation: String,
    /// The instruction's opcode.
    pub opcode: String,
    /// The array.
    pub shape: Shape,
    /// The array's place in the instruction's result; empty if that is no tuple.
    pub shape_index: Vec<usize>,
    /// The memory space's number.
    pub memory_space: u8,
    /// What the array holds and takes.
    pub sizes: Sizes,
    /// What makes the padding, in words, the largest cause first; none without padding.
    pub causes: Vec<String>,
    /// The framework's name of the operation, such as `jit(f)/dot_general`.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

/// Something that could not be read or sized.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// A stable name in snake case.
    pub kind: &'static str,
    /// What it is about.
    pub message: String,
    /// The bytes of the module's text it is about.
    pub span: Option<Range<usize>>,
}

impl Warning {
    /// A warning about the program as a whole.
    #[must_use]
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), span: None }
    }
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

    /// What fills the program's memory at its peak, by kind, the largest first, and what can be done about each: sentences
    /// without a full stop. None of it has a price: it changes what is computed, or where; nothing for a module without plan.
    ///
    /// ```
    /// let module = tilewise_hlo::Module::parse("\
    /// HloModule jit_f, is_scheduled=true
    ///
    /// ENTRY main {
    ///   w = f32[1024,1024]{1,0:T(8,128)} parameter(0), metadata={op_name=\"params['w']\"}
    ///   ROOT r = f32[1024]{0:T(1024)} custom-call(w), custom_call_target=\"rows\"
    /// }")?;
    /// let note = "Parameters: 4.00 MiB, 99 %, `params`. To hold less, hold them in bfloat16 or int8, or shard them over more \
    ///             devices";
    /// assert_eq!(tilewise_audit::audit(&module).notes(), [note]);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.findings().notes
    }

    /// Why each of [`copies`](Self::copies) is there, in their order.
    ///
    /// A fix is only given where the copy goes once the program is compiled again: nothing else reads the argument, the order is
    /// one of its own dimensions, and the program holds no more than before. Of very many only the largest are looked at.
    ///
    /// ```
    /// let module = tilewise_hlo::Module::parse("\
    /// HloModule jit_f, is_scheduled=true
    ///
    /// ENTRY main {
    ///   w = f32[1024,1024]{0,1:T(8,128)} parameter(0), metadata={op_name=\"w\"}
    ///   c = f32[1024,1024]{1,0:T(8,128)} copy(w)
    ///   ROOT r = f32[1024]{0:T(1024)} custom-call(c), custom_call_target=\"rows\"
    /// }")?;
    /// let report = tilewise_audit::audit(&module);
    /// let reasons = report.copy_reasons();
    /// assert_eq!(reasons[0].why, "`w` (argument 0) is in {0,1:T(8,128)}, pinned by the caller; `r` reads it in {1,0:T(8,128)}");
    /// let snippet = reasons[0].fix.as_ref().and_then(|fix| fix.snippet.as_ref());
    /// let code = "w = jax.device_put(w, Format(Layout(major_to_minor=(0, 1)), w.sharding))";
    /// assert_eq!(snippet.map(|snippet| &*snippet.code), Some(code));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn copy_reasons(&self) -> &[CopyReason] {
        &self.findings().copy_reasons
    }

    fn findings(&self) -> &Findings {
        self.findings.get_or_init(|| Findings::new(&self.planned, &self.copies))
    }
}
