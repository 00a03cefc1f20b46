//! The results of an audit, as rows and sums.

use super::peak::SpacePeak;
use crate::program::{Cause, SourceLine, share};
use std::borrow::Cow;
use tilewise::{Shape, Sizes, tpu::memory_space_name};
use tilewise_memory::MemoryPlan;

/// Sums over the buffers of one memory space: all that the program defines. The peak has the bytes alive at once.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SpaceTotal {
    /// The memory space's number, 0 for the device's default memory.
    pub memory_space: u8,
    /// Number of buffers.
    pub buffers: usize,
    /// Bytes of data.
    pub logical_bytes: u64,
    /// Bytes taken.
    pub physical_bytes: u64,
    /// The peak; `None` for a module without plan.
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

    /// Bytes of padding.
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

/// A program's bytes in the device's default memory: bounds, which are equal if there is a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryBounds {
    /// Bytes of the entry's arguments.
    pub argument_bytes: u64,
    /// Bytes of its results.
    pub output_bytes: u64,
    /// Bytes of the results that lie in donated arguments.
    pub alias_bytes: u64,
    /// Bytes of constants, each an allocation of its own.
    pub constant_bytes: u64,
    /// Bytes of temporaries as the compiler reports them (`temp_size`); `None` without a plan.
    pub temporary_bytes: Option<u64>,
    /// Bytes of all buffers, no two sharing memory but those of donated arguments; with a plan, its total.
    pub at_most_bytes: u64,
    /// Bytes that arrays without tiles, whose size is in doubt, may take in addition.
    pub doubtful_bytes: u64,
    /// Whether all of the program was read and sized; else it may need more.
    pub is_complete: bool,
    /// Whether the machine is only assumed, since neither the text nor the caller names it: temporaries may then
    /// differ.
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

    /// The least bytes of the program: arguments, results, constants, and temporaries if known.
    #[must_use]
    pub fn at_least_bytes(&self) -> u64 {
        let standing = self.argument_bytes.saturating_add(self.output_bytes).saturating_sub(self.alias_bytes);
        standing.saturating_add(self.constant_bytes).saturating_add(self.temporary_bytes.unwrap_or(0))
    }

    /// Whether the program fits a memory of `limit` bytes; `None` if that depends on how temporaries share memory, on
    /// the machine, or on parts that could not be read or sized.
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

    /// Bytes left of a memory of `limit` bytes; `None` unless the program surely [fits](Self::fits).
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
    /// The array's index path in the instruction's result; empty if that isn't a tuple.
    pub shape_index: Vec<usize>,
    /// The memory space's number.
    pub memory_space: u8,
    /// Logical and physical sizes of the array.
    pub sizes: Sizes,
    /// The causes of the padding, the largest first; empty without padding.
    pub causes: Vec<Cause>,
    /// The framework's name of the operation, such as `jit(f)/dot_general`.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

/// A comparison of the plan with the compiler's own, from a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreement {
    /// Number of temporaries that both place, in memory spaces for which the plan has offsets.
    pub values: usize,
    /// The temporaries that lie at different offsets.
    pub differences: Vec<PlacedElsewhere>,
    /// Bytes of the compiler's temporaries in HBM, or in the host's memory: the planned ones unless its arrays take
    /// more, or its allocations are smaller.
    pub temporary_bytes: u64,
    /// Bytes of the plan's temporaries.
    pub planned_bytes: u64,
    /// Whether no allocation of the compiler's can be [missing at the end](tilewise_hlo::BufferAssignment::is_whole).
    pub is_whole: bool,
}

impl Agreement {
    /// Whether both plans have equal bytes of temporaries.
    #[must_use]
    pub fn has_equal_bytes(&self) -> bool {
        self.planned_bytes == self.temporary_bytes
    }
}

/// A value that the plan and the compiler place at different offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacedElsewhere {
    /// The instruction that makes it.
    pub instruction: String,
    /// Its offset in the plan, in bytes.
    pub offset: u64,
    /// Its offset by the compiler, shifted so that the allocation's first value lies where the plan puts it.
    pub compilers: i128,
}
