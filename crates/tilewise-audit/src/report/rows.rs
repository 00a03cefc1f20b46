//! What an audit finds, as rows and sums.

use super::peak::SpacePeak;
use crate::program::{Cause, SourceLine, share};
use std::borrow::Cow;
use tilewise::{Shape, Sizes, tpu::memory_space_name};
use tilewise_memory::MemoryPlan;

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
    /// Bytes that arrays without tiles, whose size is in doubt, may take beside that.
    pub doubtful_bytes: u64,
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
            doubtful_bytes: 0,
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
            let most = self.at_most_bytes.saturating_add(self.doubtful_bytes);
            (self.is_complete && most <= limit).then_some(true)
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
    /// What makes the padding, the largest cause first; none without padding.
    pub causes: Vec<Cause>,
    /// The framework's name of the operation, such as `jit(f)/dot_general`.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

/// The plan beside the compiler's own, from a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreement {
    /// Temporaries that both place, in memory spaces whose offsets the plan has.
    pub values: usize,
    /// Those that lie elsewhere, or that the plan doesn't have: what, and where instead.
    pub differences: Vec<PlacedElsewhere>,
    /// Bytes of the compiler's temporaries in HBM, or in the host's memory: the planned ones unless its arrays take more, or
    /// its allocations are smaller.
    pub temporary_bytes: u64,
    /// What the plan takes for them.
    pub planned_bytes: u64,
    /// Whether no allocation can be [missing at the end](tilewise_hlo::BufferAssignment::is_whole) of the compiler's.
    pub is_whole: bool,
}

impl Agreement {
    /// Whether temporaries take as much in both.
    #[must_use]
    pub fn has_equal_bytes(&self) -> bool {
        self.planned_bytes == self.temporary_bytes
    }
}

/// A value that the plan puts elsewhere than the compiler does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacedElsewhere {
    /// The instruction that makes it.
    pub instruction: String,
    /// Where the plan puts it, in bytes.
    pub offset: u64,
    /// Where the compiler does, if the first value of the allocation lies where the plan puts that.
    pub compilers: i128,
}
