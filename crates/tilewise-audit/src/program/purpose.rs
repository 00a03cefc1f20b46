//! Purposes of arrays; those of arguments follow from their names.

use super::root;

/// The purpose of an array. That of an argument follows from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Purpose {
    /// Weights.
    Parameter,
    /// Optimizer state of each weight.
    OptimizerState,
    /// Keys and values of earlier tokens.
    Cache,
    /// Other arguments.
    OtherArgument,
    /// Results that lie in no donated argument.
    Result,
    /// Logits, and values that a softmax makes of them.
    Logits,
    /// Values that the forward pass keeps for the backward pass.
    Kept,
    /// Gradients of weights.
    Gradient,
    /// Copies of arguments in another type, layout or memory.
    CopyOfArgument,
    /// Values that loops carry.
    LoopCarry,
    /// Workspace of a library's routine.
    Workspace,
    /// Anything else.
    Intermediate,
}

impl Purpose {
    /// The purpose of an argument with this name.
    ///
    /// ```
    /// use tilewise_audit::Purpose;
    ///
    /// assert_eq!(Purpose::of_argument("state.opt_state[0].mu['w']"), Purpose::OptimizerState);
    /// assert_eq!(Purpose::of_argument("x"), Purpose::OtherArgument);
    /// ```
    #[must_use]
    pub fn of_argument(name: &str) -> Self {
        of_argument(name).0
    }

    /// A stable name in snake case, for machines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parameter => "parameters",
            Self::OptimizerState => "optimizer_state",
            Self::Cache => "cache",
            Self::OtherArgument => "arguments",
            Self::Result => "results",
            Self::Logits => "logits",
            Self::Kept => "kept_for_gradient",
            Self::Gradient => "gradients",
            Self::CopyOfArgument => "copies_of_arguments",
            Self::LoopCarry => "loop_carry",
            Self::Workspace => "workspace",
            Self::Intermediate => "intermediates",
        }
    }
}

/// The purpose of an argument, and the length of the prefix of its name that shows it: `state.opt_state` of
/// `state.opt_state[0].mu['w']`.
pub(crate) fn of_argument(name: &str) -> (Purpose, usize) {
    let mut end = 0;
    for word in name.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
        let bare = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let lower = bare.to_ascii_lowercase();
        let is_weight = || lower.strip_prefix('w').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
        let purpose = match &*lower {
            "opt" | "optim" | "optimizer" | "mu" | "nu" | "momentum" | "velocity" => Some(Purpose::OptimizerState),
            word if word.contains("opt_state") || word.contains("adam") => Some(Purpose::OptimizerState),
            "kv" | "past_key_values" => Some(Purpose::Cache),
            word if word.contains("cache") => Some(Purpose::Cache),
            "kernel" | "embedding" | "model" => Some(Purpose::Parameter),
            word if word.contains("param") || word.contains("weight") || is_weight() => Some(Purpose::Parameter),
            "p" if end == 0 && bare.len() < name.len() => Some(Purpose::Parameter),
            // Haiku's name of a bias.
            "b" if word.starts_with("b'") => Some(Purpose::Parameter),
            _ => None,
        };
        if let Some(purpose) = purpose {
            let said = end + bare.len();
            // A key in brackets extends to the closing one.
            let is_key = name[..said].rfind('[') > name[..said].rfind(']');
            let bracket = name[said..].find(']').filter(|_| is_key);
            return (purpose, bracket.map_or(said, |at| said + at + 1));
        }
        end += word.len();
    }
    (Purpose::OtherArgument, root(name).len())
}

/// Whether an argument is neither a weight nor a state, by its name.
pub(crate) fn is_input(name: &str) -> bool {
    of_argument(name).0 == Purpose::OtherArgument
}
