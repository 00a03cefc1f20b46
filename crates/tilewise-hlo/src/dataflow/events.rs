//! The ends, the beginnings and the mixtures of axes.

use super::factors::FactorKind;

/// The kinds of [`Event`](super::Event).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A dimension of an argument of the program: the number of its array, and the dimension.
    Argument(usize, usize),
    /// The axis begins: counted, drawn at random, a part or a repetition of something, or made in an unknown way.
    Made(FactorKind),
    /// The axis ends: summed, reduced, or cut to a part.
    Ends(FactorKind),
    /// Places move or meet.
    Mixed,
    /// A dimension of a result of the program: the number of its array, and the dimension.
    Result(usize, usize),
}
