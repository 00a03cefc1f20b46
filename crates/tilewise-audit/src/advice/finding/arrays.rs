//! Findings about arrays, from programs or from messages.

use crate::program::SourceLine;
use tilewise::{ElementType, Shape, tpu::Generation};

/// The name of an argument or a result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArrayName {
    /// The framework's name, an expression such as `params['w']`.
    Named(String),
    /// An argument's number, and the index path within it.
    Argument(u32, Vec<u32>),
    /// The index path within the result.
    Result(Vec<u32>),
    /// Unknown.
    Unknown,
}

/// Arguments and results to pass and take in other layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayoutRequest {
    /// The arrays.
    pub arrays: Vec<RequestedLayout>,
    /// The compiled function.
    pub function: String,
    /// Its parameters; `None` if the program doesn't name all of them.
    pub parameters: Option<Vec<Parameter>>,
    /// Devices that run the program together.
    pub partitions: u64,
    /// Whether the result is one array, not a tuple.
    pub returns_one: bool,
    /// The generation, whose default tiles need not be written.
    pub generation: Generation,
}

/// An array in another layout.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestedLayout {
    /// An argument's name; `None` for a result.
    pub argument: Option<String>,
    /// Its number among the arguments, or among the arrays of the result.
    pub number: usize,
    /// The number of the result that shares an argument's memory.
    pub donated_to: Option<usize>,
    /// The array in the layout to request.
    pub to: Shape,
    /// Bytes it takes now, and in that layout.
    pub bytes: [u64; 2],
}

/// Arrays that aren't in their default order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinnedOrder {
    /// Their names, each with its default order, major-to-minor.
    pub arrays: Vec<(ArrayName, Vec<usize>)>,
    /// The present order of the first one, minor-to-major.
    pub order: Vec<usize>,
    /// The compiled function; `None` if unknown.
    pub function: Option<String>,
    /// Whether something may need the present order, which a message doesn't show.
    pub may_be_needed: bool,
}

/// Arrays of a few columns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaddedColumns {
    /// The name of the largest.
    pub name: ArrayName,
    /// Number of other arguments and results with these bounds.
    pub others: usize,
    /// The form to keep instead.
    pub way: ColumnsWay,
    /// Whether the program is known to work with that form.
    pub is_known: bool,
}

/// A form to keep instead of an array of a few columns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnsWay {
    /// One flat array.
    Flat {
        /// Number of elements.
        elements: u64,
        /// Their type.
        element_type: ElementType,
    },
    /// One array per column.
    Apart {
        /// Number of columns.
        columns: u64,
        /// The bounds of each.
        rows: Vec<u64>,
    },
}

/// Rows of a few columns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowsOfFew {
    /// Number of columns.
    pub columns: u64,
    /// The operation on the rows.
    pub operation: RowOperation,
}

/// An operation on rows of a few columns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowOperation {
    /// They are gathered.
    Gather {
        /// The argument that they come from; `None` if unknown.
        table: Option<String>,
        /// The columns' dimension number in the gather's operand, if it isn't the last.
        dimension: Option<usize>,
        /// Whether they are scattered in the end; `None` if unknown.
        is_scattered: Option<bool>,
    },
    /// They are scattered.
    Scatter,
    /// Each is the index of one gathered element: an older `jnp.take_along_axis` made a number for each dimension.
    IndexTuples,
    /// Each encodes one number in a one-hot array.
    OneHot,
    /// Each has one number, in a dimension of size 1.
    KeptDimension,
    /// They are random bits, one word a row, which the compiler lays out.
    RandomBits,
    /// They are one row, in a dimension of size 1.
    KeptRow,
    /// They are channels of a convolution.
    Convolution,
    /// They are small matrices, and a product's results.
    Product {
        /// Rows of a matrix.
        rows: u64,
        /// Columns of a matrix.
        columns: u64,
    },
    /// Unknown.
    Unknown,
}

/// Logits of a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logits {
    /// Tokens of the vocabulary.
    pub vocabulary: u64,
    /// Whether a program, or a name in a message, shows that it is a vocabulary, rather than the size alone.
    pub is_shown: bool,
    /// Chunks to compute them in.
    pub chunks: u64,
    /// Whether a soft cap bounds them: a hyperbolic tangent.
    pub is_capped: bool,
    /// Whether labels are dense, such as smoothed ones: a number for each token of the vocabulary, not an index.
    pub are_labels_dense: bool,
    /// The use of them.
    pub used: LogitsUse,
    /// Whether several devices run the program together: chunks of all tokens would move between them.
    pub is_on_devices: bool,
    /// The parameter whose product with the last hidden states they are, in its tree, such as `params['head']`, and whether
    /// it has the vocabulary first; `None` if unknown.
    pub weight: Option<(String, bool)>,
}

/// The use of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogitsUse {
    /// A loss whose gradient is taken.
    Loss,
    /// A loss that compares them with logits that no gradient goes through, such as a teacher's.
    Distillation,
    /// Probabilities that no gradient goes through, such as those of samples before an update.
    Scores,
}

/// Scores of attention.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttentionScores {
    /// Positions of the sequence.
    pub positions: u64,
    /// Whether a soft cap bounds them: a hyperbolic tangent.
    pub is_capped: bool,
}

/// Values that a loop keeps of its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptByLoop {
    /// Number of the loop's steps, and of arrays that it keeps of all of them; `None` for a message.
    pub steps: Option<(u64, usize)>,
    /// Number of segments to recompute one at a time, where carries of all steps take nearly as much as what they could
    /// recompute; `None` to recompute each step.
    pub segments: Option<u64>,
    /// The library whose loop it is.
    pub library: Library,
    /// The module that it runs, such as `img/Transformer`; `None` if names don't show it.
    pub module: Option<String>,
    /// The class of Flax whose call is a step, such as `Block`; `None` if unknown.
    pub class: Option<String>,
    /// Whether its step is under a checkpoint already, whose policy saves them.
    pub is_checkpointed: bool,
    /// Whether its steps are the layers of a stack.
    pub is_stack: bool,
    /// Number of the program's loops that the line makes, one each time it runs.
    pub loops: usize,
}

/// Values that repeated layers keep.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepeatedLayers {
    /// The library whose layers they are.
    pub library: Library,
    /// The layers.
    pub layers: Checkpointed,
    /// Whether they are under a checkpoint already, whose policy saves most of the values.
    pub is_checkpointed: bool,
}

/// Logits of classes at each of many places, such as pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassLogits {
    /// The classes.
    pub classes: u64,
    /// Parts of the places to compute the loss in.
    pub chunks: u64,
}

/// Repeated layers, and the bytes that the largest of them keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpointed {
    /// Their path in operation names, such as `transformer/h/*`; `None` if only their shapes repeat.
    pub path: Option<String>,
    /// Number of layers.
    pub count: usize,
    /// Bytes that the largest keeps.
    pub bytes: u64,
    /// Up to three of its modules with their bytes, the largest first; empty if fewer than two are known.
    pub modules: Vec<(String, u64)>,
    /// Their classes; empty if unknown.
    pub classes: Vec<String>,
    /// The line that calls each of them, or the first; `None` if unknown.
    pub call: Option<SourceLine>,
}

/// The library whose code a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Library {
    /// JAX alone.
    Jax,
    /// Haiku.
    Haiku,
    /// Flax's Linen, whose loops are the core's.
    Linen,
    /// Flax's NNX.
    Nnx,
    /// Equinox.
    Equinox,
}

/// A returned state that could reuse the memory of the one that was passed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndonatedState {
    /// The compiled function's parameters that hold it; empty if unknown.
    pub roots: Vec<String>,
    /// Its parameters that are donated already.
    pub donated: Vec<String>,
    /// How the function was jitted; `None` if unknown.
    pub jit: Option<Jit>,
}

/// How a function was jitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Jit {
    /// The function's name.
    pub function: String,
    /// The library that jitted it.
    pub library: Library,
}

/// Gradients of a weight for each sample.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleGradients {
    /// The weight.
    pub weight: String,
    /// Number of samples.
    pub samples: u64,
    /// The bounds of one sample's gradient.
    pub bounds: Vec<u64>,
}

/// Rows that are gathered before a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShuffledRows {
    /// The loop's steps.
    pub steps: u64,
    /// Number of other arrays gathered the same way.
    pub others: usize,
    /// The loop's line; `None` if unknown.
    pub source: Option<SourceLine>,
}

/// Records in a flat array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlatRecords {
    /// The argument.
    pub argument: String,
    /// Number of records.
    pub records: u64,
    /// Numbers in each.
    pub columns: u64,
}

/// Pages that are gathered from a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatheredPages {
    /// The argument.
    pub argument: String,
    /// Its bounds with the last two dimensions merged.
    pub merged: Vec<u64>,
    /// The size of the last dimension.
    pub width: u64,
}

/// A cache whose heads are padded to tiles where it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaddedHeads {
    /// The arguments.
    pub names: Vec<String>,
    /// Their bounds with the last two dimensions merged.
    pub merged: Vec<u64>,
    /// The size of the last dimension.
    pub width: u64,
}

/// A kernel's operand or result with a few columns, and its transposed bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelColumns {
    /// The bounds to write the kernel for, columns before rows.
    pub transposed: Vec<u64>,
    /// The kernel's line.
    pub source: Option<SourceLine>,
}

/// Copies in another type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConvertedArguments {
    /// The type.
    pub element_type: ElementType,
    /// The first copy's line.
    pub source: Option<SourceLine>,
}

/// A product of whose rows few are read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PickedRows {
    /// Number of rows that are read.
    pub rows: u64,
    /// Number of the product's rows.
    pub all: u64,
    /// Elements of a row.
    pub columns: u64,
    /// Bytes of the product.
    pub bytes: u64,
    /// The product's line.
    pub source: Option<SourceLine>,
}

/// A one-hot array of tokens, experts and slots, whose products only move rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OneHotSlots {
    /// Slots of an expert.
    pub slots: u64,
}

/// An optimizer's state for weights that a step returns unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrozenState {
    /// The weights: branches of their tree, such as `params['base']`, or single arrays.
    pub weights: Vec<String>,
    /// The parameter of the Python function that holds the state.
    pub holder: String,
    /// Bytes of the state.
    pub bytes: u64,
}

/// State in `f32` that is usual in `bf16`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WideState {
    /// The kind of state.
    pub kind: WideStateKind,
    /// The parameters of the Python function that hold it.
    pub roots: Vec<String>,
    /// The last keys of its arrays' names, if these aren't all that the parameters hold: `cached_key`.
    pub keys: Vec<String>,
    /// Bytes that it takes.
    pub bytes: u64,
}

/// A kind of state that takes less in another form, usually in 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WideStateKind {
    /// Keys and values of earlier tokens.
    Cache,
    /// The first moment of Adam and its kin.
    FirstMoment,
    /// Both moments of Adam and its kin, which other optimizers don't keep.
    Moments,
    /// Weights that no gradient updates.
    Weights,
    /// An array that a loop carries.
    Carry,
}

/// The first of the arrays whose shapes are cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutOffShapes {
    /// The operation; `None` if unknown.
    pub operation: Option<String>,
    /// Its line.
    pub source: Option<SourceLine>,
}

/// A parameter of the compiled function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name.
    pub root: String,
    /// The name of the program's first argument that is part of it.
    pub first: String,
}
