//! The opcodes that the plan treats in ways of their own.

/// What an instruction does, as far as memory is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    /// `add`, `subtract`, `compare` and the like: of scalars, done in registers.
    Scalar,
    AllGatherDone,
    AllGatherStart,
    AllReduceStart,
    AsyncDone,
    AsyncStart,
    AsyncUpdate,
    Bitcast,
    Call,
    CollectivePermute,
    CollectivePermuteDone,
    CollectivePermuteStart,
    Conditional,
    Constant,
    Copy,
    CopyDone,
    CopyStart,
    CustomCall,
    Domain,
    DynamicUpdateSlice,
    /// `optimization-barrier`, `add-dependency`, `all-reduce-done`: the result is the operand.
    Forward,
    Fusion,
    GetTupleElement,
    Parameter,
    RaggedAllToAll,
    Recv,
    RecvDone,
    Scatter,
    Send,
    SetDimensionSize,
    Tuple,
    While,
    Other,
}

impl Opcode {
    /// `slice-start` and the like, whose wrapped computation the text leaves out, are [`Self::AsyncStart`] too.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "all-gather-done" => Self::AllGatherDone,
            "all-gather-start" => Self::AllGatherStart,
            "all-reduce-start" => Self::AllReduceStart,
            "bitcast" => Self::Bitcast,
            "call" => Self::Call,
            "collective-permute" => Self::CollectivePermute,
            "collective-permute-done" => Self::CollectivePermuteDone,
            "collective-permute-start" => Self::CollectivePermuteStart,
            "conditional" => Self::Conditional,
            "constant" => Self::Constant,
            "copy" => Self::Copy,
            "copy-done" => Self::CopyDone,
            "copy-start" => Self::CopyStart,
            "custom-call" => Self::CustomCall,
            "domain" => Self::Domain,
            "dynamic-update-slice" => Self::DynamicUpdateSlice,
            "opt-barrier" | "optimization-barrier" | "add-dependency" | "all-reduce-done" => Self::Forward,
            "fusion" => Self::Fusion,
            "get-tuple-element" => Self::GetTupleElement,
            "parameter" => Self::Parameter,
            "ragged-all-to-all" => Self::RaggedAllToAll,
            "recv" => Self::Recv,
            "recv-done" => Self::RecvDone,
            "scatter" => Self::Scatter,
            "send" => Self::Send,
            "send-done" => Self::Other,
            "set-dimension-size" => Self::SetDimensionSize,
            "tuple" => Self::Tuple,
            "while" => Self::While,
            "add"
            | "subtract"
            | "multiply"
            | "compare"
            | "select"
            | "and"
            | "or"
            | "not"
            | "xor"
            | "minimum"
            | "maximum"
            | "clamp"
            | "convert"
            | "negate"
            | "abs"
            | "divide"
            | "exponential"
            | "is-finite"
            | "log"
            | "power"
            | "remainder"
            | "rsqrt"
            | "sign"
            | "sqrt"
            | "tanh"
            | "shift-left"
            | "shift-right-logical"
            | "shift-right-arithmetic" => Self::Scalar,
            _ if name.ends_with("-start") => Self::AsyncStart,
            _ if name.ends_with("-update") => Self::AsyncUpdate,
            _ if name.ends_with("-done") => Self::AsyncDone,
            _ => Self::Other,
        }
    }

    pub(crate) fn is_async(self) -> bool {
        matches!(self, Self::AsyncStart | Self::AsyncUpdate | Self::AsyncDone)
    }

    /// Whether an array of one element that this makes lies in a register rather than in memory. Seen alone in programs
    /// that report no temporaries: copy, abs, add, subtract, multiply, compare, select, and, xor, convert, log, tanh,
    /// parameter, while, conditional; the others are inferred.
    pub(crate) fn makes_scalars_in_registers(self) -> bool {
        matches!(self, Self::Scalar | Self::Copy | Self::Parameter | Self::While | Self::Conditional)
    }
}
