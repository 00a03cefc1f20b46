//! Why a module has no plan.

use std::fmt;

use tilewise_hlo::dataflow::Gap;

use crate::Machine;

/// Why a module has no memory plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The module isn't scheduled (`is_scheduled=true` in its first line): the order of its text isn't the order in
    /// which it runs.
    Unscheduled,
    /// The module isn't compiled for this machine: TPU layouts have tiles, others don't.
    OtherMachine(Machine),
    /// The module has no entry computation, or one without instructions: the text may be truncated.
    NoEntry,
    /// The shape of this instruction isn't valid.
    InvalidShape(String),
    /// An operand of this instruction isn't defined before it.
    UnknownOperand {
        /// The instruction.
        instruction: String,
        /// The operand's name.
        operand: String,
    },
    /// `input_output_alias` of the module, or `output_to_operand_aliasing` of an instruction, isn't valid.
    InvalidAlias(String),
    /// The size of an array is unknown, such as that of `f32[?,128]`: its shape and the reason.
    UnknownSize(String),
    /// The program's bytes don't fit in 64 bits.
    Overflow,
    /// The work would not be proportional to the text, which happens only with texts that no compiler printed.
    TooLarge,
}

impl Error {
    /// A stable name in snake case.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unscheduled => "unscheduled",
            Self::OtherMachine(Machine::Tpu(_)) => "not_tpu",
            Self::OtherMachine(_) => "other_machine",
            Self::NoEntry => "no_entry",
            Self::InvalidShape(_) => "shape",
            Self::UnknownOperand { .. } => "unknown_operand",
            Self::InvalidAlias(_) => "syntax",
            Self::UnknownSize(_) => "unknown_size",
            Self::Overflow => "overflow",
            Self::TooLarge => "too_large",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unscheduled => {
                f.write_str("the module isn't scheduled, so the order of its text isn't the order in which it runs")
            }
            Self::OtherMachine(Machine::Tpu(_)) => {
                f.write_str("no layout has tiles, so it isn't compiled for a TPU, whose memory this is about")
            }
            Self::OtherMachine(machine) => {
                write!(f, "layouts have tiles, so it is compiled for a TPU, and not for `{machine}`")
            }
            Self::NoEntry => f.write_str("the module has no entry computation; its text may be truncated"),
            Self::InvalidShape(name) => write!(f, "the shape of `{name}` isn't valid"),
            Self::UnknownOperand { instruction, operand } => {
                write!(f, "`{instruction}` reads `{operand}`, which isn't defined before it")
            }
            Self::InvalidAlias(message) => f.write_str(message),
            Self::UnknownSize(message) => write!(f, "the size of an array can't be told, {message}"),
            Self::Overflow => f.write_str("the program's memory exceeds 64 bits of bytes"),
            Self::TooLarge => f.write_str("the program's tuples are too large for its text"),
        }
    }
}

impl std::error::Error for Error {}

impl From<tilewise_hlo::Error> for Error {
    fn from(error: tilewise_hlo::Error) -> Self {
        Self::InvalidAlias(error.to_string())
    }
}

impl From<&Gap> for Error {
    fn from(gap: &Gap) -> Self {
        match gap {
            Gap::NoEntry => Self::NoEntry,
            Gap::Shape { instruction } => Self::InvalidShape(instruction.clone()),
            Gap::Operand { instruction, operand } => {
                Self::UnknownOperand { instruction: instruction.clone(), operand: operand.clone() }
            }
            _ => Self::TooLarge,
        }
    }
}
