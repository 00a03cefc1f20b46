//! What is found of arrays: in a program, in a message, or in either.

use crate::program::SourceLine;
use tilewise::{ElementType, Shape, tpu::Generation};

/// What an argument or a result is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArrayName {
    /// The framework's name, an expression such as `params['w']`.
    Named(String),
    /// An argument's number, and the place in it.
    Argument(u32, Vec<u32>),
    /// The place in the result.
    Result(Vec<u32>),
    /// Nothing tells.
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
    /// Its parameters; `None` where the program doesn't name all of them.
    pub parameters: Option<Vec<Parameter>>,
    /// Devices that run the program together.
    pub partitions: u64,
    /// Whether the result is one array, no tuple.
    pub returns_one: bool,
    /// Whose default tiles need not be written.
    pub generation: Generation,
}

/// An array in another layout.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestedLayout {
    /// An argument's name; `None` for a result.
    pub argument: Option<String>,
    /// Among the arguments, or among the arrays of the result.
    pub number: usize,
    /// The number of the result that shares an argument's memory.
    pub donated_to: Option<usize>,
    /// The array in the layout to request.
    pub to: Shape,
    /// Bytes it takes as it is, and in that layout.
    pub bytes: [u64; 2],
}

/// A parameter of the compiled function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name.
    pub root: String,
    /// The first of the program's arguments that are a part of it.
    pub first: String,
}

/// Arrays in another order than the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinnedOrder {
    /// What they are called, each with its default order, the slowest-varying dimension first.
    pub arrays: Vec<(ArrayName, Vec<usize>)>,
    /// The order that the first of them has, the fastest-varying dimension first.
    pub order: Vec<usize>,
    /// The compiled function, where the program names it.
    pub function: Option<String>,
    /// Whether something may need that order, which a message doesn't tell.
    pub may_be_needed: bool,
}

/// Arrays of a few columns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaddedColumns {
    /// What the largest is called.
    pub name: ArrayName,
    /// How many others of these bounds cross the interface.
    pub others: usize,
    /// What to keep instead.
    pub way: ColumnsWay,
    /// Whether it is known that the program can do with that.
    pub is_known: bool,
}

/// What to keep instead of an array of a few columns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnsWay {
    /// A flat array of so many elements.
    Flat {
        /// Elements.
        elements: u64,
        /// Their type.
        element_type: ElementType,
    },
    /// An array for each column.
    Apart {
        /// How many.
        columns: u64,
        /// The bounds of each.
        rows: Vec<u64>,
    },
}

/// Rows of a few columns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowsOfFew {
    /// How many.
    pub columns: u64,
    /// What is done with the rows.
    pub operation: RowOperation,
}

/// What is done with rows of a few columns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowOperation {
    /// They are gathered.
    Gather {
        /// From this argument; `None` where nothing names it.
        table: Option<String>,
        /// Whether they are scattered in the end; `None` where nothing tells.
        is_scattered: Option<bool>,
    },
    /// They are scattered.
    Scatter,
    /// Each is where an element is gathered from: an older `jnp.take_along_axis` made a number for each dimension of it.
    IndexTuples,
    /// Each is a number in a one-hot array.
    OneHot,
    /// Each has one number, in a dimension of size 1.
    KeptDimension,
    /// They are channels of a convolution.
    Convolution,
    /// Nothing tells.
    Unknown,
}

/// Logits of a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logits {
    /// Tokens of the vocabulary.
    pub vocabulary: u64,
    /// Chunks to compute them in.
    pub chunks: u64,
    /// Whether a soft cap bounds them: a hyperbolic tangent.
    pub is_capped: bool,
    /// Whether labels are numbers for all of the vocabulary, as smoothed ones are, and pick none of it.
    pub are_labels_dense: bool,
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

/// What a loop keeps of its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptByLoop {
    /// The loop's steps, and how many arrays it keeps of all of them; `None` where a message doesn't tell.
    pub steps: Option<(u64, usize)>,
    /// Whose loop it is.
    pub library: Library,
    /// The module that it runs, such as `img/Transformer`; `None` where names don't tell.
    pub module: Option<String>,
    /// Whether its step is under a checkpoint already, which saves them.
    pub is_checkpointed: bool,
    /// Whether its steps are the layers of a stack.
    pub is_stack: bool,
    /// How many loops of the program it is: each time that a line runs has a loop of its own.
    pub loops: usize,
}

/// What repeated layers keep.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepeatedLayers {
    /// Whose layers they are.
    pub library: Library,
    /// The layers.
    pub layers: Checkpointed,
    /// Whether they are under a checkpoint already, which saves most of that.
    pub is_checkpointed: bool,
}

/// A cache that a loop reads a slice of in each step, and of whose new slices it stacks up another; or whose slices are taken
/// apart, and stacked up again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackedCache {
    /// What is read, by name; none where nothing names it.
    pub names: Vec<String>,
    /// The loop's steps, or the slices.
    pub steps: u64,
    /// The loop's line.
    pub source: Option<SourceLine>,
    /// Whether there is no loop.
    pub is_unrolled: bool,
    /// Whether it is donated, or no argument.
    pub is_donated: bool,
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

/// A matrix that has a number for each two rows of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllPairs {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Blocks of rows to compute it in.
    pub blocks: u64,
    /// Whether the program takes a gradient, for which a block is computed again.
    pub has_gradient: bool,
}

/// Layers that repeat, and what the largest of them keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpointed {
    /// Their place in the names of operations, such as `transformer/h/*`; `None` where only their shapes repeat.
    pub path: Option<String>,
    /// How many there are.
    pub count: usize,
    /// Bytes that the largest keeps.
    pub bytes: u64,
    /// Its modules with the bytes of each, the largest first; none where they don't tell more.
    pub modules: Vec<(String, u64)>,
    /// The line that calls each of them; `None` where the program doesn't say.
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

/// A state that is returned, and could take the memory of the one that was passed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndonatedState {
    /// Parameters of the compiled function that it is; none where a message doesn't tell.
    pub roots: Vec<String>,
    /// How the function was jitted; `None` where a message doesn't tell.
    pub jit: Option<Jit>,
}

/// How a function was jitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Jit {
    /// The function.
    pub function: String,
    /// By which library.
    pub library: Library,
}

/// A dimension that most of the peak has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LargeDimension {
    /// Its size.
    pub size: u64,
    /// Which of the largest array's dimensions it is, alone or merged with others.
    pub place: usize,
    /// The input's arrays that have it, by which of their dimensions it is; none where nothing tells.
    pub inputs: Vec<(usize, Vec<String>)>,
    /// What becomes of gradients.
    pub gradients: GradientSums,
    /// Keys of random numbers to split for each part.
    pub keys: Vec<String>,
    /// Whether it is known to be of the input, or to be made.
    pub is_known: bool,
    /// How many arrays have it.
    pub arrays: usize,
    /// Whether the program makes it, as it does the pixels of a picture that it draws.
    pub is_made: bool,
    /// Where what has it is joined, once all parts are there; `None` where only sums or results follow.
    pub joint: Option<Joint>,
    /// Whether there are so many parts because the program doesn't fit in fewer.
    pub is_to_fit: bool,
    /// The compiled function; `None` where it takes more than arrays.
    pub function: Option<String>,
    /// The function in parts; `None` where that may compute something else.
    pub in_parts: Option<InParts>,
}

/// Where samples of a batch meet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joint {
    /// The line that joins them, where the text says.
    pub source: Option<SourceLine>,
    /// Whether they are added up, and not rows put together.
    pub are_sums: bool,
}

/// What becomes of gradients where a batch is taken in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GradientSums {
    /// There are none.
    None,
    /// Those of the parts are added up.
    Summed,
    /// Each part has its own.
    Apart,
}

/// A function that can run in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InParts {
    /// Its name.
    pub function: String,
    /// Its parameters, each with whether it is taken apart.
    pub parameters: Vec<(String, bool)>,
    /// How many parts.
    pub parts: u64,
}

/// Graphs of a batch, whose edges are no batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchedGraphs {
    /// How many there are.
    pub graphs: u64,
    /// What has something for each.
    pub names: Vec<String>,
    /// Edges of all of them.
    pub edges: u64,
    /// Whether the program takes a gradient.
    pub has_gradient: bool,
}

/// Gradients of a weight for each sample.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleGradients {
    /// The weight.
    pub weight: String,
    /// How many samples.
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
    /// How many other arrays are gathered so.
    pub others: usize,
    /// The loop's line.
    pub source: Option<SourceLine>,
}

/// Records in a flat array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlatRecords {
    /// The argument.
    pub argument: String,
    /// How many.
    pub records: u64,
    /// Numbers of each.
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

/// What a kernel reads or writes, and the bounds with its columns before its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelColumns {
    /// The bounds to write it for.
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

/// The first of the arrays whose shapes are cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutOffShapes {
    /// The operation; `None` where nothing names it.
    pub operation: Option<String>,
    /// Its line.
    pub source: Option<SourceLine>,
}
