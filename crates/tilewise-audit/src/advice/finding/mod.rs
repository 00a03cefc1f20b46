//! Findings behind recommendations, as data. `tilewise-report` has the words for each.

mod arrays;
mod copies;
mod kernels;
mod machines;
mod messages;
mod parts;
mod stacks;

pub use arrays::{
    ArrayName, AttentionScores, Checkpointed, ClassLogits, ColumnsWay, ConvertedArguments, CutOffShapes, FlatRecords,
    FrozenState, GatheredPages, Jit, KeptByLoop, KernelColumns, LayoutRequest, Library, Logits, LogitsUse, OneHotSlots,
    PaddedColumns, PaddedHeads, Parameter, PickedRows, PinnedOrder, RepeatedLayers, RequestedLayout, RowOperation,
    RowsOfFew, SampleGradients, ShuffledRows, UndonatedState, WideState, WideStateKind,
};
pub use copies::{Alike, Repeated};
pub use kernels::{
    BlockFinding, ChangedOption, KernelLimit, MatmulDimension, MosaicFinding, OperandLayout, ShortDimension,
    SparseCoreProgram, WholeArrays,
};
pub use machines::{ElsewhereFinding, Holders, LargestBuffer, Transform, WholeArray};
pub use messages::{
    Asker, CacheFinding, CoreHalt, DonationFinding, Lowered, MemoryFinding, MessageLacks, MismatchFinding,
    PlacementFinding, ReplicatedArray, RunTimeFinding, Shrink,
};
pub use parts::{
    AllPairs, BatchedGraphs, Blocks, GradientSums, InParts, Joint, LargeDimension, MappedCall, OtherParts, SmallerBatch,
};
pub use stacks::{FlatStack, MadeForSteps, OfStep, OverSteps, StackedCache, StackedSteps};

use super::change::Change;

/// The finding behind a [`Recommendation`](super::Recommendation): a sign in a program or in a message, with its
/// figures.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// Arguments and results are copied into another layout.
    LayoutRequest(LayoutRequest),
    /// An argument or a result isn't in the default order, which takes less.
    PinnedOrder(PinnedOrder),
    /// An argument or a result has a few columns, each row padded to the lanes.
    PaddedColumns(PaddedColumns),
    /// The program copies its weights into another layout, and holds them twice.
    CopiedWeights,
    /// A flat argument is reshaped to rows of a few columns.
    FlatRecords(FlatRecords),
    /// A result could take the memory of an argument.
    UndonatedState(UndonatedState),
    /// Rows of a few columns are gathered, scattered or made.
    RowsOfFew(RowsOfFew),
    /// Pages of a cache are gathered whole.
    GatheredPages(GatheredPages),
    /// A loop or a kernel holds a cache with its heads padded to tiles.
    PaddedHeads(PaddedHeads),
    /// A kernel of the user's reads or writes rows of a few columns.
    KernelColumns(KernelColumns),
    /// A loop keeps values of all its steps for the gradient.
    KeptByLoop(KeptByLoop),
    /// Logits of a vocabulary are held at once.
    Logits(Logits),
    /// Logits of classes at each of many places are held at once.
    ClassLogits(ClassLogits),
    /// Scores of attention are held at once.
    AttentionScores(AttentionScores),
    /// A loop reads a cache and stacks up the next one beside it.
    StackedCache(StackedCache),
    /// Arguments, by name, that are returned unchanged.
    ReturnedArguments(Vec<String>),
    /// An array is repeated for a product.
    Repeated(Repeated),
    /// One-hot arrays send tokens to experts.
    OneHotSlots(OneHotSlots),
    /// An optimizer has a state for weights that a step returns unchanged.
    FrozenState(FrozenState),
    /// A loop stacks up results that are only returned.
    StackedSteps(StackedSteps),
    /// Small matrices that a loop stacks up.
    FlatStack(FlatStack),
    /// An array that is made for all steps of a loop before it.
    MadeForSteps(MadeForSteps),
    /// A product of whose rows few are read.
    PickedRows(PickedRows),
    /// All devices compute the same values.
    Alike(Alike),
    /// A matrix of all pairs is held at once.
    AllPairs(AllPairs),
    /// A large array is held at once, though a block of its rows is enough.
    Blocks(Blocks),
    /// Most of the peak is made under one call of `jax.vmap`.
    MappedCall(MappedCall),
    /// Layers that repeat keep values for the backward pass.
    RepeatedLayers(RepeatedLayers),
    /// A message without names lists this many equal arrays: one of each layer, if a gradient keeps them.
    EqualArrays(usize),
    /// A loop adds up gradients of weights for each sample on its own.
    SampleGradients(SampleGradients),
    /// Rows are shuffled before a loop that takes a part of them in each step.
    ShuffledRows(ShuffledRows),
    /// An old compiler keeps predicates in 32 bits.
    WidePredicates,
    /// Arrays whose shapes are cut off are mostly padding.
    CutOffShapes(CutOffShapes),
    /// Most of the peak has a row for each edge of many graphs.
    BatchedGraphs(BatchedGraphs),
    /// Most arrays at the peak share one dimension.
    LargeDimension(LargeDimension),
    /// The program holds arrays in a second type.
    ConvertedArguments(ConvertedArguments),
    /// State is held in a type that is wider than usual.
    WideState(WideState),
    /// The program doesn't fit into memory: findings about the whole of it.
    Memory(MemoryFinding),
    /// Others hold the memory, or a core stopped.
    RunTime(RunTimeFinding),
    /// A kernel needs more of VMEM, SMEM or a SparseCore's memory than it may have.
    Block(BlockFinding),
    /// A kernel's memory is limited by a setting.
    KernelLimit(KernelLimit),
    /// Mosaic can't compile a kernel.
    Mosaic(MosaicFinding),
    /// An argument is not what the program was compiled for.
    Mismatch(MismatchFinding),
    /// Donated arrays couldn't be reused for a result.
    Donation(DonationFinding),
    /// An array is replicated between two shardings.
    Replicated(ReplicatedArray),
    /// A value is in the host's memory, or a result ends there.
    Placement(PlacementFinding),
    /// A server's cache of keys and values.
    Cache(CacheFinding),
    /// A machine without tiles.
    Elsewhere(ElsewhereFinding),
    /// Parameters and state exceed the memory by themselves.
    ReplicatedState,
    /// The compiler's own rematerialization has reached its limit.
    ExhaustedRematerialization,
    /// The text is the compiler's plan of a program.
    BufferAssignment,
}

impl Finding {
    /// The kind of change that it calls for.
    #[must_use]
    pub fn change(&self) -> Change {
        match self {
            Self::LayoutRequest(_) | Self::PinnedOrder(_) | Self::CopiedWeights => Change::Order,
            Self::PaddedColumns(PaddedColumns { way: ColumnsWay::Flat { .. }, .. })
            | Self::GatheredPages(_)
            | Self::FlatStack(_)
            | Self::PaddedHeads(_) => Change::Reshape,
            Self::PaddedColumns(_) | Self::FlatRecords(_) | Self::RowsOfFew(_) | Self::CutOffShapes(_) => Change::Split,
            Self::UndonatedState(_) | Self::Donation(_) => Change::Donate,
            Self::KernelColumns(_) => Change::Transpose,
            // A loop that reads each part more than once makes it as often.
            Self::MadeForSteps(MadeForSteps { is_mapped: true, .. }) => Change::Checkpoint,
            Self::KeptByLoop(_) | Self::RepeatedLayers(_) | Self::EqualArrays(_) | Self::ExhaustedRematerialization => {
                Change::Checkpoint
            }
            Self::Logits(_)
            | Self::ClassLogits(_)
            | Self::AttentionScores(_)
            | Self::AllPairs(_)
            | Self::Blocks(_)
            | Self::MappedCall(_)
            | Self::ShuffledRows(_)
            | Self::BatchedGraphs(_)
            | Self::LargeDimension(_) => Change::Chunk,
            Self::StackedCache(_) => Change::Carry,
            Self::StackedSteps(_)
            | Self::MadeForSteps(_)
            | Self::PickedRows(_)
            | Self::ReturnedArguments(_)
            | Self::FrozenState(_)
            | Self::Repeated(_)
            | Self::OneHotSlots(_) => Change::Free,
            Self::Cache(CacheFinding::Idle) => Change::Free,
            Self::SampleGradients(_) => Change::Batch,
            Self::WidePredicates | Self::ConvertedArguments(_) | Self::WideState(_) => Change::Narrow,
            Self::Memory(finding) => finding.change(),
            Self::RunTime(finding) => finding.change(),
            Self::Block(_) | Self::Mosaic(_) => Change::Block,
            Self::KernelLimit(_) => Change::Limit,
            Self::Mismatch(MismatchFinding::OtherLayout) => Change::Order,
            Self::Mismatch(_) | Self::Placement(_) => Change::None,
            Self::Cache(CacheFinding::PaddedHeads | CacheFinding::NoPart { .. })
            | Self::ReplicatedState
            | Self::Alike(_)
            | Self::Replicated(_) => Change::Shard,
            Self::Cache(CacheFinding::LongRequests(_) | CacheFinding::Full | CacheFinding::WarmUp(_)) => Change::Limit,
            Self::Elsewhere(finding) => finding.change(),
            Self::BufferAssignment => Change::Audit,
        }
    }
}
