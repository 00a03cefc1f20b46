//! One module a verb: arguments in, results to the output.

pub(crate) mod audit;
pub(crate) mod bitcast;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod draw;
pub(crate) mod explain;
pub(crate) mod index;
pub(crate) mod man;
pub(crate) mod predict;
pub(crate) mod relayout;
pub(crate) mod show;
pub(crate) mod steps;
pub(crate) mod tiles;
