//! Sorts of changes, what they change, and how much of what they free is known.

/// What a [`Recommendation`](super::Recommendation) frees of a program's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Saving {
    /// So many.
    Exact(u64),
    /// At most so many: what remains depends on how the change is made, or on what a message doesn't tell.
    AtMost(u64),
    /// About so many: the compiler arranges the program anew, and what it then frees may be less or more.
    About(u64),
    /// Nobody knows.
    Unknown,
}

/// What sort of change a [`Recommendation`](super::Recommendation) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// Another order of dimensions.
    Order,
    /// The dimensions change places.
    Transpose,
    /// The same elements under other bounds.
    Reshape,
    /// An array for each column.
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
    /// What else lies in memory is freed.
    Free,
    /// The program tells more than the message: audit it.
    Audit,
    /// Nothing of this helps.
    None,
}

/// What a [`Recommendation`](super::Recommendation) changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// What the caller passes.
    Argument,
    /// What the caller gets.
    Result,
    /// What comes before a gather or scatter.
    Upstream,
    /// What a kernel of the user's reads and writes.
    Kernel,
    /// What a loop keeps.
    Loop,
    /// Values inside the program.
    Value,
    /// The compiler, or its version.
    Compiler,
    /// What is done around the program.
    Process,
}

impl Saving {
    /// The bytes, be they exact, a bound or an estimate; `None` where nobody knows.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        match self {
            Self::Exact(bytes) | Self::AtMost(bytes) | Self::About(bytes) => Some(bytes),
            Self::Unknown => None,
        }
    }

    /// Whether the bytes are the most that it can free.
    #[must_use]
    pub const fn is_bound(self) -> bool {
        matches!(self, Self::AtMost(_))
    }

    /// Whether the bytes are an estimate: it may free less or more.
    #[must_use]
    pub const fn is_estimate(self) -> bool {
        matches!(self, Self::About(_))
    }

    /// The same, where an exact number can't be told.
    pub(crate) const fn inexact(self) -> Self {
        match self {
            Self::Exact(bytes) => Self::AtMost(bytes),
            other => other,
        }
    }
}

impl Change {
    /// Every one.
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
    /// Every one.
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
