//! Purposes of arrays; those of arguments follow from their names.

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
    /// Attention scores, one for each query and key, and values of their softmax.
    Scores,
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
        for (at, word) in
            name.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').enumerate()
        {
            let bare = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let lower = bare.to_ascii_lowercase();
            let is_weight =
                || lower.strip_prefix('w').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
            let purpose = match &*lower {
                "opt" | "optim" | "optimizer" | "mu" | "nu" | "momentum" | "velocity" => Self::OptimizerState,
                word if word.contains("opt_state") || word.contains("adam") => Self::OptimizerState,
                "kv" | "past_key_values" => Self::Cache,
                word if word.contains("cache") => Self::Cache,
                "kernel" | "embedding" | "model" | "layer" | "layers" | "block" | "blocks" => Self::Parameter,
                // Embeddings and heads as Gemma, DLRM, Llama and GPT-2 call them.
                "input_embedding" | "embedding_table" | "embed_tokens" | "lm_head" | "wte" | "wpe" => Self::Parameter,
                word if word.contains("param") || word.contains("weight") || is_weight() => Self::Parameter,
                "p" if at == 0 && bare.len() < name.len() => Self::Parameter,
                // Haiku's name of a bias.
                "b" if word.starts_with("b'") => Self::Parameter,
                _ => continue,
            };
            return purpose;
        }
        Self::OtherArgument
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
            Self::Scores => "attention_scores",
            Self::Kept => "kept_for_gradient",
            Self::Gradient => "gradients",
            Self::CopyOfArgument => "copies_of_arguments",
            Self::LoopCarry => "loop_carry",
            Self::Workspace => "workspace",
            Self::Intermediate => "intermediates",
        }
    }
}

/// Whether an argument is neither a weight nor a state, by its name.
pub(crate) fn is_input(name: &str) -> bool {
    Purpose::of_argument(name) == Purpose::OtherArgument
}
