//! Findings on arrays that hold all steps of a loop.

use crate::program::SourceLine;
use tilewise::ElementType;

/// A cache whose old and new slices are in memory at once: a loop reads an old slice in each step and stacks up the new
/// ones, or all slices are taken apart and stacked up again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackedCache {
    /// Names of the caches that are read; empty if unknown.
    pub names: Vec<String>,
    /// Number of the loop's steps, or of slices.
    pub steps: u64,
    /// The loop's line; `None` if unknown.
    pub source: Option<SourceLine>,
    /// Whether there is no loop.
    pub is_unrolled: bool,
    /// Whether it is donated, or isn't an argument.
    pub is_donated: bool,
}

/// Arrays that a loop stacks up, of which each step could give less.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackedSteps {
    /// Number of steps.
    pub steps: u64,
    /// Number of arrays.
    pub arrays: usize,
    /// The part of each step that is enough.
    pub enough: OfStep,
    /// Bytes that they take.
    pub bytes: u64,
    /// The loop's line.
    pub source: Option<SourceLine>,
}

/// The part of each step of a loop that is enough, in place of all that it stacks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OfStep {
    /// Unknown: the program returns the stack.
    Returned,
    /// The values before their conversion from this type, from which the stack that the program returns is made.
    Narrower(ElementType),
    /// The values that are made of it behind the loop.
    Made,
    /// The values that are made behind the loop of all steps together, and perhaps of each.
    MadeOverSteps(OverSteps),
    /// The values of this number of steps, which alone are read.
    Picked(u64),
    /// Nothing but the last step's value, which alone is read.
    Last,
}

/// Reductions over all steps of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverSteps {
    /// Whether sums are, or means.
    pub sums: bool,
    /// Whether maxima are.
    pub maxima: bool,
    /// Whether minima are.
    pub minima: bool,
    /// Whether sums of squared deviations from a mean are: variances, standard deviations.
    pub squares: bool,
    /// Whether logarithms of sums of exponentials are.
    pub log_sums: bool,
    /// Whether little is made of each step, too.
    pub is_each_read: bool,
    /// Whether others are, such as the place of a maximum.
    pub others: bool,
}

/// Small matrices that a loop stacks up, one for each step, each of which fills a tile of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlatStack {
    /// Number of steps.
    pub steps: u64,
    /// The bounds of a step's matrix.
    pub matrix: Vec<u64>,
    /// Bytes of the stacks at the peak.
    pub bytes: u64,
    /// The loop's line.
    pub source: Option<SourceLine>,
}

/// Arrays that a program makes before a loop, of which each step reads a part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MadeForSteps {
    /// Number of parts of the largest one.
    pub parts: u64,
    /// Bytes of the arrays.
    pub bytes: u64,
    /// Whether they hold random numbers.
    pub is_drawn: bool,
    /// Whether another loop makes them, one part in each step.
    pub is_mapped: bool,
    /// The argument whose rows they are made of, one by one; `None` if they are made of little.
    pub of: Option<String>,
    /// The number of rows in a part, and in the array.
    pub rows: (u64, u64),
    /// The line that reads a part.
    pub source: Option<SourceLine>,
}
