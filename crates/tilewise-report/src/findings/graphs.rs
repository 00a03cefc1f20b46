//! Graphs that are batched: edges can't be split independently, graphs can.

use super::{
    Words,
    chunk::ADD_UP,
    words::{at_line, bounds_of, quoted},
};
use tilewise_audit::{Recommendation, recommendation::finding::BatchedGraphs};

pub(super) fn words(finding: &BatchedGraphs, about: &Recommendation) -> Words {
    let BatchedGraphs { graphs, names, edges, .. } = finding;
    let (lead, then) = if finding.has_gradient {
        ("Microbatch (gradient accumulation) by graphs: batch", ADD_UP)
    } else {
        ("Batch", "")
    };
    Words::new(format!(
        "{lead} fewer of the {graphs} graphs ({}) at a time, in arrays of as many nodes and edges as those have: most of the peak \
         has a row for each of {edges} edges, such as [{}]{}, and edges can't be split independently{then}; halves free this \
         much, more parts free more",
        quoted(names),
        bounds_of(about),
        at_line(about),
    ))
    .task(format!("Batch half of the {graphs} graphs at a time"))
}
