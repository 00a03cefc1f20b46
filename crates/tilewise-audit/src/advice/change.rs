//! Kinds of change, their targets, and how exactly their savings are known.

/// Memory that a [`Recommendation`](super::Recommendation) frees, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Saving {
    /// Exactly this many bytes.
    Exact(u64),
    /// At most this many bytes: the rest depends on how the change is made, or on facts that a message lacks.
    AtMost(u64),
    /// About this many bytes: the compiler rearranges the program, which may free less or more.
    About(u64),
    /// Unknown.
    Unknown,
}

/// The kind of change that a [`Recommendation`](super::Recommendation) makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// Another order of dimensions in memory.
    Order,
    /// Logical dimensions are swapped.
    Transpose,
    /// Other bounds for the same elements.
    Reshape,
    /// One array per column.
    Split,
    /// The whole batch at once, where each sample was computed on its own.
    Batch,
    /// Parts of the batch, one after the other.
    Chunk,
    /// Values are recomputed, not kept.
    Checkpoint,
    /// A loop updates what it carries in place.
    Carry,
    /// A result takes its argument's memory.
    Donate,
    /// The elements become smaller.
    Narrow,
    /// Arrays are divided between devices.
    Shard,
    /// A kernel works on smaller blocks.
    Block,
    /// A limit is raised.
    Limit,
    /// Other data in memory is freed.
    Free,
    /// Audit the program, which shows more than the message.
    Audit,
    /// No kind of change applies.
    None,
}

/// The target of a [`Recommendation`](super::Recommendation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// Arrays that the caller passes.
    Argument,
    /// Arrays that the caller gets.
    Result,
    /// Values before a gather or scatter.
    Upstream,
    /// A kernel: its operands, results or blocks.
    Kernel,
    /// A loop, and the values that it keeps.
    Loop,
    /// Values inside the program.
    Value,
    /// The compiler, or its version.
    Compiler,
    /// The process that runs the program, and its environment.
    Process,
}

impl Saving {
    /// The bytes: exact, a bound or an estimate; `None` if unknown.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        match self {
            Self::Exact(bytes) | Self::AtMost(bytes) | Self::About(bytes) => Some(bytes),
            Self::Unknown => None,
        }
    }

    /// Whether the bytes are an upper bound.
    #[must_use]
    pub const fn is_bound(self) -> bool {
        matches!(self, Self::AtMost(_))
    }

    /// Whether the bytes are an estimate, which may be too low or too high.
    #[must_use]
    pub const fn is_estimate(self) -> bool {
        matches!(self, Self::About(_))
    }

    /// Turns an exact number into an upper bound.
    pub(crate) const fn inexact(self) -> Self {
        match self {
            Self::Exact(bytes) => Self::AtMost(bytes),
            other => other,
        }
    }
}

impl Change {
    /// All kinds of change.
    pub const ALL: &'static [Self] = &[
        Self::Order,
        Self::Transpose,
        Self::Reshape,
        Self::Split,
        Self::Batch,
        Self::Chunk,
        Self::Checkpoint,
        Self::Carry,
        Self::Donate,
        Self::Narrow,
        Self::Shard,
        Self::Block,
        Self::Limit,
        Self::Free,
        Self::Audit,
        Self::None,
    ];

    /// The change in one word, such as `order`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Transpose => "transpose",
            Self::Reshape => "reshape",
            Self::Split => "split",
            Self::Batch => "batch",
            Self::Chunk => "chunk",
            Self::Checkpoint => "checkpoint",
            Self::Carry => "carry",
            Self::Donate => "donate",
            Self::Narrow => "narrow",
            Self::Shard => "shard",
            Self::Block => "block",
            Self::Limit => "limit",
            Self::Free => "free",
            Self::Audit => "audit",
            Self::None => "none",
        }
    }
}

impl Target {
    /// All targets.
    pub const ALL: &'static [Self] = &[
        Self::Argument,
        Self::Result,
        Self::Upstream,
        Self::Kernel,
        Self::Loop,
        Self::Value,
        Self::Compiler,
        Self::Process,
    ];

    /// The target in one word, such as `argument`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::Result => "result",
            Self::Upstream => "upstream",
            Self::Kernel => "kernel",
            Self::Loop => "loop",
            Self::Value => "value",
            Self::Compiler => "compiler",
            Self::Process => "process",
        }
    }
}
