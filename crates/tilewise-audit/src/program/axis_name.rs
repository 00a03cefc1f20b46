//! The name of an axis, and the axes of an array that have one.

/// The name of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AxisName {
    /// The samples of an input: its first dimension, which no weight has, and whose places are all treated alike.
    Batch(String),
    /// The tokens of each sample of an input: numbers that look up rows of a weight.
    Tokens(String),
    /// The words of logits: a weight has the axis, a softmax goes over it, and tokens are looked up along it.
    Vocabulary,
    /// The classes of logits: a vocabulary's axis without tokens.
    Classes,
    /// The experts: a softmax goes over the axis, and weight matrices are stacked along it.
    Experts,
    /// The layers: a loop goes through weights along the axis.
    Layers,
    /// The steps: a loop goes through other arrays along the axis.
    Steps,
    /// A dimension of an argument, with nothing more known.
    Dimension(String, usize),
}

/// An axis of an array, or several that share a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedAxis {
    /// The dimension that it is in. Several in one dimension are listed from the major to the minor one.
    pub dimension: usize,
    /// Its name.
    pub name: AxisName,
    /// Its size, the product of all axes that share the name.
    pub size: u64,
    /// Whether it counts data: an input has it, no weight does, and no product sums over it but a gradient's or an
    /// attention's.
    pub is_of_data: bool,
}
