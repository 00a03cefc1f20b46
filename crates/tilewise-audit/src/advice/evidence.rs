//! What a rule may ask of the evidence: a program, or its out-of-memory message.

use super::{
    finding::ArrayName,
    message::MessageModel,
    program::{LiveArray, ProgramModel},
    recommendation::AdvisedArray,
};
use tilewise::{ElementType, Shape, tpu::Generation};
use tilewise_memory::Role;
use tilewise_oom::Framework;

/// A program that holds too much, as its text or its message tells of it. What a message can't know is `None`.
pub(crate) trait Evidence {
    /// What the caller passes.
    fn arguments(&self) -> Vec<&dyn Held>;

    /// What the caller gets, but for what lies in arguments.
    fn results(&self) -> Vec<&dyn Held>;

    /// What is inside the program at its peak, each buffer once.
    fn temporaries(&self) -> Vec<&dyn Held>;

    /// The generation whose layouts are the default ones for an array.
    fn generation_of(&self, shape: &Shape) -> Generation;

    /// Whether the program takes a gradient.
    fn has_gradient(&self) -> Option<bool>;

    /// Whose code to answer with; `None` where that isn't known.
    fn framework(&self) -> Option<Framework>;

    /// What tells signs from chance.
    fn thresholds(&self) -> &'static Thresholds;

    /// So many bytes of some arrays as a part of all: a list that is cut off leaves others like them out.
    fn extrapolated(&self, bytes: u64, listed: Listed) -> u64;

    /// The program itself.
    fn program(&self) -> Option<&ProgramModel<'_>>;

    /// The message itself.
    fn message(&self) -> Option<&MessageModel<'_>>;
}

/// What is listed: all bytes of temporaries, or their padding.
#[derive(Clone, Copy)]
pub(crate) enum Listed {
    Bytes,
    Padding,
}

/// What tells signs from chance: less is known of an array that a message lists.
pub(crate) struct Thresholds {
    /// More columns than this are an embedding, and nobody keeps each as an array.
    pub(crate) few: u64,
    /// What is this short beside the columns is columns, too.
    pub(crate) short: u64,
    /// Fewer rows than this are no table.
    pub(crate) rows: u64,
    /// How many quarters of its data an array of rows takes at least.
    pub(crate) padded_quarters: u64,
    /// Parts of a batch to choose from.
    pub(crate) parts: &'static [u64],
    /// The hundredths of the temporaries that must have a dimension.
    pub(crate) most: u64,
}

/// An array in the device's memory.
pub(crate) trait Held {
    fn shape(&self) -> &Shape;

    fn bounds(&self) -> &[u64];

    /// Bytes it takes.
    fn bytes(&self) -> u64;

    fn role(&self) -> Role;

    /// The number of what it lies in.
    fn buffer(&self) -> usize;

    /// What the caller calls it.
    fn name(&self) -> ArrayName;

    /// The framework's name of the operation that makes it; empty where there is none.
    fn op_name(&self) -> String;

    /// It, as a recommendation is about it.
    fn advised(&self, evidence: &dyn Evidence) -> AdvisedArray;

    /// It in the program; `None` in a message.
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

/// Bytes of an array of these bounds that the compiler lays out freely, as it would this one.
pub(crate) fn default_bytes(evidence: &dyn Evidence, like: &dyn Held, bounds: &[u64]) -> Option<u64> {
    let shape =
        tilewise::tpu::default_layout(like.element_type(), bounds, evidence.generation_of(like.shape())).ok()?;
    Some(shape.as_array()?.sizes().ok()?.physical_bytes)
}
