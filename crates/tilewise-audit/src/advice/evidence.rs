//! The evidence that rules ask: a program, or its out-of-memory message.

use super::{
    finding::ArrayName,
    message::MessageModel,
    program::{LiveArray, ProgramModel},
    recommendation::AdvisedArray,
};
use tilewise::{ElementType, Shape, tpu::Generation};
use tilewise_memory::Role;
use tilewise_oom::Framework;

/// A program that takes too much memory, by its text or its message. Facts that a message lacks are `None`.
pub(crate) trait Evidence {
    /// The arrays that the caller passes.
    fn arguments(&self) -> Vec<&dyn ArrayFact>;

    /// The arrays that the caller gets, but for those in arguments' memory.
    fn results(&self) -> Vec<&dyn ArrayFact>;

    /// The arrays inside the program at its peak, each buffer once.
    fn temporaries(&self) -> Vec<&dyn ArrayFact>;

    /// The generation whose layouts are the default ones for an array.
    fn generation_of(&self, shape: &Shape) -> Generation;

    /// Whether the program takes a gradient.
    fn has_gradient(&self) -> Option<bool>;

    /// The framework whose code to show; `None` if unknown.
    fn framework(&self) -> Option<Framework>;

    /// The compiled function, if it takes arrays alone and one device runs it.
    fn function(&self) -> Option<&str>;

    /// The parameters of the compiled function that are donated.
    fn donated(&self) -> Vec<String>;

    /// Thresholds that tell signs from chance.
    fn thresholds(&self) -> &'static Thresholds;

    /// Extrapolates `bytes` of listed arrays to all arrays, if a list is cut off.
    fn extrapolated(&self, bytes: u64, listed: Listed) -> u64;

    /// The program itself.
    fn program(&self) -> Option<&ProgramModel<'_>>;

    /// The message itself.
    fn message(&self) -> Option<&MessageModel<'_>>;
}

/// The quantity that is listed: all bytes of temporaries, or their padding.
#[derive(Clone, Copy)]
pub(crate) enum Listed {
    Bytes,
    Padding,
}

/// Thresholds that tell signs from chance: less is known of an array that a message lists.
pub(crate) struct Thresholds {
    /// Maximum number of columns to keep as arrays; more are an embedding.
    pub(crate) max_columns: u64,
    /// Dimensions up to this size beside the columns are columns, too.
    pub(crate) max_minor: u64,
    /// Minimum number of rows in a table.
    pub(crate) min_rows: u64,
    /// Minimum size of a padded array of rows, in quarters of its data.
    pub(crate) padded_quarters: u64,
    /// Numbers of parts of a batch to choose from.
    pub(crate) parts: &'static [u64],
    /// Minimum percentage of the temporaries that have the dimension.
    pub(crate) min_percent: u64,
}

/// An array in the device's memory.
pub(crate) trait ArrayFact {
    fn shape(&self) -> &Shape;

    fn bounds(&self) -> &[u64];

    /// Bytes it takes.
    fn bytes(&self) -> u64;

    fn role(&self) -> Role;

    /// The number of its buffer, or of its row in a message.
    fn buffer(&self) -> usize;

    /// The caller's name for it.
    fn name(&self) -> ArrayName;

    /// The framework's name of the operation that makes it; empty if unknown.
    fn op_name(&self) -> String;

    /// The array as a recommendation shows it.
    fn advised(&self, evidence: &dyn Evidence) -> AdvisedArray;

    /// The array in the program; `None` in a message.
    fn live(&self) -> Option<&LiveArray<'_>>;

    fn element_type(&self) -> ElementType {
        self.shape().element_type().unwrap_or(ElementType::Pred)
    }

    /// Logical dimensions, the fastest-varying first.
    fn minor_to_major(&self) -> &[usize] {
        self.shape().layout().map_or(&[], |layout| layout.minor_to_major())
    }

    fn elements(&self) -> u64 {
        self.bounds().iter().fold(1, |product, bound| product.saturating_mul(*bound))
    }

    fn logical_bytes(&self) -> u64 {
        self.shape().as_array().and_then(|array| array.sizes().ok()).map_or(self.bytes(), |sizes| sizes.logical_bytes)
    }
}

/// Bytes of an array of these bounds in the default layout, with the element type of `like`.
pub(crate) fn default_bytes(evidence: &dyn Evidence, like: &dyn ArrayFact, bounds: &[u64]) -> Option<u64> {
    let shape =
        tilewise::tpu::default_layout(like.element_type(), bounds, evidence.generation_of(like.shape())).ok()?;
    Some(shape.as_array()?.sizes().ok()?.physical_bytes)
}
