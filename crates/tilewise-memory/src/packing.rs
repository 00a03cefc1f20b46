//! The ways to pack a heap.

/// How the compiler packs a heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Packing {
    /// In the order of definition, each piece in the smallest free chunk: libtpu 0.0.51 where memory isn't short.
    #[default]
    FastMerge,
    /// The lower of two: the largest first and the longest-lived first, each piece in the smallest gap. libtpu 0.0.51
    /// tries it near the limit of memory; 0.0.17 always uses it.
    BestFit,
}
