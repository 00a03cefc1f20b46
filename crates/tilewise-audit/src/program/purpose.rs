//! What arrays are for: of arguments, their names say so.

use super::root;

/// What an array is for. Of arguments, their names say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Purpose {
    /// Weights.
    Parameter,
    /// What an optimizer keeps of each.
    OptimizerState,
    /// Keys and values of what was read before.
    Cache,
    /// Whatever else is passed.
    OtherArgument,
    /// Results that lie in no donated argument.
    Result,
    /// Logits, and what a softmax makes of them.
    Logits,
    /// What the forward pass keeps for the backward pass.
    Kept,
    /// Gradients of weights.
    Gradient,
    /// Copies of arguments in another type, layout or memory.
    CopyOfArgument,
    /// What loops carry.
    LoopCarry,
    /// Bytes that a library's routine works in.
    Workspace,
    /// Anything else.
    Intermediate,
}

impl Purpose {
    /// What an argument of this name is for.
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

/// What an argument is for, and how much of its name says so: of `state.opt_state[0].mu['w']`, `state.opt_state`.
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
            // As Haiku calls a bias.
            "b" if word.starts_with("b'") => Some(Purpose::Parameter),
            _ => None,
        };
        if let Some(purpose) = purpose {
            let said = end + bare.len();
            // Within brackets, the name of a key goes on to their end.
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
