//! Opcodes: the operations of instructions.

use std::fmt;

macro_rules! opcodes {
    ($($opcode:ident => $name:literal,)*) => {
        /// The operation of an instruction: XLA's opcodes (`HLO_OPCODE_LIST` in xla/hlo/ir/hlo_opcode.h).
        ///
        /// The text has two more spellings, whose text [`Instruction::opcode_text`](crate::Instruction::opcode_text) keeps:
        ///
        /// - `slice-start`, `fusion-update`, `all-to-all-done` and the like abbreviate an asynchronous instruction
        ///   whose computation is one `slice`, `fusion`, `all-to-all`: [`AsyncStart`](Self::AsyncStart) and so on;
        ///   [`Instruction::wrapped_opcode`](crate::Instruction::wrapped_opcode) is the opcode that they run;
        /// - `optimization-barrier` is an old name of `opt-barrier`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "documented by XLA: https://openxla.org/xla/operation_semantics")]
        pub enum Opcode {
            $($opcode,)*
            /// One that XLA doesn't have, or that is newer than this list.
            Unknown,
        }

        /// Each but [`Opcode::Unknown`], in their order.
        const NAMED: &[(&str, Opcode)] = &[$(($name, Opcode::$opcode),)*];
    };
}

opcodes! {
    Abs => "abs",
    Acos => "acos",
    Acosh => "acosh",
    Add => "add",
    AddDependency => "add-dependency",
    AfterAll => "after-all",
    AllGather => "all-gather",
    AllGatherDone => "all-gather-done",
    AllGatherStart => "all-gather-start",
    AllReduce => "all-reduce",
    AllReduceDone => "all-reduce-done",
    AllReduceStart => "all-reduce-start",
    AllToAll => "all-to-all",
    And => "and",
    Asin => "asin",
    Asinh => "asinh",
    AsyncDone => "async-done",
    AsyncStart => "async-start",
    AsyncUpdate => "async-update",
    Atan => "atan",
    Atan2 => "atan2",
    Atanh => "atanh",
    BatchNormGrad => "batch-norm-grad",
    BatchNormInference => "batch-norm-inference",
    BatchNormTraining => "batch-norm-training",
    Bitcast => "bitcast",
    BitcastConvert => "bitcast-convert",
    Broadcast => "broadcast",
    Call => "call",
    Cbrt => "cbrt",
    Ceil => "ceil",
    Cholesky => "cholesky",
    Clamp => "clamp",
    CountLeadingZeros => "count-leading-zeros",
    CollectiveBroadcast => "collective-broadcast",
    CollectivePermute => "collective-permute",
    CollectivePermuteDone => "collective-permute-done",
    CollectivePermuteStart => "collective-permute-start",
    CollectiveReduce => "collective-reduce",
    Compare => "compare",
    Complex => "complex",
    Concatenate => "concatenate",
    Conditional => "conditional",
    Constant => "constant",
    Convert => "convert",
    Convolution => "convolution",
    Copy => "copy",
    CopyDone => "copy-done",
    CopyStart => "copy-start",
    Cosine => "cosine",
    Cosh => "cosh",
    CustomCall => "custom-call",
    Divide => "divide",
    Domain => "domain",
    Dot => "dot",
    DynamicReshape => "dynamic-reshape",
    DynamicSlice => "dynamic-slice",
    DynamicUpdateSlice => "dynamic-update-slice",
    Erf => "erf",
    Exponential => "exponential",
    ExponentialMinusOne => "exponential-minus-one",
    Fft => "fft",
    Floor => "floor",
    Fusion => "fusion",
    Gather => "gather",
    GetDimensionSize => "get-dimension-size",
    GetTupleElement => "get-tuple-element",
    Imag => "imag",
    Infeed => "infeed",
    Iota => "iota",
    IsFinite => "is-finite",
    Log => "log",
    LogPlusOne => "log-plus-one",
    Logistic => "logistic",
    Map => "map",
    Maximum => "maximum",
    Minimum => "minimum",
    Mulhi => "mulhi",
    Multiply => "multiply",
    Negate => "negate",
    Not => "not",
    OptimizationBarrier => "opt-barrier",
    Or => "or",
    Outfeed => "outfeed",
    Pad => "pad",
    Parameter => "parameter",
    PartitionId => "partition-id",
    Popcnt => "popcnt",
    Power => "power",
    RaggedAllToAll => "ragged-all-to-all",
    RaggedDot => "ragged-dot",
    Real => "real",
    Recv => "recv",
    RecvDone => "recv-done",
    Reduce => "reduce",
    ReducePrecision => "reduce-precision",
    ReduceScatter => "reduce-scatter",
    ReduceWindow => "reduce-window",
    Remainder => "remainder",
    ReplicaId => "replica-id",
    Reshape => "reshape",
    Reverse => "reverse",
    Rng => "rng",
    RngBitGenerator => "rng-bit-generator",
    RngGetAndUpdateState => "rng-get-and-update-state",
    RoundNearestAfz => "round-nearest-afz",
    RoundNearestEven => "round-nearest-even",
    Rsqrt => "rsqrt",
    ScaledDot => "scaled-dot",
    Scan => "scan",
    Scatter => "scatter",
    Select => "select",
    SelectAndScatter => "select-and-scatter",
    Send => "send",
    SendDone => "send-done",
    SetDimensionSize => "set-dimension-size",
    ShiftLeft => "shift-left",
    ShiftRightArithmetic => "shift-right-arithmetic",
    ShiftRightLogical => "shift-right-logical",
    Shuffle => "shuffle",
    Sign => "sign",
    Sine => "sine",
    Sinh => "sinh",
    Slice => "slice",
    Sort => "sort",
    Sqrt => "sqrt",
    StochasticConvert => "stochastic-convert",
    Subtract => "subtract",
    Tan => "tan",
    Tanh => "tanh",
    TopK => "topk",
    Transpose => "transpose",
    TriangularSolve => "triangular-solve",
    Tuple => "tuple",
    While => "while",
    Xor => "xor",
}

impl Opcode {
    /// The opcode of this name; [`Unknown`](Self::Unknown) for any other name.
    ///
    /// ```
    /// use tilewise_hlo::Opcode;
    ///
    /// assert_eq!(Opcode::of("dynamic-slice"), Opcode::DynamicSlice);
    /// assert_eq!(Opcode::of("dynamic-slice-start"), Opcode::AsyncStart);
    /// assert_eq!(Opcode::of("no-such-thing"), Opcode::Unknown);
    /// ```
    #[must_use]
    pub fn of(name: &str) -> Self {
        find(name).or_else(|| Some(asynchronous(name)?.0)).unwrap_or(match name {
            "optimization-barrier" => Self::OptimizationBarrier,
            _ => Self::Unknown,
        })
    }

    /// Whether each element of the result depends on the same element of each operand
    /// (`HloInstruction::IsElementwise` in xla/hlo/ir/hlo_instruction.cc). A `bitcast-convert` does if it keeps the width; a
    /// fusion, if all of its instructions do.
    ///
    /// ```
    /// use tilewise_hlo::Opcode;
    ///
    /// assert!(Opcode::StochasticConvert.is_elementwise() && !Opcode::Broadcast.is_elementwise());
    /// ```
    #[must_use]
    pub const fn is_elementwise(self) -> bool {
        matches!(
            self,
            Self::Abs
                | Self::Acos
                | Self::Acosh
                | Self::Add
                | Self::And
                | Self::Asin
                | Self::Asinh
                | Self::Atan
                | Self::Atan2
                | Self::Atanh
                | Self::BitcastConvert
                | Self::Cbrt
                | Self::Ceil
                | Self::Clamp
                | Self::Compare
                | Self::Complex
                | Self::Convert
                | Self::Copy
                | Self::Cosh
                | Self::Cosine
                | Self::CountLeadingZeros
                | Self::Divide
                | Self::Erf
                | Self::Exponential
                | Self::ExponentialMinusOne
                | Self::Floor
                | Self::Imag
                | Self::IsFinite
                | Self::Log
                | Self::LogPlusOne
                | Self::Logistic
                | Self::Maximum
                | Self::Minimum
                | Self::Multiply
                | Self::Negate
                | Self::Not
                | Self::Or
                | Self::Popcnt
                | Self::Power
                | Self::Real
                | Self::ReducePrecision
                | Self::Remainder
                | Self::RoundNearestAfz
                | Self::RoundNearestEven
                | Self::Rsqrt
                | Self::Select
                | Self::ShiftLeft
                | Self::ShiftRightArithmetic
                | Self::ShiftRightLogical
                | Self::Sign
                | Self::Sine
                | Self::Sinh
                | Self::Sqrt
                | Self::StochasticConvert
                | Self::Subtract
                | Self::Tan
                | Self::Tanh
                | Self::Xor
        )
    }

    /// XLA's name of it; `unknown` for [`Unknown`](Self::Unknown).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        NAMED.get(self as usize).map_or("unknown", |(name, _)| name)
    }

    /// Whether it is a step of an asynchronous computation: `async-start`, `async-update`, `async-done`.
    ///
    /// `copy-start`, `all-reduce-done` and others that XLA has beside these are not.
    #[must_use]
    pub fn is_async(self) -> bool {
        matches!(self, Self::AsyncStart | Self::AsyncUpdate | Self::AsyncDone)
    }

    /// The opcode of an instruction with a result of this shape and these attributes: `async-start` if it wraps a
    /// collective.
    ///
    /// XLA:GPU of summer 2026 starts collectives as it does other operations,
    /// `((operands), result) all-reduce-start(…)`, under the names of their former opcodes. The result of
    /// all-reduce-start was `result`, and that of collective-permute-start `(operand, result)`. With several operands
    /// the latter has two tuples in both forms: then a field of the backend's configuration decides, which came with
    /// the new form.
    pub(crate) fn wrapping(self, shape: &str, attributes: &str) -> Self {
        let is_wrapped = match self {
            Self::AllReduceStart => shape.starts_with("(("),
            Self::CollectivePermuteStart => {
                let has_several = || shape.contains("), (");
                shape.starts_with("((") && (!has_several() || attributes.contains("\"communication_domain\""))
            }
            _ => false,
        };
        if is_wrapped { Self::AsyncStart } else { self }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The opcode that `X-start`, `X-update` or `X-done` abbreviates, and X.
fn asynchronous(name: &str) -> Option<(Opcode, &str)> {
    let (wrapped, step) = name.rsplit_once('-')?;
    let opcode = match step {
        "start" => Opcode::AsyncStart,
        "update" => Opcode::AsyncUpdate,
        "done" => Opcode::AsyncDone,
        _ => return None,
    };
    Some((opcode, wrapped))
}

/// The opcode that an abbreviated asynchronous instruction runs.
pub(crate) fn wrapped(name: &str) -> Option<Opcode> {
    let abbreviated = !find(name).is_some_and(Opcode::is_async);
    let (_, wrapped) = asynchronous(name).filter(|_| abbreviated)?;
    Some(Opcode::of(wrapped))
}

/// The size of the table: a power of two, several times the number of opcodes, so that most are in their first slot.
const SLOTS: usize = 512;

/// An opcode is at the [`slot`] of its name, or after it.
static TABLE: [Option<Opcode>; SLOTS] = {
    let mut table = [None; SLOTS];
    let mut at = 0;
    while at < NAMED.len() {
        let (name, opcode) = NAMED[at];
        let mut slot = slot(name.as_bytes());
        while table[slot].is_some() {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = Some(opcode);
        at += 1;
    }
    table
};

/// The first slot of a name: by its length and three of its letters.
const fn slot(name: &[u8]) -> usize {
    let length = name.len();
    if length == 0 {
        return 0;
    }
    let (first, middle, last) = (name[0] as usize, name[length / 2] as usize, name[length - 1] as usize);
    (length * 169 + first * 23 + middle * 209 + last * 251) % SLOTS
}

fn find(name: &str) -> Option<Opcode> {
    let mut slot = slot(name.as_bytes());
    loop {
        let opcode = TABLE[slot]?;
        if opcode.as_str() == name {
            return Some(opcode);
        }
        slot = (slot + 1) % SLOTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found() {
        for (at, (name, opcode)) in NAMED.iter().enumerate() {
            assert_eq!((Opcode::of(name), opcode.as_str(), *opcode as usize), (*opcode, *name, at));
            assert!(!opcode.is_async() || wrapped(name).is_none(), "{name} abbreviates nothing");
        }
        for name in ["", "a", "adds", "Add", "-start", "start", "unknown"] {
            assert!(matches!(Opcode::of(name), Opcode::Unknown | Opcode::AsyncStart), "{name}");
        }
        assert_eq!(Opcode::of("optimization-barrier"), Opcode::OptimizationBarrier);
    }

    #[test]
    fn abbreviations_say_what_they_run() {
        assert_eq!((Opcode::of("slice-start"), wrapped("slice-start")), (Opcode::AsyncStart, Some(Opcode::Slice)));
        assert_eq!(
            (Opcode::of("fusion-update"), wrapped("fusion-update")),
            (Opcode::AsyncUpdate, Some(Opcode::Fusion))
        );
        assert_eq!((Opcode::of("odd-done"), wrapped("odd-done")), (Opcode::AsyncDone, Some(Opcode::Unknown)));
        assert_eq!(wrapped("dynamic-update-slice"), None);
        assert_eq!(wrapped("all-reduce-start"), Some(Opcode::AllReduce));
    }

    /// The forms of JAX 0.12.0.1's XLA for GPUs, and those of 0.10.2.
    #[test]
    fn collectives_are_wrapped_or_have_opcodes_of_their_own() {
        let (reduce, permute) = (Opcode::AllReduceStart, Opcode::CollectivePermuteStart);
        assert_eq!(reduce.wrapping("((f32[8]{0}), f32[8]{0})", ""), Opcode::AsyncStart);
        assert_eq!(reduce.wrapping("(f32[8]{0}, f32[8]{0})", ""), reduce);
        assert_eq!(permute.wrapping("((f32[8]{0}), f32[8]{0})", ""), Opcode::AsyncStart);
        assert_eq!(permute.wrapping("(f32[8]{0}, f32[8]{0})", ""), permute);
        let several = "((f32[8]{0}, f32[4]{0}), (f32[8]{0}, f32[4]{0}))";
        assert_eq!(permute.wrapping(several, "backend_config={\"collectives_mode\":\"\"}"), permute);
        assert_eq!(permute.wrapping(several, "backend_config={\"communication_domain\":\"\"}"), Opcode::AsyncStart);
    }
}
