//! What an audit warns of.

use std::{ops::Range, sync::Arc};

use tilewise::tpu::{Generation, Libtpu};
use tilewise_hlo::dataflow::Mismatch;

use crate::{Failure, Machine};

/// Something that could not be read or sized, or that casts doubt on the rest.
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
    /// The program is of another TPU generation than the one it is audited for.
    OtherGeneration {
        /// What it is of.
        other: Generation,
        /// What it is audited for.
        audited: Generation,
        /// Whether its file's name says so, and not its text.
        is_named: bool,
    },
    /// A compiler made it whose plans weren't compared.
    OtherBuild {
        /// The compiler.
        compiler: OtherCompiler,
        /// The machine it is planned for, by that one's [compiler](Machine::compiler).
        machine: Machine,
    },
    /// A donated argument and its result can't share memory.
    AliasMismatch {
        /// Where the result lies in the program's.
        output_index: Vec<usize>,
        /// The argument's number.
        argument: usize,
    },
    /// What holds one value has two shapes.
    ShapeMismatch(Mismatch),
    /// More is alive at the peak than the program holds.
    PeakAboveTotal {
        /// What is alive.
        live_bytes: u64,
        /// What the program holds.
        total_bytes: u64,
    },
    /// More lies in memory on the chip than there is.
    OnChipMemory {
        /// The memory, by its number in XLA.
        memory_space: u8,
        /// What lies there.
        bytes: u64,
        /// What there is.
        room_bytes: u64,
    },
    /// Arrays lie in a memory space that no TPU is known to have.
    UnknownMemorySpace(u8),
    /// Arrays lie in HBM without tiles.
    Untiled(Concerned),
    /// Elements have fewer bits than their type.
    NarrowElement(Concerned),
}

/// Which instructions' arrays a warning is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Concerned {
    /// The name of the first.
    pub first: String,
    /// How many arrays there are.
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

    /// The bytes of the module's text it is about.
    #[must_use]
    pub fn span(&self) -> Option<Range<usize>> {
        match self {
            Self::Text(warning) => Some(warning.span()),
            Self::Shape(error) => error.span(),
            _ => None,
        }
    }
}
