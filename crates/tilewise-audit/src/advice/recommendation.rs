//! What to change, and what that frees: one type, whatever it follows from.

use crate::program::SourceLine;
use tilewise::Shape;

/// A change, and what it frees.
///
/// It follows from a program ([`Report::advice`](crate::Report::advice)), from one of its copies
/// ([`CopyReason::fix`](crate::CopyReason::fix)), or from an out-of-memory message
/// ([`Explanation::advice`](crate::Explanation::advice)); [`saving`](field@Self::saving) says how much of that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recommendation {
    /// What sort of change it is.
    pub change: Change,
    /// What is changed.
    pub target: Target,
    /// The array it is about, of several the largest; `None` where a message names none.
    pub array: Option<AdvisedArray>,
    /// What it frees.
    pub saving: Saving,
    /// The number of parts of the batch that it frees so much with, where more parts free more.
    pub parts: Option<u64>,
    /// What to do: a sentence without a full stop.
    pub sentence: String,
    /// The code that does it, in the language of the framework that made the program, if that is known.
    pub snippet: Option<Snippet>,
}

/// The array that a [`Recommendation`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdvisedArray {
    /// Its shape as XLA writes it, cut off where a message cuts it off.
    pub shape_text: String,
    /// The instruction that makes it, where the evidence is a program.
    pub instruction: Option<String>,
    /// The layout to pass or return it in, where the change is that alone and follows from a copy.
    pub requested: Option<Shape>,
    /// The framework's name of the operation, or of the argument.
    pub op_name: Option<String>,
    /// The line of the user's program.
    pub source: Option<SourceLine>,
}

/// What a [`Recommendation`] frees of a program's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Saving {
    /// So many.
    Exact(u64),
    /// At most so many: what remains depends on how the change is made, or on what a message doesn't tell.
    AtMost(u64),
    /// Nobody knows.
    Unknown,
}

/// Code to paste.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Snippet {
    /// What it imports, a line each.
    pub imports: Option<&'static str>,
    /// The code.
    pub code: String,
}

/// What sort of change a [`Recommendation`] is.
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

/// What a [`Recommendation`] changes.
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

impl Recommendation {
    /// What it frees with so many parts of the batch at best: as much as all but one of them take.
    #[must_use]
    pub fn saving_in_parts(&self, parts: u64) -> Option<u64> {
        let (now, freed) = (self.parts.filter(|now| *now > 1)?, u128::from(self.saving.bytes()?));
        let (now, parts) = (u128::from(now), u128::from(parts.max(1)));
        u64::try_from(freed * now * (parts - 1) / ((now - 1) * parts)).ok()
    }

    pub(crate) fn new(change: Change, target: Target, sentence: impl Into<String>) -> Self {
        let (array, saving, parts, snippet) = (None, Saving::Unknown, None, None);
        Self { change, target, array, saving, parts, sentence: sentence.into(), snippet }
    }

    pub(crate) fn saving(self, saving: Saving) -> Self {
        Self { saving, ..self }
    }

    /// About an array of which there is no more than its shape.
    pub(crate) fn about(self, shape: impl Into<String>) -> Self {
        Self { array: Some(AdvisedArray::of_shape(shape)), ..self }
    }

    pub(crate) fn snippet(self, imports: impl Into<Option<&'static str>>, code: impl Into<String>) -> Self {
        Self { snippet: Some(Snippet { imports: imports.into(), code: code.into() }), ..self }
    }
}

impl AdvisedArray {
    fn of_shape(shape_text: impl Into<String>) -> Self {
        Self { shape_text: shape_text.into(), instruction: None, requested: None, op_name: None, source: None }
    }

    /// Its shape; `None` where the text is cut off.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        Shape::parse_as_written(&self.shape_text).ok()
    }
}

impl Saving {
    /// The bytes, exact or a bound; `None` where nobody knows.
    #[must_use]
    pub const fn bytes(self) -> Option<u64> {
        match self {
            Self::Exact(bytes) | Self::AtMost(bytes) => Some(bytes),
            Self::Unknown => None,
        }
    }

    /// Whether the bytes are the most that it can free.
    #[must_use]
    pub const fn is_bound(self) -> bool {
        matches!(self, Self::AtMost(_))
    }
}

impl Change {
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
