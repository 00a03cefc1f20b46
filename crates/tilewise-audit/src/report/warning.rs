//! What an audit warns of.

use std::{fmt, ops::Range};

/// Something that could not be read or sized, or that casts doubt on the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportWarning {
    /// Its name.
    pub kind: ReportWarningKind,
    /// What it is about.
    pub message: String,
    /// The bytes of the module's text it is about.
    pub span: Option<Range<usize>>,
}

impl ReportWarning {
    /// A warning about the program as a whole.
    pub(super) fn new(kind: ReportWarningKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), span: None }
    }
}

/// The kinds of [`ReportWarning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReportWarningKind {
    /// The text: something was skipped, isn't defined, or contradicts itself.
    Text(tilewise_hlo::WarningKind),
    /// A shape that can't be read.
    Shape(tilewise_hlo::ErrorKind),
    /// Arrays that can't be sized.
    Size(tilewise::ErrorKind),
    /// The program was not compiled for a TPU.
    NotTpu,
    /// Shapes without layouts have XLA's default ones.
    DefaultLayouts,
    /// The text doesn't show the machine.
    AssumedMachine,
    /// The program is of another TPU generation than the one it is audited for.
    OtherGeneration,
    /// A compiler made it whose plans weren't compared.
    OtherBuild,
    /// A donated argument and its result can't share memory.
    AliasMismatch,
    /// What holds one value has two shapes.
    ShapeMismatch,
    /// More is alive at the peak than the program holds.
    PeakAboveTotal,
    /// More lies in memory on the chip than there is.
    OnChipMemory,
    /// Arrays lie in a memory space that no TPU is known to have.
    UnknownMemorySpace,
    /// Arrays lie in HBM without tiles.
    Untiled,
    /// Elements have fewer bits than their type.
    NarrowElement,
}

impl ReportWarningKind {
    /// A stable name in snake case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text(kind) => kind.as_str(),
            Self::Shape(kind) => kind.as_str(),
            Self::Size(kind) => kind.as_str(),
            Self::NotTpu => "not_tpu",
            Self::DefaultLayouts => "default_layouts",
            Self::AssumedMachine => "assumed_machine",
            Self::OtherGeneration => "other_generation",
            Self::OtherBuild => "other_build",
            Self::AliasMismatch => "alias_mismatch",
            Self::ShapeMismatch => "shape_mismatch",
            Self::PeakAboveTotal => "peak_above_total",
            Self::OnChipMemory => "on_chip_memory",
            Self::UnknownMemorySpace => "unknown_memory_space",
            Self::Untiled => "untiled",
            Self::NarrowElement => "narrow_element",
        }
    }
}

impl fmt::Display for ReportWarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
