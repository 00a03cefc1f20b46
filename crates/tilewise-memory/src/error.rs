//! The one error type of this crate.

use crate::Machine;
use tilewise_hlo::dataflow::Gap;

tilewise::error_type! {
    /// Why a module has no memory plan. Its `source` is the core's error, of [`ErrorKind::UnknownSize`].
    ///
    /// ```
    /// use tilewise::tpu::Generation;
    /// use tilewise_hlo::Module;
    /// use tilewise_memory::{ErrorKind, MemoryPlan, PlanOptions};
    ///
    /// let module = Module::parse("HloModule m\nENTRY e {\n  ROOT x = f32[8] parameter(0)\n}\n")?;
    /// let error = MemoryPlan::new(&module, &PlanOptions::new(Generation::V5e)).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Unscheduled);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
}

/// The kinds of [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The module isn't scheduled (`is_scheduled=true` in its first line): the order of its text isn't the order in
    /// which it runs.
    Unscheduled,
    /// The module isn't compiled for this machine: TPU layouts have tiles, others don't.
    OtherMachine(Machine),
    /// The module has no entry computation, or one without instructions: the text may be truncated.
    NoEntry,
    /// The shape of an instruction isn't valid.
    InvalidShape,
    /// An operand of an instruction isn't defined before it.
    UnknownOperand,
    /// `input_output_alias` of the module, or `output_to_operand_aliasing` of an instruction, isn't valid.
    InvalidAlias,
    /// The size of an array is unknown, such as that of `f32[?,128]`.
    UnknownSize,
    /// The program's bytes don't fit in 64 bits.
    Overflow,
    /// The work would not be proportional to the text, which happens only with texts that no compiler printed.
    TooLarge,
}

impl ErrorKind {
    /// A stable name in snake case, for machines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unscheduled => "unscheduled",
            Self::OtherMachine(Machine::Tpu(_)) => "not_tpu",
            Self::OtherMachine(_) => "other_machine",
            Self::NoEntry => "no_entry",
            Self::InvalidShape => "shape",
            Self::UnknownOperand => "unknown_operand",
            Self::InvalidAlias => "syntax",
            Self::UnknownSize => "unknown_size",
            Self::Overflow => "overflow",
            Self::TooLarge => "too_large",
        }
    }
}

/// An error about the module as a whole, which names no instruction.
impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        let message = match kind {
            ErrorKind::Unscheduled => {
                "the module isn't scheduled, so the order of its text isn't the order in which it runs"
            }
            ErrorKind::OtherMachine(Machine::Tpu(_)) => {
                "no layout has tiles, so it isn't compiled for a TPU, whose memory this is about"
            }
            ErrorKind::OtherMachine(machine) => {
                let message = format!("layouts have tiles, so it is compiled for a TPU, and not for `{machine}`");
                return Self::new(kind, message);
            }
            ErrorKind::NoEntry => "the module has no entry computation; its text may be truncated",
            ErrorKind::InvalidShape => "the shape of an instruction isn't valid",
            ErrorKind::UnknownOperand => "an operand isn't defined before it is read",
            ErrorKind::InvalidAlias => "an alias isn't valid",
            ErrorKind::UnknownSize => "the size of an array can't be told",
            ErrorKind::Overflow => "the program's memory exceeds 64 bits of bytes",
            ErrorKind::TooLarge => "the program's tuples are too large for its text",
        };
        Self::new(kind, message)
    }
}

impl Error {
    pub(crate) fn invalid_shape(instruction: &str) -> Self {
        Self::new(ErrorKind::InvalidShape, format!("the shape of `{instruction}` isn't valid"))
    }
}

/// An alias that can't be read.
impl From<tilewise_hlo::Error> for Error {
    fn from(error: tilewise_hlo::Error) -> Self {
        Self::new(ErrorKind::InvalidAlias, error.to_string())
    }
}

impl From<&Gap> for Error {
    fn from(gap: &Gap) -> Self {
        match gap {
            Gap::NoEntry => ErrorKind::NoEntry.into(),
            Gap::Shape { instruction } => Self::invalid_shape(instruction),
            Gap::Operand { instruction, operand } => {
                let message = format!("`{instruction}` reads `{operand}`, which isn't defined before it");
                Self::new(ErrorKind::UnknownOperand, message)
            }
            _ => ErrorKind::TooLarge.into(),
        }
    }
}
