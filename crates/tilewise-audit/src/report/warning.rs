//! Warnings of an audit.

use std::{ops::Range, sync::Arc};

use tilewise::tpu::{Generation, Libtpu};
use tilewise_hlo::dataflow::Mismatch;

use crate::{Failure, Machine};

/// A part that could not be read or sized, or a doubt about the rest.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReportWarning {
    /// The text: something was skipped, isn't defined, or contradicts itself.
    Text(tilewise_hlo::Warning),
    /// A shape that can't be read.
    Shape(Arc<tilewise_hlo::Error>),
    /// Arrays that can't be sized.
    Size(tilewise::Error, Concerned),
    /// The program was not compiled for a TPU.
    NotTpu(Failure),
    /// Shapes without layouts have XLA's default ones.
    DefaultLayouts,
    /// The text doesn't show the machine.
    AssumedMachine,
    /// The program is compiled for another TPU generation than the one it is audited for.
    OtherGeneration {
        /// The generation it is compiled for.
        other: Generation,
        /// The generation it is audited for.
        audited: Generation,
        /// Whether its file's name shows that, not its text.
        is_named: bool,
    },
    /// The plans of the program's compiler weren't compared.
    OtherBuild {
        /// The compiler.
        compiler: OtherCompiler,
        /// The machine it is planned for, as by that machine's [compiler](Machine::compiler).
        machine: Machine,
    },
    /// A donated argument and its result can't share memory.
    AliasMismatch {
        /// The result's index path in the program's result.
        output_index: Vec<usize>,
        /// The argument's number.
        argument: usize,
    },
    /// One value has two shapes.
    ShapeMismatch(Mismatch),
    /// More bytes are alive at the peak than the program's total.
    PeakAboveTotal {
        /// Bytes alive at the peak.
        live_bytes: u64,
        /// Total bytes of the program.
        total_bytes: u64,
    },
    /// More bytes lie in memory on the chip than it has.
    OnChipMemory {
        /// The memory space, by its number in XLA.
        memory_space: u8,
        /// Bytes in it.
        bytes: u64,
        /// Its size in bytes.
        room_bytes: u64,
    },
    /// Arrays lie in a memory space that no TPU is known to have.
    UnknownMemorySpace(u8),
    /// Arrays lie in HBM without tiles.
    Untiled(Concerned),
    /// Elements have fewer bits than their type.
    NarrowElement(Concerned),
}

/// The arrays that a warning is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Concerned {
    /// The instruction of the first one.
    pub first: String,
    /// Number of arrays.
    pub count: usize,
}

/// A compiler whose plans weren't compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherCompiler {
    /// A version of libtpu.
    Libtpu(Libtpu),
    /// Another build, by its number.
    Build(u64),
}

impl ReportWarning {
    /// A stable name in snake case.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Text(warning) => warning.kind().as_str(),
            Self::Shape(error) => error.kind().as_str(),
            Self::Size(error, _) => error.kind().as_str(),
            Self::NotTpu(_) => "not_tpu",
            Self::DefaultLayouts => "default_layouts",
            Self::AssumedMachine => "assumed_machine",
            Self::OtherGeneration { .. } => "other_generation",
            Self::OtherBuild { .. } => "other_build",
            Self::AliasMismatch { .. } => "alias_mismatch",
            Self::ShapeMismatch(_) => "shape_mismatch",
            Self::PeakAboveTotal { .. } => "peak_above_total",
            Self::OnChipMemory { .. } => "on_chip_memory",
            Self::UnknownMemorySpace(_) => "unknown_memory_space",
            Self::Untiled(_) => "untiled",
            Self::NarrowElement(_) => "narrow_element",
        }
    }

    /// The span in the module's text that it is about, in bytes; `None` for most kinds.
    #[must_use]
    pub fn span(&self) -> Option<Range<usize>> {
        match self {
            Self::Text(warning) => Some(warning.span()),
            Self::Shape(error) => error.span(),
            _ => None,
        }
    }
}
