//! Findings that split a program into parts along one dimension.

use super::arrays::Library;
use crate::program::SourceLine;

/// A matrix with one value for each pair of input rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllPairs {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Blocks of rows to compute it in.
    pub blocks: u64,
    /// Whether the program takes a gradient, which computes each block again.
    pub has_gradient: bool,
    /// Whether a loop reads it that doesn't make it, and computes each block again in each turn.
    pub is_read_in_loop: bool,
}

/// A large array, the lines of which can make and read a block of rows at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocks {
    /// Number of rows.
    pub size: u64,
    /// Their dimension of the array.
    pub dimension: usize,
    /// The argument whose rows they are; `None` if unknown.
    pub of: Option<String>,
    /// Whether they are directions along which a gradient is differentiated.
    pub are_directions: bool,
    /// Whether the lines count them, as by `jnp.arange`.
    pub are_counted: bool,
    /// Blocks to compute it in.
    pub blocks: u64,
    /// Number of sums over all rows, or of maxima.
    pub sums: usize,
    /// Number of maxima among them.
    pub maxima: usize,
    /// Lines that join all rows otherwise, such as the place of a maximum: what they make of the blocks before is carried along.
    pub joined: Vec<SourceLine>,
    /// Whether the backward pass reads it, which computes each block again.
    pub has_gradient: bool,
    /// Whether the step is rewritten as a whole: no lines alone can take blocks, since calls that make the rows also join them, as in
    /// a solver, or since loops read them.
    pub is_of_step: bool,
}

/// A call of `jax.vmap`, most of whose arrays are held at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedCall {
    /// Its line.
    pub line: SourceLine,
    /// Number of positions that it maps.
    pub size: u64,
    /// Positions to take at a time.
    pub at_once: u64,
    /// Whether a gradient is taken through it, whose backward pass then computes each part again.
    pub has_gradient: bool,
}

/// A dimension that most arrays at the peak share.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LargeDimension {
    /// Its size.
    pub size: u64,
    /// Its number in the largest array, alone or merged with other dimensions.
    pub place: usize,
    /// The inputs' arrays that have it, by its dimension number in them; empty if unknown.
    pub inputs: Vec<(usize, Vec<String>)>,
    /// Treatment of gradients.
    pub gradients: GradientSums,
    /// The library that takes the gradient.
    pub gradient_of: Library,
    /// Random keys to split for each part.
    pub keys: Vec<String>,
    /// Whether its origin is known: the input, or the program itself.
    pub is_known: bool,
    /// Number of arrays that have it.
    pub arrays: usize,
    /// A smaller batch with which the program fits.
    pub smaller: Option<SmallerBatch>,
    /// Whether the program itself makes it, like the pixels of a picture that it draws.
    pub is_made: bool,
    /// Where the parts are joined; `None` if only sums or results follow.
    pub joint: Option<Joint>,
    /// Whether several devices run the program together, each with a part of the dimension.
    pub is_on_devices: bool,
    /// Whether the loss is divided by a sum over the batch that differs between parts, such as that of a mask.
    pub is_divided: bool,
    /// Whether no constant of the program divides by the number of positions, or by a multiple of it, as a mean does.
    pub is_summed: bool,
    /// Whether the number of parts was raised because the program doesn't fit in fewer.
    pub is_to_fit: bool,
    /// Another number of parts that frees much more, or much less.
    pub others: Option<OtherParts>,
    /// The compiled function; `None` if it can't run in parts as a whole, or takes more than arrays.
    pub function: Option<String>,
    /// The function in parts; `None` if that may compute something else.
    pub in_parts: Option<InParts>,
}

/// A number of parts beside the advised one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherParts {
    /// The number.
    pub parts: u64,
    /// Bytes between what the two numbers free.
    pub freed: u64,
    /// Whether this one frees more.
    pub is_more: bool,
}

/// Where samples of a batch meet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joint {
    /// The line that joins them; `None` if unknown.
    pub source: Option<SourceLine>,
    /// Whether they are added up, rather than their rows put together.
    pub are_sums: bool,
    /// Whether results have rows of each sample.
    pub has_rows: bool,
}

/// Treatment of gradients where a batch is taken in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GradientSums {
    /// No gradients.
    None,
    /// The parts' gradients are added up.
    Summed,
    /// Each part has its own gradients.
    Apart,
    /// Each sample has a gradient of its own, as where these are clipped, and what is made of them is added up.
    OfEach,
}

/// A function that can run in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InParts {
    /// Its name.
    pub function: String,
    /// Its parameters, each with whether it is split.
    pub parameters: Vec<(String, bool)>,
    /// Number of parts.
    pub parts: u64,
}

/// Batched graphs, whose edges aren't a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchedGraphs {
    /// Number of graphs.
    pub graphs: u64,
    /// Inputs with a row for each graph.
    pub names: Vec<String>,
    /// Number of edges of all graphs.
    pub edges: u64,
    /// Whether the program takes a gradient.
    pub has_gradient: bool,
}

/// A batch with which a program fits that doesn't fit now. It changes what a step computes, so no
/// [`Recommendation`](crate::Recommendation) is one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SmallerBatch {
    /// The batch now.
    pub size: u64,
    /// Its half if that fits, or else its quarter.
    pub to: u64,
    /// Bytes that the program then needs, or somewhat more.
    pub bytes_after: u64,
    /// Whether samples meet, as where they are compared or normalized together: a smaller batch then has another loss.
    pub is_mixed: bool,
}
